"""The reduction of an angle to [-pi/4, pi/4], precise for every argument.

Up to a limit by Cody and Waite's method in float64, with pi/2 in parts whose products with the
number of quadrants are exact.  Beyond, by Payne and Hanek's: of the binary fraction 2/pi only a
window matters, which depends on the exponent, because the bits before it represent whole turns; its
product with the mantissa is computed in integers, modulo 4.  Words are of 32 bits in 64-bit
integers, and the window is found by selects: there is no table in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ferrule.language.mathlib import constants as c
from ferrule.language.mathlib.forms import (
    FORMS,
    Form,
    bits_of,
    float_of,
    form_of,
    integer_bits,
    to_integer,
)
from ferrule.language.mathlib.formulas import Num
from ferrule.language.mathlib.pairs import Pair, pair_of, times, two_product, two_sum
from ferrule.specs import DType, Float32, Float64, Int32, Int64, Uint32, Uint64
from ferrule.specs.deferred import dataclass

_TWO_OVER_PI: Final = 2 / 3.141592653589793
_WORD: Final = (1 << 32) - 1


@dataclass(frozen=True, slots=True)
class _Range:
    """The parameters of a format: `limit` of the first method; words of the second."""

    limit: float
    window: int
    """Words of 2/pi that the product needs."""
    zeros: int
    """Words of 0 before the fraction, for the smallest argument."""


_RANGES: Final[dict[DType, _Range]] = {
    Float32: _Range(2.0**17, 3, 1),
    Float64: _Range(2.0**20, 6, 2),
}


@dataclass(frozen=True, slots=True, eq=False)
class Reduced:
    """x| = quadrant * pi/2 + rest; the quadrant, an Int64, is correct modulo 4."""

    quadrant: Num
    rest: Pair
    """In float64, also for float32 angles, which have no second part."""


def reduced(magnitude: Num) -> Reduced:
    """The reduction of an angle that is not negative and not infinite."""
    near = magnitude < _RANGES[magnitude.dtype].limit
    b = magnitude.b
    sides = []
    for method in (_near, _far):
        with b.region() as region:
            found = method(magnitude)
        values = (found.quadrant.value, found.rest.hi.value, found.rest.lo.value)
        sides.append(region.freeze(*values))
    results = b.if_(near.value, sides[0], sides[1], ("quadrant", "rest", "rest_low"))
    quadrant, hi, lo = (Num(b, result) for result in results)
    return Reduced(quadrant, Pair(hi, lo))


def reduced_by_fma(magnitude: Num) -> Reduced:
    """The reduction of a float32 angle, in float32s, with fma; the quadrant is an Int32."""
    near = magnitude < _RANGES[Float32].limit
    sides = []
    for method in (_near_by_fma, _far_by_fma):
        with magnitude.b.region() as region:
            found = method(magnitude)
        sides.append(region.freeze(*(n.value for n in (found.quadrant, *_parts(found.rest)))))
    results = magnitude.b.if_(near.value, sides[0], sides[1], ("quadrant", "rest", "rest_low"))
    quadrant, hi, lo = (Num(magnitude.b, result) for result in results)
    return Reduced(quadrant, Pair(hi, lo))


def _parts(pair: Pair) -> tuple[Num, Num]:
    return pair.hi, pair.lo


# ---- small angles ----


def _near(magnitude: Num) -> Reduced:
    x = magnitude.to(Float64)
    count = to_integer(x * _TWO_OVER_PI)
    parts = c.HALF_PI_PARTS[magnitude.dtype]
    if magnitude.dtype is Float32:
        rest = Pair((x - count * parts[0]) - count * parts[1], x.like(0.0))
        return Reduced(integer_bits(count), rest)
    first = two_sum(x - count * parts[0], count * -parts[1])
    second = two_sum(first.hi, count * -parts[2])
    low = (first.lo + second.lo) - count * parts[3]
    return Reduced(integer_bits(count), two_sum(second.hi, low))


def _near_by_fma(magnitude: Num) -> Reduced:
    """The first difference is exact: both are multiples of 2**-24, and it is less than 1."""
    magic = FORMS[Float32].magic
    whole = magnitude.fma(_TWO_OVER_PI, magic)
    count = whole - magic
    first, second, third = c.HALF_PI_THREE[Float32]
    product = two_product(count, magnitude.like(second))
    rest = two_sum(count.fnma(first, magnitude), -product.hi)
    return Reduced(bits_of(whole), Pair(rest.hi, count.fnma(third, rest.lo - product.lo)))


# ---- large angles ----


def _far_by_fma(magnitude: Num) -> Reduced:
    found = _far(magnitude)
    hi = found.rest.hi.to(Float32)
    return Reduced(found.quadrant.to(Int32), Pair(hi, (found.rest.hi - hi.to(Float64)).to(Float32)))


def _far(magnitude: Num) -> Reduced:
    digits = _product(magnitude)
    high = digits[-1] << 32 | digits[-2]
    # Half a quadrant is added, so that the shift rounds to the nearest one.
    quadrant = ((high + (1 << 61)) >> 62).bits(Int64)
    # In units of 2**-62, in [-1/2, 1/2) quadrants.
    fraction = high.bits(Int64) - (quadrant << 62)
    form = FORMS[Float64]
    top = float_of(fraction >> 32, form) * 2.0**-30
    low = float_of(fraction & _WORD, form) * 2.0**-62
    if magnitude.dtype is Float32:
        rest = (top + low) * c.HALF_PI[Float64][0]
        return Reduced(quadrant, Pair(rest, rest.like(0.0)))
    lower, lowest = (float_of(digits[-i].bits(Int64), form) for i in (3, 4))
    whole = two_sum(top, low)
    more = two_sum(whole.hi, lower * 2.0**-94)
    turned = Pair(more.hi, (whole.lo + more.lo) + lowest * 2.0**-126)
    return Reduced(quadrant, times(turned, pair_of(turned.hi, *c.HALF_PI[Float64])))


def _product(magnitude: Num) -> list[Num]:
    """|x| * 2/pi modulo 4 in words, the lowest first; the upper two bits are the whole part."""
    form, limits = form_of(magnitude), _RANGES[magnitude.dtype]
    bits = bits_of(magnitude)
    exponent = (bits >> form.mantissa).to(Int32) - (form.bias + form.mantissa)
    # Two bits of whole quadrants are kept; the bits above are whole turns.
    window = _window(exponent + (32 * limits.zeros - 2), form, limits)
    mantissa = (bits & ((1 << form.mantissa) - 1) | 1 << form.mantissa).to(Int64).bits(Uint64)
    product = _times(window, mantissa & _WORD)
    if form.mantissa < 32:
        return product
    shifted = _times(window[:-1], mantissa >> 32, product[1:])
    return [product[0], *shifted]


def _window(skipped: Num, form: Form, limits: _Range) -> list[Num]:
    """The words of 2/pi after this number of bits, the lowest first."""
    largest = form.bias - form.mantissa + 32 * limits.zeros - 2
    fraction = (0,) * limits.zeros + c.TWO_OVER_PI
    count = limits.window + 1
    words = [
        Num(skipped.b, skipped.b.constant(Uint32, word))
        for word in fraction[: largest // 32 + count]
    ]
    for bit in reversed(range((largest // 32).bit_length())):
        words = _moved(words, ((skipped >> (5 + bit)) & 1).differs(0), 1 << bit, count)
    shift = (skipped & 31).bits(Uint32)
    pairs = zip(words, words[1:count], strict=False)
    # One bit first, so that no shift is by the whole width.
    shifted = [upper << shift | (lower >> 1) >> (shift ^ 31) for upper, lower in pairs]
    return [word.to(Uint64) for word in reversed(shifted)]


def _moved(words: Sequence[Num], move: Num, step: int, count: int) -> list[Num]:
    """The words from `step` on if the Boolean is true; only those that can still matter."""
    kept = words[: count + step - 1]
    return [
        move.pick(words[i + step], word) if i + step < len(words) else word
        for i, word in enumerate(kept)
    ]


def _times(words: Sequence[Num], factor: Num, added: Sequence[Num] | None = None) -> list[Num]:
    """words * factor + added, truncated to as many words."""
    digits: list[Num] = []
    carry: Num | None = None
    for i, word in enumerate(words):
        total = word * factor
        for more in (None if added is None else added[i], carry):
            total = total if more is None else total + more
        digits.append(total & _WORD)
        carry = total >> 32
    return digits
