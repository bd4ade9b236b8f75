"""Layouts: functions from coordinates to indices, and their algebra.

A layout is a shape and strides, `(4,(2,n0)):(1,(4,8))`.  Sizes are ints or expressions over
symbolic sizes; an operation proves the facts that it needs about a symbolic size from its structure
and divisibility, or it raises `LayoutError`.  Pure data: depends only on `ferrule.specs`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ferrule.language.layouts.composed import (
    ComposedLayout,
    Swizzle,
    make_composed_layout,
    make_identity_layout,
    make_swizzle,
)
from ferrule.language.layouts.coordinates import (
    SIZES,
    Arithmetic,
    Part,
    crd2idx,
    dice,
    idx2crd,
    slice_,
    slice_and_offset,
)
from ferrule.language.layouts.dims import E, ScaledBasis
from ferrule.language.layouts.errors import LayoutError
from ferrule.language.layouts.layout import (
    Layout,
    cosize,
    depth,
    is_static,
    make_layout,
    make_layout_like,
    make_ordered_layout,
    rank,
    size,
)
from ferrule.language.layouts.layout import shape_of as shape
from ferrule.language.layouts.modes import (
    append,
    flatten,
    get,
    group_modes,
    prepend,
    select,
    unflatten,
)
from ferrule.language.layouts.tuples import (
    IntTuple,
    ceil_div,
    format_tuple,
    is_congruent,
    is_weakly_congruent,
    product,
    product_each,
    repeat_like,
    shape_div,
    tuple_cat,
)
from ferrule.specs.deferred import names_of

if TYPE_CHECKING:
    from ferrule.language.layouts.compose import coalesce, composition, filter, filter_zeros
    from ferrule.language.layouts.inverse import (
        complement,
        left_inverse,
        max_common_layout,
        max_common_vector,
        nullspace,
        right_inverse,
    )
    from ferrule.language.layouts.recast import recast_layout
    from ferrule.language.layouts.tiling import (
        blocked_product,
        flat_divide,
        flat_product,
        local_partition,
        local_tile,
        logical_divide,
        logical_product,
        make_layout_tv,
        raked_product,
        tile_to_shape,
        tiled_divide,
        tiled_product,
        zipped_divide,
        zipped_product,
    )

__all__ = [
    "SIZES",
    "Arithmetic",
    "ComposedLayout",
    "E",
    "IntTuple",
    "Layout",
    "LayoutError",
    "Part",
    "ScaledBasis",
    "Swizzle",
    "append",
    "blocked_product",
    "ceil_div",
    "coalesce",
    "complement",
    "composition",
    "cosize",
    "crd2idx",
    "depth",
    "dice",
    "filter",
    "filter_zeros",
    "flat_divide",
    "flat_product",
    "flatten",
    "format_tuple",
    "get",
    "group_modes",
    "idx2crd",
    "is_congruent",
    "is_static",
    "is_weakly_congruent",
    "left_inverse",
    "local_partition",
    "local_tile",
    "logical_divide",
    "logical_product",
    "make_composed_layout",
    "make_identity_layout",
    "make_layout",
    "make_layout_like",
    "make_layout_tv",
    "make_ordered_layout",
    "make_swizzle",
    "max_common_layout",
    "max_common_vector",
    "nullspace",
    "prepend",
    "product",
    "product_each",
    "raked_product",
    "rank",
    "recast_layout",
    "repeat_like",
    "right_inverse",
    "select",
    "shape",
    "shape_div",
    "size",
    "slice_",
    "slice_and_offset",
    "tile_to_shape",
    "tiled_divide",
    "tiled_product",
    "tuple_cat",
    "unflatten",
    "zipped_divide",
    "zipped_product",
]

_LATER: Final = {
    "blocked_product": "tiling",
    "coalesce": "compose",
    "complement": "inverse",
    "composition": "compose",
    "filter": "compose",
    "filter_zeros": "compose",
    "flat_divide": "tiling",
    "flat_product": "tiling",
    "left_inverse": "inverse",
    "local_partition": "tiling",
    "local_tile": "tiling",
    "logical_divide": "tiling",
    "logical_product": "tiling",
    "make_layout_tv": "tiling",
    "max_common_layout": "inverse",
    "max_common_vector": "inverse",
    "nullspace": "inverse",
    "raked_product": "tiling",
    "recast_layout": "recast",
    "right_inverse": "inverse",
    "tile_to_shape": "tiling",
    "tiled_divide": "tiling",
    "tiled_product": "tiling",
    "zipped_divide": "tiling",
    "zipped_product": "tiling",
}
"""The functions of tiles, by module: few programs need them, so they are imported when used."""

__getattr__ = names_of(__name__, {name: f"{__name__}.{home}" for name, home in _LATER.items()})
