"""`fe.nvgpu`: operations of copies and matrix multiplications, by the instructions that do them."""

from __future__ import annotations

from ferrule.language.atoms import cpasync as cpasync
from ferrule.language.atoms import warp as warp
from ferrule.language.atoms import warpgroup as warpgroup
from ferrule.language.atoms.mma_ops import MmaUniversalOp as MmaUniversalOp
from ferrule.language.atoms.ops import CopyUniversalOp as CopyUniversalOp
from ferrule.language.atoms.ops import LoadCacheMode as LoadCacheMode
from ferrule.language.atoms.warpgroup_ops import OperandMajorMode as OperandMajorMode
