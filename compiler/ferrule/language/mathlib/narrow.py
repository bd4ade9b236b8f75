"""Floats of fewer than 16 bits: their conversions in integer code, and arithmetic in float32.

The facts of a format are those of `ferrule.specs.narrow`; one encoder and one decoder serve all of
them.  A float64 and a 64-bit integer are rounded to *odd* on the way to float32, so that a number
is rounded once.  Sums and products of two numbers have at most 10 bits each, so rounding a float32
again is rounding once for + - * / and the square root; `fma` is computed in float64.

A target that has an instruction for float32 to a format with `satfinite`, or back, keeps such a
`Cast`.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Final, TypeAlias

from ferrule.language.ir import ops
from ferrule.language.ir.builder import Builder
from ferrule.language.mathlib.formulas import Num
from ferrule.specs import DType, Float32, Float64, Int32, Int64, Uint8, Uint32, Uint64
from ferrule.specs.narrow import Format, format_of

Emit: TypeAlias = Callable[[Builder, ops.Op], None]
"""Appends an op, expanded if necessary."""
Keeps: TypeAlias = "Callable[[ops.Cast], bool]"

# Of float32, in which narrow floats are computed.
_MANTISSA: Final = 23
_BIAS: Final = 127
_INFINITY: Final = 0x7F800000
_NAN: Final = 0x7FC00000
_CUT: Final = 11
"""The bits of a 64-bit integer that do not fit into a float64."""


def touches(op: ops.Op) -> bool:
    """Whether this is arithmetic on narrow floats, or a conversion from or to one."""
    match op:
        case ops.Unary() | ops.Binary() | ops.Fma():
            return _is_narrow(op.result)
        case ops.Compare(_, _, lhs):
            return _is_narrow(lhs)
        case ops.Cast(result, operand):
            return _is_narrow(result) or _is_narrow(operand)
    return False


def expand(keeps: Keeps, emit: Emit, b: Builder, op: ops.Op) -> None:
    """Appends simpler ops with the result of one that `touches` narrow floats."""
    match op:
        case ops.Cast(result, operand, saturate) if _is_narrow(result):
            _narrow(keeps, b, result, _as_float32(keeps, Num(b, operand)), saturate)
        case ops.Cast(result, operand):
            b.append(ops.Cast(result, _widened(keeps, Num(b, operand)).value))
        case ops.Compare(_, _, lhs, rhs):
            sides = [_widened(keeps, Num(b, side)).value for side in (lhs, rhs)]
            b.append(replace(op, lhs=sides[0], rhs=sides[1]))
        case ops.Fma(result, x, y, z):
            wide = [_widened(keeps, Num(b, each)).to(Float64) for each in (x, y, z)]
            exact = wide[0] * wide[1] + wide[2]
            _narrow(keeps, b, result, _to_odd_float32(exact), saturate=False)
        case ops.Unary(result, _, operand):
            wide_result = ops.Value(Float32, result.hint)
            x = _widened(keeps, Num(b, operand)).value
            emit(b, replace(op, result=wide_result, operand=x))
            _narrow(keeps, b, result, Num(b, wide_result), saturate=False)
        case ops.Binary(result, _, lhs, rhs):
            wide_result = ops.Value(Float32, result.hint)
            sides = [_widened(keeps, Num(b, side)).value for side in (lhs, rhs)]
            emit(b, replace(op, result=wide_result, lhs=sides[0], rhs=sides[1]))
            _narrow(keeps, b, result, Num(b, wide_result), saturate=False)


def decoded(dtype: DType, bits: Num) -> Num:
    """The float32 of a narrow float's bits, in a Uint32; the other bits are 0."""
    form = format_of(dtype)
    return (_signed(form, bits) if form.signed else _power(bits)).bits(Float32)


def encoded(dtype: DType, x: Num) -> Num:
    """The bits, in a Uint32, of the narrow float that is nearest to any number."""
    form = format_of(dtype)
    encode = _encoded if form.signed else _encoded_power
    return encode(form, _as_float32(lambda _: False, x).bits(Uint32), False)


def _is_narrow(value: ops.Value) -> bool:
    return isinstance(value.type, DType) and value.type.is_narrow


# ---- to float32, rounded to odd if necessary ----


def _as_float32(keeps: Keeps, x: Num) -> Num:
    """A number as a float32 that rounds to a narrow float as the number itself does."""
    dtype = x.dtype
    if dtype.is_narrow:
        return _widened(keeps, x)
    if dtype.is_integer and dtype.bits == 64:
        return _to_odd_float32(_fitted(x).to(Float64))
    if dtype.is_integer and dtype.bits == 32:
        return _to_odd_float32(x.to(Float64))
    return _to_odd_float32(x) if dtype is Float64 else x.to(Float32)


def _fitted(x: Num) -> Num:
    """A 64-bit integer, rounded to odd if a float64 cannot hold it."""
    sticky = (x & ((1 << _CUT) - 1)).differs(0)
    kept = (x >> _CUT) << _CUT
    odd = kept | sticky.pick(x.like(1 << _CUT), 0)
    if x.dtype is Int64:
        fits = (x + (1 << 53)).bits(Uint64) < (1 << 54)
    else:
        fits = x < (1 << 53)
    return fits.pick(x, odd)


def _to_odd_float32(x: Num) -> Num:
    """A float64 as the float32 nearest to it on the side of zero, whose last bit records what was
    cut off; a NaN stays one."""
    near = x.to(Float32)
    back = near.to(Float64)
    larger, smaller = back > x, back < x
    away = (x >= 0.0).pick(larger, smaller)
    bits = near.bits(Uint32) - away.to(Uint32)
    return (bits | (larger | smaller).to(Uint32)).bits(Float32)


# ---- narrow floats to float32 ----


def _widened(keeps: Keeps, x: Num) -> Num:
    """The float32 with the value of a narrow float."""
    kept = ops.Cast(ops.Value(Float32, x.value.hint), x.value)
    if keeps(kept):
        x.b.append(kept)
        return Num(x.b, kept.result)
    return decoded(x.dtype, x.bits(Uint8).to(Uint32))


def _signed(form: Format, bits: Num) -> Num:
    """The bits of the float32."""
    cut, size = _MANTISSA - form.mantissa, bits & (form.sign - 1)
    shifted = size << cut
    normal = shifted + ((_BIAS - form.bias) << _MANTISSA)
    # A conversion, because some processes flush subnormal floats to zero.
    step = math.ldexp(1.0, form.least_exponent - form.mantissa)
    tiny = (size.bits(Int32).to(Float32) * step).bits(Uint32)
    found = (size < (1 << form.mantissa)).pick(tiny, normal)
    if form.infinity is not None:
        special = shifted + ((255 - (1 << form.exponent) + 1) << _MANTISSA)
        found = found.unless(size >= form.infinity, special)
    elif form.specials == "fn":
        found = found.unless(size.equals(form.nan or 0), _NAN)
    place = form.exponent + form.mantissa
    found = found | ((bits & form.sign) << (31 - place))
    return found.unless(bits.equals(form.sign), _NAN) if form.specials == "fnuz" else found


def _power(bits: Num) -> Num:
    """The bits of the float32 with the value of a Float8E8M0FNU."""
    # 2**-127 is a subnormal float32.
    found = (bits << _MANTISSA).unless(bits.equals(0), 1 << (_MANTISSA - 1))
    return found.unless(bits.equals(255), _NAN)


# ---- float32 to narrow floats ----


def _narrow(keeps: Keeps, b: Builder, result: ops.Value, x: Num, saturate: bool) -> None:
    """Defines `result` as the nearest narrow float."""
    assert isinstance(result.type, DType)
    form = format_of(result.type)
    kept = ops.Cast(ops.Value(result.type, result.hint), x.value, saturate=True)
    if keeps(kept):
        b.append(kept)
        found = Num(b, kept.result).bits(Uint8)
        if not saturate:
            found = _overflowing(form, x.bits(Uint32), found)
    else:
        encode = _encoded if form.signed else _encoded_power
        found = encode(form, x.bits(Uint32), saturate).to(Uint8)
    b.append(ops.Bitcast(result, found.value))


def _overflowing(form: Format, bits: Num, found: Num) -> Num:
    """The bits of the plain conversion, from those of the saturating one."""
    size, first = bits & 0x7FFFFFFF, _first_beyond(form)
    sign = ((bits >> 24) & form.sign).to(Uint8)
    # As unsigned numbers: a size below the first one wraps, and a NaN is above infinity.
    beyond = (size - first) <= _INFINITY - first
    return beyond.pick(sign | form.overflow, found)


@cache
def _first_beyond(form: Format) -> int:
    """The bits of the smallest float32 that rounds beyond the largest number."""
    step = math.ldexp(1.0, math.frexp(form.maximum)[1] - 1 - form.mantissa)
    (bits,) = struct.unpack("<I", struct.pack("<f", form.maximum + step / 2))
    return int(bits) + (form.largest % 2 == 0)  # a tie goes to the even one


def _encoded(form: Format, bits: Num, saturate: bool) -> Num:
    """The bits of the nearest number, of the bits of a float32."""
    size, cut = bits & 0x7FFFFFFF, _MANTISSA - form.mantissa
    odd = (size >> cut) & 1
    # To nearest, ties to even: half of the last bit, or one less if the last bit is 0.
    large = (size + odd + ((1 << (cut - 1)) - 1)) >> cut
    large = large - ((_BIAS - form.bias) << form.mantissa)
    # The last bit of a float with this exponent is worth as much as that of a subnormal number.
    unit = math.ldexp(1.0, _MANTISSA + form.least_exponent - form.mantissa)
    aligned = (size.bits(Float32) + unit).bits(Uint32)
    small = aligned - ((_BIAS + math.frexp(unit)[1] - 1) << _MANTISSA)
    found = (size < ((_BIAS + form.least_exponent) << _MANTISSA)).pick(small, large)
    limit = form.largest if saturate else form.overflow
    found = found.binary("min", limit)
    sign = (bits >> (31 - form.exponent - form.mantissa)) & form.sign
    if not form.has_negative_zero:
        # Neither 0 nor what has overflown to NaN; 0 wraps.
        has_sign = found.differs(0) if saturate else (found - 1) < form.largest
        sign = has_sign.pick(sign, 0)
    nan = (sign if form.has_negative_zero else bits.like(0)) | (form.nan or 0)
    return (found | sign).unless(size > _INFINITY, nan)


def _encoded_power(form: Format, bits: Num, saturate: bool) -> Num:
    """The bits of the nearest power of two; for a number of zero or below those of NaN."""
    # To the nearest, and upwards from the middle.  Between 2**-127 and 2**-126, where float32s are
    # subnormal, all go up, as in `ml_dtypes`.
    up = (bits >= (1 << _MANTISSA)).to(Uint32)
    found = (bits + up + ((1 << (_MANTISSA - 1)) - 1)) >> _MANTISSA
    found = found.binary("min", form.largest if saturate else form.overflow)
    # As unsigned numbers: 0 wraps, negative numbers and NaNs are above.
    is_number = (bits - 1) < _INFINITY
    return is_number.pick(found, form.nan or 0)
