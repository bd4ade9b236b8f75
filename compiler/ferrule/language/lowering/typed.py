"""Operators on typed constants, `fe.Uint8(200) + 100`: the result has a dtype, as at run time.

Integers are computed at compile time and wrap.  A float is rounded as its dtype is, so it is left
to run time, where LLVM folds it.
"""

from __future__ import annotations

import ast
from typing import Any, Final

from ferrule.language.lowering.tables import PYTHON_BINARY, PYTHON_UNARY
from ferrule.language.promotion import NoCommonType, promote, weak
from ferrule.specs import Boolean, DType, Int32, Numeric

_OTHERS: Final = (ast.Pow, ast.MatMult)
"""What is no operator of two run-time numbers."""


def is_typed(op: ast.operator, left: Any, right: Any) -> bool:
    """Whether this is an operation on numbers, at least one of which has a dtype."""
    if not (isinstance(left, Numeric) or isinstance(right, Numeric)) or isinstance(op, _OTHERS):
        return False
    return all(isinstance(side, (Numeric, bool, int, float)) for side in (left, right))


def folded(op: ast.operator, left: Any, right: Any) -> Numeric | None:
    """The result of two integers; None where it is left to run time."""
    dtype = result_dtype(left, right)
    if dtype is None or dtype.kind == "float" or isinstance(op, ast.Div):
        return None
    lhs, rhs = int(left), int(right)
    if dtype is Boolean and not isinstance(op, (ast.BitAnd, ast.BitOr, ast.BitXor)):
        dtype = Int32
    if isinstance(op, (ast.LShift, ast.RShift)):
        return _shifted(op, dtype, lhs, rhs)
    return _wrapped(dtype, PYTHON_BINARY[type(op)][1](lhs, rhs))


def negated(op: ast.unaryop, value: Numeric) -> Numeric | None:
    """`-x`, `+x`, `~x`; None where it is left to run time."""
    dtype: DType = type(value)
    if dtype.kind == "float":
        return None if isinstance(op, ast.Invert) else dtype(PYTHON_UNARY[type(op)](value.value))
    if isinstance(op, ast.Invert):
        return dtype(not value.value) if dtype is Boolean else _wrapped(dtype, ~int(value))
    return _wrapped(Int32 if dtype is Boolean else dtype, PYTHON_UNARY[type(op)](int(value)))


def result_dtype(left: Any, right: Any) -> DType | None:
    """The dtype of an operation; None where no dtype holds both."""
    known = [type(side) if isinstance(side, Numeric) else None for side in (left, right)]
    lhs, rhs = known
    try:
        return promote(
            weak(left, rhs) if lhs is None else lhs, weak(right, lhs) if rhs is None else rhs
        )
    except NoCommonType:
        return None


def _shifted(op: ast.operator, dtype: DType, value: int, count: int) -> Numeric:
    """A count of the width or more, and a negative one, shift every bit out."""
    inside = 0 <= count < dtype.bits
    if isinstance(op, ast.LShift):
        return _wrapped(dtype, value << count if inside else 0)
    return _wrapped(dtype, value >> min(count, dtype.bits) if count >= 0 else -int(value < 0))


def _wrapped(dtype: DType, value: int) -> Numeric:
    if dtype is Boolean:
        return dtype(bool(value & 1))
    smallest, largest = dtype.range
    wrapped: Numeric = dtype((value - smallest) % (largest - smallest + 1) + smallest)
    return wrapped
