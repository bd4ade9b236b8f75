"""`sinh cosh tanh`, from the parts of the exponentials: with E = e**|x| and e = E - 1,

sinh |x| = e / 2 + (e / 2) / (e + 1),   cosh x = E / 2 + 1 / (2 E),   tanh |x| = e' / (e' + 2) with
e' = e**(2 |x|) - 1.  Sums and quotients are of pairs.
"""

from __future__ import annotations

from ferrule.language.mathlib.exponentials import Power, exp_parts, expm1_parts
from ferrule.language.mathlib.forms import absolute, with_sign
from ferrule.language.mathlib.formulas import Num
from ferrule.language.mathlib.pairs import Pair, fast_two_sum, over, two_sum

_LARGE = 2.0**60
"""From here on 1 is negligible."""
_TINY = 2.0**-28
"""Up to here sinh x is x."""
_ONE = 32.0
"""From here on the hyperbolic tangent is 1."""


def sinh(x: Num) -> Num:
    """The hyperbolic sine."""
    magnitude = absolute(x)
    half = _half(expm1_parts(magnitude))
    doubled = two_sum(half.hi * 2.0, x.like(1.0))
    other = over(half, Pair(doubled.hi, doubled.lo + half.lo * 2.0))
    large = half.hi > _LARGE
    whole = fast_two_sum(half.hi, other.hi.unless(large, 0.5))
    rest = whole.lo + (half.lo + other.lo)
    found = whole.hi + rest.unless(large, 0.0)
    return with_sign(found.unless(magnitude < _TINY, magnitude), x)


def cosh(x: Num) -> Num:
    """The hyperbolic cosine."""
    half = _half(exp_parts(absolute(x)))
    other = 0.25 / half.hi
    whole = fast_two_sum(half.hi, other)
    large = half.hi > _LARGE
    rest = whole.lo + (half.lo - other * other * half.lo * 4.0)
    return whole.hi + rest.unless(large, 0.0)


def tanh(x: Num) -> Num:
    """The hyperbolic tangent."""
    magnitude = absolute(x)
    found = expm1_parts(magnitude.unless(magnitude > _ONE, _ONE) * 2.0).scaled()
    divisor = two_sum(found.hi, x.like(2.0))
    return with_sign(over(found, Pair(divisor.hi, divisor.lo + found.lo)).sum(), x)


def _half(power: Power) -> Pair:
    """Half of it, without unnecessary overflow."""
    return Power(power.pair, power.z - 1.0).scaled()
