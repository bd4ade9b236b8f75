"""A layout: a shape and strides of one profile, as a function from coordinates to indices.

A coordinate is a number for each leaf of the shape; its index is the sum of coordinate times
stride.  A number also stands for the coordinate of a whole mode: leaves count up from the left,
the first fastest (colexicographic order).  The numbers from 0 to size - 1 are the *domain*.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ferrule.language.layouts.dims import ScaledBasis, same, times
from ferrule.language.layouts.errors import refuse
from ferrule.language.layouts.tuples import (
    IntTuple,
    Mode,
    as_int_tuple,
    as_strides,
    as_tuple,
    at_mode,
    depth_of,
    format_tuple,
    is_congruent,
    is_static_tuple,
    leaves,
    map_leaves,
    product,
)
from ferrule.specs import Dim, divisibility_of
from ferrule.specs.deferred import dataclass


@dataclass(frozen=True, slots=True, repr=False)
class Layout:
    """`shape:stride`, two int tuples of one profile.  `make_layout` makes one.

    Strides may be coordinates, `ScaledBasis`: then the layout gives coordinates.
    `layout(coordinate)` is the index of a coordinate, `layout[i]` its mode i, a layout.  Raises
    LayoutError for profiles that differ, a leaf that is not a size, or a negative size.
    """

    shape: IntTuple
    stride: Any

    def __post_init__(self) -> None:
        shape = as_int_tuple(self.shape, "the shape of a layout")
        stride = as_strides(self.stride, "the stride of a layout")
        if not is_congruent(shape, stride):
            refuse(
                "a layout",
                f"the shape {format_tuple(shape)} and the stride {format_tuple(stride)} have "
                f"different profiles",
                "give one stride for each size",
            )
        for leaf in leaves(shape):
            if isinstance(leaf, int) and leaf < 0:
                refuse("a layout", f"the shape {format_tuple(shape)} has the negative size {leaf}")
        object.__setattr__(self, "shape", shape)
        object.__setattr__(self, "stride", stride)

    @property
    def max_alignment(self) -> int:
        """A number that divides the elements that lie side by side: so many may be one access."""
        from ferrule.language.layouts.inverse import right_inverse

        return divisibility_of(size(right_inverse(self)))

    def __repr__(self) -> str:
        return f"{format_tuple(self.shape)}:{format_tuple(self.stride)}"

    def __str__(self) -> str:
        return repr(self)

    def _repr_html_(self) -> str:
        """As notebooks show it: its text, and its picture if it is small."""
        from ferrule.language.layouts.pictures import layout_html

        return layout_html(self)

    def get_hier_coord(self, idx: Any) -> Any:
        """The nested coordinate at which the layout gives an index; see `coordinate_of_index`."""
        from ferrule.language.layouts.coordinates import coordinate_of_index

        return coordinate_of_index(idx, self)

    def get_flat_coord(self, idx: Any) -> Any:
        """The coordinate at which the layout gives an index, with one number for each mode."""
        from ferrule.language.layouts.coordinates import coordinate_of_index

        return coordinate_of_index(idx, self, flat=True)

    def __call__(self, *coordinate: Any) -> Any:
        """The index of a coordinate; the layout of the kept modes if it has a None."""
        from ferrule.language.layouts.coordinates import crd2idx, has_free, slice_

        single = coordinate[0] if len(coordinate) == 1 else coordinate
        return slice_(self, single) if has_free(single) else crd2idx(single, self)

    def __getitem__(self, mode: int) -> Layout:
        modes = modes_of(self)
        if isinstance(mode, bool) or not isinstance(mode, int):
            raise TypeError(f"a mode of {self} is given by its position, an int, not by {mode!r}")
        if not -len(modes) <= mode < len(modes):
            raise IndexError(f"{self} has {len(modes)} modes, and no mode {mode}")
        return modes[mode]

    def __len__(self) -> int:
        return len(as_tuple(self.shape))


def is_composed(value: object) -> bool:
    """Whether this is a `ComposedLayout`, whose module is above this one."""
    return isinstance(getattr(value, "outer", None), Layout)


def require_layout(value: object) -> None:
    """Raises LayoutError unless it is a layout."""
    if not isinstance(value, Layout):
        shown = format_tuple(value) if isinstance(value, tuple) else repr(value)
        refuse("a layout", f"expected one, but got {shown}", f"write make_layout({shown})")


def modes_of(layout: Layout) -> tuple[Layout, ...]:
    """The modes of a layout, each a layout; a layout of one leaf has itself.

    Raises LayoutError unless it is a layout.
    """
    require_layout(layout)
    if not isinstance(layout.shape, tuple) or not isinstance(layout.stride, tuple):
        return (layout,)
    return tuple(map(Layout, layout.shape, layout.stride))


def part_at(layout: Layout, mode: Mode) -> Layout:
    """The part of a layout at a path.  Raises LayoutError for an invalid path."""
    return Layout(at_mode(layout.shape, mode), at_mode(layout.stride, mode))


def join(modes: Sequence[Layout]) -> Layout:
    """The layout with these modes."""
    return Layout(tuple(mode.shape for mode in modes), tuple(mode.stride for mode in modes))


def flat_modes(layout: Layout) -> list[tuple[Dim, Dim]]:
    """The leaves of a layout: size and stride of each, from left to right.

    Raises LayoutError unless it is a layout.
    """
    require_layout(layout)
    return list(zip(leaves(layout.shape), leaves(layout.stride), strict=True))


def from_flat(modes: Sequence[tuple[Dim, Dim]]) -> Layout:
    """A layout of flat modes; a leaf for a single mode, `1:0` for none."""
    if len(modes) == 1:
        return Layout(*modes[0])
    if not modes:
        return Layout(1, 0)
    return Layout(tuple(size for size, _ in modes), tuple(stride for _, stride in modes))


def make_layout(*shape: Any, stride: Any = None) -> Layout:
    """The layout of a shape; without a stride it is compact and column-major.

    For several layouts: the layout that has them as its modes.  A size of 1 gets the stride 0.
    """
    if shape and all(isinstance(each, Layout) for each in shape) and stride is None:
        return join(shape)
    if len(shape) != 1:
        refuse("make_layout", f"expected one shape, or layouts, but got {len(shape)} arguments")
    sizes = as_int_tuple(shape[0], "make_layout: the shape")
    return Layout(sizes, compact_strides(sizes) if stride is None else stride)


def compact_strides(shape: IntTuple) -> IntTuple:
    """The strides of a compact layout whose first leaf moves fastest."""
    current: Dim = 1

    def next_stride(size: Dim) -> Dim:
        nonlocal current
        if size == 1:
            return 0
        stride, current = current, times(current, size)
        return stride

    strides: IntTuple = map_leaves(next_stride, shape)
    return strides


def make_ordered_layout(shape: Any, order: Any) -> Layout:
    """A compact layout: the mode with the smallest order moves fastest.

    `order` has a number for each mode of the shape, or a tuple for the modes inside it; where it
    has no nested order, the leaves below count up from the left.  Raises LayoutError for another
    profile.
    """
    sizes = as_int_tuple(shape, "make_ordered_layout: the shape")
    ranks = as_int_tuple(order, "make_ordered_layout: the order")
    if not is_static_tuple(ranks):
        refuse("make_ordered_layout", f"the order {format_tuple(ranks)} must be ints")
    keys = _keys(sizes, ranks)
    flat = list(leaves(sizes))
    strides: list[Dim] = [0] * len(flat)
    current: Dim = 1
    for position in sorted(range(len(flat)), key=lambda i: keys[i]):
        if flat[position] != 1:
            strides[position], current = current, times(current, flat[position])
    remaining = iter(strides)
    return Layout(sizes, map_leaves(lambda _: next(remaining), sizes))


def make_layout_like(layout: Layout) -> Layout:
    """A compact layout of the same shape, with its modes in the same order of strides.

    The stride 0 is kept.  Raises LayoutError if symbolic strides have no known order.
    """
    flat = flat_modes(layout)
    moving = [i for i, (extent, stride) in enumerate(flat) if extent != 1 and stride != 0]
    if not all(isinstance(flat[i][1], int) for i in moving):
        refuse("make_layout_like", f"the strides of {layout} are not known", "give numbers")
    strides: list[Dim] = [0] * len(flat)
    current: Dim = 1
    for position in sorted(moving, key=lambda i: abs(flat[i][1])):  # type: ignore[arg-type]
        strides[position], current = current, times(current, flat[position][0])
    remaining = iter(strides)
    return Layout(layout.shape, map_leaves(lambda _: next(remaining), layout.shape))


def _keys(shape: Any, order: Any) -> list[Any]:
    """The number of each leaf in the order."""
    if isinstance(order, tuple):
        if not isinstance(shape, tuple) or len(shape) != len(order):
            refuse(
                "make_ordered_layout",
                f"the order {format_tuple(order)} does not fit the shape {format_tuple(shape)}",
                "give one number for each mode",
            )
        return [key for pair in zip(shape, order, strict=True) for key in _keys(*pair)]
    return [order for _ in leaves(shape)]


# ---- properties of a layout, or an int tuple ----


def shape_of(value: Any, mode: Mode = None) -> IntTuple:
    """The shape of a layout, or an int tuple itself; `mode`: of this mode."""
    has_shape = isinstance(value, Layout) or is_composed(value)
    shape = value.shape if has_shape else as_int_tuple(value, "the shape")
    result: IntTuple = at_mode(shape, mode)
    return result


def size(value: Any, mode: Mode = None) -> Dim:
    """The number of coordinates: the product of the sizes.  `size(layout, mode=[0])`."""
    return product(shape_of(value, mode))


def cosize(layout: Layout, mode: Mode = None) -> Dim:
    """One more than the largest index, if no stride is negative.

    With negative strides: the number of indices from the smallest to the largest.  Raises
    LayoutError unless it is a layout.
    """
    if is_composed(layout):
        return cosize(layout.outer, mode)  # type: ignore[attr-defined]
    if not isinstance(layout, Layout):
        refuse("cosize", f"expected a layout, but got {layout!r}")
    modes = flat_modes(part_at(layout, mode))
    if any(isinstance(stride, ScaledBasis) for _, stride in modes):
        refuse("cosize", f"{layout} gives coordinates, which are no indices")
    if any(extent == 0 for extent, _ in modes):
        return 0
    total: Dim = 1
    while modes:
        next_one = next((m for m in modes if same(m[1], total)), modes[0])
        modes.remove(next_one)
        extent, stride = next_one
        if same(stride, total):
            total = times(extent, total)
        else:
            reach = abs(stride) if isinstance(stride, int) else stride
            total = times(extent - 1, reach) + total
    return total


def rank(value: Any, mode: Mode = None) -> int:
    """The number of modes; 1 for a leaf."""
    return len(as_tuple(shape_of(value, mode)))


def depth(value: Any, mode: Mode = None) -> int:
    """The nesting depth of the modes: 0 for a leaf, 1 for a flat tuple."""
    return depth_of(shape_of(value, mode))


def is_static(value: Any) -> bool:
    """Whether all numbers of a layout or int tuple are compile-time constants."""
    if is_composed(value):
        value = value.outer
    if isinstance(value, Layout):
        return is_static_tuple(value.shape) and is_static_tuple(value.stride)
    return is_static_tuple(value)
