"""1 / x and 1 / sqrt(x) by fma: rounded correctly, from any start within 2 ulp.

A GPU starts from its own approximations, whose bits nobody documents (PTX ISA, `rcp.approx`: 1 ulp,
`rsqrt.approx`: 2**-22.9), a CPU from the quotient: since the end is rounded correctly, both end at
the same bits.  `tests/maths/test_reciprocals.py` tries every mantissa with every such start.
"""

from __future__ import annotations

from ferrule.language.mathlib.forms import bits_of
from ferrule.language.mathlib.formulas import Num
from ferrule.specs import Float32


def reciprocal(x: Num) -> Num:
    """1 / x, for an x that is a normal number like its reciprocal."""
    if not (x.b.formulas.on_gpu and x.dtype is Float32):
        return 1.0 / x
    return nearest_reciprocal(x, x.like(1.0).binary("div", x, fast=True))


def nearest_reciprocal(x: Num, start: Num) -> Num:
    """1 / x from a start.

    It is begun 2 ulp further from 0: the reciprocal of the largest mantissa, which is hardly more
    than the middle of two floats, is missed from the one below it, and none is from those above.
    """
    start = (bits_of(start) + 2).bits(start.dtype)
    less = x.fnma(start, 1.0)
    first = start.fma(less.fma(less, less), start)
    return first.fma(x.fnma(first, 1.0), first)


def inverse_root(x: Num) -> Num:
    """1 / sqrt(x), for every x."""
    fast = x.b.formulas.on_gpu and x.dtype is Float32
    start = x.unary("rsqrt", fast=True) if fast else 1.0 / x.sqrt()
    proper = (x > 0.0) & (x < float("inf"))
    return proper.pick(nearest_inverse_root(x, start), start)


def nearest_inverse_root(x: Num, start: Num) -> Num:
    """1 / sqrt(x) from a start, for a positive finite x."""
    first = (start * 0.5).fma((x * start).fnma(start, 1.0), start)
    root = x * first
    # 1 - x first**2, with the product in two parts.
    less = x.fms(first, root).fnma(first, root.fnma(first, 1.0))
    return (first * less).fma(less.fma(0.375, 0.5), first)


def quotient(a: Num, b: Num) -> Num:
    """a / b, for a b that is a normal number like its reciprocal; in formulas with fma it may be
    one ulp off."""
    return a * reciprocal(b) if a.b.formulas.contracts else a / b
