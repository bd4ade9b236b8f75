"""`erf erfc`.

Up to |x| = 1, erf is x + x Q(x**2 - 1/2).  For the rest, and for erfc, after M.  Shepherd and J.
Laframboise (Mathematics of Computation 36, 1981), (1 + 2 x) e**(x**2) erfc(x) is one polynomial in
t = (x - K) / (x + K) on the whole half line.  The square is a pair, because its error is multiplied
by the exponential.
"""

from __future__ import annotations

from typing import Final

from ferrule.language.mathlib import polynomials as p
from ferrule.language.mathlib.exponentials import exp_by_fma, exp_parts
from ferrule.language.mathlib.forms import absolute, has_sign, scaled, with_sign
from ferrule.language.mathlib.formulas import Num, polynomial
from ferrule.language.mathlib.pairs import Pair, fast_two_sum, over, two_product, two_sum
from ferrule.language.mathlib.reciprocals import quotient
from ferrule.specs import DType, Float32, Float64

_CENTRE: Final = 3.75
_FULL: Final = 4.0
"""From here on erf of a float32 is 1."""
_END: Final[dict[DType, float]] = {Float32: 10.5, Float64: 27.5}
"""From here on erfc is less than half of the smallest number."""


def erf(x: Num) -> Num:
    """The error function."""
    magnitude = absolute(x)
    inner = magnitude.fma(_series(magnitude), magnitude)
    if x.b.formulas.contracts and x.dtype is Float32:
        return with_sign((magnitude < 1.0).pick(inner, _erf_far(magnitude)), x)
    return with_sign((magnitude < 1.0).pick(inner, 1.0 - _complement(magnitude)), x)


def _erf_far(x: Num) -> Num:
    """erf(x) of a float32 from 1 on: 1 - e**-(x Q(x))."""
    x = x.unless(x > _FULL, _FULL)
    factor = polynomial(x, p.ERF_FAR[x.dtype])
    exponent = two_product(x, factor)
    return 1.0 - exp_by_fma(-exponent.hi, -exponent.lo)


def erfc(x: Num) -> Num:
    """1 - erf(x), precise where that is small."""
    magnitude = absolute(x)
    outer = _complement(magnitude)
    outer = has_sign(x).pick(2.0 - outer, outer)
    # This side is taken below 1/2 alone, where 1 is the larger one.
    whole = fast_two_sum(x.like(1.0), -x)
    inner = whole.hi + x.fnma(_series(magnitude), whole.lo)
    return (magnitude < 0.5).pick(inner, outer)


def _series(x: Num) -> Num:
    """erf(x) / x - 1 for |x| <= 1."""
    return polynomial(x.fma(x, -0.5), p.ERF[x.dtype])


def _complement(x: Num) -> Num:
    """erfc(x) for x >= 0; NaN for NaN."""
    x = x.unless(x > _END[x.dtype], _END[x.dtype])
    square = two_product(x, x)
    power = exp_parts(-square.hi, -square.lo)
    more = polynomial(quotient(x - _CENTRE, x + _CENTRE), p.ERFC[x.dtype])
    high = power.pair.hi
    dividend = Pair(high, high.fma(more, power.pair.lo))
    return scaled(over(dividend, two_sum(x * 2.0, x.like(1.0))).sum(), power.z)
