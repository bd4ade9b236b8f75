"""Rounding to integers, and the sign bit: `floor ceil round trunc fabs copysign`.

Adding and subtracting 2**mantissa rounds |x| to the nearest integer, ties to even; the others go
one step back from there.  All are exact; -0.0, infinities and NaN are unchanged, and a zero has the
sign of the operand.
"""

from __future__ import annotations

from ferrule.language.mathlib.forms import absolute, form_of, with_sign
from ferrule.language.mathlib.formulas import Num


def fabs(x: Num) -> Num:
    """The value without its sign bit."""
    return absolute(x)


def copysign(x: Num, y: Num) -> Num:
    """x with the sign bit of y."""
    return with_sign(x, y)


def round_even(x: Num) -> Num:
    """The nearest integer, ties to even."""
    limit = 2.0 ** form_of(x).mantissa
    magnitude = absolute(x)
    nearest = (magnitude + limit) - limit
    return (magnitude < limit).pick(with_sign(nearest, x), x)


def trunc(x: Num) -> Num:
    """The integer towards zero."""
    limit = 2.0 ** form_of(x).mantissa
    magnitude = absolute(x)
    nearest = (magnitude + limit) - limit
    whole = nearest.unless(nearest > magnitude, nearest - 1.0)
    return (magnitude < limit).pick(with_sign(whole, x), x)


def floor(x: Num) -> Num:
    """The largest integer that is not above x."""
    nearest = round_even(x)
    return with_sign(nearest.unless(nearest > x, nearest - 1.0), x)


def ceil(x: Num) -> Num:
    """The smallest integer that is not below x."""
    nearest = round_even(x)
    return with_sign(nearest.unless(nearest < x, nearest + 1.0), x)
