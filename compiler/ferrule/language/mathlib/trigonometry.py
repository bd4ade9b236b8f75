"""`sin cos tan`, from the reduced angle r.

sin r is r + r**3 S(r**2), cos r is 1 - r**2/2 + r**4 C(r**2). float32 is computed in float64 and
rounded once; float64 in pairs.  The quadrant selects one of the two, and the sign.
"""

from __future__ import annotations

import math

from ferrule.language.mathlib import polynomials as p
from ferrule.language.mathlib.forms import absolute, has_sign, negated_if
from ferrule.language.mathlib.formulas import Num, polynomial
from ferrule.language.mathlib.pairs import Pair, fast_two_sum, over, single
from ferrule.language.mathlib.reduction import reduced
from ferrule.specs import Float32


def sin(x: Num) -> Num:
    """The sine."""
    quadrant, sine, cosine = _both(x)
    chosen = _picked((quadrant & 1).differs(0), cosine, sine).sum()
    return _finished(x, negated_if(chosen, (quadrant & 2).differs(0) ^ has_sign(x)))


def cos(x: Num) -> Num:
    """The cosine."""
    quadrant, sine, cosine = _both(x)
    chosen = _picked((quadrant & 1).differs(0), sine, cosine).sum()
    return _finished(x, negated_if(chosen, ((quadrant + 1) & 2).differs(0)))


def tan(x: Num) -> Num:
    """The tangent."""
    quadrant, sine, cosine = _both(x)
    odd = (quadrant & 1).differs(0)
    dividend, divisor = _picked(odd, cosine, sine), _picked(odd, sine, cosine)
    single_precision = x.dtype is Float32
    quotient = dividend.hi / divisor.hi if single_precision else over(dividend, divisor).sum()
    return _finished(x, negated_if(quotient, odd ^ has_sign(x)))


def _both(x: Num) -> tuple[Num, Pair, Pair]:
    """The quadrant of |x|, and sine and cosine of the rest."""
    found = reduced(absolute(x))
    r, low = found.rest.hi, found.rest.lo
    z = r * r
    sine = r * (z * polynomial(z, p.SIN[x.dtype]))
    cosine = z * z * polynomial(z, p.COS[x.dtype])
    if x.dtype is Float32:
        return found.quadrant, single(r + sine), single(1.0 - (z * 0.5 - cosine))
    half = fast_two_sum(r.like(1.0), z * -0.5)
    return (
        found.quadrant,
        fast_two_sum(r, sine + (low - low * (z * 0.5))),
        fast_two_sum(half.hi, half.lo + (cosine - r * low)),
    )


def _picked(condition: Num, yes: Pair, no: Pair) -> Pair:
    return Pair(condition.pick(yes.hi, no.hi), condition.pick(yes.lo, no.lo))


def _finished(x: Num, result: Num) -> Num:
    """In the dtype of x; NaN for infinity and NaN."""
    rounded = result.to(x.dtype)
    return (absolute(x) < math.inf).pick(rounded, math.nan)
