"""`fe.nvgpu.warpgroup`: what four warps multiply together, on sm_90a."""

from __future__ import annotations

from ferrule.language.atoms.warpgroup_ops import (
    Field,
    MmaF8Op,
    MmaF16BF16Op,
    MmaI8Op,
    MmaTF32Op,
    OperandMajorMode,
    OperandSource,
    SmemLayoutAtomKind,
    make_smem_layout_atom,
)
from ferrule.language.faces.tensor_cores import wgmma_commit_group as commit_group
from ferrule.language.faces.tensor_cores import wgmma_fence as fence
from ferrule.language.faces.tensor_cores import wgmma_wait_group as wait_group

__all__ = [
    "Field",
    "MmaF16BF16Op",
    "MmaF8Op",
    "MmaI8Op",
    "MmaTF32Op",
    "OperandMajorMode",
    "OperandSource",
    "SmemLayoutAtomKind",
    "commit_group",
    "fence",
    "make_smem_layout_atom",
    "wait_group",
]
