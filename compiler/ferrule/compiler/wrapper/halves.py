"""Rounding of a float64 to a 2-byte float or a TFloat32: to nearest, ties to even, in one step.

It is integer code without branches, because no baseline CPU has an instruction for it.  Normal
results are rounded on the bits.  Subnormal results are rounded by adding a number so large that its
last bit is the smallest subnormal.  Too large values become infinity; NaN stays NaN.
"""

from __future__ import annotations

import struct
from typing import Final

from ferrule.runtime.llvm.writer import Value, Writer, i64
from ferrule.specs import BFloat16, DType, Float16, TFloat32
from ferrule.specs.deferred import dataclass

_MANTISSA: Final = 52
_BIAS: Final = 1023


@dataclass(frozen=True, slots=True)
class _Narrow:
    """A narrow float: the bits of its mantissa and exponent, and the zero bits below them in
    memory."""

    mantissa: int
    exponent: int
    zeros: int = 0

    @property
    def bias(self) -> int:
        return (1 << (self.exponent - 1)) - 1

    @property
    def infinity(self) -> int:
        return (2 * self.bias + 1) << self.mantissa

    @property
    def smallest_normal(self) -> int:
        """The smallest normal number, as a float64's bits."""
        return (_BIAS - self.bias + 1) << _MANTISSA

    @property
    def magic(self) -> int:
        """The float64 whose last bit is the smallest subnormal, as bits."""
        exponent = 1 - self.bias - self.mantissa + _MANTISSA
        return int.from_bytes(struct.pack("<d", 2.0**exponent), "little")


_NARROW: Final[dict[DType, _Narrow]] = {
    Float16: _Narrow(10, 5),
    BFloat16: _Narrow(7, 8),
    TFloat32: _Narrow(10, 8, zeros=13),
}


def round_to_narrow(writer: Writer, dtype: DType, value: Value) -> Value:
    """The nearest narrow float; a 2-byte float as its bits, i16, a TFloat32 as float."""
    kind = _NARROW[dtype]
    bits = writer.cast("bitcast", value, "i64")
    magnitude = writer.binary("and", bits, i64((1 << 63) - 1))
    rounded = _normal(writer, kind, magnitude)
    too_large = writer.icmp("ugt", rounded, i64(kind.infinity))
    rounded = writer.select(too_large, i64(kind.infinity), rounded)
    is_small = writer.icmp("ult", magnitude, i64(kind.smallest_normal))
    rounded = writer.select(is_small, _subnormal(writer, kind, magnitude), rounded)
    is_nan = writer.icmp("ugt", magnitude, i64(0x7FF << _MANTISSA))
    # One NaN for all: the upper bits of a NaN's payload may be zero, which would make it infinite.
    quiet = kind.infinity | 1 << (kind.mantissa - 1)
    rounded = writer.select(is_nan, i64(quiet), rounded)
    return _placed(writer, kind, bits, rounded)


def _placed(writer: Writer, kind: _Narrow, bits: Value, rounded: Value) -> Value:
    """The rounded magnitude at its place in memory, with the sign of `bits`."""
    if kind.zeros:
        rounded = writer.binary("shl", rounded, i64(kind.zeros))
    width = 1 + kind.exponent + kind.mantissa + kind.zeros
    sign = writer.binary("lshr", bits, i64(64 - width))
    sign = writer.binary("and", sign, i64(1 << (width - 1)))
    whole = writer.cast("trunc", writer.binary("or", rounded, sign), f"i{width}")
    return whole if width == 16 else writer.cast("bitcast", whole, "float")


def _normal(writer: Writer, kind: _Narrow, magnitude: Value) -> Value:
    """The rounded magnitude with the new exponent; above infinity if it is too large."""
    cut = _MANTISSA - kind.mantissa
    last = writer.binary("and", writer.binary("lshr", magnitude, i64(cut)), i64(1))
    # One less than a half, and the last bit that stays: a tie is rounded up only from an odd one.
    bias = writer.binary("add", last, i64((1 << (cut - 1)) - 1))
    kept = writer.binary("lshr", writer.binary("add", magnitude, bias), i64(cut))
    return writer.binary("sub", kept, i64((_BIAS - kind.bias) << kind.mantissa))


def _subnormal(writer: Writer, kind: _Narrow, magnitude: Value) -> Value:
    """The nearest number of smallest subnormals."""
    magic = i64(kind.magic)
    number = writer.cast("bitcast", magnitude, "double")
    ruler = writer.cast("bitcast", magic, "double")
    moved = writer.cast("bitcast", writer.binary("fadd", number, ruler), "i64")
    return writer.binary("sub", moved, magic)
