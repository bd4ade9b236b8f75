"""`fe.utils`: shared memory by names, and which tile a block computes next, with the names of CuTe
DSL's `cutlass.utils`."""

from __future__ import annotations

from ferrule.language.faces.pipelines.groups import (
    GroupedGemmGroupSearchState,
    GroupedGemmTileSchedulerHelper,
    GroupSearchResult,
    create_initial_search_state,
)
from ferrule.language.faces.pipelines.schedulers import (
    PersistentTileSchedulerParams,
    StaticPersistentRuntimeTileScheduler,
    StaticPersistentTileScheduler,
    WorkTileInfo,
)
from ferrule.language.faces.pipelines.storage import SmemAllocator, get_smem_capacity_in_bytes
from ferrule.language.faces.pipelines.tensor_maps import TensorMapManager, TensorMapUpdateMode

__all__ = [
    "GroupSearchResult",
    "GroupedGemmGroupSearchState",
    "GroupedGemmTileSchedulerHelper",
    "PersistentTileSchedulerParams",
    "SmemAllocator",
    "StaticPersistentRuntimeTileScheduler",
    "StaticPersistentTileScheduler",
    "TensorMapManager",
    "TensorMapUpdateMode",
    "WorkTileInfo",
    "create_initial_search_state",
    "get_smem_capacity_in_bytes",
]
