"""Views: parts of tensors, or the same memory with another layout, and pointers.

A view is a value of the IR like any tensor: it can be read, written and passed to a kernel.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Final

from ferrule.language import layouts
from ferrule.language.ir.types import TensorType
from ferrule.language.layouts import Layout
from ferrule.language.lowering.context import Lowering, Part
from ferrule.language.lowering.numbers.tables import PYTHON_BINARY
from ferrule.language.lowering.tensors import coordinates
from ferrule.language.values import Number, PointerView, TensorView
from ferrule.specs import AddressSpace, Dim, DType, divisibility_of
from ferrule.specs.expr import INT64_MAX

_UNBOUNDED: Final = (INT64_MAX,)


def _type(old: TensorType, layout: Layout, align: int) -> TensorType:
    """The type of a tensor's elements in another layout."""
    shape, stride = layouts.flatten((layout.shape,)), layouts.flatten((layout.stride,))
    return replace(old, shape=shape, strides=stride, align=align)


def _nested(layout: Layout) -> Layout | None:
    return layout if layouts.depth(layout) > 1 else None


def with_rank(layout: Layout) -> Layout:
    """A layout of a tensor, whose shape is a tuple."""
    return layout if isinstance(layout.shape, tuple) else layouts.make_layout(layout)


def relaid(
    low: Lowering,
    tensor: TensorView | PointerView,
    layout: Layout,
    arrange: Callable[[Layout], Layout] | None = None,
    *,
    has_no_others: bool = False,
) -> TensorView:
    """The memory from the tensor's first element on, with another layout.

    `arrange` and `has_no_others` say how it is made of the tensor's, see `Part`.
    """
    layout = with_rank(layout)
    type_ = _type(tensor.type, layout, tensor.type.align)
    if type_ == tensor.type:
        return TensorView(tensor.value, tensor.name, _nested(layout))
    value = low.state.with_beginning(low.builder.view(tensor.value, type_), tensor.value)
    if low.kind == "host" and isinstance(tensor, TensorView):
        low.state.parts[value] = Part(tensor, layout, arrange, has_no_others=has_no_others)
    return TensorView(value, tensor.name, _nested(layout))


def cut(
    low: Lowering,
    tensor: TensorView,
    coordinate: tuple[Any, ...],
    node: ast.AST,
    *,
    name: str | None = None,
    whole: bool = False,
) -> TensorView:
    """The part of a tensor at a coordinate: the modes that it keeps with None, side by side."""
    found = coordinates.indices(low, tensor, coordinate, node)
    kept = layouts.slice_(tensor.layout, coordinate)
    name = tensor.name if name is None else name
    if all(isinstance(each, int) and each == 0 for each in found) and kept == tensor.layout:
        return TensorView(tensor.value, name, tensor.nested, whole)
    value = _begin(low, tensor, found, _type(tensor.type, kept, 1), node)
    if low.kind == "host":
        arrange = partial(layouts.slice_, coord=coordinate)
        at = _without_kept(tensor.layout.shape, coordinate, found)
        low.state.parts[value] = Part(tensor, kept, arrange, at)
    return TensorView(value, name, _nested(kept), whole)


def _without_kept(
    shape: Any, coordinate: tuple[Any, ...], found: tuple[Number | int, ...]
) -> tuple[Number | int | None, ...]:
    """The indices of a coordinate, None for the dims that it keeps."""
    numbers = layouts.unflatten(tuple(range(len(found))), shape)
    kept = set(layouts.flatten((layouts.slice_(numbers, coordinate),)))
    return tuple(None if number in kept else index for number, index in enumerate(found))


def offset(
    low: Lowering, tensor: TensorView, coordinate: tuple[Any, ...], node: ast.AST
) -> TensorView:
    """The tensor with its layout, with the element at the coordinate as its first."""
    found = coordinates.indices(low, tensor, coordinate, node)
    value = _begin(low, tensor, found, tensor.type, node)
    if low.kind == "host":
        low.state.parts[value] = Part(tensor, tensor.layout, _as_it_is, found, keeps_shape=True)
    return TensorView(value, tensor.name, tensor.nested)


def _as_it_is(layout: Layout) -> Layout:
    return layout


def _begin(
    low: Lowering,
    tensor: TensorView,
    found: tuple[Number | int, ...],
    type_: TensorType,
    node: ast.AST,
) -> Any:
    """A view that begins at these indices, with its known alignment."""
    if type_.dtype.bits < 8:
        indices = coordinates.values(low, found, node)
        from ferrule.language.lowering.tensors import packed  # few programs need it

        return packed.begin(low, tensor, found, indices, type_, node)
    aligned = replace(type_, align=alignment_at(tensor.type, found))
    value = low.builder.view(tensor.value, aligned, coordinates.values(low, found, node))
    low.state.bases[value] = low.state.bases.get(tensor.value, tensor.value)
    return value


def alignment_at(type_: TensorType, found: tuple[Number | int, ...]) -> int:
    """The known alignment of an element's address, in bytes."""
    step = 0
    for index, stride in zip(found, type_.strides, strict=True):
        known: Dim | None = index if isinstance(index, int) else index.dim
        times = 1 if known is None else divisibility_of(known)
        step = math.gcd(step, times * divisibility_of(stride))
    return math.gcd(type_.align, step * type_.dtype.itemsize)


# ---- pointers ----


def pointer_to(low: Lowering, tensor: Any, dtype: DType, align: int, name: str) -> PointerView:
    """The start address of a tensor, or the address in a pointer's handle."""
    space = tensor.type.space if isinstance(tensor.type, TensorType) else AddressSpace.gmem
    type_ = TensorType(dtype, _UNBOUNDED, (1,), align, space)
    return PointerView(low.state.with_beginning(low.builder.view(tensor, type_), tensor), name)


def iterator(low: Lowering, tensor: TensorView) -> PointerView:
    """`a.iterator`: the address of the first element."""
    type_ = tensor.type
    return pointer_to(low, tensor.value, type_.dtype, type_.align, f"{tensor.name}.iterator")


def as_tensor(pointer: PointerView) -> TensorView:
    """The memory behind a pointer, with one dim of unknown size."""
    return TensorView(pointer.value, pointer.name)


def moved(low: Lowering, pointer: PointerView, by: Any, node: ast.AST) -> PointerView:
    """`p + i`: the address i elements further."""
    tensor = as_tensor(pointer)
    found = coordinates.indices(low, tensor, (by,), node)
    return PointerView(_begin(low, tensor, found, pointer.type, node), pointer.name)


def arithmetic(low: Lowering, op: ast.operator, left: Any, right: Any, node: ast.AST) -> Any:
    """`p + i`, `i + p`, `p - i`."""
    match op, left, right:
        case ast.Add(), PointerView(), _ if not isinstance(right, PointerView):
            return moved(low, left, right, node)
        case ast.Add(), _, PointerView():
            return moved(low, right, left, node)
        case ast.Sub(), PointerView(), _ if not isinstance(right, PointerView):
            return moved(low, left, low.unary(ast.USub(), right, node), node)
    low.fail(
        node,
        f"the operator {PYTHON_BINARY[type(op)][0]} is not supported on pointers",
        expected="p + i, p - i, p[i]",
    )
