"""The MLIR types of the kernel IR's values."""

from __future__ import annotations

from typing import Final

from ferrule import specs
from ferrule.language.codegen.errors import CodegenError
from ferrule.language.ir.types import HandleType, TensorType, Type
from ferrule.specs import Dim, DType, compact_strides
from ferrule.specs.deferred import dataclass

_SCALARS: Final[dict[DType, str]] = {
    specs.Boolean: "i1",
    specs.Int8: "i8",
    specs.Int16: "i16",
    specs.Int32: "i32",
    specs.Int64: "i64",
    specs.Uint8: "i8",
    specs.Uint16: "i16",
    specs.Uint32: "i32",
    specs.Uint64: "i64",
    specs.Float16: "f16",
    specs.BFloat16: "bf16",
    specs.Float32: "f32",
    specs.TFloat32: "f32",
    specs.Float64: "f64",
    **{dtype: "i8" for dtype in specs.ALL_DTYPES if dtype.is_narrow and dtype.has_values},
}
"""The type of a value; a float of 8 bits is its bits, as `mathlib` has replaced what computes with
them."""
_STORED: Final[dict[DType, str]] = {
    specs.Complex64: "complex<f32>",
    specs.Complex128: "complex<f64>",
    **{
        dtype: f"f{dtype.__name__.removeprefix('Float')}"
        for dtype in (
            *(specs.Float8E3M4, specs.Float8E4M3, specs.Float8E4M3B11FNUZ, specs.Float8E4M3FN),
            *(specs.Float8E4M3FNUZ, specs.Float8E5M2, specs.Float8E5M2FNUZ, specs.Float8E8M0FNU),
        )
    },
}
"""Elements whose type in memory is not that of a value, or that exist in memory only."""
HALVES: Final = (specs.Float16, specs.BFloat16, specs.TFloat32)
"""Dtypes that are computed in float32."""
_MOST: Final = 1 << 40


@dataclass(frozen=True, slots=True)
class Spaces:
    """The memory of a target: the spaces of tensors in global and in shared memory, and the type of
    a bool in memory."""

    gmem: int = 0
    smem: int = 0
    boolean: str = "i8"

    def of(self, type_: TensorType) -> int:
        """The memory space of a tensor; a thread's own memory is in the default one."""
        if type_.is_own:
            return 0
        return self.smem if type_.is_shared else self.gmem


def scalar_type(dtype: DType) -> str:
    """The type of a scalar.  Raises CodegenError for a dtype that is only stored."""
    known = _SCALARS.get(dtype)
    if known is None:
        raise CodegenError(f"MLIR has no arithmetic for elements of type {dtype.name} here")
    return known


def element_type(dtype: DType, spaces: Spaces) -> str:
    """The type of an element in memory, where a bool is a byte."""
    if dtype is specs.Boolean:
        return spaces.boolean
    return _STORED.get(dtype) or scalar_type(dtype)


def value_type(type_: Type, spaces: Spaces) -> str:
    """The type of a value."""
    match type_:
        case TensorType():
            return tensor_type(type_, spaces)
        case HandleType():
            return "!llvm.ptr"
    return scalar_type(type_)


def tensor_type(type_: TensorType, spaces: Spaces) -> str:
    """The memref of a tensor, with any offset into its buffer."""
    sizes = "".join(f"{d}x" if static_size(d) else "?x" for d in type_.shape)
    strides = ", ".join(str(s) if static_stride(s) else "?" for s in type_.strides)
    space = f", {spaces.of(type_)}" if spaces.of(type_) else ""
    element = element_type(type_.dtype, spaces)
    return f"memref<{sizes}{element}, strided<[{strides}], offset: ?>{space}>"


def whole_type(type_: TensorType, spaces: Spaces) -> str:
    """The memref of a tensor that begins where its buffer begins: without a layout if it is compact
    and row-major."""
    if is_compact(type_):
        sizes = "".join(f"{d}x" if static_size(d) else "?x" for d in type_.shape)
        space = f", {spaces.of(type_)}" if spaces.of(type_) else ""
        return f"memref<{sizes}{element_type(type_.dtype, spaces)}{space}>"
    return tensor_type(type_, spaces).replace(", offset: ?", "")


def is_compact(type_: TensorType) -> bool:
    """Whether a tensor is compact and row-major."""
    return type_.strides == compact_strides(type_.shape, range(len(type_.shape))[::-1])


def base_type(type_: TensorType, spaces: Spaces) -> str:
    """The memref of a tensor's first element."""
    space = f", {spaces.of(type_)}" if spaces.of(type_) else ""
    return f"memref<{element_type(type_.dtype, spaces)}{space}>"


def static_size(dim: Dim) -> bool:
    """Whether a size is a constant of the type."""
    return isinstance(dim, int) and 0 <= dim < _MOST


def static_stride(dim: Dim) -> bool:
    """Whether a stride is a constant of the type."""
    return isinstance(dim, int) and 0 < dim < _MOST
