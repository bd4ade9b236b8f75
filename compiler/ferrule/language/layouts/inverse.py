"""The complement of a layout, and inverses."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

from ferrule.language.layouts.compose import coalesce, filter
from ferrule.language.layouts.dims import at_most, ceil_quotient, quotient, same, times
from ferrule.language.layouts.errors import refuse
from ferrule.language.layouts.layout import Layout, flat_modes, from_flat, size
from ferrule.specs import Dim, divisibility_of


def complement(layout: Layout, cotarget: Any = 1, *, operation: str = "complement") -> Layout:
    """The layout that repeats this one without overlap until `cotarget` indices are reached.

    Sums of an index of this layout and one of the complement are all different; the complement is
    increasing.  If whole steps do not fill the gaps between strides, the rest of a gap stays free
    (`exact_complement` refuses that).  Modes of stride 0 count as size 1.  Raises LayoutError if
    strides are negative, or indices overlap, or symbolic sizes do not prove that they do not.
    """
    return _complement(layout, cotarget, operation, is_exact=False)


def exact_complement(layout: Layout, cotarget: Any, *, operation: str) -> Layout:
    """The complement if it fills all gaps.

    Every index below a number of at least `cotarget` is the sum of one of the layout and one of the
    complement, in exactly one way.  Raises LayoutError if an index would be missing.
    """
    return _complement(layout, cotarget, operation, is_exact=True)


def _complement(layout: Layout, cotarget: Any, operation: str, is_exact: bool) -> Layout:
    modes: list[tuple[Dim, Dim]] = []
    current: Dim = 1
    for extent, stride in _rising(layout, flat_modes(filter(layout)), operation):
        gap = _gap(stride, current, is_exact)
        if gap is None:
            refuse(
                operation,
                f"the modes of {layout} are not known to nest: each stride must be "
                f"{'a multiple of' if is_exact else 'at least'} size times stride of the mode "
                "before it",
                "take a layout whose strides rise evenly, such as a compact one",
            )
        if gap != 1:
            modes.append((gap, current))
        current = times(extent, stride)
    whole = size(cotarget)
    if current == 0:
        refuse(operation, f"{layout} has no elements, so no repetition of it covers anything")
    if not at_most(whole, current):
        modes.append((ceil_quotient(whole, current), current))
    return coalesce(from_flat(modes))


def _gap(stride: Dim, reach: Dim, is_exact: bool) -> Dim | None:
    """The number of repetitions of the indices so far before the next stride; None if it is not
    known."""
    found = quotient(stride, reach)
    if found is None and isinstance(stride, int) and isinstance(reach, int) and not is_exact:
        return stride // reach or None
    return found


def _rising(
    layout: Layout, modes: Iterable[tuple[Dim, Dim]], operation: str
) -> list[tuple[Dim, Dim]]:
    """The modes with nonzero strides, in the order of their strides.

    Raises LayoutError for negative strides, and for symbolic ones in an unknown order.
    """
    left = [(extent, stride) for extent, stride in modes if extent != 1 and stride != 0]
    if any(isinstance(stride, int) and stride < 0 for _, stride in left):
        refuse(operation, f"{layout} has a negative stride, before which nothing can be put")
    if all(isinstance(stride, int) for _, stride in left):
        return sorted(left, key=_order)
    rising: list[tuple[Dim, Dim]] = []
    while left:
        chosen = next((m for m in left if _is_below(m, left)), None)
        if chosen is None:
            refuse(
                operation,
                f"the modes of {layout} are not known to nest: each stride must be a multiple of "
                f"size times stride of the mode before it",
                "take a layout whose strides rise evenly, such as a compact one",
            )
        left.remove(chosen)
        rising.append(chosen)
    return rising


def _order(mode: tuple[Dim, Dim]) -> int:
    stride = mode[1]
    assert isinstance(stride, int)
    return stride


def _is_below(mode: tuple[Dim, Dim], modes: list[tuple[Dim, Dim]]) -> bool:
    reach = times(*mode)
    return all(other is mode or quotient(other[1], reach) is not None for other in modes)


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
    """The layout l with l(layout(i)) == i for each i of the domain.

    If the layout repeats indices (a stride is 0), l returns one of the coordinates:
    layout(l(layout(i))) == layout(i).  For an index that the layout does not have, l is arbitrary.
    Raises LayoutError if strides are negative, overlap, or do not divide each other.
    """
    name = "left_inverse"
    firsts: dict[Dim, Dim] = {}
    current: Dim = 1
    coalesced = flat_modes(coalesce(layout))
    for extent, stride in coalesced:
        firsts.setdefault(stride, current)
        current = times(current, extent)
    rising = _rising(layout, coalesced, name)
    modes: list[tuple[Dim, Dim]] = []
    for position, (extent, stride) in enumerate(rising):
        if not position and stride != 1:
            modes.append((stride, 0))
        is_last = position + 1 == len(rising)
        room = extent if is_last else quotient(rising[position + 1][1], stride)
        if room is None or not at_most(extent, room):
            refuse(
                name,
                f"the modes of {layout} are not known to nest: each stride must be a multiple of "
                "the one before it, and at least size times it",
            )
        modes.append((room, firsts[stride]))
    return coalesce(from_flat(modes))


def nullspace(layout: Layout) -> Layout:
    """The layout of the coordinates on which the index does not depend: those of stride 0.

    layout(nullspace(i)) is 0 for each i.  Raises LayoutError unless it is a layout.
    """
    current: Dim = 1
    modes: list[tuple[Dim, Dim]] = []
    for extent, stride in flat_modes(layout):
        if stride == 0 and extent != 1:
            modes.append((extent, current))
        current = times(current, extent)
    return from_flat(modes)


def max_common_layout(a: Layout, b: Layout) -> Layout:
    """The largest layout v known with a(v(i)) == b(v(i)) == i: the elements that a copy of a to b
    moves together.

    It has no elements beyond those of a and b.  Of sizes that are symbols only what is certain
    counts: their divisibility, and where sizes of both are proven to be the same or a multiple.
    """
    left, right = _placed(a), _placed(b)
    modes: list[tuple[Dim, Dim]] = []
    current: Dim = 1
    while step := _common_step(left, right, current):
        modes.append(step)
        current = times(current, step[0])
    return coalesce(from_flat(modes))


_Placed = list[tuple[Dim, Dim, Dim]]


def _placed(layout: Layout) -> _Placed:
    """The modes, each with the number of the coordinate where it has its second element."""
    placed: _Placed = []
    first: Dim = 1
    for extent, stride in flat_modes(coalesce(layout)):
        placed.append((first, extent, stride))
        first = times(first, extent)
    return placed


def _common_step(a: _Placed, b: _Placed, current: Dim) -> tuple[Dim, Dim] | None:
    """How often a step of one coordinate in both layouts adds `current` to the index, and that
    step; None if there is no such step."""
    of_b = list(_steps(b, current))
    for extent, step in _steps(a, current):
        for other, other_step in of_b:
            count = _certain(extent, other)
            if count not in (0, 1) and same(step, other_step):
                return count, step
    return None


def _steps(placed: _Placed, current: Dim) -> Iterator[tuple[Dim, Dim]]:
    """The steps of a coordinate that add `current` to the index, and how often each can be done."""
    for first, extent, stride in placed:
        skipped = quotient(current, stride)
        if skipped is None or not at_most(1, skipped):
            continue
        count = quotient(extent, skipped)
        if count is not None:
            yield count, times(first, skipped)


def _certain(extent: Dim, other: Dim) -> Dim:
    """A number that is at most both: the smaller one if it is known."""
    if at_most(extent, other):
        return extent
    return other if at_most(other, extent) else math.gcd(_divisor(extent), _divisor(other))


def _divisor(dim: Dim) -> int:
    return dim if isinstance(dim, int) else divisibility_of(dim)


def max_common_vector(a: Layout, b: Layout) -> Dim:
    """The number of leading elements that are contiguous in both a and b: at least 1."""
    return size(max_common_layout(a, b))
