"""Comparisons: of numbers and whole tensors, of tuples, and `is`."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any, Final

from ferrule.language.ir import ops
from ferrule.language.lowering import handles, structures
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.descriptions import describe
from ferrule.language.lowering.numbers import coercion, scalars, typed_constants
from ferrule.language.lowering.objects import any_values, containers, foreign_calls, texts
from ferrule.language.lowering.python import operators
from ferrule.language.lowering.python.operators import truth
from ferrule.language.lowering.tensors import whole_tensors
from ferrule.language.values import (
    ComplexNumber,
    Handle,
    Maybe,
    Number,
    OneOf,
    Vector,
    is_run_time,
)
from ferrule.specs import Boolean, params

PYTHON_COMPARE: Final[dict[type[ast.cmpop], tuple[str, Callable[[Any, Any], Any]]]] = {
    ast.Eq: ("==", operator.eq),
    ast.NotEq: ("!=", operator.ne),
    ast.Lt: ("<", operator.lt),
    ast.LtE: ("<=", operator.le),
    ast.Gt: (">", operator.gt),
    ast.GtE: (">=", operator.ge),
    ast.Is: ("is", operator.is_),
    ast.IsNot: ("is not", operator.is_not),
    ast.In: ("in", lambda a, b: a in b),
    ast.NotIn: ("not in", lambda a, b: a not in b),
}
_IR_COMPARE: Final[dict[type[ast.cmpop], ops.CompareOp]] = {
    ast.Eq: "eq",
    ast.NotEq: "ne",
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.Gt: "gt",
    ast.GtE: "ge",
}


def compare(low: Lowering, op: ast.cmpop, left: Any, right: Any, node: ast.AST) -> Any:
    """`left op right`: a bool known at compile time, or a run-time Boolean."""
    sign, python = PYTHON_COMPARE[type(op)]
    if isinstance(op, (ast.Is, ast.IsNot)):
        return _identical(low, op, left, right, node)
    if isinstance(op, (ast.In, ast.NotIn)) and isinstance(right, Handle):
        return _contained(low, op, left, right, node)
    if isinstance(op, (ast.In, ast.NotIn)) and _is_looked_up(left, right):
        return _among(low, op, left, right, node)
    if type(op) in _IR_COMPARE and scalars.are_typed_numbers(left, right):
        return typed_constants.folded(low, lambda: _numbers(low, op, left, right, node))
    if typed_constants.are_typed(left, right) and _has_items(left) and _has_items(right):
        if isinstance(op, (ast.Eq, ast.NotEq)):
            return Boolean(_compare_items(low, op, left, right, node))
    if not is_run_time(left) and not is_run_time(right):
        return coercion.at_compile_time(low, node, lambda: python(*scalars.untyped(left, right)))
    if _has_items(left) and _has_items(right):
        return _compare_items(low, op, left, right, node)
    if handles.compares(left) or handles.compares(right):
        return texts.compare(low, op, left, right, node)
    if type(op) not in _IR_COMPARE:
        low.fail(
            node,
            f"the operator {sign!r} is not supported on run-time values",
            hint="compare one by one: x == 1 or x == 2, or low <= x < high",
        )
    for value in (left, right):
        if isinstance(value, Handle):
            low.fail(
                node,
                f"{describe(value)} is compared with {sign}",
                expected="x is y, whether two objects are one; numbers and texts with ==",
                hint="compare what is in them",
            )
    return whole_tensors.lift(low, (left, right), node, lambda a, b: _numbers(low, op, a, b, node))


def _numbers(low: Lowering, op: ast.cmpop, left: Any, right: Any, node: ast.AST) -> Number:
    if coercion.is_complex(left) or coercion.is_complex(right):
        from ferrule.language.lowering.numbers import complexes

        return complexes.compare(low, _IR_COMPARE[type(op)], left, right, node)
    lhs, rhs = scalars.common(low, left, right, PYTHON_COMPARE[type(op)][0], node)
    return Number(low.builder.compare(_IR_COMPARE[type(op)], lhs.value, rhs.value))


def _is_looked_up(value: Any, container: Any) -> bool:
    """Whether `in` compares a run-time value with compile-time items, or the other way round."""
    if not isinstance(container, (tuple, list, set, frozenset, dict)):
        return False
    if isinstance(value, Number) or handles.compares(value):
        return True
    is_number = coercion.is_python_number(value)
    return is_number and any(isinstance(each, Number) for each in container)


def _among(low: Lowering, op: ast.cmpop, left: Any, right: Any, node: ast.AST) -> Any:
    """`s in ("a", "b")`, `n in (1, 2)`."""
    found: Any = False
    for item in right:
        same = left is item  # Python compares identity first: a tuple contains its own NaN
        part = same or truth(low, compare(low, ast.Eq(), left, item, node), node)
        if part is True or found is True:
            found = True
        elif isinstance(part, Number):
            found = part if found is False else scalars.arithmetic(low, "or", found, part, node)
    return operators.negate(low, found, node) if isinstance(op, ast.NotIn) else found


def _contained(low: Lowering, op: ast.cmpop, key: Any, right: Handle, node: ast.AST) -> Number:
    """`in` and `not in`, for a tvm-ffi container."""
    looked_for = texts.contains if handles.is_text(right) else containers.contains
    found = looked_for(low, key, right, node)
    if isinstance(op, ast.NotIn):
        return Number(low.builder.unary("not", found.value))
    return found


def _identical(low: Lowering, op: ast.cmpop, left: Any, right: Any, node: ast.AST) -> Any:
    """`is` and `is not`: for run-time values, only whether a parameter is present."""
    is_not = isinstance(op, ast.IsNot)
    if isinstance(left, Maybe) and right is None:
        return left.present if is_not else Number(low.builder.unary("not", left.present.value))
    if isinstance(left, Handle) and isinstance(left.param, params.AnyValue) and right is None:
        none = any_values.is_none(low, left)
        return Number(low.builder.unary("not", none.value)) if is_not else none
    if handles.is_object(left) and handles.is_object(right):
        addresses = [foreign_calls.address(low, value) for value in (left, right)]
        return Number(low.builder.compare("ne" if is_not else "eq", *addresses))
    if left is not None and right is not None:
        for value in (left, right):
            if isinstance(value, (Number, Handle, Maybe, OneOf)):
                low.fail(
                    node,
                    f"{describe(value)} is compared with 'is'",
                    expected="a comparison of values",
                    hint="write != instead" if is_not else "write == instead",
                )
    return (left is not right) if is_not else (left is right)


def _has_items(value: Any) -> bool:
    if isinstance(value, (Vector, ComplexNumber)):
        return False
    return isinstance(value, list) or structures.parts(value) is not None


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [item for _, item in structures.parts(value) or ()]


def _compare_items(low: Lowering, op: ast.cmpop, left: Any, right: Any, node: ast.AST) -> Any:
    """`==` and `!=` of tuples, lists or dataclasses with run-time values in them."""
    if not isinstance(op, (ast.Eq, ast.NotEq)):
        low.fail(
            node,
            f"{describe(left)} is compared with {PYTHON_COMPARE[type(op)][0]}",
            expected="== or !=, or numbers",
        )
    ours, theirs = _items(left), _items(right)
    equal: Any = _comparable(left, right) and len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True) if equal else ():
        part = truth(low, compare(low, ast.Eq(), a, b, node), node)
        if part is False:
            equal = False
            break
        if isinstance(part, Number):
            equal = part if equal is True else scalars.arithmetic(low, "and", equal, part, node)
    return operators.negate(low, equal, node) if isinstance(op, ast.NotEq) else equal


def _comparable(left: Any, right: Any) -> bool:
    """Whether Python compares these by their items: any two tuples, or objects of one class."""
    if isinstance(left, tuple) and isinstance(right, tuple):
        return True
    return type(left) is type(right)
