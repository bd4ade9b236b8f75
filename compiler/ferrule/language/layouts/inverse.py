"""The complement of a layout, and inverses."""

from __future__ import annotations

from typing import Any

from ferrule.language.layouts.compose import coalesce, filter_zeros
from ferrule.language.layouts.dims import at_most, ceil_quotient, quotient, same, times
from ferrule.language.layouts.errors import refuse
from ferrule.language.layouts.layout import Layout, flat_modes, from_flat, join, size
from ferrule.specs import Dim


def complement(layout: Layout, cotarget: Any = 1, *, operation: str = "complement") -> Layout:
    """The layout that repeats this one without overlap until `cotarget` indices are covered.

    Every index below a number of at least `cotarget` is one of this layout plus one of the
    complement, in one way; the complement rises.  Modes of stride 0 count as size 1.  Raises
    LayoutError where the strides leave gaps that nothing fills evenly, or overlap.
    """
    modes: list[tuple[Dim, Dim]] = []
    current: Dim = 1
    for extent, stride in _rising(layout, operation):
        gap = quotient(stride, current)
        assert gap is not None
        if gap != 1:
            modes.append((gap, current))
        current = times(extent, stride)
    whole = size(cotarget)
    if current == 0:
        refuse(operation, f"{layout} has no elements, so no repetition of it covers anything")
    if not at_most(whole, current):
        modes.append((ceil_quotient(whole, current), current))
    return coalesce(from_flat(modes))


def _rising(layout: Layout, operation: str) -> list[tuple[Dim, Dim]]:
    """The modes in the order of their strides, each a multiple of what the ones before reach."""
    left = flat_modes(coalesce(filter_zeros(layout)))
    left = [mode for mode in left if mode[0] != 1]
    rising: list[tuple[Dim, Dim]] = []
    while left:
        chosen = next((m for m in left if _is_below(m, left)), None)
        reach = times(*rising[-1]) if rising else 1
        if chosen is None or quotient(chosen[1], reach) is None or _is_negative(chosen[1]):
            refuse(
                operation,
                f"the modes of {layout} are not known to nest: each stride must be a multiple of "
                f"size times stride of the mode before it",
                "take a layout whose strides rise evenly, such as a compact one",
            )
        left.remove(chosen)
        rising.append(chosen)
    return rising


def _is_below(mode: tuple[Dim, Dim], modes: list[tuple[Dim, Dim]]) -> bool:
    reach = times(*mode)
    return all(other is mode or quotient(other[1], reach) is not None for other in modes)


def _is_negative(stride: Dim) -> bool:
    return isinstance(stride, int) and stride < 0


def right_inverse(layout: Layout) -> Layout:
    """The largest layout r with layout(r(i)) == i: it covers the indices from 0 without a gap."""
    flat = flat_modes(coalesce(layout))
    firsts: list[Dim] = [1]
    for extent, _ in flat:
        firsts.append(times(firsts[-1], extent))
    modes: list[tuple[Dim, Dim]] = []
    current: Dim = 1
    while True:
        found = [i for i, (extent, step) in enumerate(flat) if same(step, current) and extent != 1]
        if not found:
            return coalesce(from_flat(modes))
        position = found[0]
        extent = flat[position][0]
        modes.append((extent, firsts[position]))
        current = times(current, extent)
        flat[position] = (1, 0)


def left_inverse(layout: Layout) -> Layout:
    """A layout l with l(layout(i)) == i on the domain.

    Raises LayoutError where the layout repeats an index or its strides do not nest.
    """
    if any(stride == 0 and extent != 1 for extent, stride in flat_modes(layout)):
        refuse("left_inverse", f"{layout} repeats an index: it has the stride 0")
    return right_inverse(join([layout, complement(layout, operation="left_inverse")]))
