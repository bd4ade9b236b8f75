"""Numbers of twice the precision: unevaluated sums of two floats, and operations on them.

Knuth's and Dekker's error-free transformations.  Products are split by masking bits, so that no
fused multiply-add is needed and all targets have the same results; in float64 the product of the
two lower parts is one bit too long, an error that no use here can notice.  Nothing here may be
reassociated.
"""

from __future__ import annotations

from ferrule.language.mathlib.forms import form_of, upper_half
from ferrule.language.mathlib.formulas import Num
from ferrule.specs import Float32
from ferrule.specs.deferred import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """hi + lo; lo is at most about an ulp of hi."""

    hi: Num
    lo: Num

    def sum(self) -> Num:
        """Rounded to one float."""
        return self.hi + self.lo


def two_sum(a: Num, b: Num) -> Pair:
    """a + b exactly."""
    s = a + b
    back = s - a
    return Pair(s, (a - (s - back)) + (b - back))


def fast_two_sum(a: Num, b: Num) -> Pair:
    """a + b exactly for |a| >= |b| or a = 0."""
    s = a + b
    return Pair(s, b - (s - a))


def two_product(a: Num, b: Num) -> Pair:
    """a * b, except for the last bit of lo; without overflow and underflow.

    In float32 the products of the parts are exact, and so lo is that of an Fma, bit by bit.
    """
    formulas = a.b.formulas
    if formulas.contracts or (formulas.fma and a.dtype is Float32):
        p = a * b
        rest = not formulas.contracts
        return Pair(p, Num(a.b, a.b.fma(a.value, b.value, (-p).value, rest=rest)))
    ah, bh = upper_half(a), upper_half(b)
    al, bl = a - ah, b - bh
    p = a * b
    # From the largest part to the smallest: in this order each difference is exact.
    return Pair(p, ((ah * bh - p) + ah * bl + al * bh) + al * bl)


def times(a: Pair, b: Pair) -> Pair:
    """a * b to about twice the precision."""
    p = two_product(a.hi, b.hi)
    return fast_two_sum(p.hi, p.lo + (a.hi * b.lo + a.lo * b.hi))


def times_number(a: Pair, b: Num) -> Pair:
    """a * b to about twice the precision."""
    p = two_product(a.hi, b)
    return fast_two_sum(p.hi, a.lo.fma(b, p.lo))


def plus(a: Pair, b: Pair) -> Pair:
    """a + b for |a| >= |b|, to about twice the precision."""
    s = two_sum(a.hi, b.hi)
    return fast_two_sum(s.hi, s.lo + (a.lo + b.lo))


def over(a: Pair, b: Pair) -> Pair:
    """a / b to about twice the precision."""
    q = a.hi / b.hi
    p = two_product(q, b.hi)
    rest = ((a.hi - p.hi) - p.lo) + (a.lo - q * b.lo)
    return Pair(q, rest / b.hi)


def pair_of(x: Num, hi: float, lo: float) -> Pair:
    """A constant of twice the precision, in the dtype of x."""
    return Pair(x.like(hi), x.like(lo))


def single(x: Num) -> Pair:
    """A float as a pair."""
    return Pair(x, x.like(0.0))


def digits(x: Num) -> int:
    """Bits of a mantissa, the leading one included."""
    return form_of(x).mantissa + 1
