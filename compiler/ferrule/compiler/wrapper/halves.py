"""Rounding of a float64 to a 2-byte float: to nearest, ties to even, in one step.

Integer code without branches, because no baseline CPU has an instruction for it.  Normal results
are rounded on the bits.  Subnormal ones by an addition to a number so large that its last bit is
the smallest subnormal.  What is too large becomes infinity; NaN stays NaN.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

from ferrule.runtime.llvm.writer import Value, Writer, i64
from ferrule.specs import BFloat16, DType, Float16

_MANTISSA: Final = 52
_BIAS: Final = 1023


@dataclass(frozen=True, slots=True)
class _Half:
    """A 2-byte float: bits of its mantissa, bias of its exponent."""

    mantissa: int
    bias: int

    @property
    def infinity(self) -> int:
        return (2 * self.bias + 1) << self.mantissa

    @property
    def smallest_normal(self) -> int:
        """As a float64's bits."""
        return (_BIAS - self.bias + 1) << _MANTISSA

    @property
    def magic(self) -> int:
        """The float64 whose last bit is the smallest subnormal, as bits."""
        exponent = 1 - self.bias - self.mantissa + _MANTISSA
        return int.from_bytes(struct.pack("<d", 2.0**exponent), "little")


_HALVES: Final[dict[DType, _Half]] = {Float16: _Half(10, 15), BFloat16: _Half(7, 127)}


def round_to_half(writer: Writer, dtype: DType, value: Value) -> Value:
    """The nearest one, as its bits, i16."""
    half = _HALVES[dtype]
    bits = writer.cast("bitcast", value, "i64")
    magnitude = writer.binary("and", bits, i64((1 << 63) - 1))
    rounded = _normal(writer, half, magnitude)
    too_large = writer.icmp("ugt", rounded, i64(half.infinity))
    rounded = writer.select(too_large, i64(half.infinity), rounded)
    is_small = writer.icmp("ult", magnitude, i64(half.smallest_normal))
    rounded = writer.select(is_small, _subnormal(writer, half, magnitude), rounded)
    is_nan = writer.icmp("ugt", magnitude, i64(0x7FF << _MANTISSA))
    quiet = half.infinity | 1 << (half.mantissa - 1)
    rounded = writer.select(is_nan, i64(quiet), rounded)
    sign = writer.binary("and", writer.binary("lshr", bits, i64(48)), i64(0x8000))
    return writer.cast("trunc", writer.binary("or", rounded, sign), "i16")


def _normal(writer: Writer, half: _Half, magnitude: Value) -> Value:
    """Rounded and with the exponent moved; above infinity where it is too large."""
    cut = _MANTISSA - half.mantissa
    last = writer.binary("and", writer.binary("lshr", magnitude, i64(cut)), i64(1))
    bias = writer.binary("add", last, i64((1 << (cut - 1)) - 1))
    kept = writer.binary("lshr", writer.binary("add", magnitude, bias), i64(cut))
    return writer.binary("sub", kept, i64((_BIAS - half.bias) << half.mantissa))


def _subnormal(writer: Writer, half: _Half, magnitude: Value) -> Value:
    """The number of smallest subnormals that are nearest."""
    magic = i64(half.magic)
    number = writer.cast("bitcast", magnitude, "double")
    ruler = writer.cast("bitcast", magic, "double")
    moved = writer.cast("bitcast", writer.binary("fadd", number, ruler), "i64")
    return writer.binary("sub", moved, magic)
