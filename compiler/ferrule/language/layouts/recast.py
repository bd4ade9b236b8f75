"""The layout of the same memory with elements of another size."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ferrule.language.layouts.composed import ComposedLayout, recast_composed
from ferrule.language.layouts.dims import quotient, times
from ferrule.language.layouts.errors import refuse
from ferrule.language.layouts.layout import Layout, flat_modes, join, modes_of
from ferrule.specs import Dim

_Change = Callable[[Dim, Dim], tuple[Dim, Dim]]


def recast_layout(new_type_bits: int, old_type_bits: int, src_layout: Any) -> Any:
    """The layout of elements of `new_type_bits` in place of elements of `old_type_bits`.

    Smaller elements make the mode of stride 1 longer; larger ones merge neighbours, so the sizes
    and strides must allow it.  Raises LayoutError if they do not.
    """
    for bits in (new_type_bits, old_type_bits):
        if isinstance(bits, bool) or not isinstance(bits, int):
            refuse("recast_layout", f"bits must be ints, but got {bits!r}")
    if new_type_bits < 1 or old_type_bits < 1:
        refuse("recast_layout", f"bits must be positive: {new_type_bits} and {old_type_bits}")
    if isinstance(src_layout, ComposedLayout):
        return recast_composed(new_type_bits, old_type_bits, src_layout)
    common = math.gcd(new_type_bits, old_type_bits)
    parts, group = old_type_bits // common, new_type_bits // common
    finer = _downcast(src_layout, parts) if parts > 1 else src_layout
    return _upcast(finer, group) if group > 1 else finer


def _downcast(layout: Layout, parts: int) -> Layout:
    """Each element becomes `parts` neighbours."""
    if sum(stride == 1 for _, stride in flat_modes(layout)) != 1:
        refuse(
            "recast_layout",
            f"{layout} must have one mode of stride 1, where the parts of an element lie",
        )
    return _each(layout, lambda size, stride: _split(size, stride, parts))


def _split(size: Dim, stride: Dim, parts: int) -> tuple[Dim, Dim]:
    return (times(size, parts), 1) if stride == 1 else (size, times(stride, parts))


def _upcast(layout: Layout, group: int) -> Layout:
    """`group` neighbours become one element."""
    taken = 1

    def join_neighbours(size: Dim, stride: Dim) -> tuple[Dim, Dim]:
        nonlocal taken
        wider = quotient(stride, group)
        if wider is not None:
            return size, wider
        count = quotient(group, stride)
        if isinstance(count, int) and count > 0:
            smaller = quotient(size, count)
            if smaller is not None:
                taken *= count
                return smaller, 1
            if isinstance(size, int) and count % size == 0:
                taken *= size
                return 1, 0
        refuse(
            "recast_layout",
            f"the mode {size}:{stride} of {layout} does not divide into groups of {group}",
            "take a size that is a multiple, and strides that are",
        )

    result = _each(layout, join_neighbours)
    if taken != group:
        refuse("recast_layout", f"{layout} does not have {group} neighbours to take together")
    return result


def _each(layout: Layout, change: _Change) -> Layout:
    if isinstance(layout.shape, tuple):
        return join([_each(mode, change) for mode in modes_of(layout)])
    ((size, stride),) = flat_modes(layout)
    return Layout(*change(size, stride))
