"""`sinh cosh tanh`, from the parts of the exponentials: with E = e**|x| and e = E - 1,

sinh |x| = e / 2 + (e / 2) / (e + 1),   cosh x = E / 2 + 1 / (2 E),   tanh |x| = e' / (e' + 2) with
e' = e**(2 |x|) - 1.  Sums and quotients are of pairs.
"""

from __future__ import annotations

from ferrule.language.mathlib import polynomials as p
from ferrule.language.mathlib.exponentials import Power, exp_parts, expm1_parts
from ferrule.language.mathlib.forms import absolute, power_of_two, with_sign
from ferrule.language.mathlib.formulas import Num, polynomial
from ferrule.language.mathlib.pairs import Pair, fast_two_sum, over, two_sum
from ferrule.language.mathlib.reciprocals import reciprocal
from ferrule.specs import Float32

_LARGE = 2.0**60
"""From here on 1 is negligible."""
_TINY = 2.0**-28
"""Up to here sinh x is x."""
_ONE = 32.0
"""From here on the hyperbolic tangent is 1."""
_FULL = 9.25
"""From here on that of a float32 is 1."""
_NEAR = 0.55
"""Up to here the polynomial of the hyperbolic tangent is precise."""


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
    if x.b.formulas.contracts and x.dtype is Float32:
        return with_sign(_tanh_by_fma(magnitude), x)
    found = expm1_parts(magnitude.unless(magnitude > _ONE, _ONE) * 2.0).scaled()
    divisor = two_sum(found.hi, x.like(2.0))
    return with_sign(over(found, Pair(divisor.hi, divisor.lo + found.lo)).sum(), x)


def _tanh_by_fma(x: Num) -> Num:
    """The hyperbolic tangent of a float32 that is not negative: 1 - 2 / (e**(2 x) + 1) in pairs, or
    near 0 a polynomial."""
    square = x * x
    near = x.fma(square * polynomial(square, p.TANH[x.dtype]), x)
    power = exp_parts(x.unless(x > _FULL, _FULL) * 2.0)
    scale = power_of_two(power.z)
    whole = fast_two_sum(power.pair.hi * scale, x.like(1.0))
    low = power.pair.lo.fma(scale, whole.lo)
    inverse = reciprocal(whole.hi)
    less = inverse * 2.0
    rest = less.fnma(low, less.fnma(whole.hi, 2.0)) * inverse
    outer = fast_two_sum(x.like(1.0), -less)
    return (x < _NEAR).pick(near, outer.hi + (outer.lo - rest))


def _half(power: Power) -> Pair:
    """Half of it, without unnecessary overflow."""
    return Power(power.pair, power.z - 1.0).scaled()
