"""Tensors whose layout has numbers that a kernel computes: `make_tensor`, elements."""

from __future__ import annotations

import ast
from typing import Any

from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.numbers.sizes import is_number_layout
from ferrule.language.values import Number, PointerView


def of(low: Lowering, pointer: PointerView, layout: Any, node: ast.Call) -> Any:
    """The tensor of a pointer and a layout or shape of computed numbers; None for any other."""
    from ferrule.language.faces import number_layouts

    if not is_number_layout(layout):
        if not _is_computed(layout):
            return None
        layout = low.call(number_layouts.of_numbers, [layout], {}, node)
    return number_layouts.NumberTensor(pointer, layout)


def _is_computed(shape: Any) -> bool:
    """Whether a shape has a number that no size of a tensor is."""
    if isinstance(shape, tuple):
        return any(map(_is_computed, shape))
    return isinstance(shape, Number) and shape.dtype.is_integer and shape.dim is None


def element(
    low: Lowering, tensor: Any, given: tuple[Any, ...], node: ast.expr
) -> tuple[PointerView, Any]:
    """The pointer of a tensor, and the offset of the element at a coordinate."""
    from ferrule.language.faces import number_layouts

    coordinate = given[0] if len(given) == 1 else given
    called = ast.copy_location(ast.Call(node, [], []), node)  # for messages
    at = low.call(number_layouts.index_of_numbers, [coordinate, tensor.layout], {}, called)
    return tensor.iterator, at
