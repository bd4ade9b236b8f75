"""`sin cos tan`, from the reduced angle r.

sin r is r + r**3 S(r**2), cos r is 1 - r**2/2 + r**4 C(r**2). float32 is computed in float64 and
rounded once, or, sine and cosine with fma, in pairs of float32s; float64 in pairs.  The quadrant
selects one of the two, and the sign.
"""

from __future__ import annotations

import math

from ferrule.language.mathlib import polynomials as p
from ferrule.language.mathlib.forms import absolute, has_sign, negated_if
from ferrule.language.mathlib.formulas import Num, polynomial
from ferrule.language.mathlib.pairs import Pair, fast_two_sum, over, single
from ferrule.language.mathlib.reduction import reduced, reduced_by_fma
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
    quadrant, sine, cosine = _both(x, wide=True)
    odd = (quadrant & 1).differs(0)
    dividend, divisor = _picked(odd, cosine, sine), _picked(odd, sine, cosine)
    single_precision = x.dtype is Float32
    quotient = dividend.hi / divisor.hi if single_precision else over(dividend, divisor).sum()
    return _finished(x, negated_if(quotient, odd ^ has_sign(x)))


def _both(x: Num, *, wide: bool = False) -> tuple[Num, Pair, Pair]:
    """The quadrant of |x|, and sine and cosine of the rest; `wide`: of float32 in float64, too."""
    if x.dtype is Float32 and x.b.formulas.contracts and not wide:
        return _both_by_fma(x)
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


def _both_by_fma(x: Num) -> tuple[Num, Pair, Pair]:
    """Of float32, in float32: the last sum of each is the only one that rounds visibly."""
    found = reduced_by_fma(absolute(x))
    r, low = found.rest.hi, found.rest.lo
    z = r * r
    # r**2 = z + more, to twice the precision.
    more = (r + r).fma(low, r.fms(r, z))
    half = z.fma(-0.5, 1.0)
    rest = more.fma(-0.5, z.fma(-0.5, 1.0 - half))
    cosine = (z * z).fma(polynomial(z, p.COS[Float32]), rest)
    # Without the rounding of S, whose first coefficient is nearly all of it.
    *upper, first = p.SIN[Float32]
    cube = r * z
    sine = cube.fma(first, (cube * z).fma(polynomial(z, upper), low * half))
    return found.quadrant, Pair(r, sine), Pair(half, cosine)


def _picked(condition: Num, yes: Pair, no: Pair) -> Pair:
    return Pair(condition.pick(yes.hi, no.hi), condition.pick(yes.lo, no.lo))


def _finished(x: Num, result: Num) -> Num:
    """In the dtype of x; NaN for infinity and NaN."""
    rounded = result.to(x.dtype)
    return (absolute(x) < math.inf).pick(rounded, math.nan)
