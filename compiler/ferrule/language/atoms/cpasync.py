"""`fe.nvgpu.cpasync`: copies in the background."""

from __future__ import annotations

from ferrule.language.atoms.bulk import (
    CopyBulkTensorTileG2SMulticastOp,
    CopyBulkTensorTileG2SOp,
    CopyBulkTensorTileS2GOp,
)
from ferrule.language.atoms.ops import CopyG2SOp, LoadCacheMode
from ferrule.language.faces.pipelines.boxes import (
    create_tma_multicast_mask,
    group_bulk_copy_modes,
)
from ferrule.language.faces.pipelines.tensor_map_edits import (
    copy_tensormap,
    cp_fence_tma_desc_release,
    fence_tma_desc_acquire,
    fence_tma_desc_release,
    update_tma_descriptor,
)
from ferrule.language.faces.tiles import make_tiled_tma_atom, prefetch_descriptor, tma_partition

__all__ = [
    "CopyBulkTensorTileG2SMulticastOp",
    "CopyBulkTensorTileG2SOp",
    "CopyBulkTensorTileS2GOp",
    "CopyG2SOp",
    "LoadCacheMode",
    "copy_tensormap",
    "cp_fence_tma_desc_release",
    "create_tma_multicast_mask",
    "fence_tma_desc_acquire",
    "fence_tma_desc_release",
    "group_bulk_copy_modes",
    "make_tiled_tma_atom",
    "prefetch_descriptor",
    "tma_partition",
    "update_tma_descriptor",
]
