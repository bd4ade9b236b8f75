"""`rsqrt cbrt pow`.

* `rsqrt` is 1 / sqrt(x) and a step of Newton's iteration, its residual computed in pairs;
  `fast_rsqrt` is without that step.
* `cbrt` starts from a polynomial on [1, 2); float64 takes a step of Halley's iteration.  The last
  step is Newton's, with the residual of the cube computed in pairs.
* `pow` is e**(y log |x|) with the logarithm and the product as pairs; log(1 + f) is
  2 s + s**3 (2/3 + z P(z)), as in `logarithms`, with everything but P in pairs.
"""

from __future__ import annotations

import math
from typing import Final

from ferrule.language.mathlib import constants as c
from ferrule.language.mathlib import polynomials as p
from ferrule.language.mathlib.exponentials import exp_parts
from ferrule.language.mathlib.forms import (
    absolute,
    exponent_and_fraction,
    float_of,
    form_of,
    has_sign,
    negated_if,
    scaled,
    with_sign,
)
from ferrule.language.mathlib.formulas import Num, polynomial
from ferrule.language.mathlib.pairs import (
    Pair,
    fast_two_sum,
    over,
    plus,
    single,
    times,
    times_number,
    two_product,
    two_sum,
)
from ferrule.language.mathlib.reciprocals import inverse_root
from ferrule.language.mathlib.rounding import trunc
from ferrule.specs import Float64


def rsqrt(x: Num) -> Num:
    """1 / sqrt(x)."""
    if x.b.formulas.contracts:
        return inverse_root(x)
    first = 1.0 / x.sqrt()
    root = two_product(x, first)
    one = two_product(root.hi, first)
    residual = ((1.0 - one.hi) - one.lo) - root.lo * first
    proper = (x > 0.0) & (x < math.inf)
    return proper.pick(first + first * (residual * 0.5), first)


def fast_rsqrt(x: Num) -> Num:
    """1 / sqrt(x), rounded twice."""
    return 1.0 / x.sqrt()


# ---- cbrt ----

_THIRDS: Final = 400
"""Adding three times this makes every exponent positive."""


def cbrt(x: Num) -> Num:
    """The cube root."""
    form, magnitude = form_of(x), absolute(x)
    k, m = exponent_and_fraction(magnitude, 1.0)
    above = k + 3 * _THIRDS
    # 43691 is 2**17 / 3, rounded up: right for all numbers below 2**16.
    third = (above * 43691) >> 17  # above // 3
    left = above - third * 3
    is_one, is_two = left.equals(1), left.equals(2)
    radicand = m.unless(is_one, m * 2.0).unless(is_two, m * 4.0)
    factor = x.like(1.0).unless(is_one, 2.0 ** (1 / 3)).unless(is_two, 2.0 ** (2 / 3))
    root = _refined(polynomial(m, p.CBRT[x.dtype]) * factor, radicand)
    power = ((third + (form.bias - _THIRDS)) << form.mantissa).bits(x.dtype)
    proper = (magnitude > 0.0) & (magnitude < math.inf)
    return proper.pick(with_sign(root * power, x), x)


def _refined(root: Num, radicand: Num) -> Num:
    """The cube root of the radicand from an approximation with 16 correct bits."""
    if root.dtype is Float64:
        cube = root * root * root
        root = root * ((cube + radicand * 2.0) / (cube * 2.0 + radicand))
    square = two_product(root, root)
    cubed = times_number(square, root)
    residual = (radicand - cubed.hi) - cubed.lo
    return root + residual / (square.hi * 3.0)


# ---- pow ----


def power(x: Num, y: Num) -> Num:
    """x to the power of y."""
    magnitude = absolute(x)
    # Beyond this, only the sign of y matters: the logarithm is 0 or at least 2**-53.
    limit = 2.0 ** (form_of(x).mantissa + 18)
    product = times_number(_log_pair(magnitude), y.within(-limit, limit))
    parts = exp_parts(product.hi, product.lo)
    result = _of_extremes(scaled(parts.pair.hi, parts.z), magnitude, y)
    result = _signed(result, x, y)
    result = result.unless(x.is_nan() | y.is_nan(), x + y)
    # Last, as in C: 1 to the power of NaN is 1, and so is NaN to the power of 0.
    return result.unless(x.equals(1.0) | y.equals(0.0), 1.0)


def _log_pair(x: Num) -> Pair:
    """log(x) of a positive finite x with about 20 bits more than a float, in float64 15."""
    k, m = exponent_and_fraction(x, math.sqrt(0.5))
    exponent, f = float_of(k, form_of(x)), m - 1.0
    s = over(single(f), two_sum(x.like(2.0), f))
    z = times(s, s)
    first, second = c.TWO_THIRDS[x.dtype]
    series = fast_two_sum(x.like(first), z.hi * polynomial(z.hi, p.LOG_FAR[x.dtype]))
    series = Pair(series.hi, series.lo + second)
    part = plus(Pair(s.hi * 2.0, s.lo * 2.0), times(times(z, s), series))
    high, low = c.LN2[x.dtype]
    whole = fast_two_sum(exponent * high, part.hi)
    return fast_two_sum(whole.hi, whole.lo + (part.lo + exponent * low))


def _of_extremes(result: Num, magnitude: Num, y: Num) -> Num:
    """The results for 0, 1 and infinity to the power of y."""
    positive = y > 0.0
    large = positive.pick(result.like(math.inf), 0.0)
    small = positive.pick(result.like(0.0), math.inf)
    result = result.unless(magnitude.equals(math.inf), large)
    return result.unless(magnitude.equals(0.0), small).unless(magnitude.equals(1.0), 1.0)


def _signed(result: Num, x: Num, y: Num) -> Num:
    """For a negative x: negated if y is odd, NaN if y is not an integer."""
    half = y * 0.5
    is_integer = trunc(y).equals(y)
    is_odd = is_integer & trunc(half).differs(half)
    negative = has_sign(x)
    result = negated_if(result, negative & is_odd)
    inside = (x < 0.0) & (x > -math.inf)
    return result.unless(inside & ~is_integer, math.nan)
