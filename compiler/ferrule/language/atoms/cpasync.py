"""`fe.nvgpu.cpasync`: copies in the background."""

from __future__ import annotations

from ferrule.language.atoms.bulk import (
    CopyBulkTensorTileG2SMulticastOp,
    CopyBulkTensorTileG2SOp,
    CopyBulkTensorTileS2GOp,
)
from ferrule.language.atoms.ops import CopyG2SOp, LoadCacheMode
from ferrule.language.faces.tiles import make_tiled_tma_atom, prefetch_descriptor, tma_partition

__all__ = [
    "CopyBulkTensorTileG2SMulticastOp",
    "CopyBulkTensorTileG2SOp",
    "CopyBulkTensorTileS2GOp",
    "CopyG2SOp",
    "LoadCacheMode",
    "make_tiled_tma_atom",
    "prefetch_descriptor",
    "tma_partition",
]
