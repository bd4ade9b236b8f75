"""`fe.nvgpu.warp`: what the lanes of a warp do together."""

from __future__ import annotations

from ferrule.language.atoms.mma_ops import MmaF16BF16Op as MmaF16BF16Op
from ferrule.language.atoms.mma_ops import MmaI8Op as MmaI8Op
from ferrule.language.atoms.mma_ops import MmaTF32Op as MmaTF32Op
from ferrule.language.atoms.ops import LdMatrix8x8x16bOp as LdMatrix8x8x16bOp
from ferrule.language.atoms.ops import StMatrix8x8x16bOp as StMatrix8x8x16bOp
