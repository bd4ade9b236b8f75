"""Barriers with names, and the beginning of a kernel with pipelines."""

from __future__ import annotations

from typing import Any

from ferrule.language.faces.asynchronous import (
    cluster_arrive,
    cluster_arrive_relaxed,
    cluster_wait,
)
from ferrule.language.faces.base import const_expr
from ferrule.language.faces.mbarriers import (
    mbarrier_arrive,
    mbarrier_init,
    mbarrier_init_fence,
    mbarrier_wait,
)
from ferrule.language.faces.pipelines.states import Agent, CooperativeGroup, PipelineState, state_at
from ferrule.language.faces.threads import barrier, barrier_arrive, sync_threads, thread_idx
from ferrule.language.layouts import size
from ferrule.specs.deferred import dataclass


@dataclass(frozen=True)
class NamedBarrier:
    """The barrier of the block with this number, at which so many threads arrive: whole warps."""

    barrier_id: Any
    num_threads: Any

    def arrive(self) -> None:
        """Arrives, and goes on; others wait.  Only on GPUs."""
        barrier_arrive(self.barrier_id, self.num_threads)

    def arrive_and_wait(self) -> None:
        """Arrives, and waits for the other threads."""
        barrier(barrier_id=self.barrier_id, number_of_threads=self.num_threads)

    def wait(self) -> None:
        """The same as `arrive_and_wait`: a thread that waits arrives."""
        barrier(barrier_id=self.barrier_id, number_of_threads=self.num_threads)

    def sync(self) -> None:
        """The same as `arrive_and_wait`."""
        barrier(barrier_id=self.barrier_id, number_of_threads=self.num_threads)


def arrive(barrier_id: Any, num_threads: Any) -> None:
    """Arrives at a barrier by its number, and goes on.  Only on GPUs."""
    barrier_arrive(barrier_id, num_threads)


def arrive_and_wait(barrier_id: Any, num_threads: Any) -> None:
    """Arrives at a barrier by its number, and waits for the other threads."""
    barrier(barrier_id=barrier_id, number_of_threads=num_threads)


def arrive_unaligned(barrier_id: Any, num_threads: Any) -> None:
    """The same as `arrive`, which threads of a warp may also call at different places."""
    barrier_arrive(barrier_id, num_threads)


def wait_unaligned(barrier_id: Any, num_threads: Any) -> None:
    """The same as `arrive_and_wait`, which threads of a warp may also call at different places."""
    barrier(barrier_id=barrier_id, number_of_threads=num_threads)


def agent_sync(group: Agent, is_relaxed: bool = False) -> None:
    """Waits for all threads of a block, or of a cluster; `is_relaxed`: without their writes."""
    if const_expr(group is Agent.ThreadBlockCluster):
        if const_expr(is_relaxed):
            cluster_arrive_relaxed()
        else:
            cluster_arrive()
        cluster_wait()
    elif const_expr(group is Agent.ThreadBlock):
        sync_threads()
    else:
        raise ValueError("agent_sync waits for Agent.ThreadBlock or Agent.ThreadBlockCluster")


def sync(barrier_id: Any = 0) -> None:
    """Waits for all threads of the block at the barrier with this number."""
    barrier(barrier_id=barrier_id)


def pipeline_init_arrive(cluster_shape_mn: Any = None, is_relaxed: bool = False) -> None:
    """Arrives at the barrier of the cluster, if it has several blocks, after pipelines were made
    with `defer_sync=True`."""
    if const_expr(_several(cluster_shape_mn)):
        if const_expr(is_relaxed):
            cluster_arrive_relaxed()
        else:
            cluster_arrive()


def pipeline_init_wait(cluster_shape_mn: Any = None) -> None:
    """Waits until all threads, of the cluster or of the block, see the barriers of pipelines."""
    if const_expr(_several(cluster_shape_mn)):
        cluster_wait()
    else:
        sync_threads()


def _several(cluster_shape: Any) -> Any:
    return cluster_shape is not None and size(cluster_shape) > 1


def is_first_thread() -> Any:
    """Whether this is the first thread of its block."""
    x, y, z = thread_idx()
    return x + y + z == 0


@dataclass(frozen=True)
class PipelineOrder:
    """Groups of threads that take turns: each waits until the group before it has arrived.

    There are `depth` stages, which every group goes through in a ring.  In each stage the groups,
    `length` of them, come one after the other; what they do in one stage does not wait for another.
    """

    barriers: Any
    depth: int
    length: int
    group_id: Any
    state: PipelineState

    @staticmethod
    def create(
        barrier_storage: Any,
        depth: int,
        length: int,
        group_id: Any,
        producer_group: CooperativeGroup,
        defer_sync: bool = False,
    ) -> PipelineOrder:
        """Makes the order on `depth * length` Int64 in shared memory; all threads call it."""
        if is_first_thread():
            for at in range(depth * length):
                mbarrier_init(barrier_storage + at, producer_group.count)
            mbarrier_init_fence()
        if const_expr(not defer_sync):
            sync_threads()
        # The first group need not wait in the first round, the others do.
        phase = 1 if group_id == 0 else 0
        return PipelineOrder(barrier_storage, depth, length, group_id, state_at(depth, 0, 0, phase))

    def wait(self) -> None:
        """Waits for this group's turn."""
        mbarrier_wait(self._barrier(self.group_id), self.state.phase)

    def arrive(self) -> None:
        """Gives the turn to the next group, and goes on to the next stage."""
        mbarrier_arrive(self._barrier((self.group_id + 1) % self.length))
        self.state.advance()

    def _barrier(self, group: Any) -> Any:
        return self.barriers + (self.state.index * self.length + group)
