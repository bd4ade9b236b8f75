"""Dividing a layout into tiles, and repeating a block to a larger layout.

A tiler is a layout or size that divides the domain, or a tuple that divides mode by mode; a None in
it leaves a mode undivided, and so do missing modes.  If a tile does not divide a size evenly, the
last tile reaches beyond the end: the caller must guard against it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ferrule.language.layouts.compose import as_layout, coalesce, composition
from ferrule.language.layouts.composed import ComposedLayout, on_outer
from ferrule.language.layouts.coordinates import (
    SIZES,
    Arithmetic,
    Part,
    crd2idx,
    dice,
    slice_and_offset,
)
from ferrule.language.layouts.dims import times
from ferrule.language.layouts.errors import refuse
from ferrule.language.layouts.inverse import complement, exact_complement, right_inverse
from ferrule.language.layouts.layout import (
    Layout,
    cosize,
    flat_modes,
    join,
    make_layout,
    make_ordered_layout,
    modes_of,
    rank,
    size,
)
from ferrule.language.layouts.modes import append
from ferrule.language.layouts.tuples import (
    IntTuple,
    as_tuple,
    ceil_div,
    format_tuple,
    product_each,
)

_Leaf = Callable[[Layout, Layout], Layout]


def _by_mode(layout: Layout, tiler: tuple[Any, ...], name: str) -> list[tuple[Layout, Any]]:
    """The modes of a layout with their tilers; None for those beyond."""
    modes = modes_of(layout)
    if len(tiler) > len(modes):
        refuse(
            name,
            f"the tiler has {len(tiler)} modes, but {layout} has {len(modes)}",
            "give at most one tile for each mode",
        )
    return list(zip(modes, (*tiler, *(None,) * (len(modes) - len(tiler))), strict=True))


def _logical(layout: Layout, tiler: Any, name: str, leaf: _Leaf) -> Layout:
    if tiler is None:
        return layout
    if isinstance(tiler, tuple):
        return join([_logical(m, t, name, leaf) for m, t in _by_mode(layout, tiler, name)])
    return leaf(layout, as_layout(tiler, name))


def _unzipped(layout: Layout, tiler: Any, name: str, leaf: _Leaf) -> tuple[Layout, Layout]:
    """The tile part of each mode, and the rest."""
    if tiler is None:
        return layout, Layout(1, 0)
    if isinstance(tiler, tuple):
        pairs = _by_mode(layout, tiler, name)
        done = [_unzipped(mode, each, name, leaf) for mode, each in pairs[: len(tiler)]]
        rest = [mode for mode, _ in pairs[len(tiler) :]]
        return join([first for first, _ in done]), join([*(second for _, second in done), *rest])
    first, second = modes_of(leaf(layout, as_layout(tiler, name)))
    return first, second


# ---- division ----


def _divide(name: str) -> _Leaf:
    def leaf(layout: Layout, tiler: Layout) -> Layout:
        rest = exact_complement(tiler, size(layout), operation=name)
        divided: Layout = composition(layout, join([tiler, rest]), operation=name)
        return divided

    return leaf


@on_outer
def logical_divide(target: Layout, tiler: Any) -> Layout:
    """`(tile, rest)`: the coordinate in a tile, and that of the tile; by mode, `((t0, r0), (t1,
    r1), …)`."""
    name = "logical_divide"
    return _logical(target, tiler, name, _divide(name))


@on_outer
def zipped_divide(target: Layout, tiler: Any) -> Layout:
    """`((t0, t1, …), (r0, r1, …))`: coordinates in a tile, and those of the tile."""
    name = "zipped_divide"
    return join(_unzipped(target, tiler, name, _divide(name)))


@on_outer
def tiled_divide(target: Layout, tiler: Any) -> Layout:
    """`((t0, t1, …), r0, r1, …)`."""
    tile, rest = _unzipped(target, tiler, "tiled_divide", _divide("tiled_divide"))
    return join([tile, *modes_of(rest)])


@on_outer
def flat_divide(target: Layout, tiler: Any) -> Layout:
    """`(t0, t1, …, r0, r1, …)`."""
    tile, rest = _unzipped(target, tiler, "flat_divide", _divide("flat_divide"))
    return join([*modes_of(tile), *modes_of(rest)])


# ---- products ----


def _multiply(name: str) -> _Leaf:
    def leaf(block: Layout, tiler: Layout) -> Layout:
        room = complement(block, times(size(block), cosize(tiler)), operation=name)
        return join([block, composition(room, tiler, operation=name)])

    return leaf


def logical_product(block: Layout, tiler: Any) -> Layout:
    """`(block, repeats)`: the block, and the arrangement of its repetitions by the tiler."""
    name = "logical_product"
    return _logical(block, tiler, name, _multiply(name))


def zipped_product(block: Layout, tiler: Any) -> Layout:
    """`((b0, b1, …), (r0, r1, …))`: block and repetitions of each mode."""
    name = "zipped_product"
    return join(_unzipped(block, tiler, name, _multiply(name)))


def tiled_product(block: Layout, tiler: Any) -> Layout:
    """`((b0, b1, …), r0, r1, …)`."""
    first, second = _unzipped(block, tiler, "tiled_product", _multiply("tiled_product"))
    return join([first, *modes_of(second)])


def flat_product(block: Layout, tiler: Any) -> Layout:
    """`(b0, b1, …, r0, r1, …)`."""
    first, second = _unzipped(block, tiler, "flat_product", _multiply("flat_product"))
    return join([*modes_of(first), *modes_of(second)])


def blocked_product(block: Layout, tiler: Layout) -> Layout:
    """`((b0, r0), (b1, r1), …)`: a grid of blocks, each block a contiguous part of each mode."""
    pairs = _mode_pairs(block, tiler, "blocked_product")
    return join([join([inner, outer]) for inner, outer in pairs])


def raked_product(block: Layout, tiler: Layout) -> Layout:
    """`((r0, b0), (r1, b1), …)`: the elements of a block are interleaved with those of the others.

    Each mode is coalesced: `(2,5):(5,1)` by `6:1` is `((6,2),5):((10,5),1)`.
    """
    pairs = _mode_pairs(block, tiler, "raked_product")
    return join([coalesce(join([outer, inner])) for inner, outer in pairs])


@on_outer
def tile_to_shape(block: Layout, shape: Any, order: Any) -> Layout:
    """`((b0, r0), (b1, r1), …)`: the block, repeated until it covers at least the shape.

    `order` has a number for each mode: the blocks of the mode with the smallest come first.  Raises
    LayoutError for a shape with fewer modes than the block.
    """
    sizes = product_each(shape)
    if len(sizes) < rank(block):
        refuse("tile_to_shape", f"{format_tuple(shape)} has fewer modes than {block}")
    padded = append(block, Layout(1, 0), len(sizes))
    counts = ceil_div(sizes, product_each(padded.shape))
    return blocked_product(padded, make_ordered_layout(counts, order))


def _mode_pairs(block: Layout, tiler: Any, name: str) -> list[tuple[Layout, Layout]]:
    """Block and repetitions of each mode; the one of lower rank gets modes of size 1."""
    checked = as_layout(tiler, name)
    modes = max(rank(block), rank(checked))
    one = Layout(1, 0)
    padded = [append(each, one, modes) for each in (block, checked)]
    first, second = modes_of(_multiply(name)(padded[0], padded[1]))
    return list(zip(modes_of(first), modes_of(second), strict=True))


def make_layout_tv(thr_layout: Layout, val_layout: Layout) -> tuple[IntTuple, Layout]:
    """`(tiler, layout)`: the shape that threads with their values cover, and the layout from
    (thread, value) to the elements of this shape.

    Both layouts give the numbers of threads and values at a place.  Raises LayoutError if not all
    numbers occur.
    """
    covered = raked_product(thr_layout, val_layout)
    counts = make_layout((size(thr_layout), size(val_layout)))
    found = composition(right_inverse(covered), counts, operation="make_layout_tv")
    if size(right_inverse(covered)) != size(counts):
        refuse(
            "make_layout_tv",
            f"{thr_layout} and {val_layout} leave numbers out",
            "take compact layouts of the threads and of the values",
        )
    return product_each(covered.shape), found


# ---- one tile, one thread's part ----


def tile_at(target: Layout, tiler: Any, coord: Any, proj: Any = None) -> tuple[Layout, Any]:
    """The tiled layout, and in it the coordinate of the result of `local_tile`."""
    if proj is not None:
        tiler, coord = dice(tiler, proj), _projected(coord, proj)
    tile, rest = _unzipped(target, tiler, "local_tile", _divide("local_tile"))
    if isinstance(coord, tuple):
        if len(coord) > rank(rest):
            refuse("local_tile", f"{len(coord)} coordinates are given for the tiles {rest.shape}")
        coord = (*coord, *(None,) * (rank(rest) - len(coord)))
        coord = coord if isinstance(rest.shape, tuple) else coord[0]
    return join([tile, rest]), (_all(tile), coord)


def _projected(coord: Any, proj: Any) -> Any:
    """The coordinates that belong to a layout; those behind the projection are of its other
    modes."""
    if not isinstance(proj, tuple) or not isinstance(coord, tuple) or len(coord) <= len(proj):
        return dice(coord, proj)
    return (*dice(coord[: len(proj)], proj), *coord[len(proj) :])


def local_tile(
    target: Any, tiler: Any, coord: Any, proj: Any = None, *, arithmetic: Arithmetic = SIZES
) -> Part:
    """The tile at a coordinate among the tiles: `(t0, t1, …)`, then the modes kept with None.

    `coord` may be shorter than the rank of the tiles; missing modes are kept.  `proj` has None for
    the modes of tiler and coordinate that do not belong to this layout; coordinates behind it are
    kept.
    """
    outer = target.outer if isinstance(target, ComposedLayout) else target
    found = slice_and_offset(*tile_at(outer, tiler, coord, proj), arithmetic=arithmetic)
    return within(target, found)


def partition_at(
    target: Layout, tiler: Any, index: Any, proj: Any = None, *, arithmetic: Arithmetic = SIZES
) -> tuple[Layout, Any]:
    """The tiled layout, and in it the coordinate of the result of `local_partition`."""
    threads = tiler if isinstance(tiler, Layout) else make_layout(tiler)
    place = place_of(threads, index, arithmetic)
    sizes: Any = product_each(threads.shape)
    if isinstance(proj, tuple):
        sizes, place = dice(sizes, proj), dice(place, proj)
    name = "local_partition"
    tile, rest = _unzipped(target, sizes, name, _divide(name))
    at = place if isinstance(tile.shape, tuple) else place[0]
    return join([tile, rest]), (at, _all(rest))


def local_partition(
    target: Any, tiler: Any, index: Any, proj: Any = None, *, arithmetic: Arithmetic = SIZES
) -> Part:
    """The elements of one thread of many: those at its place in each tile, `(r0, r1, …)`.

    `tiler` arranges the threads: a layout from coordinates to the threads' numbers, or a shape.
    `proj` has None for its modes that do not belong to this layout.
    """
    outer = target.outer if isinstance(target, ComposedLayout) else target
    tiled, at = partition_at(outer, tiler, index, proj, arithmetic=arithmetic)
    return within(target, slice_and_offset(tiled, at, arithmetic=arithmetic))


def within(target: Any, part: Part) -> Part:
    """A part of the outer layout as one of a composed layout, which has its beginning in it."""
    if not isinstance(target, ComposedLayout):
        return part
    return Part(replace(target, offset=target.offset + part.offset, outer=part.layout), 0)


def place_of(threads: Layout, index: Any, arithmetic: Arithmetic) -> tuple[Any, ...]:
    """The coordinate of a thread in each mode of the arrangement."""
    place = []
    for mode in modes_of(threads):
        digits = []
        for extent, stride in flat_modes(mode):
            if stride == 0 and extent != 1:
                refuse("local_partition", f"{threads} gives many threads one number")
            quotient = index if stride in (0, 1) else arithmetic.floordiv(index, stride)
            digits.append(0 if extent == 1 else arithmetic.mod(quotient, extent))
        sizes = make_layout(tuple(extent for extent, _ in flat_modes(mode)))
        place.append(crd2idx(tuple(digits), sizes, arithmetic=arithmetic))
    return tuple(place)


def _all(layout: Layout) -> Any:
    """The coordinate that keeps each mode."""
    return (None,) * len(as_tuple(layout.shape)) if isinstance(layout.shape, tuple) else None
