"""`fe.nvgpu`: operations of copies and matrix multiplications, by the instructions that do them."""

from __future__ import annotations

from ferrule.language.atoms import cpasync, warp, warpgroup
from ferrule.language.atoms.mma_ops import MmaUniversalOp
from ferrule.language.atoms.ops import CopyUniversalOp, LoadCacheMode
from ferrule.language.atoms.warpgroup_ops import OperandMajorMode

__all__ = [
    "CopyUniversalOp",
    "LoadCacheMode",
    "MmaUniversalOp",
    "OperandMajorMode",
    "cpasync",
    "warp",
    "warpgroup",
]
