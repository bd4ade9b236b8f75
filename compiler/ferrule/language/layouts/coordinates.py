"""From coordinates to indices and back, and slices: parts of a layout at fixed coordinates.

A coordinate may have compile-time numbers, and any other numbers for which an `Arithmetic` is
passed: the language passes one that emits code.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple, Protocol

from ferrule.language.layouts.dims import ScaledBasis, bases_of
from ferrule.language.layouts.errors import refuse
from ferrule.language.layouts.layout import (
    Layout,
    is_composed,
    join,
    modes_of,
    require_layout,
)
from ferrule.language.layouts.tuples import (
    as_int_tuple,
    as_tuple,
    format_tuple,
    leaves,
    map_leaves,
    product,
)
from ferrule.specs.expr import make


class Arithmetic(Protocol):
    """Integer arithmetic on coordinates; the right operand of all but `add` is a size."""

    def add(self, lhs: Any, rhs: Any) -> Any:
        """`lhs + rhs`."""

    def mul(self, lhs: Any, rhs: Any) -> Any:
        """`lhs * rhs`."""

    def floordiv(self, lhs: Any, rhs: Any) -> Any:
        """`lhs // rhs`."""

    def mod(self, lhs: Any, rhs: Any) -> Any:
        """`lhs % rhs`."""


class SizeArithmetic:
    """The arithmetic of ints and symbolic sizes."""

    def add(self, lhs: Any, rhs: Any) -> Any:
        """`lhs + rhs`."""
        return make("add", lhs, rhs)

    def mul(self, lhs: Any, rhs: Any) -> Any:
        """`lhs * rhs`."""
        return make("mul", lhs, rhs)

    def floordiv(self, lhs: Any, rhs: Any) -> Any:
        """`lhs // rhs`."""
        return make("floordiv", lhs, rhs)

    def mod(self, lhs: Any, rhs: Any) -> Any:
        """`lhs % rhs`."""
        return make("mod", lhs, rhs)


SIZES: Final[Arithmetic] = SizeArithmetic()


class Part(NamedTuple):
    """The rest of a layout at fixed coordinates, and the index at which it begins.

    The rest of a composed layout is one, which has its beginning in itself.
    """

    layout: Any
    offset: Any


def is_free(leaf: Any) -> bool:
    """Whether this leaf of a coordinate keeps its mode: None, or `:` of a subscript."""
    return leaf is None or (isinstance(leaf, slice) and leaf == slice(None))


def has_free(coordinate: Any) -> bool:
    """Whether a coordinate keeps a mode, so that it selects a slice instead of an index."""
    return any(map(is_free, leaves(coordinate)))


def natural(coordinate: Any, shape: Any, arithmetic: Arithmetic = SIZES) -> Any:
    """The coordinate with a number for each leaf of the shape; 0 for a kept mode.

    A number for a whole mode counts its leaves from the left; an excess over the size goes to the
    last one.  Raises LayoutError for a coordinate that does not fit the shape.
    """
    if is_free(coordinate):
        return map_leaves(lambda _: 0, shape)
    if isinstance(coordinate, tuple):
        if not isinstance(shape, tuple) or len(coordinate) != len(shape):
            refuse(
                "coordinate",
                f"{_text(coordinate)} does not fit the shape {format_tuple(shape)}",
                f"give {len(as_tuple(shape))} numbers, or one for the whole",
            )
        return tuple(natural(c, s, arithmetic) for c, s in zip(coordinate, shape, strict=True))
    if not isinstance(shape, tuple):
        return coordinate
    return tuple(_unravelled(coordinate, shape, arithmetic))


def _unravelled(number: Any, shape: tuple[Any, ...], arithmetic: Arithmetic) -> Iterator[Any]:
    """The coordinate of each mode, from the number of an element."""
    sizes = [product(mode) for mode in shape]
    last = max((i for i, size in enumerate(sizes) if size != 1), default=len(sizes) - 1)
    for position, (mode, size) in enumerate(zip(shape, sizes, strict=True)):
        if position == last:
            yield natural(number, mode, arithmetic)
        elif position > last or size == 1:
            yield natural(0, mode, arithmetic)
        else:
            yield natural(arithmetic.mod(number, size), mode, arithmetic)
            number = arithmetic.floordiv(number, size)


def _text(coordinate: Any) -> str:
    def one(leaf: Any) -> str:
        known = is_free(leaf) or isinstance(leaf, int)
        return format_tuple(leaf) if known else "?"

    return format_tuple(map_leaves(one, coordinate))


def crd2idx(coord: Any, layout: Any, *, arithmetic: Arithmetic = SIZES) -> Any:
    """The index of a coordinate: the sum of coordinate times stride over the leaves.

    A None in the coordinate counts as 0.  It is a coordinate if strides are.  Raises LayoutError
    for one that does not fit.
    """
    if is_composed(layout):
        return layout.index(crd2idx(coord, layout.outer, arithmetic=arithmetic))
    require_layout(layout)
    origin = origin_of(layout.stride)
    if origin != 0:
        at = natural(coord, layout.shape, arithmetic)
        return coordinate_at(origin, layout, at, arithmetic)
    at = natural(coord, layout.shape, arithmetic)
    index: Any = 0
    for number, stride in zip(leaves(at), leaves(layout.stride), strict=True):
        if stride == 0 or (isinstance(number, int) and number == 0):
            continue
        term = number if stride == 1 else arithmetic.mul(number, stride)
        index = term if isinstance(index, int) and index == 0 else arithmetic.add(index, term)
    return index


def origin_of(strides: Any) -> Any:
    """The coordinate 0 of the least profile that has all bases of these strides."""
    paths = [basis.mode for basis in bases_of(strides)]
    return _nested(paths) if paths else 0


def _nested(paths: list[tuple[int, ...]]) -> Any:
    deeper = [path for path in paths if path]
    if not deeper:
        return 0
    count = 1 + max(path[0] for path in deeper)
    return tuple(_nested([path[1:] for path in deeper if path[0] == i]) for i in range(count))


def moved(origin: Any, stride: ScaledBasis, number: Any, arithmetic: Arithmetic) -> Any:
    """A coordinate moved by so many strides.  Raises LayoutError if it has no such mode."""
    return _added(origin, stride.mode, number, stride, arithmetic)


def _added(
    origin: Any, path: tuple[int, ...], number: Any, stride: ScaledBasis, arithmetic: Arithmetic
) -> Any:
    if not path and not isinstance(origin, tuple):
        step = number if stride.value == 1 else arithmetic.mul(number, stride.value)
        zero = isinstance(origin, int) and origin == 0
        return step if zero else arithmetic.add(origin, step)
    if not path or not isinstance(origin, tuple) or path[0] >= len(origin):
        refuse("a coordinate", f"the stride {stride} has no place in the coordinate {origin}")
    items = list(origin)
    items[path[0]] = _added(origin[path[0]], path[1:], number, stride, arithmetic)
    return tuple(items)


def coordinate_at(origin: Any, layout: Layout, at: Any, arithmetic: Arithmetic) -> Any:
    """The coordinate that a layout gives at a coordinate of its own, from an origin on.

    `at` has a number for each leaf of the shape.  Raises LayoutError if a stride is an index.
    """
    result = origin
    for number, stride in zip(leaves(at), leaves(layout.stride), strict=True):
        is_zero = isinstance(number, int) and number == 0
        if is_zero or (isinstance(stride, int) and stride == 0):
            continue
        if not isinstance(stride, ScaledBasis):
            refuse("a coordinate", f"{layout} has the stride {stride}, which is no coordinate")
        result = moved(result, stride, number, arithmetic)
    return result


def idx2crd(idx: Any, shape: Any, *, arithmetic: Arithmetic = SIZES) -> Any:
    """The coordinate in a shape, or the shape of a layout, of a number or coarser coordinate.

    The number counts elements in colexicographic order; it is not an index into memory.
    """
    has_shape = isinstance(shape, Layout) or is_composed(shape)
    wanted = shape.shape if has_shape else as_int_tuple(shape, "idx2crd: the shape")
    return natural(idx, wanted, arithmetic)


def coordinate_of_index(
    index: Any, layout: Layout, *, flat: bool = False, arithmetic: Arithmetic = SIZES
) -> Any:
    """The coordinate at which a layout gives an index: for each leaf, how often its stride fits,
    by its size; 0 where the size is 1, or the stride 0.  It has one number per mode if flat.

    It is the inverse of a layout of which the strides divide each other, which none checks.
    """
    known = _by_stride(index, layout.shape, layout.stride, arithmetic)
    if not flat:
        return known
    if not isinstance(known, tuple):
        return known
    pairs = zip(known, as_tuple(layout.shape), strict=True)
    return tuple(_number(mode, shape, arithmetic) for mode, shape in pairs)


def _by_stride(index: Any, shape: Any, stride: Any, arithmetic: Arithmetic) -> Any:
    if isinstance(shape, tuple):
        pairs = zip(shape, stride, strict=True)
        return tuple(_by_stride(index, size, step, arithmetic) for size, step in pairs)
    if isinstance(stride, ScaledBasis):
        refuse("coordinate", f"the stride {stride!r} is not a number", "give a layout of numbers")
    if shape == 1 or stride == 0:
        return 0
    return arithmetic.mod(arithmetic.floordiv(index, stride), shape)


def _number(coordinate: Any, shape: Any, arithmetic: Arithmetic) -> Any:
    """The number of a coordinate among those of a shape, in colexicographic order."""
    if not isinstance(coordinate, tuple):
        return coordinate
    total, before = 0, 1
    for part, mode in zip(coordinate, shape, strict=True):
        number = _number(part, mode, arithmetic)
        total = arithmetic.add(total, arithmetic.mul(number, before))
        before = SIZES.mul(before, product(mode))
    return total


def slice_(layout: Any, coord: Any) -> Any:
    """The modes of a layout, or the entries of a tuple, that a coordinate keeps with None, side by
    side; see `slice_and_offset`."""
    if is_composed(layout):
        return layout if is_free(coord) else layout(coord)
    if isinstance(layout, tuple):
        return layout if is_free(coord) else tuple(_entries(layout, coord))
    require_layout(layout)
    if is_free(coord):
        return layout
    natural(map_leaves(lambda leaf: leaf if is_free(leaf) else 0, coord), layout.shape)
    return join(list(_kept(coord, layout)))


def slice_and_offset(layout: Layout, coord: Any, *, arithmetic: Arithmetic = SIZES) -> Part:
    """The modes that a coordinate keeps, side by side, and the index of the coordinate.

    A None keeps the mode at its place as one mode; `None` alone keeps the whole layout.
    """
    return Part(slice_(layout, coord), crd2idx(coord, layout, arithmetic=arithmetic))


def _entries(value: tuple[Any, ...], coordinate: Any) -> Iterator[Any]:
    """The entries of a tuple that a coordinate keeps."""
    if not isinstance(coordinate, tuple) or len(coordinate) != len(value):
        refuse("slice_", f"{_text(coordinate)} does not fit {_text(value)}", "give as many entries")
    for entry, part in zip(value, coordinate, strict=True):
        if is_free(part):
            yield entry
        elif isinstance(part, tuple) and isinstance(entry, tuple):
            yield from _entries(entry, part)


def _kept(coordinate: Any, layout: Layout) -> Iterator[Layout]:
    if is_free(coordinate):
        yield layout
    elif isinstance(coordinate, tuple):
        for part, mode in zip(coordinate, modes_of(layout), strict=True):
            yield from _kept(part, mode)


def dice(value: Any, dicer: Any) -> Any:
    """The modes of a layout, tuple or tiler at which the dicer has no None, side by side.

    Raises LayoutError for a dicer that does not fit.
    """
    if not isinstance(dicer, tuple):
        return value if dicer is not None else ()
    modes = modes_of(value) if isinstance(value, Layout) else as_tuple(value)
    if len(modes) != len(dicer):
        refuse("dice", f"{_text(dicer)} does not fit {value}", f"give {len(modes)} entries")
    kept: list[Any] = []
    for mode, each in zip(modes, dicer, strict=True):
        if isinstance(each, tuple):
            part = dice(mode, each)
            kept += modes_of(part) if isinstance(part, Layout) else part
        elif each is not None:
            kept.append(mode)
    return join(kept) if isinstance(value, Layout) else tuple(kept)
