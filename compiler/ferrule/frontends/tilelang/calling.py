"""The launches of TileLang's kernels: the source of each argument."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any, Final

from ferrule.compiler import conventions
from ferrule.compiler.conventions import Apart, CudaLaunch, TensorMap
from ferrule.compiler.conventions.arguments import Argument, cast
from ferrule.compiler.conventions.protocol import CallingConvention
from ferrule.compiler.cuda.code import DeviceCode
from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.frontends import cuda
from ferrule.frontends.tilelang.expressions import size_of, symbol_of, variables_of
from ferrule.frontends.tilelang.lowered import Kernel, Lowered, lower
from ferrule.specs import Dim, DType, Param, TFloat32, as_dtype
from ferrule.specs.deferred import dataclass
from ferrule.specs.params import Scalar, Tensor

_HINT: Final = "the kernel was compiled for arrays that share no memory"
_ENCODE: Final = "__tvm_tensormap_create_tiled"
_INTERLEAVE: Final = ("none", "16B", "32B")
_SWIZZLE: Final = ("none", "32B", "64B", "128B")
_PROMOTION: Final = ("none", "64B", "128B", "256B")
_FILL: Final = ("zero", "nan")
_QUIET: Final = "-w"
"""No warnings: they are about TileLang's own templates."""
_LETTERED: Final = ("sm_90", "sm_100", "sm_120")
"""Architectures whose tensor cores need the suffix `a`."""
_TFLOAT32: Final = 11
"""CU_TENSOR_MAP_DATA_TYPE_TFLOAT32."""


@dataclass(frozen=True, slots=True)
class Names:
    """The specs of a function's parameters: symbols by the names of TVM's variables, tensors by the
    names of their data."""

    specs: tuple[Param, ...]
    symbols: Mapping[str, Dim]
    tensors: Mapping[str, Tensor]

    @classmethod
    def of(cls, function: Any) -> Names:
        """The names of a function of TileLang."""
        buffers = [function.buffer_map[p] for p in function.params if p in function.buffer_map]
        dims = [dim for each in buffers for dim in (*each.shape, *each.strides)]
        variables = [variable for dim in dims for variable in variables_of(dim)]
        symbols = {str(each.name): symbol_of(each) for each in variables}
        specs: list[Param] = []
        tensors = {}
        for param in function.params:
            buffer = function.buffer_map.get(param)
            if buffer is None:
                specs.append(Scalar(str(param.name), _dtype(param)))
            else:
                tensor = _tensor(buffer, symbols)
                specs.append(tensor)
                tensors[str(buffer.data.name)] = tensor
        return cls(tuple(specs), symbols, tensors)

    def argument(self, variable: Any, maps: Mapping[str, tuple[Any, ...]]) -> Argument:
        """The argument for a kernel's parameter of this name."""
        name = str(variable.name)
        if name in maps:
            return self._map(maps[name])
        if name in self.tensors:
            return self.tensors[name].data
        if name in self.symbols:
            return cast(self.symbols[name], _dtype(variable))
        for spec in self.specs:
            if spec.name == name and isinstance(spec, Scalar):
                return spec
        raise CompileError(
            Diagnostic(
                f"a kernel takes {name}, which is no parameter of the function",
                expected=", ".join([*self.tensors, *self.symbols]),
                hint="memory between kernels is an array that the caller hands over",
            )
        )

    def _map(self, arguments: tuple[Any, ...]) -> TensorMap:
        """A tensor map in TVM's encoding: dims from the fastest on, strides in bytes."""
        kind, _, dtype, rank, data, *rest = arguments
        if getattr(kind, "value", kind) != _ENCODE:
            raise CompileError(f"a kernel takes a tensor map of {kind}, which is not known")
        tensor, count = self.tensors[str(data.name)], int(rank)
        rows = [
            [size_of(each, self.symbols, "a tensor map") for each in rest[at * count :][:count]]
            for at in range(4)
        ]
        dims, steps, box, elements = (row[::-1] for row in rows)
        item = tensor.dtype.itemsize
        interleave, swizzle, promotion, fill = (int(each) for each in rest[4 * count :])
        return TensorMap(
            tensor,
            [_constant(each) for each in box],
            [_constant(each) for each in elements],
            shape=dims,
            strides=[_divided(step, item) for step in steps],
            interleave=_INTERLEAVE[interleave],
            swizzle=_SWIZZLE[swizzle],
            l2_promotion=_PROMOTION[promotion],
            oob_fill=_FILL[fill],
            dtype=TFloat32 if int(dtype) == _TFLOAT32 else None,
        )


def launches(
    tilelang: Any, function: Any, names: Names, arch: str, configs: Mapping[str, Any]
) -> CallingConvention:
    """The launches of a function's kernels, in order."""
    lowered = lower(tilelang, function, arch, configs)
    name = str(function.attrs["global_symbol"])
    code = _compiled(tilelang, lowered.source, name, arch)
    steps: list[CallingConvention] = [Apart.of_pairs(_pairs(lowered, names), hint=_HINT)]
    steps += [_launch(each, lowered, names, code) for each in lowered.kernels]
    return conventions.Sequence(steps)


def _compiled(tilelang: Any, source: str, name: str, arch: str) -> DeviceCode:
    """The code that nvcc makes from TileLang's CUDA C++.  Raises CompileError with nvcc's
    messages."""
    try:
        module = cuda.module(
            source,
            name=f"{name}.cu",
            target=arch,
            include_paths=_include_paths(tilelang),
            flags=[_QUIET],
            compiler="nvcc",
        )
    except CompileError as error:
        if arch in _LETTERED:
            hint = f"TileLang writes code for {arch}a where {arch} is named: target='{arch}a'"
            raise CompileError(Diagnostic(str(error), hint=hint)) from error
        raise
    return module.code


def _include_paths(tilelang: Any) -> list[str]:
    """The folders of TileLang's templates, and of CUTLASS, which it contains."""
    return [tilelang.env.TILELANG_TEMPLATE_PATH, tilelang.env.CUTLASS_INCLUDE_DIR]


def _launch(kernel: Kernel, lowered: Lowered, names: Names, code: DeviceCode) -> CudaLaunch:
    grid, block = (
        [size_of(each, names.symbols, f"a size of the launch of {kernel.name}") for each in sizes]
        for sizes in (kernel.grid, kernel.block)
    )
    smem = size_of(kernel.smem, names.symbols, f"the shared memory of {kernel.name}")
    return CudaLaunch(
        code,
        kernel.name,
        [names.argument(each, lowered.maps) for each in kernel.params],
        grid=grid,
        block=block,
        smem=smem,
        cluster=kernel.cluster,
        cooperative=kernel.cooperative,
        use_pdl=kernel.use_pdl,
    )


def _pairs(lowered: Lowered, names: Names) -> Iterator[tuple[Tensor, Tensor]]:
    """Each pair of a kernel's tensors of which it writes at least one, once."""
    found: dict[tuple[str, str], None] = {}
    for kernel in lowered.kernels:
        used = [name for name in map(_data_name, kernel.params) if name in names.tensors]
        for left, right in combinations(used, 2):
            if {left, right} & kernel.written:
                found[left, right] = None
    for left, right in found:
        yield names.tensors[left], names.tensors[right]


def _data_name(variable: Any) -> str:
    return str(variable.name).removesuffix("_desc")


def _tensor(buffer: Any, symbols: Mapping[str, Dim]) -> Tensor:
    name = str(buffer.name)
    shape = [size_of(each, symbols, f"a size of {name}") for each in buffer.shape]
    strides = [size_of(each, symbols, f"a stride of {name}") for each in buffer.strides]
    align = int(buffer.data_alignment)
    return Tensor(name, shape, _dtype(buffer), strides=strides or None, align=align)


def _dtype(typed: Any) -> DType:
    try:
        return as_dtype(str(typed.dtype))
    except (TypeError, ValueError):
        raise CompileError(
            f"{typed.name} is of {typed.dtype}, which no argument of a call has"
        ) from None


def _constant(dim: Dim) -> int:
    if not isinstance(dim, int):
        raise CompileError(f"a box of a tensor map depends on the call: {dim}")
    return dim


def _divided(step: Dim, item: int) -> Dim:
    return step // item
