"""The names of `cutlass.utils` that are those of its modules: of Hopper's helpers, of tensors."""

from __future__ import annotations

from ferrule.cutlass import hopper_helpers as sm90
from ferrule.cutlass.tensor_helpers import create_cute_tensor_for_fp8

__all__ = [
    "create_cute_tensor_for_fp8",
    "sm90",
    "sm90_get_smem_layout_atom",
    "sm90_make_trivial_tiled_mma",
]

sm90_get_smem_layout_atom = sm90.get_smem_layout_atom
sm90_make_trivial_tiled_mma = sm90.make_trivial_tiled_mma
