"""What has a layout, of any kind: tensors in memory, swizzled tensors, tensors of coordinates.

Functions that arrange elements anew know these through here.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, TypeAlias

from ferrule.language.layouts import Layout
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.tensors import coordinates, views
from ferrule.language.values import CoordinateView, SwizzledView, TensorView

Arranged: TypeAlias = TensorView | SwizzledView | CoordinateView
ARRANGED: Final = (TensorView, SwizzledView, CoordinateView)


def relaid(
    low: Lowering,
    tensor: Arranged,
    layout: Layout,
    arrange: Callable[[Layout], Layout] | None = None,
    *,
    has_no_others: bool = False,
) -> Arranged:
    """The elements from the first one on, with another layout; how it was made, see `Part`."""
    if isinstance(tensor, TensorView):
        return views.relaid(low, tensor, layout, arrange, has_no_others=has_no_others)
    return replace(tensor, layout=views.with_rank(layout))


def cut(
    low: Lowering,
    tensor: Arranged,
    coordinate: tuple[Any, ...],
    node: ast.AST,
    *,
    name: str | None = None,
) -> Arranged:
    """The part at a coordinate: the modes that it keeps with None, side by side."""
    coordinate = coordinates.whole_as_all(tensor, coordinate)
    match tensor:
        case TensorView():
            return views.cut(low, tensor, coordinate, node, name=name)
        case SwizzledView():
            from ferrule.language.lowering.tensors import swizzled

            return swizzled.cut(low, tensor, coordinate, node, name)
        case CoordinateView():
            from ferrule.language.lowering.tensors import coordinate_views

            return coordinate_views.cut(low, tensor, coordinate, node, name)


def offset(low: Lowering, tensor: Arranged, coordinate: tuple[Any, ...], node: ast.AST) -> Arranged:
    """The tensor with its layout, with the element at the coordinate as its first."""
    match tensor:
        case TensorView():
            return views.offset(low, tensor, coordinate, node)
        case SwizzledView():
            from ferrule.language.lowering.tensors import swizzled

            return swizzled.offset(low, tensor, coordinate, node)
        case CoordinateView():
            from ferrule.language.lowering.tensors import coordinate_views

            return coordinate_views.offset(low, tensor, coordinate, node)


def read(low: Lowering, tensor: SwizzledView | CoordinateView, at: Any, node: ast.AST) -> Any:
    """`tensor[...]` of one that is more than a pointer and a layout."""
    if isinstance(tensor, CoordinateView):
        from ferrule.language.lowering.tensors import coordinate_views

        return coordinate_views.read(low, tensor, at, node)
    from ferrule.language.lowering.tensors import swizzled

    return swizzled.read(low, tensor, at, node)


def write(low: Lowering, tensor: Any, at: Any, value: Any, node: ast.AST) -> None:
    """`tensor[...] = value`."""
    if isinstance(tensor, CoordinateView):
        low.fail(node, f"{tensor.name} is written: it is of coordinates, which are in no memory")
    from ferrule.language.lowering.tensors import swizzled

    swizzled.write(low, tensor, at, value, node)
