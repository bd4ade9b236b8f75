"""Vectors: what a thread reads, computes and writes at once.

A vector is unrolled: it is a number for each of its elements, and every operator makes as many ops
(see `operators.lift`).  Neighbours in memory are read and written one after the other, so that a
target can make one access of them.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

from ferrule.language import layouts
from ferrule.language import vectors as faces
from ferrule.language.ir import ops
from ferrule.language.layouts import Layout, format_tuple
from ferrule.language.lowering.arguments import bound
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.numbers import typed_constants
from ferrule.language.lowering.python import operators
from ferrule.language.lowering.tensors import access
from ferrule.language.lowering.tensors.coordinates import refusals
from ferrule.language.values import BoundMethod, Number, TensorView, Vector, is_run_time
from ferrule.language.vectors import ReductionOp
from ferrule.specs import Boolean, DType, Int32, Numeric

Emit = Callable[[Lowering, list[Any], dict[str, Any], ast.Call], Any]

MAX_ELEMENTS: Final = 1024
"""Of one vector: it is unrolled."""


def vector_shape(low: Lowering, shape: Any, what: str, node: ast.AST) -> tuple[Any, ...]:
    """A shape that a vector can have.  A CompileError for any other."""
    if not layouts.is_static(shape):
        low.fail(
            node,
            f"{what} has the shape {format_tuple(shape)}, which is known only at the call",
            expected="a shape known at compile time: a vector is unrolled",
            hint="take a part of fixed size, such as fe.zipped_divide(a, (4,))[None, i]",
        )
    count = layouts.size(shape)
    assert isinstance(count, int)
    if not 1 <= count <= MAX_ELEMENTS:
        low.fail(
            node,
            f"{what} has {count} elements",
            expected=f"1 to {MAX_ELEMENTS} of them: a vector is unrolled",
            hint="loop over smaller parts",
        )
    return shape if isinstance(shape, tuple) else (shape,)


def lift(
    low: Lowering, operands: tuple[Any, ...], node: ast.AST, emit: Callable[..., Number]
) -> Vector:
    """Applies an operation element by element; a number stands for as many as are needed."""
    vectors = [operand for operand in operands if isinstance(operand, Vector)]
    shape, count = vectors[0].shape, len(vectors[0].items)
    for other in vectors[1:]:
        if layouts.flatten(other.shape) != layouts.flatten(shape):
            low.fail(
                node,
                f"the shapes of two vectors differ: {format_tuple(shape)} and "
                f"{format_tuple(other.shape)}",
                expected="equal shapes, or a vector and a number",
            )
    for operand in operands:
        if not isinstance(operand, (Vector, Number)) and not operators.is_python_number(operand):
            low.fail(
                node,
                f"a vector is computed with {operators.describe(operand)}",
                expected="vectors of one shape, and numbers",
                hint=f"{operand.name}.load()" if isinstance(operand, TensorView) else None,
            )
    columns = [o.items if isinstance(o, Vector) else (o,) * count for o in operands]
    return Vector(shape, tuple(emit(*each) for each in zip(*columns, strict=True)))


# ---- memory ----


def load(
    low: Lowering, tensor: TensorView, args: list[Any], kwargs: dict[str, Any], node: ast.Call
) -> Vector:
    """`a.load()`: all elements of a tensor of a shape known at compile time."""
    bound(low, "", args, kwargs, node)
    access.require_element(low, tensor.type.dtype, node)
    shape = _reachable(low, tensor, node)
    items = [Number(low.builder.load(tensor.value, at)) for at in _places(low, tensor)]
    return Vector(shape, tuple(items))


def store_method(
    low: Lowering, tensor: TensorView, args: list[Any], kwargs: dict[str, Any], node: ast.Call
) -> None:
    """`a.store(v)`: writes a vector to a tensor of the same shape."""
    (vector,) = bound(low, "data", args, kwargs, node)
    store(low, tensor, vector, node)


def store(low: Lowering, tensor: TensorView, vector: Any, node: ast.AST) -> None:
    """Writes a vector to a tensor of the same shape."""
    if not isinstance(vector, Vector):
        low.fail(
            node,
            f"{operators.describe(vector)} is stored to all of {tensor.name}",
            expected="a vector, such as b.load()",
            hint=f"to set all of it to one number, {tensor.name}.fill(x)",
        )
    shape = _reachable(low, tensor, node)
    if layouts.flatten(shape) != layouts.flatten(vector.shape):
        low.fail(
            node,
            f"a vector of shape {format_tuple(vector.shape)} is stored to {tensor.name}, whose "
            f"shape is {format_tuple(shape)}",
            expected="equal shapes",
        )
    dtype, name = tensor.type.dtype, tensor.name
    values = [access.stored(low, dtype, item, name, node) for item in vector.items]
    for place, value in zip(_places(low, tensor), values, strict=True):
        low.builder.store(tensor.value, place, value)
    low.state.writes += 1


def fill(
    low: Lowering, tensor: TensorView, args: list[Any], kwargs: dict[str, Any], node: ast.Call
) -> None:
    """`a.fill(x)`: writes one number to every element."""
    (number,) = bound(low, "value", args, kwargs, node)
    _reachable(low, tensor, node)
    value = access.stored(low, tensor.type.dtype, number, tensor.name, node)
    for place in _places(low, tensor):
        low.builder.store(tensor.value, place, value)
    low.state.writes += 1


def _autovec_copy(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> None:
    """`fe.autovec_copy(src, dst)`."""
    source, target = bound(low, "src dst", args, kwargs, node)
    for each in (source, target):
        if not isinstance(each, TensorView):
            low.fail(node, f"autovec_copy takes two tensors, but got {operators.describe(each)}")
    if source.type.dtype is not target.type.dtype:
        low.fail(
            node,
            f"autovec_copy copies {source.type.dtype.name} to {target.name}, whose elements are "
            f"{target.type.dtype.name}",
            expected="one dtype",
            hint=f"convert it, {target.name}.store({source.name}.load().to({target.name}.dtype))",
        )
    store(low, target, load(low, source, [], {}, node), node)


def _reachable(low: Lowering, tensor: TensorView, node: ast.AST) -> tuple[Any, ...]:
    """The shape of a tensor whose elements this code can read and write at once."""
    access.require_reachable(low, tensor, node)
    return vector_shape(low, tensor.layout.shape, tensor.name, node)


def _places(low: Lowering, tensor: TensorView) -> Iterator[tuple[ops.Value, ...]]:
    """The coordinates of a tensor, the first fastest."""
    known: dict[int, ops.Value] = {}
    shape = tensor.type.shape
    for number in range(layouts.size(shape)):
        at = layouts.flatten((layouts.idx2crd(number, shape),)) if shape else ()
        for index in at:
            if index not in known:
                known[index] = low.builder.constant(Int32, index)
        yield tuple(known[index] for index in at)


# ---- parts ----


def item(low: Lowering, vector: Vector, at: tuple[Any, ...], node: ast.AST) -> Any:
    """`v[i]`, `v[i, j]`: a number; `v[None, j]`: the vector of the modes that a None keeps."""
    coordinate = _known(low, vector, at, node)
    single = coordinate[0] if len(coordinate) == 1 else coordinate
    with refusals(low, node):
        kept, first = layouts.slice_and_offset(layouts.make_layout(vector.shape), single)
    _require_inside(low, vector, single, vector.shape, node)
    return _shaped(kept.shape, [vector.items[first + step] for step in _indices(kept)])


def _shaped(shape: Any, items: list[Number]) -> Any:
    """A vector of this shape; the number itself where there are no modes."""
    if shape == ():
        return items[0]
    return Vector(shape if isinstance(shape, tuple) else (shape,), tuple(items))


def _indices(layout: Layout) -> list[int]:
    """The index of every coordinate, the first fastest."""
    return [layouts.crd2idx(number, layout) for number in range(layouts.size(layout))]


def _known(low: Lowering, vector: Vector, at: Any, node: ast.AST) -> Any:
    """A coordinate whose leaves are known while compiling: ints and None."""
    if isinstance(at, tuple):
        return tuple(_known(low, vector, part, node) for part in at)
    known = operators.plain(at.value if isinstance(at, Numeric) else at)
    if known is None or known == slice(None):
        return None
    if isinstance(known, int) and not isinstance(known, bool):
        return known
    low.fail(
        node,
        f"{operators.describe(vector)} is indexed with {operators.describe(known)}",
        expected="an int known at compile time: a vector is in registers",
        hint="loop over it with range_constexpr, or store it to a fragment and index that",
    )


def _require_inside(low: Lowering, vector: Vector, at: Any, mode: Any, node: ast.AST) -> None:
    if isinstance(at, tuple):
        for part, inner in zip(at, mode, strict=True):
            _require_inside(low, vector, part, inner, node)
    elif at is not None and not 0 <= at < layouts.product(mode):
        low.fail(
            node,
            f"the index {at} is outside of {operators.describe(vector)}",
            expected=f"0 to {layouts.product(mode) - 1}",
        )


# ---- reductions ----


def reduce(
    vector: Vector, low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call
) -> Any:
    """`v.reduce(op, init_val, reduction_profile=0)`: one number, in order, beginning with `init`.

    A profile such as (None, 1) keeps the modes with None and reduces the others.
    """
    op, initial, profile = bound(low, "op init_val reduction_profile=", args, kwargs, node)
    if not isinstance(op, ReductionOp):
        known = ", ".join(f"fe.ReductionOp.{each.name}" for each in ReductionOp)
        low.fail(node, f"reduce got {operators.describe(op)}", expected=f"one of {known}")
    whole = layouts.make_layout(vector.shape)
    if isinstance(profile, tuple):
        with refusals(low, node):
            kept, reduced = layouts.slice_(whole, profile), layouts.dice(whole, profile)
    else:
        kept, reduced = Layout((), ()), whole
    results = [
        _folded(low, op, initial, [vector.items[first + step] for step in _indices(reduced)], node)
        for first in _indices(kept)
    ]
    return _shaped(kept.shape, results)


def _folded(
    low: Lowering, op: ReductionOp, initial: Any, items: list[Number], node: ast.AST
) -> Number:
    result = initial
    for each in items:
        result = operators.arithmetic(low, op.value, result, each, node)
    return result  # type: ignore[no-any-return]


def _truth_of(name: str, op: ops.BinaryOp) -> Emit:
    """`fe.any_(v)` or `fe.all_(v)`: a Boolean."""

    def emit(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> Any:
        (vector,) = bound(low, "x", args, kwargs, node)
        if not isinstance(vector, Vector):
            low.fail(node, f"{name} takes a vector, but got {operators.describe(vector)}")
        result, *rest = (operators.truth(low, each, node) for each in vector.items)
        for each in rest:
            result = Number(low.builder.binary(op, result.value, each.value))
        return result

    return emit


# ---- made of numbers ----


def _where(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> Any:
    """`fe.where(cond, x, y)`, element by element."""
    given = tuple(bound(low, "cond x y", args, kwargs, node))

    def one(condition: Any, x: Any, y: Any) -> Number:
        truth = operators.as_number(low, operators.truth(low, condition, node), node, Boolean)
        lhs, rhs = operators.common(low, x, y, "where", node)
        return Number(low.builder.select(truth.value, lhs.value, rhs.value))

    if operators.are_typed_numbers(*given):
        return typed_constants.folded(low, lambda: one(*given))
    if not is_run_time(given):
        return operators.at_compile_time(low, node, lambda: given[1] if given[0] else given[2])
    return operators.lift(low, given, node, one)


def filled(low: Lowering, shape: Any, number: Number, what: str, node: ast.AST) -> Vector:
    """A vector of one number."""
    checked = vector_shape(low, shape, what, node)
    count = layouts.size(checked)
    assert isinstance(count, int)
    return Vector(checked, (number,) * count)


def _convert(
    vector: Vector, low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call
) -> Any:
    from ferrule.language.lowering.python import conversions

    if len(args) != 1 or kwargs or not isinstance(args[0], DType):
        low.fail(node, "to takes one dtype", expected="v.to(fe.Float32)")
    return conversions.convert_to(low, args[0], [vector], {}, node)


ATTRIBUTES: Final[dict[str, Any]] = {
    "shape": lambda low, v: v.shape,
    "dtype": lambda low, v: v.dtype,
    "element_type": lambda low, v: v.dtype,
    "to": lambda low, v: BoundMethod(partial(_convert, v), "to"),
    "reduce": lambda low, v: BoundMethod(partial(reduce, v), "reduce"),
}
"""What a vector has."""

TABLE: Final[dict[Any, Emit]] = {
    faces.where: _where,
    faces.any_: _truth_of("any_", "or"),
    faces.all_: _truth_of("all_", "and"),
    faces.autovec_copy: _autovec_copy,
}
"""What functions of vectors mean."""
