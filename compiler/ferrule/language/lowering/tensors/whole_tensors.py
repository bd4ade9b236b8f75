"""Whole-tensor expressions, `a[:] + b[:]`: one number for every coordinate.

They are computed where they are assigned, element by element.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any, Final

from ferrule.language.ir import ops
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.descriptions import describe
from ferrule.language.lowering.numbers.scalars import is_python_number
from ferrule.language.lowering.tensors import access, vectors
from ferrule.language.values import Number, TensorView, Vector, Whole
from ferrule.specs import DType, Int64


def whole(low: Lowering, tensor: TensorView, node: ast.AST) -> Whole:
    """A tensor as a whole-tensor expression: it loads at a coordinate."""
    require_shared(low, tensor, node)
    access.require_element(low, tensor.type.dtype, node)

    def element(coordinates: tuple[ops.Value, ...]) -> Number:
        return Number(low.builder.load(tensor.value, coordinates))

    return Whole(tensor.type.shape, tensor.name, tensor.type.dtype, element)


def require_shared(low: Lowering, tensor: TensorView, node: ast.AST) -> None:
    """A whole-tensor expression may run on a GPU, or in many threads."""
    if tensor.type.is_own:
        low.fail(
            node,
            f"{tensor.name} is in registers: it is no part of whole-tensor expressions",
            hint=f"{tensor.name}.fill(x), {tensor.name}.load(), {tensor.name}.store(v), or "
            f"single elements",
        )


def lift(
    low: Lowering, operands: tuple[Any, ...], node: ast.AST, emit: Callable[..., Number]
) -> Any:
    """Applies an operation to numbers, or element by element where an operand is a whole tensor."""
    operands = tuple(_as_whole(low, operand, node) for operand in operands)
    if any(isinstance(operand, Vector) for operand in operands):
        return vectors.lift(low, operands, node, emit)
    wholes = [operand for operand in operands if isinstance(operand, Whole)]
    if not wholes:
        return emit(*operands)
    for whole in wholes:
        check_current(low, whole, node)
    first = wholes[0]
    for other in wholes[1:]:
        same_shape(low, other.shape, other.name, first.shape, first.name, node)
    captured = tuple(o if isinstance(o, Whole) else _capture(low, o, node) for o in operands)

    def element(coordinates: tuple[ops.Value, ...]) -> Number:
        with low.in_elements():
            return emit(*(o.element(coordinates) if isinstance(o, Whole) else o for o in captured))

    dtype = _dtype_of(low, first, element)
    return Whole(first.shape, first.name, dtype, element, low.state.writes)


def _as_whole(low: Lowering, value: Any, node: ast.AST) -> Any:
    """A part of a tensor that was written with `:` as a whole-tensor expression."""
    if not (isinstance(value, TensorView) and value.whole):
        return value
    return whole(low, value, node)


def check_current(low: Lowering, whole: Whole, node: ast.AST) -> None:
    """A whole-tensor expression is computed where it is assigned: nothing may change until then."""
    if whole.since is not None and whole.since != low.state.writes:
        low.fail(
            node,
            "a whole-tensor expression is used after a tensor was written to or a loop began",
            expected="its use before that: a name for it, also for a sum, keeps the expression and "
            "no numbers, which are computed when it is stored to a tensor",
            hint="write the expression here, or store it before: total[0] = fe.sum(a[:])",
        )


def _capture(low: Lowering, operand: Any, node: ast.AST) -> Any:
    if isinstance(operand, Number) or is_python_number(operand):
        return operand
    low.fail(node, f"expected a number or a whole tensor, but got {describe(operand)}")


def _dtype_of(
    low: Lowering, whole: Whole, element: Callable[[tuple[ops.Value, ...]], Number]
) -> DType:
    """The dtype of an element, found by emitting one into a region that is thrown away."""
    with low.builder.region():
        return element(tuple(ops.Value(Int64) for _ in whole.shape)).dtype


_SINGLE: Final = (
    "a reduction of everything has no dims: store it first, total[0] = fe.sum(a[:]), "
    "and use total[0]"
)


def same_shape(
    low: Lowering,
    left: tuple[Any, ...],
    left_name: str,
    right: tuple[Any, ...],
    right_name: str,
    node: ast.AST,
) -> None:
    """Requires two whole tensors to have one shape."""
    if len(left) != len(right):
        low.fail(
            node,
            f"the ranks of a whole-tensor expression differ: {left_name} has {len(left)} dims, "
            f"but {right_name} has {len(right)}",
            expected="equal shapes; nothing is broadcast except scalars",
            hint=_SINGLE if () in (left, right) else None,
        )
    for axis, (a, b) in enumerate(zip(left, right, strict=True)):
        low.relate(a, b, (f"{left_name}.shape[{axis}]", f"{right_name}.shape[{axis}]"), node)
