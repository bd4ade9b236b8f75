"""The representation of a scalar of each dtype in LLVM: as a value, in memory, and as a constant.

A bool is i1 as a value and a byte in memory, where any non-zero byte is True.  A 2-byte float is
its bits in an i16: no baseline CPU has instructions for it, and LLVM would call a library.  A
TFloat32 is a float whose lower 13 bits are 0; in memory they are arbitrary.  A float of 8 bits is
its bits in an i8, and `mathlib` has replaced what computes with them.  Complex and sub-byte types
are for storage only; there is no arithmetic on them yet.
"""

from __future__ import annotations

from typing import Final, Literal

from llvmlite import ir

from ferrule import specs
from ferrule.language.codegen.errors import CodegenError
from ferrule.language.ir import ops
from ferrule.runtime.llvm.layouts import F32, F64, I1, I8, I16, I32, I64
from ferrule.specs import DType
from ferrule.specs.rounding import (
    as_float,
    bfloat16_bits,
    float16_bits,
    float32_value,
    tfloat32_value,
)

Form = Literal["bool", "int", "uint", "float", "half"]
"""The family of instructions for a dtype; `half` are the floats that are computed in float32."""

_VALUES: Final[dict[DType, ir.Type]] = {
    specs.Boolean: I1,
    specs.Int8: I8,
    specs.Int16: I16,
    specs.Int32: I32,
    specs.Int64: I64,
    specs.Uint8: I8,
    specs.Uint16: I16,
    specs.Uint32: I32,
    specs.Uint64: I64,
    specs.Float16: I16,
    specs.BFloat16: I16,
    specs.Float32: F32,
    specs.TFloat32: F32,
    specs.Float64: F64,
    **{dtype: I8 for dtype in specs.ALL_DTYPES if dtype.is_narrow and dtype.has_values},
}
_HALVES: Final = (specs.Float16, specs.BFloat16, specs.TFloat32)
_FORMS: Final[dict[str, Form]] = {"bool": "bool", "int": "int", "uint": "uint", "float": "float"}


def dtype_of(value: ops.Value) -> DType:
    """The dtype of a value that is a scalar.  Raises TypeError for a tensor."""
    if isinstance(value.type, DType):
        return value.type
    raise TypeError(f"%{value.hint} is no scalar")


def value_type(dtype: DType) -> ir.Type:
    """The LLVM type of a value.  Raises CodegenError for a dtype that is storage only."""
    known = _VALUES.get(dtype)
    if known is None:
        raise CodegenError(f"the target has no code for elements of type {dtype.name} yet")
    return known


def memory_type(dtype: DType) -> ir.Type:
    """The LLVM type of an element in memory and of a scalar that C code passes."""
    return I8 if dtype is specs.Boolean else value_type(dtype)


def form(dtype: DType) -> Form:
    """The family of a dtype that has values."""
    value_type(dtype)
    return "half" if dtype in _HALVES else _FORMS[dtype.kind]


def constant(dtype: DType, value: bool | int | float) -> ir.Constant:
    """A number of this dtype; a float is rounded to it, to nearest and ties to even."""
    if dtype.kind != "float":
        return ir.Constant(value_type(dtype), int(value))
    number = as_float(value)
    if dtype.is_narrow:
        from ferrule.specs.narrow import encode, format_of

        return ir.Constant(value_type(dtype), encode(format_of(dtype), number))
    if dtype is specs.Float16:
        return ir.Constant(I16, float16_bits(number))
    if dtype is specs.BFloat16:
        return ir.Constant(I16, bfloat16_bits(number))
    if dtype is specs.TFloat32:
        return ir.Constant(F32, tfloat32_value(number))
    return ir.Constant(value_type(dtype), float32_value(number) if dtype.bits == 32 else number)
