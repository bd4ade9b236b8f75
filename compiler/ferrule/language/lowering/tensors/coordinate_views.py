"""Tensors of coordinates: `make_identity_tensor`, and what tiles, slices and partitions make of it.

An element is a coordinate: the origin plus, for each mode, its index times a stride that is a
basis.  Nothing of it is in memory; an element is a tuple of integers, which `elem_less` compares.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from ferrule.language import layouts
from ferrule.language.layouts import Layout, make_identity_layout
from ferrule.language.layouts.coordinates import coordinate_at, has_free, origin_of
from ferrule.language.layouts.tuples import leaves
from ferrule.language.lowering.arguments import bound
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.numbers.sizes import as_dims, named, size_numbers
from ferrule.language.lowering.tensors import coordinates
from ferrule.language.lowering.tensors.coordinates import Emitted, refusals
from ferrule.language.lowering.tensors.views import with_rank
from ferrule.language.values import CoordinateView


class Narrow(Emitted):
    """Arithmetic in the type of the coordinates: they are below sizes, and products are too."""

    __slots__ = ()

    def mul(self, lhs: Any, rhs: Any) -> Any:
        """`lhs * rhs`."""
        return self._emit("mul", lhs, rhs)


def identity(
    low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call
) -> CoordinateView:
    """`fe.make_identity_tensor(shape)`."""
    (shape,) = bound(low, "shape", args, kwargs, node)
    with refusals(low, node):
        layout = make_identity_layout(as_dims(low, shape, node))
    return tensor(layout, "the identity")


def tensor(layout: Layout, name: str, origin: Any = None) -> CoordinateView:
    """The coordinates that a layout gives."""
    begin = origin_of(layout.stride) if origin is None else origin
    begin = begin if isinstance(begin, tuple) else (begin,)
    return CoordinateView(with_rank(layout), begin, name)


def cut(
    low: Lowering,
    of: CoordinateView,
    coordinate: tuple[Any, ...],
    node: ast.AST,
    name: str | None = None,
) -> CoordinateView:
    """The part at a coordinate: the modes that it keeps with None, side by side."""
    origin = element(low, of, coordinate, node)
    kept = layouts.slice_(of.layout, coordinate)
    return CoordinateView(kept, origin, of.name if name is None else name)


def offset(
    low: Lowering, of: CoordinateView, coordinate: tuple[Any, ...], node: ast.AST
) -> CoordinateView:
    """The tensor with its layout, with the element at the coordinate as its first."""
    return replace(of, origin=element(low, of, coordinate, node))


def element(low: Lowering, of: CoordinateView, at: tuple[Any, ...], node: ast.AST) -> Any:
    """The coordinate at a coordinate; a mode that is kept counts as 0."""
    emit = Narrow(low, node)
    found = coordinates.indices(low, of, at, node, emit)
    flat = Layout(tuple(leaves(of.layout.shape)), tuple(leaves(of.layout.stride)))
    with refusals(low, node):
        return coordinate_at(of.origin, flat, found, emit)


def read(low: Lowering, of: CoordinateView, at: tuple[Any, ...], node: ast.AST) -> Any:
    """`c[...]`: a coordinate, or the coordinates of a part."""
    at = coordinates.whole_as_all(of, at)
    if has_free(at):
        return cut(low, of, at, node, ast.unparse(node))
    return element(low, of, at, node)


def relaid(of: CoordinateView, layout: Layout) -> CoordinateView:
    """The coordinates from the same origin on, in another layout."""
    return replace(of, layout=with_rank(layout))


TENSOR: Final[dict[str, Callable[[Lowering, CoordinateView], Any]]] = {
    "shape": lambda low, t: size_numbers(low, t.layout.shape),
    "stride": lambda low, t: size_numbers(low, t.layout.stride),
    "layout": lambda low, t: named(low, t.layout),
    "iterator": lambda low, t: t.origin,
    "ndim": lambda low, t: len(t.layout),
}
