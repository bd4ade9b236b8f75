"""`fe.utils`: shared memory by names, and which tile a block computes next, with the names of CuTe
DSL's `cutlass.utils`."""

from __future__ import annotations

from ferrule.language.faces.pipelines.schedulers import (
    PersistentTileSchedulerParams,
    StaticPersistentTileScheduler,
    WorkTileInfo,
)
from ferrule.language.faces.pipelines.storage import SmemAllocator, get_smem_capacity_in_bytes

__all__ = [
    "PersistentTileSchedulerParams",
    "SmemAllocator",
    "StaticPersistentTileScheduler",
    "WorkTileInfo",
    "get_smem_capacity_in_bytes",
]
