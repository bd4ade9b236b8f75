"""Floats as exact numbers: what bits say, and how a number is rounded, by IEEE 754.

A number is a sign and a size, a Fraction; no size is infinity, and `NAN` is no number.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import isqrt
from typing import NamedTuple


class Number(NamedTuple):
    """`size` is None for infinity."""

    sign: int
    size: Fraction | None
    nan: bool = False

    @property
    def zero(self) -> bool:
        return not self.nan and self.size == 0

    @property
    def infinite(self) -> bool:
        return not self.nan and self.size is None

    @property
    def value(self) -> Fraction:
        """The number, where it is finite."""
        assert self.size is not None
        return -self.size if self.sign else self.size


NAN = Number(0, None, True)


@dataclass(frozen=True)
class Format:
    """A binary format: bits of the whole, of the significand with its hidden one, and exponents."""

    width: int
    digits: int
    least: int
    most: int

    @property
    def fraction(self) -> int:
        return self.digits - 1


FORMATS = {
    "f16": Format(16, 11, -14, 15), "bf16": Format(16, 8, -126, 127),
    "tf32": Format(19, 11, -126, 127), "f32": Format(32, 24, -126, 127),
    "f64": Format(64, 53, -1022, 1023),
}  # fmt: skip


def number(value: Fraction | int, zero_sign: int = 0) -> Number:
    """An exact number; a 0 has the sign that is said."""
    value = Fraction(value)
    return Number(zero_sign if value == 0 else int(value < 0), abs(value))


def decoded(bits: int, kind: str) -> Number:
    """What bits of a format say."""
    form = FORMATS[kind]
    sign = bits >> form.width - 1 & 1
    exponent = bits >> form.fraction & (1 << form.width - form.digits) - 1
    rest = bits & (1 << form.fraction) - 1
    if exponent == (1 << form.width - form.digits) - 1:
        return Number(sign, None, bool(rest))
    if exponent == 0:
        return Number(sign, Fraction(rest) * Fraction(2) ** (form.least - form.fraction))
    significand = Fraction(rest + (1 << form.fraction))
    return Number(sign, significand * Fraction(2) ** (exponent - 1 + form.least - form.fraction))


def encoded(given: Number, kind: str, mode: str = "rn") -> int:
    """The bits of a number, rounded in a mode: rn to even, rna away, rz, rm, rp."""
    form = FORMATS[kind]
    sign = given.sign << form.width - 1
    infinity = ((1 << form.width - form.digits) - 1) << form.fraction
    if given.nan:
        return infinity | 1 << form.fraction - 1
    if given.size is None:
        return sign | infinity
    if given.size == 0:
        return sign
    place = max(_exponent(given.size), form.least) - form.fraction
    whole = _whole(given.size / Fraction(2) ** place, mode, given.sign)
    if whole >= 1 << form.digits:
        whole, place = whole >> 1, place + 1
    if whole == 0:
        return sign
    exponent = place + form.fraction
    if exponent > form.most:
        inward = mode == "rz" or (mode == "rm" and not given.sign) or (mode == "rp" and given.sign)
        return sign | infinity - int(inward)
    if whole < 1 << form.fraction:
        return sign | whole
    return sign | (exponent - form.least + 1) << form.fraction | whole - (1 << form.fraction)


def _exponent(size: Fraction) -> int:
    """The greatest power of 2 that is not beyond it."""
    found = size.numerator.bit_length() - size.denominator.bit_length()
    return found if Fraction(2) ** found <= size else found - 1


def _whole(size: Fraction, mode: str, sign: int) -> int:
    low, rest = divmod(size.numerator, size.denominator)
    if not rest or mode == "rz":
        return low
    if mode in ("rm", "rp"):
        return low + int((mode == "rm") == bool(sign))
    twice = 2 * rest
    if twice != size.denominator:
        return low + int(twice > size.denominator)
    return low + (1 if mode == "rna" else low & 1)


def total(a: Number, b: Number, mode: str = "rn") -> Number:
    """The exact sum."""
    if a.nan or b.nan or (a.infinite and b.infinite and a.sign != b.sign):
        return NAN
    if a.infinite or b.infinite:
        return a if a.infinite else b
    value = a.value + b.value
    zero = a.sign if a.zero and b.zero and a.sign == b.sign else int(mode == "rm")
    return number(value, zero)


def product(a: Number, b: Number) -> Number:
    """The exact product."""
    sign = a.sign ^ b.sign
    if a.nan or b.nan or (a.infinite and b.zero) or (a.zero and b.infinite):
        return NAN
    if a.size is None or b.size is None:
        return Number(sign, None)
    return Number(sign, a.size * b.size)


def quotient(a: Number, b: Number) -> Number:
    """The exact quotient."""
    sign = a.sign ^ b.sign
    if a.nan or b.nan or (a.infinite and b.infinite) or (a.zero and b.zero):
        return NAN
    if a.size is None or b.zero:
        return Number(sign, None)
    return Number(sign, Fraction(0) if b.size is None else a.size / b.size)


def root(a: Number) -> Number:
    """The square root, exact enough to be rounded to any format."""
    if a.nan or (a.sign and not a.zero):
        return NAN
    if a.size is None or a.zero:
        return a
    shift = 2 * (400 + a.size.denominator.bit_length())
    scaled = (a.size.numerator << shift) // a.size.denominator
    whole = isqrt(scaled)
    exact = whole * whole == scaled and not (a.size.numerator << shift) % a.size.denominator
    # A little more than the last bit stands for all that follow.
    value = Fraction(2 * whole + (0 if exact else 1), 2 << shift // 2)
    return number(value)


def flushed(a: Number, kind: str) -> Number:
    """0 of the same sign for what is below the least normal number."""
    small = a.size is not None and a.size < Fraction(2) ** FORMATS[kind].least
    return Number(a.sign, Fraction(0)) if small else a


def saturated(a: Number) -> Number:
    """Into [0, 1]; NaN is 0, and so is -0."""
    if a.nan or a.sign or a.zero:
        return number(0)
    return number(1) if a.size is None or a.size > 1 else a


def whole(a: Number, mode: str) -> Number:
    """Rounded to an integer: rni, rzi, rmi, rpi."""
    if a.nan or a.size is None:
        return a
    return Number(a.sign, Fraction(_whole(a.size, {"rni": "rn"}.get(mode, mode[:2]), a.sign)))
