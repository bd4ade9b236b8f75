"""Warps that produce and warps that consume, and the shared memory between them: `fe.pipeline`.

Written in the kernel language itself, on the barriers of `arch`, with the names of CuTe DSL's
`cutlass.pipeline`.  What changes at run time, such as the stage of a pipeline, is kept in registers
of the thread, so an object may be changed in loops and branches.
"""

from __future__ import annotations

from ferrule.language.faces.pipelines.asynchronous import (
    PipelineAsync,
    PipelineConsumer,
    PipelineCpAsync,
    PipelineProducer,
    PipelineTmaAsync,
    PipelineTmaStore,
    StageHandle,
)
from ferrule.language.faces.pipelines.barriers import (
    NamedBarrier,
    PipelineOrder,
    agent_sync,
    arrive,
    arrive_and_wait,
    arrive_unaligned,
    pipeline_init_arrive,
    pipeline_init_wait,
    sync,
    wait_unaligned,
)
from ferrule.language.faces.pipelines.states import (
    Agent,
    CooperativeGroup,
    PipelineState,
    PipelineUserType,
    compute_k_tile,
    make_pipeline_state,
)

__all__ = [
    "Agent",
    "CooperativeGroup",
    "NamedBarrier",
    "PipelineAsync",
    "PipelineConsumer",
    "PipelineCpAsync",
    "PipelineOrder",
    "PipelineProducer",
    "PipelineState",
    "PipelineTmaAsync",
    "PipelineTmaStore",
    "PipelineUserType",
    "StageHandle",
    "agent_sync",
    "arrive",
    "arrive_and_wait",
    "arrive_unaligned",
    "compute_k_tile",
    "make_pipeline_state",
    "pipeline_init_arrive",
    "pipeline_init_wait",
    "sync",
    "wait_unaligned",
]
