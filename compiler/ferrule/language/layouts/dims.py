"""Arithmetic on sizes with proofs: products, exact quotients, order.

A size is at least 0.  A size that is 0 in a call makes a layout empty, and for an empty layout
everything holds; so the proofs here assume sizes of at least 1.

A product is stored as factors and one number, in the original order, so that `m * n * 4` and `4 * m
* n` are the same text, and equal factors cancel in a quotient.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable

from ferrule.language.layouts.errors import refuse
from ferrule.specs import Compound, Dim, IntExpr, divisibility_of
from ferrule.specs import ceil_div as ceil_div_expression
from ferrule.specs.expr import INT64_MAX, INT64_MIN


def times(*dims: Dim) -> Dim:
    """The product of sizes.  Raises LayoutError for a constant that overflows 64 bits."""
    constant, factors = _factors(dims)
    simpler: list[Dim] = []
    for factor in factors:
        match factor:
            case Compound("floordiv", lhs, int(divisor)) if (
                divisor > 1 and constant % divisor == 0 and divisibility_of(lhs) % divisor == 0
            ):
                constant //= divisor
                simpler.append(lhs)
            case _:
                simpler.append(factor)
    if not INT64_MIN <= constant <= INT64_MAX:
        refuse("a layout", f"the product {constant} overflows 64 bits")
    if constant == 0:
        return 0
    constant_again, factors = _factors((constant, *simpler))
    return _build(constant_again, factors)


def _build(constant: int, factors: Iterable[IntExpr]) -> Dim:
    result: Dim = 1
    for factor in factors:
        result = factor if result == 1 else result * factor
    return constant if result == 1 else result * constant


def _factors(dims: Iterable[Dim]) -> tuple[int, list[IntExpr]]:
    """The constant and the other factors of a product."""
    constant, factors, todo = 1, [], list(dims)
    while todo:
        match todo.pop(0):
            case int(number):
                constant *= number
            case Compound("mul", lhs, rhs):
                todo[:0] = [lhs, rhs]
            case factor:
                factors.append(factor)
    return constant, factors


def same(lhs: Dim, rhs: Dim) -> bool:
    """Whether two sizes are known to be equal."""
    if lhs == rhs:
        return True
    (left, left_factors), (right, right_factors) = _factors([lhs]), _factors([rhs])
    return left == right and Counter(left_factors) == Counter(right_factors)


def quotient(lhs: Dim, rhs: Dim) -> Dim | None:
    """`lhs / rhs` if the division is known to be exact, else None."""
    (constant, factors), (divisor, divisors) = _factors([lhs]), _factors([rhs])
    if divisor == 0:
        return None
    if constant == 0:
        return 0
    for each in divisors:
        if each not in factors:
            return None
        factors.remove(each)
    if divisor < 0:
        constant, divisor = -constant, -divisor
    common = math.gcd(constant, divisor)
    constant, divisor = constant // common, divisor // common
    for position, factor in enumerate(factors):
        known = math.gcd(divisibility_of(factor), divisor)
        if known > 1:
            factors[position] = _over(factor, known)
            divisor //= known
    return times(constant, *factors) if divisor == 1 else None


def _over(factor: IntExpr, divisor: int) -> IntExpr:
    """A factor divided by a number that is known to divide it."""
    match factor:
        case Compound("floordiv", lhs, int(inner)) if divisibility_of(lhs) % (inner * divisor) == 0:
            result = lhs // (inner * divisor)
        case _:
            result = factor // divisor
    assert not isinstance(result, int)
    return result


def at_most(lhs: Dim, rhs: Dim) -> bool:
    """Whether `lhs <= rhs` is known, for sizes."""
    if isinstance(lhs, int) and isinstance(rhs, int):
        return lhs <= rhs
    return lhs == 1 or quotient(rhs, lhs) is not None


def ceil_quotient(lhs: Dim, rhs: Dim) -> Dim:
    """`lhs / rhs` rounded up; `rhs` is at least 1."""
    exact = quotient(lhs, rhs)
    if exact is not None:
        return exact
    if isinstance(lhs, int) and isinstance(rhs, int):
        return -(-lhs // rhs)
    return ceil_div_expression(lhs, rhs)
