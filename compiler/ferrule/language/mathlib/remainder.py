"""`fmod`: long division of the mantissas in integers, exact.

Each step of the loop shifts the remainder by as many bits as fit into an integer; operands of
similar size need one step.  A loop with a different count in each lane is not vectorised.
"""

from __future__ import annotations

import math

from ferrule.language.ir import ops
from ferrule.language.mathlib.forms import (
    absolute,
    bits_of,
    exponent_and_fraction,
    form_of,
    with_sign,
)
from ferrule.language.mathlib.formulas import Num
from ferrule.specs import Int64, Uint64


def fmod(x: Num, y: Num) -> Num:
    """The remainder of x / y with the quotient rounded towards zero; it has the sign of x."""
    form = form_of(x)
    dividend, divisor = absolute(x), absolute(y)
    (ex, mx), (ey, my) = _parts(dividend), _parts(divisor)
    # A remainder has at most one bit more than the stored mantissa, so it still fits 64 bits.
    room = 63 - form.mantissa
    rest = _long_division(mx % my, my, ex - ey, room)
    exponent = ey - form.mantissa
    # The remainder is below the divisor.  Of the two scalings only the last can be subnormal.
    first = exponent >> 1
    found = rest.bits(Int64).to(x.dtype) * _power(x, first) * _power(x, exponent - first)
    found = found.unless(dividend < divisor, dividend)
    wrong = ~(dividend < math.inf) | divisor.equals(0.0) | divisor.is_nan()
    return with_sign(found, x).unless(wrong, math.nan)


def _parts(x: Num) -> tuple[Num, Num]:
    """The exponent, an Int64, and the mantissa as a Uint64."""
    form = form_of(x)
    k, m = exponent_and_fraction(x, 1.0)
    bits = bits_of(m) & ((1 << form.mantissa) - 1) | 1 << form.mantissa
    return k.to(Int64), bits.to(Int64).bits(Uint64)


def _power(x: Num, exponent: Num) -> Num:
    form = form_of(x)
    return ((exponent + form.bias) << form.mantissa).to(form.bits).bits(form.dtype)


def _long_division(rest: Num, divisor: Num, count: Num, room: int) -> Num:
    """rest * 2**count modulo the divisor."""
    b = rest.b
    carried = (ops.Value(Uint64, "rest"), ops.Value(Int64, "count"))
    with b.region() as test:
        more = Num(b, carried[1]) > 0
    with b.region() as body:
        old, left = (Num(b, value) for value in carried)
        step = left.unless(left > room, room)
        shifted = (old << step.bits(Uint64)) % divisor
        following = (shifted.value, (left - step).value)
    results = (ops.Value(Uint64, "rest"), ops.Value(Int64, "count"))
    initial = (rest.value, count.value)
    loop = ops.While(results, initial, carried, test.freeze(more.value), body.freeze(*following))
    b.append(loop)
    return Num(b, results[0])
