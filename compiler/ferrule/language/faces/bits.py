"""Bits of integers and their products, written in the kernel language itself, under CuTe DSL's
names; what they mean is what PTX's instructions of these names do.

A compiler makes one instruction of most of them.
"""

from __future__ import annotations

from typing import Any

from ferrule import specs
from ferrule.language.faces import maths
from ferrule.language.faces.base import static_assert
from ferrule.language.faces.vectors import where

# Numbers of the call have operators, which Python's numbers of these dtypes lack.
Int16: Any = specs.Int16
Int32: Any = specs.Int32
Int64: Any = specs.Int64
Uint8: Any = specs.Uint8
Uint16: Any = specs.Uint16
Uint32: Any = specs.Uint32
Uint64: Any = specs.Uint64

_SIGNED = {8: None, 16: Int16, 32: Int32, 64: Int64}
_UNSIGNED = {8: Uint8, 16: Uint16, 32: Uint32, 64: Uint64}
_HALVES = {
    32: ((1, 0x55555555), (2, 0x33333333), (4, 0x0F0F0F0F), (8, 0x00FF00FF)),
    64: (
        (1, 0x5555555555555555),
        (2, 0x3333333333333333),
        (4, 0x0F0F0F0F0F0F0F0F),
        (8, 0x00FF00FF00FF00FF),
        (16, 0x0000FFFF0000FFFF),
    ),
}


def _unsigned(value: Any) -> Any:
    return _UNSIGNED[value.dtype.bits](value)


def popc(value: Any) -> Any:
    """The number of 1 bits of an integer, an Int32."""
    return maths.popc(value)


def clz(value: Any) -> Any:
    """The number of leading 0 bits of an integer, an Int32."""
    return maths.clz(value)


def brev(value: Any) -> Any:
    """An integer of 32 or 64 bits with its bits in the other order."""
    static_assert(value.dtype.bits in _HALVES, "brev takes integers of 32 and 64 bits")
    kind = _UNSIGNED[value.dtype.bits]
    x = kind(value)
    for shift, mask in _HALVES[value.dtype.bits]:
        # Swaps neighbouring groups of `shift` bits; the two halves are swapped at the end.
        x = ((x >> shift) & kind(mask)) | ((x & kind(mask)) << shift)
    half = value.dtype.bits // 2
    return value.dtype((x >> half) | (x << half))


def bfind(value: Any) -> Any:
    """The position of the highest bit that differs from the sign, a Uint32; 2**32 - 1 if none."""
    wide = value.dtype.bits
    bits = _unsigned(value)
    if value.dtype.kind == "int":
        bits = _unsigned(where(value < 0, ~value, value))
    return Uint32(wide - 1 - maths.clz(bits))


def bfe(value: Any, start: Any, length: Any) -> Any:
    """`length` bits from bit `start` on, of which a signed integer's highest one is the sign."""
    wide = value.dtype.bits
    # PTX's bfe reads 8 bits of both.
    begin, count = Uint32(start) & 0xFF, Uint32(length) & 0xFF
    kept = where(count > wide, Uint32(wide), count)
    end = begin + kept
    last = where(end > wide, Uint32(wide), end)
    if value.dtype.kind == "uint":
        kind = value.dtype
        return where(kept == 0, kind(0), (value >> kind(begin)) & ~((~kind(0)) << kind(kept)))
    kind = value.dtype
    up = kind(wide - Int32(last))
    sign = where(end > wide, value >> kind(wide - 1), (value << up) >> kind(wide - 1))
    moved = value >> kind(begin)
    mask = (~kind(0)) << kind(kept)
    return where(kept == 0, kind(0), where(sign != 0, moved | mask, moved & ~mask))


def bfi(replacement: Any, value: Any, start: Any, length: Any) -> Any:
    """`value` with the lowest `length` bits of `replacement` from bit `start` on."""
    kind = _UNSIGNED[value.dtype.bits]
    # PTX's bfi reads 8 bits of both.
    begin, count = Uint32(start) & 0xFF, Uint32(length) & 0xFF
    mask = (~((~kind(0)) << kind(count))) << kind(begin)
    return value.dtype((kind(value) & ~mask) | ((kind(replacement) << kind(begin)) & mask))


def lop3(a: Any, b: Any, c: Any, lut: int) -> Any:
    """For each bit the entry of the table `lut` with the number that the bits of a, b, c are."""
    static_assert(0 <= lut <= 255, "lop3 takes a table of 8 bits")
    x, y, z = Uint32(a), Uint32(b), Uint32(c)
    result = Uint32(0)
    for number in range(8):
        if lut >> number & 1:
            result = result | (
                (x if number & 4 else ~x) & (y if number & 2 else ~y) & (z if number & 1 else ~z)
            )
    return a.dtype(result)


def prmt(src: Any, src_reg_shifted: Any, prmt_indices: Any) -> Any:
    """Four bytes of eight, those of `src` first: which one each digit of `prmt_indices` says.

    Bit 3 of a digit takes the byte's sign instead, eight times.
    """
    both = Uint64(Uint32(src)) | (Uint64(Uint32(src_reg_shifted)) << 32)
    digits, result = Uint32(prmt_indices), Uint32(0)
    for place in (0, 1, 2, 3):
        # Three bits choose the byte; the fourth asks for its sign in all 8 bits (PTX ISA, prmt).
        digit = (digits >> (4 * place)) & 0xF
        byte = Uint32(both >> Uint64((digit & 7) * 8)) & 0xFF
        sign = where(byte >= 0x80, Uint32(0xFF), Uint32(0))
        result = result | (where(digit >= 8, sign, byte) << (8 * place))
    return Int32(result)


def shf(a: Any, b: Any, shift: Any, kind: str = "l") -> Any:
    """32 of the 64 bits of b and a, whose lower half is a: shifted left the upper, right the lower.

    `kind`: "l" and "r" take the count modulo 32, "clamp_left" and "clamp_right" at most 32.
    """
    static_assert(kind in ("l", "r", "clamp_left", "clamp_right"), "the kinds of shf")
    both = (Uint64(Uint32(b)) << 32) | Uint64(Uint32(a))
    count = Uint32(shift)
    by = count & 31 if kind in ("l", "r") else where(count > 32, Uint32(32), count)
    if kind in ("l", "clamp_left"):
        return a.dtype(Uint32((both << Uint64(by)) >> 32))
    return a.dtype(Uint32(both >> Uint64(by)))


def mul_wide(a: Any, b: Any) -> Any:
    """The product of integers of 16 or 32 bits, in twice as many."""
    kinds = _UNSIGNED if a.dtype.kind == "uint" else _SIGNED
    wide = kinds[a.dtype.bits * 2]
    return wide(a) * wide(b)


def mul_hi(a: Any, b: Any) -> Any:
    """The upper half of the product of two integers of one dtype."""
    bits = a.dtype.bits
    if bits < 64:
        return a.dtype(mul_wide(a, b) >> bits)
    x, y = Uint64(a), Uint64(b)
    low = Uint64(0xFFFFFFFF)
    # By products of 32 bits. Each sum is at most (2^32 - 1)^2 + 2^32 - 1, so none wraps.
    middle = (x >> 32) * (y & low) + (((x & low) * (y & low)) >> 32)
    other = (x & low) * (y >> 32) + (middle & low)
    high = (x >> 32) * (y >> 32) + (middle >> 32) + (other >> 32)
    if a.dtype.kind == "uint":
        return high
    # A negative a is taken as a + 2^64, which makes the upper half too large by b.
    high = high - where(a < 0, y, Uint64(0)) - where(b < 0, x, Uint64(0))
    return Int64(high)


def mul24(a: Any, b: Any, hi: bool = False) -> Any:
    """The lower 32 bits of the product of two integers of 24 bits; with `hi` bits 16 to 47."""
    kinds = _UNSIGNED if a.dtype.kind == "uint" else _SIGNED
    wide = kinds[64]
    # Only the lower 24 bits count; of a signed number the highest of them is the sign.
    x = wide(kinds[32](a) << 8) >> 8
    y = wide(kinds[32](b) << 8) >> 8
    return a.dtype((x * y) >> (16 if hi else 0))


def mad24(a: Any, b: Any, c: Any, hi: bool = False) -> Any:
    """`mul24(a, b, hi) + c`."""
    return mul24(a, b, hi) + c


def add_sat_int(a: Any, b: Any) -> Any:
    """The sum of two Int32, or the nearest Int32."""
    return _saturated(Int64(a) + Int64(b))


def sub_sat_int(a: Any, b: Any) -> Any:
    """The difference of two Int32, or the nearest Int32."""
    return _saturated(Int64(a) - Int64(b))


def _saturated(wide: Any) -> Any:
    least, most = Int64(-(1 << 31)), Int64((1 << 31) - 1)
    return Int32(where(wide < least, least, where(wide > most, most, wide)))
