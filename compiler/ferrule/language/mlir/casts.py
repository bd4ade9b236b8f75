"""Conversions of scalars between dtypes, with the meaning of `Cast` and `Bitcast`."""

from __future__ import annotations

from ferrule import specs
from ferrule.language.mlir import halves
from ferrule.language.mlir.text import Text
from ferrule.language.mlir.types import HALVES, scalar_type
from ferrule.specs import DType
from ferrule.specs.narrow import encode, format_of
from ferrule.specs.rounding import (
    as_float,
    bfloat16_bits,
    float16_bits,
    float32_value,
    tfloat32_value,
)

_CUT = 11
"""The bits of a 64-bit integer that do not fit into the significand of a float64."""


def constant(t: Text, dtype: DType, value: bool | int | float) -> str:
    """A number of this dtype; a float is rounded to it, to nearest and ties to even."""
    type_ = scalar_type(dtype)
    if dtype.kind != "float":
        return t.integer(int(value), type_)
    number = as_float(value)
    if dtype.is_narrow:
        return t.integer(encode(format_of(dtype), number), type_)
    if dtype is specs.Float16:
        return t.float_bits(float16_bits(number), type_)
    if dtype is specs.BFloat16:
        return t.float_bits(bfloat16_bits(number), type_)
    if dtype is specs.TFloat32:
        return t.float32(tfloat32_value(number))
    return t.float64(number) if dtype.bits == 64 else t.float32(float32_value(number))


def cast(t: Text, source: DType, target: DType, operand: str, *, native: bool) -> str:
    """The operand in another dtype."""
    if source is target:
        return operand
    if source.kind != "float":
        return _from_integer(t, source, target, operand, native=native)
    if source in HALVES and target.kind == "bool" and source is not specs.TFloat32:
        bits = t.cast("bitcast", operand, "i16")
        magnitude = t.binary("shl", bits, t.integer(1, "i16"))
        return t.icmp("ne", magnitude, t.integer(0, "i16"))
    if source in HALVES:
        wide = halves.widen(t, source, operand, native=native)
        return cast(t, specs.Float32, target, wide, native=native)
    return _from_float(t, target, operand, native=native)


def bitcast(t: Text, target: DType, operand: str) -> str:
    """The same bits in another dtype of the same size."""
    return t.cast("bitcast", operand, scalar_type(target))


def widen(t: Text, dtype: DType, operand: str) -> str:
    """An integer or bool in 64 bits."""
    return t.cast("extsi" if dtype.kind == "int" else "extui", operand, "i64")


def _from_integer(t: Text, source: DType, target: DType, operand: str, *, native: bool) -> str:
    type_, given = scalar_type(target), t.types[operand]
    if target.kind == "bool":
        return t.icmp("ne", operand, t.integer(0, given))
    if target.kind != "float":
        if int(type_[1:]) < int(given[1:]):
            return t.cast("trunci", operand, type_)
        return t.cast("extsi" if source.kind == "int" else "extui", operand, type_)
    convert = "sitofp" if source.kind == "int" else "uitofp"
    if target not in HALVES:
        return t.cast(convert, operand, type_)
    if source.bits == 64:
        operand = _fit_float64(t, source, operand)
    return halves.narrow(t, target, t.cast(convert, operand, "f64"), native=native)


def _fit_float64(t: Text, source: DType, operand: str) -> str:
    """The integer, rounded to odd where a float64 cannot hold it."""
    zero = t.const_i64(0)
    kept = t.binary("and", operand, t.const_i64(-(1 << _CUT)))
    sticky = t.icmp("ne", t.binary("and", operand, t.const_i64((1 << _CUT) - 1)), zero)
    odd = t.binary("or", kept, t.select(sticky, t.const_i64(1 << _CUT), zero))
    limit = t.const_i64(1 << 53)
    if source.kind == "int":  # |x| < 2**53, in one comparison
        fits = t.icmp("ult", t.binary("add", operand, limit), t.const_i64(1 << 54))
    else:
        fits = t.icmp("ult", operand, limit)
    return t.select(fits, operand, odd)


def _from_float(t: Text, target: DType, operand: str, *, native: bool) -> str:
    type_ = scalar_type(target)
    if target.kind == "bool":
        return t.fcmp("une", operand, _float(t, operand, 0.0))
    if target.kind != "float":
        return _saturated(t, target, operand)
    if target in HALVES:
        return halves.narrow(t, target, operand, native=native)
    return t.cast("truncf" if type_ == "f32" else "extf", operand, type_)


def _saturated(t: Text, target: DType, operand: str) -> str:
    """The float converted to an integer towards zero, clamped to the target's range; 0 for a NaN.

    The result of `arith.fptosi` is undefined where the number does not fit: a select discards it
    there.
    """
    type_, (low, high) = scalar_type(target), target.range
    convert = "fptosi" if target.kind == "int" else "fptoui"
    inside = t.cast(convert, operand, type_)
    above = t.fcmp("oge", operand, _float(t, operand, float(high + 1)))
    below = t.fcmp("ole", operand, _float(t, operand, float(low)))
    is_nan = t.fcmp("uno", operand, operand)
    result = t.select(above, t.integer(high, type_), inside)
    result = t.select(below, t.integer(low, type_), result)
    return t.select(is_nan, t.integer(0, type_), result)


def _float(t: Text, like: str, value: float) -> str:
    return t.float32(value) if t.types[like] == "f32" else t.float64(value)
