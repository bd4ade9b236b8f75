"""Operators on values of all kinds, except those that a user's class defines: `records`.

The operators are in `tables`; arithmetic on numbers is in `scalars`.
"""

from __future__ import annotations

import ast
from typing import Any, Final

from ferrule.language.ir import ops
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.descriptions import describe, usage_hint
from ferrule.language.lowering.handles import is_container, is_text
from ferrule.language.lowering.numbers import coercion, scalars, typed_constants
from ferrule.language.lowering.numbers.coercion import at_compile_time, convert, operand
from ferrule.language.lowering.numbers.scalars import are_typed_numbers, arithmetic, untyped
from ferrule.language.lowering.numbers.tables import IR_BINARY, PYTHON_BINARY, PYTHON_UNARY
from ferrule.language.lowering.tensors import views
from ferrule.language.lowering.tensors.whole_tensors import lift
from ferrule.language.values import (
    RUN_TIME,
    ComplexNumber,
    Fielded,
    Handle,
    Number,
    PointerView,
    SwizzledPointer,
    Whole,
)
from ferrule.specs import Boolean, Int32, Numeric
from ferrule.specs.expr import make

AS_CUTE: Final[frozenset[ops.BinaryOp]] = frozenset(
    ("add", "sub", "mul", "floordiv", "mod", "shl", "shr")
)
"""Operators with other results in functions that follow CuTe DSL; see `numbers.as_cute`."""
SCALARS: Final[frozenset[type]] = frozenset((Number, int, float, bool))
"""Classes for which operators need no special case: no whole tensors, and no user's classes."""


def binary(low: Lowering, op: ast.operator, left: Any, right: Any, node: ast.AST) -> Any:
    """`left op right`."""
    sign, python = PYTHON_BINARY[type(op)]
    if type(op) in IR_BINARY and are_typed_numbers(left, right):
        name = IR_BINARY[type(op)]
        return typed_constants.folded(low, lambda: arithmetic(low, name, left, right, node))
    if not isinstance(left, RUN_TIME) and not isinstance(right, RUN_TIME):
        return at_compile_time(low, node, lambda: python(*untyped(left, right)))
    if isinstance(left, SwizzledPointer) or isinstance(right, SwizzledPointer):
        from ferrule.language.lowering.tensors import swizzled  # few programs need it

        return swizzled.arithmetic(low, op, left, right, node)
    if isinstance(left, PointerView) or isinstance(right, PointerView):
        return views.arithmetic(low, op, left, right, node)
    if isinstance(left, Fielded) or isinstance(right, Fielded):
        from ferrule.language.lowering.tensors import fields

        return fields.arithmetic(low, op, left, right, node)
    if isinstance(left, Handle) or isinstance(right, Handle):
        given = left if isinstance(left, Handle) else right
        low.fail(
            node,
            f"{describe(given)} is an operand of {sign}",
            expected="numbers or whole tensors",
            hint="texts are compared, printed and handed on, but not joined or cut",
        )
    if type(op) not in IR_BINARY:
        low.fail(
            node,
            f"the operator {sign} is not supported on run-time values",
            hint="write it as loops over elements",
        )
    name = IR_BINARY[type(op)]
    compute = arithmetic
    if name in AS_CUTE and low.is_as_cute:
        from ferrule.language.lowering.numbers import as_cute  # other functions need it not

        compute = as_cute.arithmetic
    if type(left) in SCALARS and type(right) in SCALARS:
        return compute(low, name, left, right, node)
    return lift(low, (left, right), node, lambda a, b: compute(low, name, a, b, node))


_OF_WHOLE: Final = (
    "combine whole tensors with & and |; fe.where(a[:] > 0, x, y) chooses each element"
)


def truth(low: Lowering, value: Any, node: ast.AST) -> Any:
    """The truth of a value: a bool known at compile time, or a run-time Boolean."""
    if isinstance(value, (Number, ComplexNumber)):
        return scalars.truth(low, value, node)
    if isinstance(value, Handle):
        if is_text(value):
            from ferrule.language.lowering.objects import texts

            return texts.truth(low, value)
        if is_container(value):
            from ferrule.language.lowering.objects import containers

            return containers.truth(low, value, node)
    if isinstance(value, RUN_TIME):
        hint = _OF_WHOLE if isinstance(value, Whole) else None
        if isinstance(value, Whole) and not value.shape:
            hint = "a reduction of everything is no number yet: store it first, m[0] = fe.sum(a[:])"
        low.fail(node, f"{describe(value)} has no truth value", hint=hint or usage_hint(value))
    low.state.witness.add_special(value, "__bool__", "__len__")
    return at_compile_time(low, node, lambda: bool(value))


def negate(low: Lowering, value: Any, node: ast.AST) -> Any:
    """`not value`."""
    known = truth(low, value, node)
    if isinstance(known, bool):
        return Boolean(not known) if isinstance(value, Numeric) else not known
    return Number(low.builder.unary("not", known.value))


def unary(low: Lowering, op: ast.unaryop, value: Any, node: ast.AST) -> Any:
    """`op value`."""
    if isinstance(op, ast.Not):
        return negate(low, value, node)
    if isinstance(value, Numeric):
        return typed_constants.folded(low, lambda: _unary_number(low, op, value, node))
    if isinstance(value, bool) and isinstance(op, ast.Invert):
        low.fail(
            node,
            f"~ of {value}, which is known while compiling, is {~int(value)} in Python: as a "
            f"condition that is true",
            hint="write not x; ~ of a Boolean at run time, and of fe.Boolean(x), is not x",
        )
    if not isinstance(value, RUN_TIME):
        return at_compile_time(low, node, lambda: PYTHON_UNARY[type(op)](value))
    return lift(low, (value,), node, lambda x: _unary_number(low, op, x, node))


def _unary_number(low: Lowering, op: ast.unaryop, value: Any, node: ast.AST) -> Any:
    if coercion.is_complex(value):
        from ferrule.language.lowering.numbers import complexes

        return complexes.unary(low, op, value, node)
    number = operand(low, value, node)
    if isinstance(op, ast.Invert):
        if number.dtype.kind == "float":
            low.fail(node, f"~ takes integers and bools, but got {number.dtype.name}")
        ones = low.builder.constant(number.dtype, _ones(number))
        return Number(low.builder.binary("xor", number.value, ones))
    if number.dtype is Boolean:
        number = convert(low, number, Int32)
    if isinstance(op, ast.UAdd):
        return number
    dim = make("sub", 0, number.dim) if number.dim is not None else None
    return Number(low.builder.unary("neg", number.value), dim)


def _ones(number: Number) -> bool | int:
    if number.dtype is Boolean:
        return True
    return -1 if number.dtype.kind == "int" else number.dtype.range[1]
