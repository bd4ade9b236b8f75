"""Coordinates of the running thread, under CuTe's names.  Each gives three Int32 (x, y, z)."""

from __future__ import annotations

from typing import Any

from ferrule.language.faces import outside


def thread_idx() -> tuple[Any, Any, Any]:
    """The thread's coordinates in its block."""
    outside("arch.thread_idx")


def block_idx() -> tuple[Any, Any, Any]:
    """The block's coordinates in the grid."""
    outside("arch.block_idx")


def block_dim() -> tuple[Any, Any, Any]:
    """The number of threads of a block along each axis."""
    outside("arch.block_dim")


def grid_dim() -> tuple[Any, Any, Any]:
    """The number of blocks of the grid along each axis."""
    outside("arch.grid_dim")
