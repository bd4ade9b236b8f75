"""`log log2 log10 log1p`.

With x = 2**k (1 + f) and sqrt(1/2) <= 1 + f < sqrt(2), and s = f / (2 + f), log(1 + f) is
f - f**2/2 + s (f**2/2 + z Q(z)) with z = s**2: the method of FreeBSD's msun, a reordering of
2 atanh(s).  It is kept as a sum whose first part has half of a mantissa, so that its products with
the first parts of 1 / ln 2 and 1 / ln 10 are exact.
"""

from __future__ import annotations

import math

from ferrule.language.mathlib import constants as c
from ferrule.language.mathlib import polynomials as p
from ferrule.language.mathlib.forms import (
    exponent_and_fraction,
    float_of,
    form_of,
    upper_half,
    with_sign,
)
from ferrule.language.mathlib.formulas import Num, polynomial
from ferrule.language.mathlib.pairs import Pair, fast_two_sum, two_sum
from ferrule.language.mathlib.reciprocals import quotient

_FIRST = math.sqrt(0.5)


def log(x: Num) -> Num:
    """The natural logarithm."""
    k, f = _reduced(x)
    return _finished(x, _natural(k, _log_of_fraction(f)).sum())


def log2(x: Num) -> Num:
    """The logarithm to base 2; exact for powers of 2."""
    k, f = _reduced(x)
    first, second = c.LOG2_E[x.dtype]
    part = _log_of_fraction(f)
    whole = fast_two_sum(k, part.hi * first)
    rest = (part.lo + part.hi) * second + part.lo * first
    return _finished(x, whole.hi + (whole.lo + rest))


def log10(x: Num) -> Num:
    """The logarithm to base 10."""
    k, f = _reduced(x)
    first, second = c.LOG10_E[x.dtype]
    part = _log_of_fraction(f)
    whole = fast_two_sum(k * c.LOG10_2[x.dtype][0], part.hi * first)
    rest = (part.lo + part.hi) * second + part.lo * first
    return _finished(x, whole.hi + (whole.lo + (rest + k * c.LOG10_2[x.dtype][1])))


def log1p(x: Num) -> Num:
    """The natural logarithm of 1 + x, precise near 0 too."""
    # Between sqrt(1/2) - 1 and sqrt(2) - 1 no reduction is needed: f is x itself, which 1 + x
    # rounds.
    small = (x > -0.29) & (x < 0.41)
    one_more = two_sum(x.like(1.0), x)
    k, f = _reduced(one_more.hi)
    k, f = k.unless(small, 0.0), small.pick(x, f)
    rest = (one_more.lo / one_more.hi).unless(small, 0.0)
    found = _natural(k, _log_of_fraction(f))
    result = found.hi + (found.lo + rest)
    return with_sign(_finished(one_more.hi, result), x)


def _reduced(x: Num) -> tuple[Num, Num]:
    """k, a float, and f."""
    k, m = exponent_and_fraction(x, _FIRST)
    return float_of(k, form_of(x)), m - 1.0


def _log_of_fraction(f: Num) -> Pair:
    """log(1 + f); its first part has half of a mantissa."""
    half_square = f * f * 0.5
    s = quotient(f, f + 2.0)
    z = s * s
    series = z * polynomial(z, p.LOG[f.dtype])
    hi = upper_half(f - half_square)
    return Pair(hi, s.fma(half_square + series, (f - hi) - half_square))


def _natural(k: Num, part: Pair) -> Pair:
    """k ln 2 + log(1 + f)."""
    first, second = c.LN2[k.dtype]
    whole = fast_two_sum(k * first, part.hi)
    return Pair(whole.hi, whole.lo + k.fma(second, part.lo))


def _finished(x: Num, result: Num) -> Num:
    """The logarithm for an x that is not a positive finite number."""
    result = (x < math.inf).pick(result, x)
    return result.unless(x < 0.0, math.nan).unless(x.equals(0.0), -math.inf)
