"""`fe.nvgpu.warpgroup`: what four warps multiply together, on sm_90a."""

from __future__ import annotations

from ferrule.language.atoms.warpgroup_ops import Field as Field
from ferrule.language.atoms.warpgroup_ops import MmaF8Op as MmaF8Op
from ferrule.language.atoms.warpgroup_ops import MmaF16BF16Op as MmaF16BF16Op
from ferrule.language.atoms.warpgroup_ops import MmaI8Op as MmaI8Op
from ferrule.language.atoms.warpgroup_ops import MmaTF32Op as MmaTF32Op
from ferrule.language.atoms.warpgroup_ops import OperandMajorMode as OperandMajorMode
from ferrule.language.atoms.warpgroup_ops import OperandSource as OperandSource
from ferrule.language.atoms.warpgroup_ops import SmemLayoutAtomKind as SmemLayoutAtomKind
from ferrule.language.atoms.warpgroup_ops import make_smem_layout_atom as make_smem_layout_atom
from ferrule.language.faces.tensor_cores import wgmma_commit_group as commit_group  # noqa: F401
from ferrule.language.faces.tensor_cores import wgmma_fence as fence  # noqa: F401
from ferrule.language.faces.tensor_cores import wgmma_wait_group as wait_group  # noqa: F401
