"""`fe.nvgpu.warp`: what the lanes of a warp do together."""

from __future__ import annotations

from ferrule.language.atoms.mma_ops import MmaF16BF16Op, MmaFP8Op, MmaI8Op, MmaTF32Op
from ferrule.language.atoms.ops import LdMatrix8x8x16bOp, StMatrix8x8x16bOp

__all__ = [
    "LdMatrix8x8x16bOp",
    "MmaF16BF16Op",
    "MmaFP8Op",
    "MmaI8Op",
    "MmaTF32Op",
    "StMatrix8x8x16bOp",
]
