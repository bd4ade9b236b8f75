"""Swizzles, and layouts composed with them.

`make_swizzle(b, m, s)`, printed `S<b,m,s>`, changes an index: b of its bits, from bit m + s on, are
added without carry (xor) to as many from bit m on.  With a negative s they go the other way.  It is
its own inverse, and runs of 2**m indices stay together.

A `ComposedLayout`, printed `inner o offset o outer`, gives inner(offset + outer(c)).  What
rearranges a layout rearranges the outer one of it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Any, TypeVar

from ferrule.language.layouts.dims import ScaledBasis, bases_of, unit_strides
from ferrule.language.layouts.errors import refuse
from ferrule.language.layouts.layout import Layout, require_layout
from ferrule.language.layouts.tuples import IntTuple, as_int_tuple
from ferrule.specs.deferred import dataclass
from ferrule.specs.expr import is_dim, make

_Function = TypeVar("_Function", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True, repr=False)
class Swizzle:
    """A change of indices: `num_bits` bits from `num_base` + `num_shift` on are xored to those from
    `num_base` on.

    Raises LayoutError for numbers that are no such bits.
    """

    num_bits: int
    num_base: int
    num_shift: int

    def __post_init__(self) -> None:
        bits, base, shift = self.num_bits, self.num_base, self.num_shift
        ints = all(isinstance(n, int) and not isinstance(n, bool) for n in (bits, base, shift))
        if not ints or bits < 0 or base < 0 or abs(shift) < bits:
            refuse(
                "make_swizzle",
                f"S<{bits},{base},{shift}>",
                "give ints: bits and base from 0 on, and a shift of at least as many bits",
            )

    @property
    def source(self) -> int:
        """The mask of the bits that are read."""
        return ((1 << self.num_bits) - 1) << (self.num_base + max(self.num_shift, 0))

    @property
    def span(self) -> int:
        """The number of indices after which it repeats: a power of two."""
        return 1 << (self.num_base + self.num_bits + abs(self.num_shift))

    def shifted(self, bits: int) -> int:
        """Bits at the places that are read, at the places that are changed."""
        return bits >> self.num_shift if self.num_shift >= 0 else bits << -self.num_shift

    def __call__(self, index: Any) -> Any:
        """The index that this one becomes.  Raises LayoutError unless it is an int from 0 on."""
        if not isinstance(index, int) or isinstance(index, bool) or index < 0:
            refuse(f"{self}", f"the index {index!r}", "give an int from 0 on")
        return index ^ self.shifted(index & self.source)

    def __repr__(self) -> str:
        return f"S<{self.num_bits},{self.num_base},{self.num_shift}>"

    def __str__(self) -> str:
        return repr(self)


@dataclass(frozen=True, slots=True, repr=False)
class ComposedLayout:
    """c -> inner(offset + outer(c)); `make_composed_layout` makes one."""

    inner: Any
    offset: Any
    outer: Layout

    def __post_init__(self) -> None:
        require_layout(self.outer)
        if self.has_function:
            return
        if not isinstance(self.inner, (Swizzle, Layout)):
            refuse(
                "make_composed_layout",
                f"the inner layout is {self.inner!r}",
                "give a swizzle, make_swizzle(b, m, s), a layout or a function",
            )
        if not is_dim(self.offset):
            refuse(
                "make_composed_layout", f"the offset is {self.offset!r}", "give a size, such as 0"
            )
        if any(bases_of(self.outer.stride)):
            refuse("make_composed_layout", f"the outer layout {self.outer} gives coordinates")

    @property
    def has_function(self) -> bool:
        """Whether the inner layout is a function of what the outer one gives, of the program or of
        a compiled function."""
        own = isinstance(self.inner, (Swizzle, Layout, ComposedLayout, type))
        return not own and (callable(self.inner) or hasattr(self.inner, "source"))

    @property
    def shape(self) -> IntTuple:
        """The shape of the outer layout."""
        return self.outer.shape

    def __call__(self, *coordinate: Any) -> Any:
        """The index of a coordinate; the composed layout of the kept modes if it has a None."""
        from ferrule.language.layouts.coordinates import crd2idx, has_free, slice_

        single = coordinate[0] if len(coordinate) == 1 else coordinate
        if self.has_function:
            return self.inner(moved(crd2idx(single, self.outer), self.offset))
        if not has_free(single):
            return self.index(crd2idx(single, self.outer))
        begin = make("add", self.offset, crd2idx(single, self.outer))
        return ComposedLayout(self.inner, begin, slice_(self.outer, single))

    def index(self, number: Any) -> Any:
        """The index for a number that the outer layout gives."""
        return self.inner(make("add", self.offset, number))

    def __getitem__(self, mode: int) -> ComposedLayout:
        return replace(self, outer=self.outer[mode])

    def __len__(self) -> int:
        return len(self.outer)

    def __repr__(self) -> str:
        inner = self.inner
        if self.has_function:
            inner = getattr(inner, "__name__", None) or getattr(inner, "source", inner).name
        return f"{inner} o {self.offset} o {self.outer}"

    def __str__(self) -> str:
        return repr(self)

    def _repr_html_(self) -> str:
        """As notebooks show it: its text, and its picture if it is small."""
        from ferrule.language.layouts.pictures import layout_html

        return layout_html(self)


def moved(place: Any, offset: Any, add: Callable[[Any, Any], Any] = operator.add) -> Any:
    """An index or a coordinate, moved by an offset like it; 0 moves nothing."""
    if isinstance(place, tuple):
        steps = offset if isinstance(offset, tuple) else (offset,) * len(place)
        if len(steps) != len(place):
            refuse("make_composed_layout", f"the offset {offset} is not like {place}")
        return tuple(moved(p, s, add) for p, s in zip(place, steps, strict=True))
    if isinstance(offset, tuple):
        refuse("make_composed_layout", f"the offset {offset} is not like {place}")
    return place if isinstance(offset, int) and offset == 0 else add(place, offset)


def make_swizzle(b: int, m: int, s: int) -> Swizzle:
    """The swizzle S<b,m,s>: b bits from bit m + s on, xored to those from bit m on."""
    return Swizzle(b, m, s)


def make_composed_layout(inner: Any, offset: Any, outer: Layout) -> ComposedLayout:
    """The layout c -> inner(offset + outer(c)), of a swizzle or layout and a layout."""
    return ComposedLayout(inner, offset, outer)


def make_identity_layout(shape: Any) -> Layout:
    """The layout that gives each coordinate of a shape itself: strides are units of its modes."""
    sizes = as_int_tuple(shape, "make_identity_layout: the shape")
    return Layout(sizes, unit_strides(sizes) if isinstance(sizes, tuple) else ScaledBasis(1, 0))


def recast_swizzle(swizzle: Swizzle, new_bits: int, old_bits: int) -> Swizzle:
    """The swizzle of elements of `new_bits` in place of `old_bits`: the same bytes move.

    Raises LayoutError if it moves parts of elements.
    """
    base = swizzle.num_base + _log2(old_bits) - _log2(new_bits)
    if base < 0:
        refuse(
            f"{swizzle}",
            f"it moves runs of {old_bits << swizzle.num_base} bits, which are parts of elements of "
            f"{new_bits} bits",
        )
    return Swizzle(swizzle.num_bits, base, swizzle.num_shift)


def _log2(bits: int) -> int:
    if bits < 1 or bits & (bits - 1):
        refuse("a swizzle", f"elements of {bits} bits", "take elements of 1, 2, 4, ... bits")
    return bits.bit_length() - 1


def recast_composed(new_bits: int, old_bits: int, layout: ComposedLayout) -> ComposedLayout:
    """The composed layout of elements of another size, whose offset must be whole elements."""
    from ferrule.language.layouts.dims import quotient, times
    from ferrule.language.layouts.recast import recast_layout

    if not isinstance(layout.inner, Swizzle):
        refuse("recast_layout", f"{layout.inner} is no swizzle")
    offset = quotient(times(layout.offset, old_bits), new_bits)
    if offset is None:
        refuse("recast_layout", f"the offset {layout.offset} is no whole number of elements")
    inner = recast_swizzle(layout.inner, new_bits, old_bits)
    return ComposedLayout(inner, offset, recast_layout(new_bits, old_bits, layout.outer))


def on_outer(function: _Function) -> _Function:
    """A function of a layout, which of a composed one changes the outer layout."""

    @wraps(function)
    def applied(value: Any, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(value, ComposedLayout):
            return function(value, *args, **kwargs)
        return replace(value, outer=function(value.outer, *args, **kwargs))

    return applied  # type: ignore[return-value]
