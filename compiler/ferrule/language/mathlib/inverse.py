"""`asin acos atan atan2`.

* asin is x + x**3 R(x**2) up to 1/2; beyond, asin x = pi/2 - 2 asin(sqrt((1 - x) / 2)).
* The arc tangent of a/b, 0 <= a <= b, is t + t**3 A(t**2) with t = a/b, or beyond tan(pi/8)
  pi/4 + the same with t = (a - b) / (a + b); octants and signs follow.  Quotients are pairs, and
  multiples of pi/4 have two parts.
"""

from __future__ import annotations

import math
from typing import Final

from ferrule.language.mathlib import constants as c
from ferrule.language.mathlib import polynomials as p
from ferrule.language.mathlib.forms import absolute, has_sign, negated_if, with_sign
from ferrule.language.mathlib.formulas import Num, polynomial
from ferrule.language.mathlib.pairs import Pair, fast_two_sum, over, pair_of, two_product, two_sum
from ferrule.specs import DType, Float32, Float64

_TAN_EIGHTH: Final = math.tan(math.pi / 8)
_TINY: Final[dict[DType, float]] = {Float32: 2.0**-75, Float64: 2.0**-900}
"""Below this, errors of products are lost to underflow."""
# Operands are scaled by a power of two, which rounds nothing, before a product would lose bits.
_LOW: Final[dict[DType, float]] = {Float32: 2.0**-40, Float64: 2.0**-500}
_LIFT: Final[dict[DType, float]] = {Float32: 2.0**100, Float64: 2.0**700}
_HUGE: Final[dict[DType, float]] = {Float32: 2.0**120, Float64: 2.0**1000}


# ---- asin and acos ----


def asin(x: Num) -> Num:
    """The arc sine; NaN outside [-1, 1]."""
    magnitude = absolute(x)
    outer, root, rest = _sine_parts(magnitude)
    quarter = pair_of(x, *c.HALF_PI[x.dtype])
    whole = fast_two_sum(quarter.hi, root * -2.0)
    beyond = whole.hi + (whole.lo + (quarter.lo - rest * 2.0))
    return with_sign(outer.pick(beyond, root + rest), x)


def acos(x: Num) -> Num:
    """The arc cosine; NaN outside [-1, 1]."""
    outer, root, rest = _sine_parts(absolute(x))
    negative = has_sign(x)
    half = pair_of(x, *c.HALF_PI[x.dtype])
    turns = outer.pick(negative.pick(x.like(2.0), 0.0), 1.0)
    # pi/2 - asin x, or twice the rest of the angle, or pi minus that.
    signed = outer.pick(negated_if(root * 2.0, negative), negated_if(root, ~negative))
    signed_rest = outer.pick(negated_if(rest * 2.0, negative), negated_if(rest, ~negative))
    total = fast_two_sum(turns * half.hi, signed)
    return total.hi + (total.lo + (signed_rest + turns * half.lo))


def _sine_parts(magnitude: Num) -> tuple[Num, Num, Num]:
    """Whether |x| > 1/2; r and s with asin |x| = r + s, or if so = pi/2 - 2 (r + s)."""
    outer = magnitude > 0.5
    left = (1.0 - magnitude) * 0.5
    root = left.sqrt()
    z = outer.pick(left, magnitude * magnitude)
    square = two_product(root, root)
    # What the rounded root lacks, by a step of Newton's iteration; of a root of 0 nothing.
    error = ((left - square.hi) - square.lo) / (root * 2.0).unless(root.equals(0.0), 1.0)
    argument = outer.pick(root, magnitude)
    series = argument * (z * polynomial(z, p.ASIN[magnitude.dtype]))
    return outer, argument, series + outer.pick(error, 0.0)


# ---- atan and atan2 ----


def atan(x: Num) -> Num:
    """The arc tangent."""
    magnitude, one = absolute(x), x.like(1.0)
    steep = magnitude > 1.0
    infinite = magnitude.equals(math.inf)
    a = steep.pick(one.unless(infinite, 0.0), magnitude)
    b = steep.pick(magnitude.unless(infinite, 1.0), one)
    return with_sign(_angle(a, b, steep, None), x)


def atan2(y: Num, x: Num) -> Num:
    """The angle of the point (x, y), in [-pi, pi]."""
    height, width = absolute(y), absolute(x)
    steep = height > width
    a, b = steep.pick(width, height), steep.pick(height, width)
    infinite, none = b.equals(math.inf), b.equals(0.0)
    a = a.unless(infinite, a.equals(math.inf).pick(a.like(1.0), 0.0))
    b = b.unless(infinite | none, 1.0)
    dtype = x.dtype
    scale = x.like(1.0).unless(b > _HUGE[dtype], 0.25).unless(b < _LOW[dtype], _LIFT[dtype])
    angle = with_sign(_angle(a * scale, b * scale, steep, has_sign(x)), y)
    return angle.unless(x.is_nan() | y.is_nan(), x + y)


def _angle(a: Num, b: Num, steep: Num, backward: Num | None) -> Num:
    """The angle in [0, pi] whose tangent is a / b, or b / a if steep, or less than 0 if backward.

    0 <= a <= b and b > 0.
    """
    eighth = a > b * _TAN_EIGHTH
    t = _quotient(a, b, eighth)
    z = t.hi * t.hi
    rest = t.lo + t.hi * (z * polynomial(z, p.ATAN[a.dtype]) - t.lo * t.hi)
    # The angle is a number of quarters of pi, plus or minus the arc tangent of t.
    quarters = eighth.pick(a.like(1.0), 0.0)
    quarters, minus = steep.pick(2.0 - quarters, quarters), steep
    if backward is not None:
        quarters, minus = backward.pick(4.0 - quarters, quarters), steep ^ backward
    first, second = c.QUARTER_PI[a.dtype]
    whole = fast_two_sum(quarters * first, negated_if(t.hi, minus))
    return whole.hi + (whole.lo + (negated_if(rest, minus) + quarters * second))


def _quotient(a: Num, b: Num, eighth: Num) -> Pair:
    """a / b, or (a - b) / (a + b)."""
    less, more = two_sum(a, -b), two_sum(a, b)
    dividend = Pair(eighth.pick(less.hi, a), eighth.pick(less.lo, 0.0))
    divisor = Pair(eighth.pick(more.hi, b), eighth.pick(more.lo, 0.0))
    t = over(dividend, divisor)
    return Pair(t.hi, t.lo.unless(a < _TINY[a.dtype], 0.0))
