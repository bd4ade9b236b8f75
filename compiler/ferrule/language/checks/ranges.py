"""Intervals of the integers of the kernel IR."""

from __future__ import annotations

from typing import Final

from ferrule.language.ir import ops
from ferrule.specs import DType, Int64
from ferrule.specs.intervals import Interval

FULL: Final = Int64.range


def is_integer(value: ops.Value) -> bool:
    """Whether a value is an integer."""
    return isinstance(value.type, DType) and value.type.is_integer


def clipped(known: Interval, value: ops.Value) -> Interval:
    """The interval of a value; its dtype's if arithmetic may have wrapped."""
    low, high = _dtype_range(value)
    return known if low <= known[0] <= known[1] <= high else (low, high)


def _dtype_range(value: ops.Value) -> Interval:
    assert isinstance(value.type, DType)
    bits = value.type.bits
    if value.type.kind == "uint":
        return 0, (1 << bits) - 1
    return -(1 << bits - 1), (1 << bits - 1) - 1


def binary(name: ops.BinaryOp, lhs: Interval, rhs: Interval) -> Interval:
    """The interval of a result, before it wraps."""
    (a, b), (c, d) = lhs, rhs
    if a > b or c > d:  # behind conditions that exclude each other: nothing runs there
        return FULL
    match name:
        case "add":
            return a + c, b + d
        case "sub":
            return a - d, b - c
        case "mul":
            # Signs decide which of the ends give the least and the largest product.
            products = [x * y for x in lhs for y in rhs]
            return min(products), max(products)
        case "min":
            return min(a, c), min(b, d)
        case "max":
            return max(a, c), max(b, d)
        case "floordiv" if c > 0:
            quotients = [x // y for x in lhs for y in rhs]
            return min(quotients), max(quotients)
        case "mod" if c > 0:
            return (0, min(b, d - 1)) if a >= 0 else (0, d - 1)
        case "and" if a >= 0 or c >= 0:
            # The result has no bit that an operand that is not negative lacks.
            return 0, min(each[1] for each in (lhs, rhs) if each[0] >= 0)
        case "or" | "xor" if a >= 0 and c >= 0:
            # No bit is above the highest one of the larger bound.
            return 0, (1 << max(b, d).bit_length()) - 1
        case "shr" if a >= 0 and c >= 0:
            return a >> min(d, 64), b >> min(c, 64)
        case "shl" if a >= 0 and 0 <= c <= d < 64:
            return a << c, b << d
    return FULL
