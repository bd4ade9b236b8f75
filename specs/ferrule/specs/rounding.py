"""Conversion of numbers to dtypes: the nearest value of a dtype, and its bits.

A conversion rounds once, to nearest and ties to even, as compiled code does.  This module uses only
the kind, the name and the number of bits of a dtype.
"""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ferrule.specs.dtypes import DType

_MANTISSA = 53
"""Bits of a binary64's mantissa."""


def nearest(dtype: DType, value: bool | int | float) -> float:
    """Round to the nearest number of a float dtype, as a binary64; infinity beyond the largest.

    For a float of fewer than 16 bits see `narrow`.
    """
    number = _odd(value) if isinstance(value, int) and dtype.bits < 64 else as_float(value)
    if dtype.bits < 16:
        return _narrow(dtype, number)
    match dtype.name:
        case "float16":
            return _unpacked("<H", "<e", float16_bits(number))
        case "bfloat16":
            return _unpacked("<I", "<f", bfloat16_bits(number) << 16)
        case "tfloat32":
            return tfloat32_value(number)
        case "float32":
            return float32_value(number)
    return number


def _narrow(dtype: DType, value: float, *, saturate: bool = False) -> float:
    from ferrule.specs import narrow

    return narrow.rounded(narrow.format_of(dtype), value, saturate=saturate)


def fits(dtype: DType, value: int | float) -> bool:
    """Whether a number, if finite, is not beyond the largest of a float of fewer than 16 bits."""
    from ferrule.specs import narrow

    number = as_float(value)
    return not math.isfinite(number) or narrow.fits(narrow.format_of(dtype), number)


def as_float(value: bool | int | float) -> float:
    """The nearest binary64; infinity beyond the largest."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _odd(value: int) -> float:
    """Round an integer to odd: if any bit that is cut off is 1, the last bit becomes 1.

    A second rounding, to a narrower dtype, then gives the same as one rounding of the integer.
    """
    excess = value.bit_length() - _MANTISSA
    if excess <= 0:
        return float(value)
    magnitude = abs(value)
    kept = magnitude >> excess
    # 53 bits are exact in a binary64, so this is no second rounding.
    odd = as_float((kept | (kept << excess != magnitude)) << excess)
    return -odd if value < 0 else odd


def float32_value(value: float) -> float:
    """The nearest binary32."""
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def float16_bits(value: float) -> int:
    """The bits of the nearest binary16."""
    try:
        return int(struct.unpack("<H", struct.pack("<e", value))[0])
    except OverflowError:
        # `struct` refuses what rounds to infinity.
        return 0x7C00 if value > 0 else 0xFC00


def bfloat16_bits(value: float) -> int:
    """The bits of the nearest bfloat16, in one rounding."""
    return _upper_bits(value, 16)


def tfloat32_value(value: float) -> float:
    """The nearest TFloat32, in one rounding."""
    return _unpacked("<I", "<f", _upper_bits(value, 19) << 13)


def _unpacked(word: str, form: str, bits: int) -> float:
    return float(struct.unpack(form, struct.pack(word, bits))[0])


def _upper_bits(value: float, count: int) -> int:
    """The upper bits of the binary32 that has only these and is nearest."""
    nearest, cut = float32_value(value), 32 - count
    bits: int = struct.unpack("<I", struct.pack("<f", nearest))[0]
    if math.isnan(value):
        # Bit 22 of a binary32 is the quiet bit: without it, what is left could be infinity.
        return bits >> cut | 1 << (22 - cut)
    if nearest != value:  # rounded to odd, so that the second rounding sees no false tie
        bits = (bits - (abs(nearest) > abs(value))) | 1
    # One less than a half, and the last bit that stays: a tie is rounded up only from an odd one.
    return (bits + (1 << (cut - 1)) - 1 + (bits >> cut & 1)) >> cut


def wrapped(dtype: DType, value: int) -> int:
    """The number of an integer dtype that is equal modulo 2**bits."""
    low, _ = dtype.range
    return (value - low) % (1 << dtype.bits) + low


def converted(
    dtype: DType, value: bool | int | float, *, saturate: bool = False
) -> bool | int | float:
    """A number of some dtype in another one.

    An integer is cut to the width; a float is truncated and kept within an integer's range, with 0
    for NaN; to a float it is rounded; a bool says whether it is not zero.  With `saturate`, which
    is for floats of fewer than 16 bits, what is beyond the largest number becomes the largest.
    """
    if saturate:
        return _narrow(dtype, _odd(value) if isinstance(value, int) else value, saturate=True)
    if dtype.kind == "bool":
        return value != 0
    if dtype.kind == "float":
        return nearest(dtype, value)
    if not isinstance(value, float):
        return wrapped(dtype, int(value))
    if math.isnan(value):
        return 0
    low, high = dtype.range
    return low if value <= low else high if value >= high else math.trunc(value)


def shortest(dtype: DType, value: float) -> str:
    """The shortest decimal text that is nearest to no other number of a float dtype."""
    if dtype.bits < 64 and math.isfinite(value):
        for digits in range(1, 10):
            text = repr(float(f"{value:.{digits}g}"))
            if nearest(dtype, float(text)) == value:
                return text
    return repr(value)
