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
    form_of,
    has_sign,
    power_of_two,
    raised,
    scaled,
    with_sign,
)
from ferrule.language.mathlib.formulas import Num, polynomial
from ferrule.language.mathlib.pairs import Pair, fast_two_sum, over, single, two_sum
from ferrule.language.mathlib.reciprocals import reciprocal
from ferrule.specs import DType, Float32, Float64
from ferrule.specs.deferred import dataclass

_LOW: Final[dict[DType, float]] = {Float32: -104.0, Float64: -746.0}
"""e**x is less than half of the smallest number."""
_HIGH: Final[dict[DType, float]] = {Float32: 90.0, Float64: 711.0}
"""e**x / 2 is more than the largest number."""
_VANISHED: Final = -60.0
"""2 to this power is nothing beside 1."""
_SATURATED: Final[dict[DType, float]] = {Float32: -20.0, Float64: -40.0}
"""e**x is less than a quarter of the ulp of 1."""


@dataclass(frozen=True, slots=True, eq=False)
class Power:
    """(hi + lo) * 2**z with hi + lo in (1/2, 2); z is a float that is an integer.

    hi is the sum of both, rounded: who needs one float takes it, and waits for no lo.
    """

    pair: Pair
    z: Num

    def scaled(self) -> Pair:
        """As a pair of floats."""
        return Pair(scaled(self.pair.hi, self.z), scaled(self.pair.lo, self.z))


def exp(x: Num) -> Num:
    """e to the power of x."""
    if x.b.formulas.contracts:
        return exp_by_fma(x.within(_LOW[x.dtype], _HIGH[x.dtype]))
    power = exp_parts(x)
    return scaled(power.pair.hi, power.z)


def exp_by_fma(x: Num, low: Num | None = None) -> Num:
    """e to the power of x + low, where low is below the ulp of x, and the result not far beyond the
    largest number."""
    magic = form_of(x).magic
    first, second = c.LN2[x.dtype]
    turned = x.fma(c.LOG2_E_FULL[x.dtype][0], magic)
    z = turned - magic
    exact, cut = z.fnma(first, x), z * second if low is None else z.fms(second, low)
    r = exact - cut
    # e**r - 1, in which r itself is rounded only once, with the rest.
    less_one = exact + (r * r).fms(polynomial(r, p.EXP_SHORT[x.dtype]), cut)
    return raised(less_one, turned)


def exp_parts(x: Num, low: Num | None = None) -> Power:
    """e to the power of x + low, where low is below the ulp of x."""
    z, r, cut = _reduced(x, low)
    # |r| is at most ln 2 / 2, so 1 is the larger one, which `fast_two_sum` wants first.
    whole = fast_two_sum(x.like(1.0), r)
    argument = r - cut
    rest = (argument * argument).fms(polynomial(argument, p.EXP[x.dtype]), cut)
    return Power(fast_two_sum(whole.hi, whole.lo + rest), z)


def _reduced(x: Num, low: Num | None = None) -> tuple[Num, Num, Num]:
    """z, r and c with x + low = z ln 2 + r - c; r is exact, and c small beside its bound."""
    dtype = x.dtype
    least, most = _LOW[dtype], _HIGH[dtype]
    clamped = x.within(least, most)
    magic = form_of(x).magic
    z = clamped.fma(c.LOG2_E_FULL[dtype][0], magic) - magic
    first, second = c.LN2[dtype]
    cut = z * second
    if low is not None:
        # Of an x that was clamped the lower part means nothing any more.
        cut = cut - ((x > least) & (x < most)).pick(low, 0.0)
    return z, z.fnma(first, clamped), cut


def _rest(r: Num) -> Num:
    """e**r - 1 - r."""
    return r * r * polynomial(r, p.EXP[r.dtype])


def exp2(x: Num) -> Num:
    """2 to the power of x; exact for integers."""
    form = FORMS[x.dtype]
    # 2 to these powers rounds to 0 and to infinity; what is beyond would not fit into an exponent.
    clamped = x.within(-2.0 - form.bias - form.mantissa, 1.0 + form.bias)
    turned = clamped + form.magic
    z = turned - form.magic
    r = clamped - z
    high, low = c.LN2_FULL[x.dtype]
    if x.b.formulas.contracts:
        rest = (r * r).fma(polynomial(r, p.EXP2[x.dtype]), r * low)
        return raised(r.fma(high, rest), turned)
    linear = r * high
    whole = fast_two_sum(x.like(1.0), linear)
    rest = r * low + r * r * polynomial(r, p.EXP2[x.dtype])
    return scaled(whole.hi + (whole.lo + rest), z)


def expm1(x: Num) -> Num:
    """e to the power of x, less 1, precise near 0 too."""
    power = expm1_parts(x)
    return with_sign(scaled(power.pair.hi, power.z), x)


def expm1_parts(x: Num) -> Power:
    """e**x - 1 as (hi + lo) * 2**z, precise near 0 too; hi may be large where z < 0."""
    z, r, cut = _reduced(x.unless(x < _SATURATED[x.dtype], _SATURATED[x.dtype]))
    # 2**z (1 - 2**-z + r + …); from 2**-60 on the second term is negligible.
    less = power_of_two(-z.unless(z > 60.0, 60.0))
    offset = two_sum(x.like(1.0), -less)
    whole = fast_two_sum(offset.hi, r)
    argument = two_sum(r, -cut)
    rest = _rest(argument.hi) + argument.hi.fms(argument.lo, cut)
    return Power(fast_two_sum(whole.hi, whole.lo + (offset.lo + rest)), z)


def sigmoid(x: Num) -> Num:
    """1 / (1 + e**-x), from e**-|x| so that nothing overflows."""
    if x.b.formulas.contracts:
        return _sigmoid_by_fma(x)
    power = exp_parts(-absolute(x)).scaled()
    whole = fast_two_sum(x.like(1.0), power.hi)
    divisor = Pair(whole.hi, whole.lo + power.lo)
    negative = has_sign(x)
    one = single(x.like(1.0))
    dividend = Pair(negative.pick(power.hi, one.hi), negative.pick(power.lo, one.lo))
    return over(dividend, divisor).sum()


def _sigmoid_by_fma(x: Num) -> Num:
    """The same; e**-|x| is scaled last where it is the dividend."""
    power, negative = exp_parts(-absolute(x)), has_sign(x)
    scale = power_of_two(power.z.unless(power.z < _VANISHED, _VANISHED))
    whole = fast_two_sum(x.like(1.0), power.pair.hi * scale)
    low = power.pair.lo.fma(scale, whole.lo)
    inverse = reciprocal(whole.hi)
    high = negative.pick(power.pair.hi, 1.0)
    found = high * inverse
    rest = found.fnma(low, negative.pick(power.pair.lo, 0.0))
    rest = found.fnma(whole.hi, high) + rest
    return scaled(rest.fma(inverse, found), negative.pick(power.z, 0.0))
