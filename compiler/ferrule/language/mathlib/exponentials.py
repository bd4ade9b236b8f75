"""`exp exp2 expm1 sigmoid`, and the exponential in parts for other functions.

With z the integer nearest to x / ln 2 and r = x - z ln 2, e**x is 2**z * e**r.  The reduction is
Cody and Waite's, with ln 2 in two parts.  e**r is 1 + r + r**2 P(r): the sum of 1 and the exact
part of r is kept exactly, as a pair, so that only the last addition rounds visibly.
"""

from __future__ import annotations

from typing import Final

from ferrule.language.mathlib import constants as c
from ferrule.language.mathlib import polynomials as p
from ferrule.language.mathlib.forms import (
    FORMS,
    absolute,
    has_sign,
    power_of_two,
    scaled,
    to_integer,
    with_sign,
)
from ferrule.language.mathlib.formulas import Num, polynomial
from ferrule.language.mathlib.pairs import Pair, fast_two_sum, over, single, two_sum
from ferrule.specs import DType, Float32, Float64
from ferrule.specs.deferred import dataclass

_LOW: Final[dict[DType, float]] = {Float32: -104.0, Float64: -746.0}
"""e**x is less than half of the smallest number."""
_HIGH: Final[dict[DType, float]] = {Float32: 90.0, Float64: 711.0}
"""e**x / 2 is more than the largest number."""
_SATURATED: Final[dict[DType, float]] = {Float32: -20.0, Float64: -40.0}
"""e**x is less than a quarter of the ulp of 1."""


@dataclass(frozen=True, slots=True, eq=False)
class Power:
    """(hi + lo) * 2**z with hi + lo in (1/2, 2); z is a float that is an integer."""

    pair: Pair
    z: Num

    def scaled(self) -> Pair:
        """As a pair of floats."""
        return Pair(scaled(self.pair.hi, self.z), scaled(self.pair.lo, self.z))


def exp(x: Num) -> Num:
    """e to the power of x."""
    power = exp_parts(x)
    return scaled(power.pair.sum(), power.z)


def exp_parts(x: Num, low: Num | None = None) -> Power:
    """e to the power of x + low, where low is below the ulp of x."""
    z, r, cut = _reduced(x, low)
    whole = fast_two_sum(x.like(1.0), r)
    return Power(fast_two_sum(whole.hi, whole.lo + (_rest(r - cut) - cut)), z)


def _reduced(x: Num, low: Num | None = None) -> tuple[Num, Num, Num]:
    """z, r and c with x + low = z ln 2 + r - c; r is exact, and c small beside its bound."""
    dtype = x.dtype
    least, most = _LOW[dtype], _HIGH[dtype]
    clamped = x.within(least, most)
    z = to_integer(clamped * c.LOG2_E_FULL[dtype][0])
    first, second = c.LN2[dtype]
    cut = z * second
    if low is not None:
        cut = cut - ((x > least) & (x < most)).pick(low, 0.0)
    return z, clamped - z * first, cut


def _rest(r: Num) -> Num:
    """e**r - 1 - r."""
    return r * r * polynomial(r, p.EXP[r.dtype])


def exp2(x: Num) -> Num:
    """2 to the power of x; exact for integers."""
    form = FORMS[x.dtype]
    clamped = x.within(-2.0 - form.bias - form.mantissa, 1.0 + form.bias)
    z = to_integer(clamped)
    r = clamped - z
    high, low = c.LN2_FULL[x.dtype]
    linear = r * high
    whole = fast_two_sum(x.like(1.0), linear)
    rest = r * low + r * r * polynomial(r, p.EXP2[x.dtype])
    return scaled(whole.hi + (whole.lo + rest), z)


def expm1(x: Num) -> Num:
    """e to the power of x, less 1, precise near 0 too."""
    power = expm1_parts(x)
    return with_sign(scaled(power.pair.sum(), power.z), x)


def expm1_parts(x: Num) -> Power:
    """e**x - 1 as (hi + lo) * 2**z, precise near 0 too; hi may be large where z < 0."""
    z, r, cut = _reduced(x.unless(x < _SATURATED[x.dtype], _SATURATED[x.dtype]))
    # 2**z (1 - 2**-z + r + …); from 2**-60 on the second term is negligible.
    less = power_of_two(-z.unless(z > 60.0, 60.0))
    offset = two_sum(x.like(1.0), -less)
    whole = fast_two_sum(offset.hi, r)
    argument = two_sum(r, -cut)
    rest = _rest(argument.hi) + (argument.hi * argument.lo - cut)
    return Power(fast_two_sum(whole.hi, whole.lo + (offset.lo + rest)), z)


def sigmoid(x: Num) -> Num:
    """1 / (1 + e**-x), from e**-|x| so that nothing overflows."""
    power = exp_parts(-absolute(x)).scaled()
    whole = fast_two_sum(x.like(1.0), power.hi)
    divisor = Pair(whole.hi, whole.lo + power.lo)
    negative = has_sign(x)
    one = single(x.like(1.0))
    dividend = Pair(negative.pick(power.hi, one.hi), negative.pick(power.lo, one.lo))
    return over(dividend, divisor).sum()
