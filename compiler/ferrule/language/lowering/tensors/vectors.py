"""Vectors: values that a thread reads, computes and writes together.

A vector is unrolled: it is a number for each of its elements, and every operator emits as many ops
(see `lift`).  Neighbours in memory are accessed one after the other, so that a target can merge
them into one access.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias

from ferrule.language import layouts
from ferrule.language.ir import ops
from ferrule.language.layouts import Layout, format_tuple
from ferrule.language.lowering.arguments import bound
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.descriptions import describe
from ferrule.language.lowering.numbers import coercion
from ferrule.language.lowering.tensors import access
from ferrule.language.lowering.tensors.coordinates import refusals
from ferrule.language.promotion import PACKED
from ferrule.language.values import ComplexNumber, Number, SwizzledView, TensorView, Vector
from ferrule.specs import Boolean, Int32, Numeric

MAX_ELEMENTS: Final = 1024
"""The limit of elements in one vector, because it is unrolled."""


Readable: TypeAlias = TensorView | SwizzledView
"""A tensor whose elements can be read and written together."""


_PART: Final = "take a part of fixed size, such as fe.zipped_divide(a, (4,))[None, i]"
_WHOLE: Final = f"a[:] is the whole tensor, as in a[:] = 0; or {_PART}"


def vector_shape(low: Lowering, shape: Any, what: str, node: ast.AST) -> tuple[Any, ...]:
    """A valid shape of a vector.  A CompileError for any other."""
    if not layouts.is_static(shape):
        low.fail(
            node,
            f"{what} has the shape {format_tuple(shape)}, which is known only at the call",
            expected="a shape known at compile time: a vector is unrolled",
            hint=_WHOLE if low.kind == "host" else _PART,
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
    low: Lowering, operands: tuple[Any, ...], node: ast.AST, emit: Callable[..., Any]
) -> Vector:
    """Applies an operation element by element; a number is broadcast."""
    vectors = [operand for operand in operands if isinstance(operand, Vector)]
    shape = vectors[0].shape
    for other in vectors[1:]:
        common = _common_shape(shape, other.shape)
        if common is None:
            low.fail(
                node,
                f"the shapes of two vectors differ: {format_tuple(shape)} and "
                f"{format_tuple(other.shape)}",
                expected="equal shapes, or a vector and a number; a size of 1 fits any other",
            )
        shape = common
    for operand in operands:
        known = isinstance(operand, (Vector, Number, ComplexNumber, complex))
        if not known and not coercion.is_python_number(operand):
            low.fail(
                node,
                f"a vector is computed with {describe(operand)}",
                expected="vectors of one shape, and numbers",
                hint=f"{operand.name}.load()" if isinstance(operand, TensorView) else None,
            )
    count = int(layouts.size(shape))
    columns = [_repeated(o, shape) if isinstance(o, Vector) else (o,) * count for o in operands]
    return Vector(shape, tuple(emit(*each) for each in zip(*columns, strict=True)))


def _common_shape(left: Any, right: Any) -> Any:
    """The shape that two broadcast to; None if there is none.

    Sizes are equal or one of them is 1.  A shape with fewer modes gets ones before them.
    """
    if layouts.flatten(left) == layouts.flatten(right):
        return left
    count = max(len(left), len(right))
    pairs = zip(*((1,) * (count - len(each)) + each for each in (left, right)), strict=True)
    modes = [_common_mode(a, b) for a, b in pairs]
    return None if None in modes else tuple(modes)


def _common_mode(left: Any, right: Any) -> Any:
    if isinstance(left, tuple) and isinstance(right, tuple):
        return _common_shape(left, right) if len(left) == len(right) else None
    if left == 1 or right == 1 or left == right:
        return right if left == 1 else left
    return None


def _repeated(vector: Vector, shape: Any) -> tuple[Number, ...]:
    """The items of a vector, broadcast to a shape."""
    if layouts.flatten(vector.shape) == layouts.flatten(shape):
        return vector.items
    sizes = (1,) * (len(shape) - len(vector.shape)) + vector.shape
    strides = layouts.make_layout(sizes).stride
    assert isinstance(strides, tuple)
    found = layouts.Layout(shape, tuple(map(_stride, sizes, strides, shape)))
    return tuple(vector.items[index] for index in indices(found))


def _stride(size: Any, stride: Any, wanted: Any) -> Any:
    """The stride of a mode that is broadcast: 0 where the size is 1."""
    if isinstance(wanted, tuple):
        inner = (size, stride) if isinstance(size, tuple) else ((1,) * len(wanted),) * 2
        return tuple(map(_stride, *inner, wanted))
    return 0 if size == 1 else stride


def broadcast_to(
    low: Lowering, vector: Vector, args: list[Any], kwargs: dict[str, Any], node: ast.Call
) -> Vector:
    """`v.broadcast_to(shape)`: modes of size 1 repeated."""
    (target,) = bound(low, "target_shape", args, kwargs, node)
    shape = vector_shape(low, target, "the vector", node)
    if _common_shape(vector.shape, shape) != shape:
        low.fail(
            node,
            f"{describe(vector)} is broadcast to {format_tuple(shape)}",
            expected="the same sizes, but for sizes of 1",
        )
    return Vector(shape, _repeated(vector, shape))


def reshape(
    low: Lowering, vector: Vector, args: list[Any], kwargs: dict[str, Any], node: ast.Call
) -> Vector:
    """`v.reshape(shape)`: the same numbers in the same order, the first mode fastest."""
    (target,) = bound(low, "shape", args, kwargs, node)
    shape = vector_shape(low, target, "the vector", node)
    if layouts.size(shape) != len(vector.items):
        low.fail(
            node,
            f"{describe(vector)} is reshaped to {format_tuple(shape)}, which has "
            f"{layouts.size(shape)} elements",
            expected=f"a shape with {len(vector.items)} elements",
        )
    return Vector(shape, vector.items)


def apply_op(
    low: Lowering, vector: Vector, args: list[Any], kwargs: dict[str, Any], node: ast.Call
) -> Any:
    """`v.apply_op(op, other, flip=False)`: `op(v, other)`, or `op(other, v)` with `flip`."""
    op, other, flip = bound(low, "op other flip=", args, kwargs, node)
    if not callable(op) or flip not in (None, False, True):
        what = f"flip={describe(flip)}" if callable(op) else describe(op)
        low.fail(
            node,
            f"apply_op got {what}",
            expected="a function of two vectors, such as operator.sub, and flip=False or True",
        )
    return low.call(op, [other, vector] if flip else [vector, other], {}, node)


# ---- memory ----


def load(
    low: Lowering, tensor: Readable, args: list[Any], kwargs: dict[str, Any], node: ast.Call
) -> Vector:
    """`a.load()`: all elements of a tensor of a shape known at compile time."""
    bound(low, "", args, kwargs, node)
    access.require_readable(low, tensor.type.dtype, node)
    shape = _reachable(low, tensor, node)
    items = [access.load(low, memory, at) for memory, at in _places(low, tensor, node)]
    return Vector(shape, tuple(items))


def store_method(
    low: Lowering, tensor: Readable, args: list[Any], kwargs: dict[str, Any], node: ast.Call
) -> None:
    """`a.store(v)`: writes a vector to a tensor of the same shape."""
    (vector,) = bound(low, "data", args, kwargs, node)
    store(low, tensor, vector, node)


def store(low: Lowering, tensor: Readable, vector: Any, node: ast.AST) -> None:
    """Writes a vector to a tensor of the same shape."""
    if not isinstance(vector, Vector):
        low.fail(
            node,
            f"{describe(vector)} is stored to all of {tensor.name}",
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
    low.state.writes += 1
    if dtype in PACKED:
        assert isinstance(tensor, TensorView)
        from ferrule.language.lowering.tensors import packed  # few programs need it

        packed.store(low, tensor, vector.items, node)
        return
    values = [access.fitted(low, dtype, item, name, node) for item in vector.items]
    for (memory, place), value in zip(_places(low, tensor, node), values, strict=True):
        access.store(low, memory, place, value)


def fill(
    low: Lowering, tensor: Readable, args: list[Any], kwargs: dict[str, Any], node: ast.Call
) -> None:
    """`a.fill(x)`: writes one number to every element."""
    (number,) = bound(low, "value", args, kwargs, node)
    shape = _reachable(low, tensor, node)
    if tensor.type.dtype in PACKED:
        assert isinstance(tensor, TensorView)
        from ferrule.language.lowering.tensors import packed  # few programs need it

        packed.store(low, tensor, [number] * int(layouts.size(shape)), node)
        low.state.writes += 1
        return
    if tensor.type.dtype is Boolean and type(number) is int and number in (0, 1):
        number = bool(number)
    value = access.fitted(low, tensor.type.dtype, number, tensor.name, node)
    for memory, place in _places(low, tensor, node):
        access.store(low, memory, place, value)
    low.state.writes += 1


def _reachable(low: Lowering, tensor: Readable, node: ast.AST) -> tuple[Any, ...]:
    """The shape of a tensor whose elements this code can access together."""
    access.require_reachable(low, tensor, node)
    low.require_inside(tensor, node)
    return vector_shape(low, tensor.layout.shape, tensor.name, node)


def _places(
    low: Lowering, tensor: Readable, node: ast.AST
) -> Iterator[tuple[ops.Value, tuple[ops.Value, ...]]]:
    """Memory and index of each element of a tensor, the first mode fastest."""
    if isinstance(tensor, SwizzledView):
        from ferrule.language.lowering.tensors import swizzles

        yield from swizzles.places(low, tensor, node)
        return
    known: dict[int, ops.Value] = {}
    shape = tensor.type.shape
    for number in range(layouts.size(shape)):
        at = layouts.flatten((layouts.idx2crd(number, shape),)) if shape else ()
        for index in at:
            if index not in known:
                known[index] = low.builder.constant(Int32, index)
        yield tensor.value, tuple(known[index] for index in at)


# ---- items ----


def item(low: Lowering, vector: Vector, at: tuple[Any, ...], node: ast.AST) -> Any:
    """`v[i]`, `v[i, j]`: a number; `v[None, j]`: the vector of the modes that a None keeps."""
    coordinate = _known(low, vector, at, node)
    single = coordinate[0] if len(coordinate) == 1 else coordinate
    with refusals(low, node):
        kept, first = layouts.slice_and_offset(layouts.make_layout(vector.shape), single)
    _require_inside(low, vector, single, vector.shape, node)
    return shaped(kept.shape, [vector.items[first + step] for step in indices(kept)])


def shaped(shape: Any, items: list[Number]) -> Any:
    """A vector of this shape; the number itself if there are no modes."""
    if shape == ():
        return items[0]
    return Vector(shape if isinstance(shape, tuple) else (shape,), tuple(items))


def indices(layout: Layout) -> list[int]:
    """The index of every coordinate, the first fastest."""
    return [layouts.crd2idx(number, layout) for number in range(layouts.size(layout))]


def _known(low: Lowering, vector: Vector, at: Any, node: ast.AST) -> Any:
    """A coordinate whose leaves are compile-time values: ints and None."""
    if isinstance(at, tuple):
        return tuple(_known(low, vector, part, node) for part in at)
    known = coercion.plain(at.value if isinstance(at, Numeric) else at)
    if known is None or known == slice(None):
        return None
    if isinstance(known, int) and not isinstance(known, bool):
        return known
    low.fail(
        node,
        f"{describe(vector)} is indexed with {describe(known)}",
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
            f"the index {at} is outside of {describe(vector)}",
            expected=f"0 to {layouts.product(mode) - 1}",
        )


def filled(low: Lowering, shape: Any, number: Number, what: str, node: ast.AST) -> Vector:
    """A vector filled with one number."""
    checked = vector_shape(low, shape, what, node)
    count = layouts.size(checked)
    assert isinstance(count, int)
    return Vector(checked, (number,) * count)
