"""Launches of Warp's kernels: the arguments that `wp.launch` passes to them.

`launch_bounds_t<N>` of Warp 1.19 (`warp/native/builtin.h`) is `{u32 shape[N], u64 size, u64
coord_mult}`, where N is the number of indices that the kernel takes from `wp.tid()`, `size` is the
number of threads, and `coord_mult` is the number of threads with the same indices.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from llvmlite import ir

from ferrule.compiler.artefacts import Fault, literal
from ferrule.compiler.conventions import CallingConvention, CudaLaunch
from ferrule.compiler.conventions.arguments import Argument
from ferrule.compiler.conventions.base import Call
from ferrule.compiler.conventions.c.functions import CFunction
from ferrule.compiler.conventions.c.host_arguments import Reference
from ferrule.compiler.conventions.c.structs import Struct
from ferrule.compiler.cuda.code import DeviceCode
from ferrule.compiler.cuda.kernelfacts import KernelFacts
from ferrule.compiler.errors import CompileError
from ferrule.compiler.hostcode import HostCode
from ferrule.frontends.warp.binaries import cpu_kernel, cuda_kernel
from ferrule.frontends.warp.types import MAX_DIMS
from ferrule.runtime.llvm.layouts import I8, I32
from ferrule.specs import Dim, ceil_div, minimum
from ferrule.specs.deferred import dataclass
from ferrule.specs.expr import is_dim, make

_MOST: Final = (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class LaunchBounds:
    """A `launch_bounds_t`: the sizes of the launch, for a kernel with `rank` indices."""

    kernel: str
    dims: tuple[Dim, ...]
    rank: int

    def __post_init__(self) -> None:
        if not 1 <= len(self.dims) <= MAX_DIMS:
            raise CompileError(f"dim takes 1 to {MAX_DIMS} sizes, but got {len(self.dims)}")
        for dim in self.dims:
            if not is_dim(dim):
                raise TypeError(f"dim must be a size, or the name of an array, but got {dim!r}")
            if isinstance(dim, int) and dim < 0:
                raise ValueError(f"dim must not be negative, but got {dim}")

    @property
    def threads(self) -> Dim:
        """The number of all threads."""
        return _product(self.dims)

    @property
    def align(self) -> int:
        """See `InMemory`."""
        return 8

    @property
    def size(self) -> int:
        """See `InMemory`."""
        return self._behind + 16

    @property
    def _behind(self) -> int:
        """The offset after the sizes."""
        # 4 bytes a size, and then a pointer, which is aligned to 8.
        return -(-4 * self.rank // 8) * 8

    def store(self, call: Call, place: ir.Value, what: str) -> None:
        """See `InMemory`; the call raises LaunchError for a dim beyond the range of an index."""
        e = call.emitter
        dims = [*self.dims, *(1,) * (self.rank - len(self.dims))]
        for axis, dim in enumerate(dims):
            value = self._extent(call, axis, dim)
            if axis < self.rank:
                e.store(e.builder.trunc(value, I32), e.index(place, I32, axis))
        shared = _product(dims[self.rank :])
        head = f"Invalid launch of {self.kernel}: the number of threads"
        for offset, size in ((0, self.threads), (8, shared)):
            value = call.size(size, head, "LaunchError")
            e.store(value, e.index(place, I8, self._behind + offset))

    def _extent(self, call: Call, axis: int, dim: Dim) -> ir.Value:
        e, head = call.emitter, f"Invalid launch of {self.kernel}: "
        value = call.size(dim, f"{head}dim {axis}", "LaunchError")
        message = f"{literal(head)}expected dim {axis} to be in [0, {_MOST}], but got {{}}"
        beyond = e.icmp("ugt", value, e.const_i64(_MOST))
        call.refuse(beyond, Fault("LaunchError", message), [value])
        return value


def cpu_call(
    warp: Any, kernel: Any, dims: tuple[Dim, ...], packed: Sequence[Argument], flags: str | None
) -> CallingConvention:
    """The call of a kernel on the CPU: the whole launch runs in this thread."""
    compiled = cpu_kernel(warp, kernel, flags)
    code = HostCode.from_object(compiled.data)
    bounds = LaunchBounds(kernel.key, dims, kernel.adj.kernel_dim)
    given = [Reference(each, reads_only=True) for each in (bounds, Struct(packed))]
    return CFunction(compiled.function, given, code=code)


def cuda_call(
    warp: Any,
    kernel: Any,
    dims: tuple[Dim, ...],
    packed: Sequence[Argument],
    archs: Sequence[str],
    block_dim: int,
    max_blocks: int | None,
) -> CallingConvention:
    """The launch of a kernel on a GPU, with a block for each `block_dim` threads."""
    compiled = cuda_kernel(warp, kernel, archs, block_dim)
    # Warp's own constants that are zero are variables without an initial value; kernels have no
    # others.
    facts = KernelFacts(compiled.kernel, variables=frozenset())
    code = replace(DeviceCode.from_cubin(compiled.cubins, [compiled.kernel]), facts=(facts,))
    bounds = LaunchBounds(kernel.key, dims, kernel.adj.kernel_dim)
    grid = ceil_div(bounds.threads, block_dim)
    if max_blocks is not None:
        grid = minimum(grid, max_blocks)
    return CudaLaunch(
        code, compiled.kernel, [bounds, *packed], grid=grid, block=block_dim, smem=compiled.smem
    )


def _product(dims: Sequence[Dim]) -> Dim:
    found: Dim = 1
    for dim in dims:
        found = make("mul", found, dim)
    return found
