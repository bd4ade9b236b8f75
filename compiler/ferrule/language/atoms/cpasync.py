"""`fe.nvgpu.cpasync`: copies in the background."""

from __future__ import annotations

from ferrule.language.atoms.bulk import (
    CopyBulkTensorTileG2SMulticastOp as CopyBulkTensorTileG2SMulticastOp,
)
from ferrule.language.atoms.bulk import CopyBulkTensorTileG2SOp as CopyBulkTensorTileG2SOp
from ferrule.language.atoms.bulk import CopyBulkTensorTileS2GOp as CopyBulkTensorTileS2GOp
from ferrule.language.atoms.ops import CopyG2SOp as CopyG2SOp
from ferrule.language.atoms.ops import LoadCacheMode as LoadCacheMode
from ferrule.language.faces.tiles import make_tiled_tma_atom as make_tiled_tma_atom
from ferrule.language.faces.tiles import prefetch_descriptor as prefetch_descriptor
from ferrule.language.faces.tiles import tma_partition as tma_partition
