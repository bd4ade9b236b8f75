"""Copies of boxes of tensors, PTX's `cp.async.bulk.tensor`, as atoms: which boxes make up a tile.

A tile in shared memory has a layout of two modes and perhaps a swizzle.  The hardware writes a box
compactly, the contiguous mode of the tensor first.  So a tile is as many boxes as its layout has
compact pieces, each as large as possible.
"""

from __future__ import annotations

from typing import Any, Final

from ferrule.language.layouts import ComposedLayout, Layout, Swizzle, product_each, size
from ferrule.language.layouts.errors import refuse
from ferrule.specs.deferred import dataclass

_MOST: Final = 256
"""The largest size of a box (CUDA Driver API, `cuTensorMapEncodeTiled`)."""
CHUNK: Final = 16
"""The bytes that a swizzle keeps together."""
_ROWS: Final = 8
"""Rows after which a swizzle repeats."""


@dataclass(frozen=True, slots=True)
class CopyBulkTensorTileG2SOp:
    """Tiles from global to shared memory, in the background.  From sm_90 on."""


@dataclass(frozen=True, slots=True)
class CopyBulkTensorTileG2SMulticastOp:
    """The same, to several blocks of a cluster: each copies a part of the tile for all."""


@dataclass(frozen=True, slots=True)
class CopyBulkTensorTileS2GOp:
    """Tiles from shared to global memory, in the background.  From sm_90 on."""


LOADS: Final = (CopyBulkTensorTileG2SOp, CopyBulkTensorTileG2SMulticastOp)


@dataclass(frozen=True, slots=True)
class Boxes:
    """The boxes of a block's part of a tile.

    `inner`, `outer`: the modes of the tile that are contiguous in the tensor, and the other one;
    `box`: the sizes of a box along these.  `places`: for each box its first coordinates along both,
    and the offset of its first element in shared memory.  `parts`: the blocks that the tile is
    divided among, each with `rows` along `outer`.  `swizzle`: its bytes, or 0.
    """

    op: Any
    inner: int
    outer: int
    box: tuple[int, int]
    places: tuple[tuple[int, int, int], ...]
    parts: int
    rows: int
    swizzle: int


def boxes_of(
    op: Any, layout: Any, tiler: tuple[Any, ...], inner: int, itemsize: int, parts: int
) -> Boxes:
    """The boxes of a tile.  Raises LayoutError if the hardware cannot copy it.

    `layout`: of the tile in shared memory.  `inner`: the mode that is contiguous in the tensor.
    """
    name = "make_tiled_tma_atom"
    plain, span = _parts_of(name, layout, itemsize)
    sizes = tuple(int(each) for each in product_each(plain.shape))
    if len(tiler) != 2 or len(sizes) != 2 or sizes != tuple(int(size(each)) for each in tiler):
        refuse(name, f"a tile of {tiler} in shared memory of {layout}", "give both two modes alike")
    if inner not in (0, 1):
        refuse(name, f"mode {inner} of the tensor is contiguous", "tile its contiguous mode")
    outer = 1 - inner
    rows = sizes[outer] // parts
    if sizes[outer] % parts or (span and rows % _ROWS):
        refuse(
            name,
            f"{sizes[outer]} rows are divided among {parts} blocks",
            f"give each block a multiple of {_ROWS} of them",
        )

    # A layout adds what its modes give, so each is looked at alone.
    along, across = (places_of(plain, mode) for mode in (inner, outer))
    most = min(span // itemsize if span else _MOST, _MOST)
    width = _compact(along, sizes[inner], most, 1)
    height = _compact(across, rows, _MOST, width)
    if width * itemsize % 16 or (span and width * itemsize != span):
        refuse(
            name,
            f"{width} elements of {itemsize} bytes of the contiguous mode are side by side in "
            f"shared memory of {layout}",
            f"arrange {span // itemsize} of them" if span else "arrange a multiple of 16 bytes",
        )
    if not _whole(along, width, 1) or not _whole(across[:rows], height, width):
        refuse(name, f"shared memory of {layout} is not made of boxes", "use tile_to_shape")
    places = tuple(
        (i, j, along[i] + across[j])
        for j in range(0, rows, height)
        for i in range(0, sizes[inner], width)
    )
    return Boxes(op, inner, outer, (width, height), places, parts, rows, span)


def _parts_of(name: str, layout: Any, itemsize: int) -> tuple[Layout, int]:
    """The layout without its swizzle, and the bytes of that."""
    if isinstance(layout, Layout):
        return layout, 0
    bits = _swizzled_bits(layout)
    if bits is None:
        refuse(
            name,
            f"shared memory of {layout}",
            "give a swizzle of addresses in bytes, S<0,4,3> to S<3,4,3>, and no offset",
        )
    return layout.outer, (CHUNK << bits) if bits else 0


def _swizzled_bits(layout: Any) -> int | None:
    """The bits of a swizzle of addresses in bytes that the hardware knows."""
    inner = layout.inner if isinstance(layout, ComposedLayout) else None
    if not isinstance(inner, Swizzle) or layout.offset != 0 or inner.num_bits > 3:
        return None
    return inner.num_bits if (inner.num_base, inner.num_shift) == (4, 3) else None


def places_of(layout: Layout, mode: int) -> list[int]:
    """What a mode of a layout adds, for each of its coordinates."""
    return [int(layout[mode](i)) for i in range(int(size(layout, [mode])))]


def _compact(places: list[int], whole: int, most: int, step: int) -> int:
    """How many elements from the first on lie so many elements apart: a divisor of the whole."""
    count = 1
    while count < min(whole, most) and places[count] == count * step:
        count += 1
    while whole % count:
        count -= 1
    return count


def _whole(places: list[int], count: int, step: int) -> bool:
    """Whether each so many elements lie so far apart."""
    starts = (places[i // count * count] + i % count * step for i in range(len(places)))
    return places == list(starts)
