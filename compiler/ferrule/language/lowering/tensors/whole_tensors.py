"""Whole-tensor expressions, `a[:] + b[:]`: one number for every coordinate.

They are computed where they are assigned, element by element.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import Any, Final

from ferrule.language.ir import ops
from ferrule.language.lowering import structures
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.descriptions import describe
from ferrule.language.lowering.numbers.coercion import is_python_number
from ferrule.language.lowering.tensors import access
from ferrule.language.promotion import PACKED
from ferrule.language.values import ComplexNumber, Number, TensorView, Vector, Whole
from ferrule.specs import Dim, DType, Int64


def whole(low: Lowering, tensor: TensorView, node: ast.AST) -> Whole:
    """A tensor as a whole-tensor expression: it loads at a coordinate."""
    require_shared(low, tensor, node)
    access.require_readable(low, tensor.type.dtype, node)

    def element(coordinates: tuple[ops.Value, ...]) -> Any:
        return access.load(low, tensor.value, coordinates)

    dtype = PACKED.get(tensor.type.dtype, tensor.type.dtype)
    return Whole(tensor.type.shape, tensor.name, dtype, element)


def require_shared(low: Lowering, tensor: TensorView, node: ast.AST) -> None:
    """Refuses a fragment: a whole-tensor expression may run on a GPU, or in many threads; and a
    part that is not inside of its tensor."""
    require_inside(low, tensor, node)
    if tensor.type.is_own:
        low.fail(
            node,
            f"{tensor.name} is in registers: it is no part of whole-tensor expressions",
            hint=f"{tensor.name}.fill(x), {tensor.name}.load(), {tensor.name}.store(v), or "
            f"single elements",
        )


def require_inside(low: Lowering, value: Any, node: ast.AST) -> None:
    """Requires that a tensor that is used as a whole has no elements but those of the tensor that
    it is a part of; and each in a tuple or record."""
    if low.kind == "kernel":
        return
    if isinstance(value, TensorView) and value.value in low.state.parts:
        from ferrule.language.lowering.tensors import bounds

        bounds.require_inside(low, value, node)
    for _, part in structures.parts(value) or ():
        require_inside(low, part, node)


def lift(low: Lowering, operands: tuple[Any, ...], node: ast.AST, emit: Callable[..., Any]) -> Any:
    """Applies an operation to numbers, or element by element if an operand is a whole tensor."""
    operands = tuple(_as_whole(low, operand, node) for operand in operands)
    if any(isinstance(operand, Vector) for operand in operands):
        from ferrule.language.lowering.tensors import vectors

        return vectors.lift(low, operands, node, emit)
    wholes = [operand for operand in operands if isinstance(operand, Whole)]
    if not wholes:
        return emit(*operands)
    for whole in wholes:
        check_current(low, whole, node)
    first = wholes[0]
    shape = _common_shape(low, wholes, node)
    operands = tuple(broadcast(low, o, shape, node) for o in operands)
    captured = tuple(o if isinstance(o, Whole) else _capture(low, o, node) for o in operands)

    settings = low.builder.later()

    def element(coordinates: tuple[ops.Value, ...]) -> Any:
        with low.in_elements(), settings():
            return emit(*(o.element(coordinates) if isinstance(o, Whole) else o for o in captured))

    dtype = _dtype_of(low, shape, element)
    name = next((each.name for each in wholes if each.shape == shape), first.name)
    reduces = any(each.reduces for each in wholes)
    return Whole(shape, name, dtype, element, low.state.writes, reduces)


def _common_shape(low: Lowering, wholes: list[Whole], node: ast.AST) -> tuple[Dim, ...]:
    """NumPy's shape of these together: a dim of size 1, or a missing first one, fits any other.

    Sizes that are known at the call alone must be equal.
    """
    rank = max(len(each.shape) for each in wholes)
    shape: list[Dim] = []
    for axis in range(rank):
        sizes = [each for each in _sizes(wholes, rank, axis) if each[1] != 1]
        first, *rest = sizes or [("", 1)]
        for name, size in rest:
            low.relate(size, first[1], (name, first[0]), node)
        shape.append(first[1])
    return tuple(shape)


def _sizes(wholes: list[Whole], rank: int, axis: int) -> Iterator[tuple[str, Dim]]:
    """The names and sizes of a dim, counted from the last one."""
    for each in wholes:
        own = axis - rank + len(each.shape)
        if own >= 0:
            yield f"{each.name}.shape[{own}]", each.shape[own]


def broadcast(low: Lowering, value: Any, shape: tuple[Dim, ...], node: ast.AST) -> Any:
    """A whole tensor in a shape that it fits, as NumPy broadcasts it; any other value as it is."""
    if not isinstance(value, Whole):
        return value
    missing = len(shape) - len(value.shape)
    if not is_spread(value.shape, shape):
        return value
    single = [a == 1 and b != 1 for a, b in zip(value.shape, shape[missing:], strict=True)]
    if value.reduces:
        low.fail(
            node,
            f"a reduction of {value.name} is broadcast: it would be computed for each element",
            expected="a tensor that it was stored to" if value.shape else None,
            hint=_STORED if value.shape else _SINGLE,
        )

    def element(coordinates: tuple[ops.Value, ...]) -> Any:
        zero = low.builder.constant(Int64, 0)
        own = zip(coordinates[missing:], single, strict=True)
        return value.element(tuple(zero if is_single else at for at, is_single in own))

    return Whole(shape, value.name, value.dtype, element, value.since)


def _as_whole(low: Lowering, value: Any, node: ast.AST) -> Any:
    """A view that was written with `:`, as a whole-tensor expression."""
    if not (isinstance(value, TensorView) and value.whole):
        return value
    return whole(low, value, node)


def check_current(low: Lowering, whole: Whole, node: ast.AST) -> None:
    """Refuses changes between the evaluation of a whole-tensor expression and its assignment, where
    it is computed."""
    if whole.since is not None and whole.since != low.state.writes:
        low.fail(
            node,
            "a whole-tensor expression is used after a tensor was written to or a loop began",
            expected="its use before that: a name for it, also for a sum, keeps the expression and "
            "no numbers, which are computed when it is stored to a tensor",
            hint="write the expression here, or store it before: "
            + ("t = fe.empty_like(a); t[:] = …" if whole.shape else "total[0] = fe.sum(a[:])"),
        )


def _capture(low: Lowering, operand: Any, node: ast.AST) -> Any:
    if isinstance(operand, (Number, ComplexNumber, complex)) or is_python_number(operand):
        return operand
    low.fail(node, f"expected a number or a whole tensor, but got {describe(operand)}")


def _dtype_of(
    low: Lowering, shape: tuple[Dim, ...], element: Callable[[tuple[ops.Value, ...]], Any]
) -> DType:
    """The dtype of an element, found by emitting one into a region that is discarded."""
    with low.builder.region():
        found: DType = element(tuple(ops.Value(Int64) for _ in shape)).dtype
        return found


_SINGLE: Final = (
    "a reduction of everything has no dims: store it first, total[0] = fe.sum(a[:]), "
    "and use total[0]"
)


def is_spread(shape: tuple[Dim, ...], over: tuple[Dim, ...]) -> bool:
    """Whether elements of this shape are used several times in another shape."""
    pairs = zip(reversed(shape), reversed(over), strict=False)
    return len(shape) < len(over) or any(a == 1 and b != 1 for a, b in pairs)


_STORED: Final = "store it first, t[:] = fe.max(a[:], axis=1, keepdims=True), and use t[:]"


def fitted(low: Lowering, tensor: TensorView, value: Whole, node: ast.AST) -> Whole:
    """An expression in the shape of the tensor that it is assigned to."""
    shape, missing = tensor.type.shape, len(tensor.type.shape) - len(value.shape)
    if missing < 0:
        low.fail(
            node,
            f"an expression of {len(value.shape)} dims is assigned to {tensor.name}, which has "
            f"{len(shape)}",
            expected=f"at most {len(shape)} dims",
        )
    for axis, size in enumerate(value.shape):
        at = axis + missing
        if size != 1 or shape[at] == 1 or value.reduces:
            other = value.name if value.name != tensor.name else "the expression"
            names = f"{tensor.name}.shape[{at}]", f"{other}.shape[{axis}]"
            low.relate(shape[at], size, names, node)
    if value.reduces and not missing:
        return value
    found: Whole = broadcast(low, value, shape, node)
    return found
