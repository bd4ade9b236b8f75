"""Tiles that are copied as boxes of tensors: the atom of such a copy in a kernel."""

from __future__ import annotations

from typing import Any

from ferrule.language.layouts import crd2idx, group_modes, rank, size
from ferrule.specs import Int32
from ferrule.specs.deferred import dataclass


@dataclass(frozen=True)
class TmaAtom:
    """A copy of tiles by a tensor map; `fe.nvgpu.cpasync.make_tiled_tma_atom` makes one.

    `dims`: which leaves of a coordinate the map has; it lacks those with stride 0.
    """

    tensor_map: Any
    boxes: Any
    dims: Any


def make_layout_image_mask(lay: Any, coord: Any, mode: int) -> Any:
    """The numbers that a layout gives where one mode of a coordinate varies, as bits of an Int32.

    Of the blocks of a cluster, (m, n, k), at a block's coordinate: its row with mode=1, its column
    with mode=0.
    """
    bits = _bits_of(lay, mode)
    rest = []
    for number, each in enumerate(coord):
        rest.append(0 if number == mode else each)
    first = crd2idx(tuple(rest), lay)
    return Int32(bits << first) if isinstance(first, int) else Int32(bits) << first


def create_tma_multicast_mask(cta_layout_vmnk: Any, cta_coord_vmnk: Any, mcast_mode: int) -> Any:
    """The blocks of a cluster, (v, m, n, k), that get a copy, as bits of an Int32: those with the
    block's own coordinate in all modes but one, 2 for A and 1 for B."""
    return make_layout_image_mask(cta_layout_vmnk, cta_coord_vmnk, mcast_mode)


def group_bulk_copy_modes(src: Any, dst: Any) -> tuple[Any, Any]:
    """Two tensors, each with all its modes as one: a bulk copy copies them whole."""
    return group_modes(src, 0, rank(src)), group_modes(dst, 0, rank(dst))


def _bits_of(lay: Any, mode: int) -> int:
    """The bits of one mode, at coordinate 0 of the others."""
    bits = 0
    for index in range(int(size(lay, mode=[mode]))):
        place = [0] * len(lay.shape)
        place[mode] = index
        bits |= 1 << int(crd2idx(tuple(place), lay))
    return bits
