"""Coalescing and composition.

`composition(a, b)` is the layout r with r(c) = a(b(c)) for each coordinate c of b whose index lies
in the domain of a.  It exists if b walks the digits of a evenly: write an index of a as digits, one
for each (coalesced) mode; then each leaf of b has to step within one digit, or fill a whole digit
before it continues in the next, and the sum of the leaves of b in a digit must not carry into the
next.  If this cannot be proved, the composition is refused.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import Any, NoReturn

from ferrule.language.layouts.composed import ComposedLayout, Swizzle, on_outer
from ferrule.language.layouts.dims import at_most, quotient, same, times
from ferrule.language.layouts.errors import refuse
from ferrule.language.layouts.layout import (
    Layout,
    flat_modes,
    from_flat,
    join,
    modes_of,
    require_layout,
)
from ferrule.language.layouts.tuples import format_tuple
from ferrule.specs import Dim
from ferrule.specs.deferred import dataclass
from ferrule.specs.expr import is_dim


@on_outer
def coalesce(layout: Layout, *, target_profile: Any = None) -> Layout:
    """The same function on the domain with as few modes as possible: flat, without sizes of 1.

    `target_profile`: a tuple whose leaves stand for modes that are coalesced one by one.
    """
    if isinstance(target_profile, tuple):
        modes = modes_of(layout)
        if len(target_profile) > len(modes):
            refuse("coalesce", f"{layout} has fewer modes than {format_tuple(target_profile)}")
        done = [coalesce(m, target_profile=p) for m, p in zip(modes, target_profile, strict=False)]
        return join([*done, *modes[len(done) :]])
    merged: list[tuple[Dim, Dim]] = []
    for size, stride in flat_modes(layout):
        if size == 1:
            continue
        if merged and same(times(*merged[-1]), stride):
            merged[-1] = (times(merged[-1][0], size), merged[-1][1])
        else:
            merged.append((size, stride))
    return from_flat(merged)


@on_outer
def filter_zeros(layout: Layout) -> Layout:
    """The layout with a size of 1 where the stride is 0.  Raises LayoutError unless it is a
    layout."""
    require_layout(layout)
    if isinstance(layout.shape, tuple):
        return join([filter_zeros(mode) for mode in modes_of(layout)])
    return Layout(1, 0) if layout.stride == 0 else layout


@on_outer
def filter(layout: Layout) -> Layout:
    """The layout without modes of stride 0, in as few modes as possible: its indices, each once.

    Raises LayoutError unless it is a layout.
    """
    return coalesce(filter_zeros(layout))


def composition(lhs: Any, rhs: Any, *, operation: str = "composition") -> Any:
    """The layout c -> lhs(rhs(c)), with the profile of rhs and its leaves split if necessary.

    The left side may also be a swizzle or a composed layout, whose outer layout is composed then.
    A size stands for the layout of that many indices; a tuple composes mode by mode.  A mode with
    None in the tuple is unchanged, and modes beyond it are dropped.  If rhs reaches beyond the end
    of lhs, the last mode of lhs continues; the value at a negative index is the negative of the
    value at the positive one.  Raises LayoutError if there is no such layout, or symbolic sizes do
    not prove it; a symbolic stride of rhs is assumed to be positive.
    """
    if isinstance(lhs, Swizzle):
        return ComposedLayout(lhs, 0, as_layout(rhs, operation))
    if isinstance(lhs, ComposedLayout):
        return replace(lhs, outer=composition(lhs.outer, rhs, operation=operation))
    if rhs is None:
        return lhs
    if isinstance(rhs, tuple):
        modes = modes_of(lhs)
        if len(rhs) > len(modes):
            refuse(operation, f"the tiler has {len(rhs)} modes, but {lhs} has {len(modes)}")
        pairs = zip(modes, rhs, strict=False)
        return join([composition(mode, each, operation=operation) for mode, each in pairs])
    right = rhs if isinstance(rhs, Layout) else as_layout(rhs, operation)
    digits = _Digits(operation, lhs, right, _unbounded(lhs), defaultdict(list))
    result = digits.compose(right)
    digits.check_carries()
    return result


def _unbounded(layout: Layout) -> list[tuple[Dim, Dim]]:
    """The coalesced modes; the last one, which continues beyond its size, is kept at size 1 too."""
    *inner, (extent, stride) = flat_modes(layout) or [(1, 0)]
    # Any size above 1 is correct: nothing reads the size of the last mode.
    return flat_modes(coalesce(from_flat([*inner, (2 if extent == 1 else extent, stride)])))


def as_layout(value: Any, operation: str) -> Layout:
    """A layout unchanged, a size n as `n:1`.  Raises LayoutError for anything else."""
    if isinstance(value, Layout):
        return value
    if not is_dim(value):
        refuse(operation, f"expected a layout, a size, or a tuple of them, but got {value!r}")
    return Layout(value, 1)


@dataclass(frozen=True, slots=True)
class _Digits:
    """A composition under construction.

    `modes` are the digits of the left side; `used` has for each of them the sizes and strides,
    counted in that digit, that leaves of the right side take there.
    """

    operation: str
    lhs: Layout
    rhs: Layout
    modes: list[tuple[Dim, Dim]]
    used: dict[int, list[tuple[Dim, Dim]]]

    def compose(self, right: Layout) -> Layout:
        if isinstance(right.shape, tuple):
            return join([self.compose(mode) for mode in modes_of(right)])
        ((size, stride),) = flat_modes(right)
        if size == 1 or stride == 0:
            return Layout(size, 0)
        return from_flat(self.place(size, stride))

    def place(self, size: Dim, stride: Dim) -> list[tuple[Dim, Dim]]:
        """The modes that walk `size` steps of `stride` through the digits."""
        if isinstance(stride, int) and stride < 0:
            self.check_directions(size, stride)
            return [(extent, times(-1, step)) for extent, step in self.place(size, -stride)]
        parts: list[tuple[Dim, Dim]] = []
        *inner, (_, last) = self.modes
        for position, (extent, step) in enumerate(inner):
            skipped = quotient(stride, extent)
            if skipped is not None:
                stride = skipped
                continue
            room = quotient(extent, stride)
            if _within(size, stride, extent, room):
                self.used[position].append((size, stride))
                return [*parts, (size, times(stride, step))]
            rest = None if room is None else quotient(size, room)
            if room is None or rest is None:
                self.fail(size, stride, f"it does not step evenly through the mode {extent}:{step}")
            self.used[position].append((room, stride))
            parts.append((room, times(stride, step)))
            size, stride = rest, 1
        return [*parts, (size, times(stride, last))]

    def check_directions(self, size: Dim, stride: Dim) -> None:
        """If one leaf is decreasing, all must be: else an index borrows from the next digit."""
        forwards = any(
            extent != 1 and not (isinstance(step, int) and step <= 0)
            for extent, step in flat_modes(self.rhs)
        )
        if forwards and len(self.modes) > 1:
            self.fail(size, stride, "it walks backwards over more than one mode, others forwards")

    def check_carries(self) -> None:
        """The sum of the leaves must stay below the size of each digit but the last."""
        for position, parts in self.used.items():
            extent, step = self.modes[position]
            if not _fits(extent, parts):
                leaves = " and ".join(f"{size}:{stride}" for size, stride in parts)
                refuse(
                    self.operation,
                    f"{leaves} of {self.rhs} are not known to stay within the mode "
                    f"{extent}:{step} of {self.lhs} together",
                    _ADVICE,
                )

    def fail(self, size: Dim, stride: Dim, problem: str) -> NoReturn:
        refuse(
            self.operation,
            f"{self.lhs} is not divided evenly by {size}:{stride} of {self.rhs}: {problem}",
            _ADVICE,
        )


_ADVICE = (
    "divide mode by mode with a tuple of sizes, take sizes that divide each other, or state what "
    "divides a symbolic size with sym_int(divisibility=...)"
)


def _within(size: Dim, stride: Dim, extent: Dim, room: Dim | None) -> bool:
    """Whether all steps stay within a digit."""
    if isinstance(size, int) and isinstance(stride, int) and isinstance(extent, int):
        return (size - 1) * stride < extent
    return room is not None and at_most(size, room)


def _fits(extent: Dim, parts: list[tuple[Dim, Dim]]) -> bool:
    """Whether numbers below `size` times their strides always add up to less than `extent`.

    Each alone does; unknown sizes must step over each other.
    """
    if len(parts) == 1:
        return True
    known = [(s, d) for s, d in parts if isinstance(s, int) and isinstance(d, int)]
    if isinstance(extent, int) and len(known) == len(parts):
        return sum((size - 1) * stride for size, stride in known) < extent
    left = list(parts)
    reach: Dim = 1
    while left:
        following = [part for part in left if quotient(part[1], reach) is not None]
        chosen = next((p for p in following if _first_of(p, following)), None)
        if chosen is None:
            return False
        left.remove(chosen)
        reach = times(*chosen)
    return True


def _first_of(part: tuple[Dim, Dim], parts: list[tuple[Dim, Dim]]) -> bool:
    """Whether all other parts step over everything that this one reaches."""
    reach = times(*part)
    return all(other is part or quotient(other[1], reach) is not None for other in parts)
