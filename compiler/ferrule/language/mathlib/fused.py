"""`fma`: x * y + z with one rounding, without an instruction for it.

* For floats of up to 32 bits the product is exact in float64; the sum is rounded to *odd* there, so
  that the rounding to the narrow format gives the result of one rounding.
* For float64 by S.  Boldo and G.  Melquiond, "Emulation of FMA and correctly rounded sums: proved
  algorithms using rounding to odd" (IEEE Transactions on Computers 57, 2008).  The operands are
  scaled to [1, 2) first; for a subnormal result a number is added whose ulp is the smallest
  subnormal, so that the rounding happens at the right bit.
"""

from __future__ import annotations

import math

from ferrule.language.mathlib.forms import (
    FORMS,
    absolute,
    bits_of,
    exponent_and_fraction,
    float_of,
    has_sign,
    negated_if,
    power_of_two,
    to_integer,
    with_sign,
)
from ferrule.language.mathlib.formulas import Num
from ferrule.language.mathlib.pairs import Pair, two_sum
from ferrule.specs import Float64

_APART = 115.0
"""Beyond this distance of exponents, the smaller operand only decides the direction of the
rounding."""
# Dekker's splitting: half of the 53 bits of a float64 go into each part.
_SPLITTER = 2.0**27 + 1


def fma(x: Num, y: Num, z: Num) -> Num:
    """x * y + z, rounded once."""
    return _fma64(x, y, z) if x.dtype is Float64 else _narrow_fma(x, y, z)


def _narrow_fma(x: Num, y: Num, z: Num) -> Num:
    """For floats of up to 32 bits."""
    product = x.to(Float64) * y.to(Float64)
    addend = z.to(Float64)
    total = _odd_sum(product, addend)
    # Of infinities `two_sum` makes NaN, and an infinity that is made odd is no number.
    return (absolute(total) < math.inf).pick(total, product + addend).to(x.dtype)


def _odd_sum(a: Num, b: Num) -> Num:
    """a + b, rounded to odd: if it is inexact, the last bit is 1."""
    s = two_sum(a, b)
    # If the error points away from zero, the magnitude stays; else it is one less, then made odd.
    inexact = s.lo.differs(0.0)
    inward = has_sign(s.hi) ^ has_sign(s.lo)
    bits = bits_of(s.hi)
    cut = (bits - inward.pick(bits.like(1), 0)) | 1
    return inexact.pick(cut, bits).bits(Float64)


def _fma64(x: Num, y: Num, z: Num) -> Num:
    """In float64."""
    (ex, mx), (ey, my), (ez, mz) = (_parts(operand) for operand in (x, y, z))
    product = _exact_product(mx, my)
    exponent = ex + ey
    apart = (ez - exponent).within(-_APART, _APART)
    exponent = exponent.unless(ez - _APART > exponent, ez - _APART)
    result = _rounded(product, mz * power_of_two(apart), exponent)
    zero = x.equals(0.0) | y.equals(0.0)
    rounded = x * y
    result = result.unless(z.equals(0.0), rounded).unless(zero, rounded + z)
    finite = (absolute(x) < math.inf) & (absolute(y) < math.inf)
    result = result.unless(~(absolute(z) < math.inf), z)
    return result.unless(~finite, rounded + z)


def _parts(x: Num) -> tuple[Num, Num]:
    """The exponent, a float, and the rest in [1, 2) with the sign."""
    k, m = exponent_and_fraction(absolute(x), 1.0)
    return float_of(k, FORMS[Float64]), negated_if(m, has_sign(x))


def _exact_product(x: Num, y: Num) -> Pair:
    """x * y exactly, by Veltkamp's and Dekker's algorithms."""
    (xh, xl), (yh, yl) = _split(x), _split(y)
    p = x * y
    return Pair(p, ((xh * yh - p) + xh * yl + xl * yh) + xl * yl)


def _split(x: Num) -> tuple[Num, Num]:
    """The sum of two numbers of 26 bits."""
    large = x * _SPLITTER
    high = large - (large - x)
    return high, x - high


def _rounded(product: Pair, addend: Num, exponent: Num) -> Num:
    """(product + addend) * 2**exponent, rounded once."""
    low = two_sum(addend, product.lo)
    high = two_sum(product.hi, low.hi)
    rest = _odd_sum(low.lo, high.lo)
    whole = high.hi + rest
    ruler = _ruler(whole, exponent)
    aligned = two_sum(ruler, high.hi)
    total = (aligned.hi + _odd_sum(aligned.lo, rest)) - ruler
    # Exponents of two factors together may be twice beyond those of a float64: in three steps.
    third = to_integer(exponent * (1 / 3))
    power = power_of_two(third)
    scaled = total * power * power * power_of_two(exponent - third * 2.0)
    return scaled.unless(scaled.equals(0.0), with_sign(scaled, whole))


def _ruler(total: Num, exponent: Num) -> Num:
    """A number that makes the total end at the smallest subnormal; 0 for a normal result."""
    smallest_normal = power_of_two((-1022.0 - exponent).within(-1000.0, 1000.0))
    granule = power_of_two((-1074.0 - exponent).within(-300.0, 200.0))
    ruler = with_sign(granule * 2.0**52, total)
    return (absolute(total) < smallest_normal).pick(ruler, 0.0)
