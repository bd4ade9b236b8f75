"""The interval of a size, from the widths and bounds of its symbols only."""

from __future__ import annotations

from typing import Final

from ferrule.specs.expr import INT64_MAX, INT64_MIN, Compound, Dim, ExprOp, Sym, symbols_of

Interval = tuple[int, int]

_FULL: Final[Interval] = (INT64_MIN, INT64_MAX)


def interval(dim: Dim) -> Interval:
    """The smallest and largest value that a size can have if it is defined."""
    match dim:
        case Sym():
            return dim.interval()
        case Compound(op, lhs, rhs):
            low, high = _compound(op, interval(lhs), interval(rhs))
            return max(low, INT64_MIN), min(high, INT64_MAX)
        case int():
            return dim, dim


def is_bounded(dim: Dim) -> bool:
    """Whether bounds of a symbol say something about a size."""
    return any(symbol.bounds for symbol in symbols_of(dim))


def _compound(op: ExprOp, lhs: Interval, rhs: Interval) -> Interval:
    match op:
        case "add":
            return lhs[0] + rhs[0], lhs[1] + rhs[1]
        case "sub":
            return lhs[0] - rhs[1], lhs[1] - rhs[0]
        case "mul":
            # Signs decide which of the ends give the least and the largest product.
            products = [a * b for a in lhs for b in rhs]
            return min(products), max(products)
        case "min":
            return min(lhs[0], rhs[0]), min(lhs[1], rhs[1])
        case "max":
            return max(lhs[0], rhs[0]), max(lhs[1], rhs[1])
        case "floordiv" | "ceildiv" | "mod":
            return _divided(op, lhs, rhs)


def _divided(op: ExprOp, lhs: Interval, rhs: Interval) -> Interval:
    """Exact for a positive constant divisor, the usual case in launches."""
    divisor = rhs[0]
    if rhs != (divisor, divisor) or divisor <= 0:
        return _FULL
    match op:
        case "floordiv":
            return lhs[0] // divisor, lhs[1] // divisor
        case "ceildiv":
            return -(-lhs[0] // divisor), -(-lhs[1] // divisor)
        case _:
            return 0, divisor - 1
