"""Functions of MLIR modules: `fe.frontends.mlir.compile(module)`.

    fn = fe.frontends.mlir.compile('''
        func.func @scale(%x: memref<?xf32>, %y: memref<?xf32>, %by: f32) { … }
    ''')
    fn(x, y, 2.0)

MLIR lowers the module in a child process, see `ferrule.compiler.mlir`; the result, LLVM IR or PTX,
is called as any other code.  MLIR is not needed to call the function, or to load an export of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from ferrule.compiler.errors import CompileError
from ferrule.compiler.mlir.child import in_child
from ferrule.compiler.options import Options, parse_options
from ferrule.frontends.given import requiring, texts
from ferrule.frontends.mlir.kinds import Buffer
from ferrule.frontends.mlir.lowering import Lowered, Request, lower
from ferrule.frontends.mlir.modules import read_module
from ferrule.frontends.mlir.stablehlo import without_stablehlo
from ferrule.frontends.mlir.targets import require_target, with_target

if TYPE_CHECKING:
    from ferrule.runtime import Function
    from ferrule.specs import Condition, Dim, Requirement, Signature

    Sizes = Dim | Sequence[Dim]

__all__ = ["compile"]

_NO_SPECS: Final[Mapping[str, Any]] = MappingProxyType({})


def compile(
    module: object,
    function: str | None = None,
    *,
    specs: Mapping[str, Any] = _NO_SPECS,
    signature: Signature | None = None,
    target: str | Sequence[str] | None = None,
    pipeline: str | None = None,
    libraries: Sequence[str] = (),
    asserts: bool = True,
    checks: bool = False,
    grid: Sizes | Callable[[Signature], Sizes] | None = None,
    block: Sizes | Callable[[Signature], Sizes] | None = None,
    smem: Dim | Callable[[Signature], Dim] | None = None,
    cluster: Sizes | Callable[[Signature], Sizes] | None = None,
    name: str | None = None,
    doc: str | None = None,
    requires: Sequence[Condition | Requirement] = (),
    options: str | Options | None = None,
) -> Function:
    """The function for the `func.func` of this name in an MLIR module, by default the only public
    one.

    `module`: its text (with a line break, a brace or a semicolon), its bytecode, the path of a file
    with either, or a module object of any package's bindings.  Parameters follow from the
    function's type: a memref or tensor is a tensor, a dynamic size is a symbol, the same one for
    sizes that the function's operations require to be equal, a strided layout gives the strides;
    `index`, integers and floats are numbers.  `specs` refines some of them by name, with specs or
    fake tensors; `signature` gives all of them; `requires` as for `fe.compile`.  Tensors are
    read-only, unless the argument is marked `bufferization.writable = true`.

    `pipeline` lowers the module to the dialect `llvm`, as `builtin.module(…)`, in place of the
    passes of `pipelines`; if kernels are launched, its input is the module with outlined launches,
    and it lowers the contents of each `gpu.module`.  `libraries` contain functions that the module
    only declares.  The call raises RuntimeError for a `cf.assert` that fails, and for sizes that do
    not fit an operation; `checks=True` adds checks of the indices of loads and stores, and adds all
    these checks to a `pipeline`.  `asserts=False` omits all of them, and so memory safety.
    `target` is "cpu", or for kernels an architecture such as "sm_90a", or several; by default the
    module determines it, and the architecture is that of `FERRULE_GPU_ARCH` or the first GPU.

    With `grid` the function is a kernel of a `gpu.module`, named as "kernel" or "module::kernel",
    and the call makes one launch of it.  `grid`, `block` and `cluster` are one to three sizes,
    `smem` is the dynamic shared memory in bytes, or they are functions that compute these from the
    signature; the default of `block` is the kernel's `gpu.known_block_size`.

    Raises ImportError if no package with MLIR is installed; CompileError with MLIR's diagnostics
    for an invalid module or pipeline, for types that no argument can have, for host code between
    launches other than branches, counted loops and assertions of integers, and for a target that
    does not fit the module, or for a grid that is the same in every call although sizes differ;
    OSError for a file that cannot be read, TypeError for a module, a text or a list of libraries of
    another type, and for a `block`, `smem` or `cluster` without a `grid`.
    """
    chosen = with_target(parse_options(options), target)
    _check_grid(grid, block=block, smem=smem, cluster=cluster)
    request = Request(function, pipeline, asserts, checks, launched=grid is not None)
    named = texts("libraries", libraries)
    lowered = in_child(lower, without_stablehlo(read_module(module)), request)
    require_target(lowered.function.symbol, chosen, launches=bool(lowered.steps))
    # Imported here, because the process of MLIR imports this module too.
    from ferrule.compiler.building import build
    from ferrule.frontends.mlir.signatures import signature_of

    wanted = requiring(signature_of(lowered.function, name, specs, signature), requires)
    if lowered.steps:
        from ferrule.frontends.mlir.launching import Given, device_code, launched, launching

        code = device_code(lowered.kernels, chosen)
        said = None if grid is None else Given(grid, block, smem, cluster)
        convention = (
            launching(lowered.steps, code, wanted)
            if said is None
            else launched(lowered.steps, code, wanted, said, lowered.known)
        )
        used = replace(chosen, gpu_arch=None, cubin=False, ptxas_options="")
        return build(wanted, convention, options=used, doc=doc)
    return build(wanted, _call(lowered, wanted, named), options=chosen, doc=doc)


def _check_grid(grid: object, **others: object) -> None:
    """Raises TypeError for sizes of a launch without a grid."""
    for name, given in others.items():
        if grid is None and given is not None:
            raise TypeError(f"{name}= is a size of a launch, which grid=… asks for")


def _call(lowered: Lowered, signature: Signature, libraries: Sequence[str]) -> Any:
    """The convention that calls the lowered function."""
    from ferrule.compiler.conventions.memref import Descriptor, Memref
    from ferrule.compiler.hostcode import HostCode
    from ferrule.frontends.mlir.bfloat16 import without_bfloat
    from ferrule.frontends.mlir.float16 import with_conversions
    from ferrule.frontends.mlir.signatures import returns
    from ferrule.frontends.mlir.support import with_support
    from ferrule.specs import Tensor

    text = without_bfloat(with_conversions(with_support(lowered.host)))
    try:
        code = HostCode.from_llvm(text, libraries=libraries)
    except CompileError as error:
        raise CompileError(f"@{lowered.function.symbol} as LLVM IR: {error}") from None
    arguments = [
        Descriptor(param, "c", kind.inner)
        if isinstance(kind, Buffer) and isinstance(param, Tensor) and kind.inner
        else param
        for kind, param in zip(lowered.function.arguments, signature.params, strict=True)
    ]
    return Memref(
        lowered.function.symbol,
        arguments,
        returns=returns(lowered.function.results),
        code=code,
        raises=lowered.raises,
    )
