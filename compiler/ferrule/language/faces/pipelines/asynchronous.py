"""Pipelines: stages that producers fill and consumers empty, in turn.

Each stage has two barriers in shared memory (`arch.mbarrier_…`).  At the full one the producers
arrive when they have written, and at the empty one the consumers when they have read.  Barriers lie
as Int64: those of full stages, then those of empty ones.
"""

from __future__ import annotations

from typing import Any, ClassVar

from ferrule.language.faces.asynchronous import (
    cluster_arrive_relaxed,
    cluster_wait,
    cp_async_bulk_commit_group,
    cp_async_bulk_wait_group,
)
from ferrule.language.faces.base import const_expr, range_constexpr
from ferrule.language.faces.mbarriers import (
    cp_async_mbarrier_arrive_noinc,
    mbarrier_arrive,
    mbarrier_arrive_and_expect_tx,
    mbarrier_init,
    mbarrier_init_fence,
    mbarrier_try_wait,
    mbarrier_wait,
)
from ferrule.language.faces.pipelines.barriers import is_first_thread
from ferrule.language.faces.pipelines.states import (
    CooperativeGroup,
    PipelineState,
    PipelineUserType,
    make_pipeline_state,
)
from ferrule.language.faces.threads import (
    block_in_cluster_idx,
    elect_one,
    lane_idx,
    sync_threads,
    sync_warp,
)
from ferrule.language.layouts import size
from ferrule.specs.deferred import dataclass


@dataclass(frozen=True)
class _Pipeline:
    """What pipelines with two barriers for each stage have in common.

    `barriers`: a pointer to Int64 in shared memory.
    """

    barriers: Any
    num_stages: int

    def make_participants(self) -> tuple[PipelineProducer, PipelineConsumer]:
        """A producer and a consumer at the first stage."""
        return self.make_producer(), self.make_consumer()

    def make_producer(self) -> PipelineProducer:
        """A producer at the first stage."""
        state = make_pipeline_state(PipelineUserType.Producer, self.num_stages)
        return PipelineProducer(self, state)

    def make_consumer(self) -> PipelineConsumer:
        """A consumer at the first stage."""
        state = make_pipeline_state(PipelineUserType.Consumer, self.num_stages)
        return PipelineConsumer(self, state)

    def producer_get_barrier(self, state: PipelineState) -> Any:
        """The barrier of a full stage, at which copies arrive."""
        return self.barriers + state.index

    def _empty(self, state: PipelineState) -> Any:
        return self.barriers + (self.num_stages + state.index)

    def producer_try_acquire(self, state: PipelineState) -> Any:
        """Whether the stage is empty, a Boolean, after waiting for a while."""
        return mbarrier_try_wait(self._empty(state), state.phase)

    def producer_tail(self, state: PipelineState) -> None:
        """Waits until consumers have emptied all stages; a producer's last call."""
        for _ in range_constexpr(self.num_stages):
            mbarrier_wait(self._empty(state), state.phase)
            state.advance()

    def consumer_try_wait(self, state: PipelineState) -> Any:
        """Whether the stage is full, a Boolean, after waiting for a while."""
        return mbarrier_try_wait(self.barriers + state.index, state.phase)

    def consumer_wait(self, state: PipelineState, try_wait_token: Any = None) -> None:
        """Waits until the stage is full; not if `consumer_try_wait` has said so."""
        _wait(self.barriers + state.index, state.phase, try_wait_token)


@dataclass(frozen=True)
class PipelineAsync(_Pipeline):
    """A pipeline whose producers and consumers are threads that write and read shared memory.

    All threads of a group arrive in each phase: `CooperativeGroup(Agent.Thread, 32)` for a warp.
    """

    @staticmethod
    def create(
        *,
        num_stages: int,
        producer_group: CooperativeGroup,
        consumer_group: CooperativeGroup,
        barrier_storage: Any,
        defer_sync: bool = False,
    ) -> PipelineAsync:
        """Makes the barriers, `2 * num_stages` Int64 in shared memory; all threads call it.

        With `defer_sync` they are seen only behind a later barrier.
        """
        _make_barriers(barrier_storage, num_stages, producer_group.count, consumer_group.count)
        if const_expr(not defer_sync):
            sync_threads()
        return PipelineAsync(barrier_storage, num_stages)

    def producer_acquire(self, state: PipelineState, try_acquire_token: Any = None) -> None:
        """Waits until the stage is empty; not if `producer_try_acquire` has said so."""
        _wait(self._empty(state), state.phase, try_acquire_token)

    def producer_commit(self, state: PipelineState) -> None:
        """Says that this thread has written to the stage."""
        mbarrier_arrive(self.barriers + state.index)

    def consumer_release(self, state: PipelineState) -> None:
        """Says that this thread has read the stage."""
        mbarrier_arrive(self._empty(state))


@dataclass(frozen=True)
class PipelineCpAsync(PipelineAsync):
    """A pipeline whose producers are threads that copy with `cp_async` or `CopyG2SOp`.

    A thread commits a stage behind its copies to it, goes on, and arrives when they are there.
    Consumers do what those of `PipelineAsync` do.
    """

    @staticmethod
    def create(
        *,
        num_stages: int,
        producer_group: CooperativeGroup,
        consumer_group: CooperativeGroup,
        barrier_storage: Any,
        defer_sync: bool = False,
    ) -> PipelineCpAsync:
        """As `PipelineAsync.create`."""
        made = PipelineAsync.create(
            num_stages=num_stages,
            producer_group=producer_group,
            consumer_group=consumer_group,
            barrier_storage=barrier_storage,
            defer_sync=defer_sync,
        )
        return PipelineCpAsync(made.barriers, made.num_stages)

    def producer_commit(self, state: PipelineState) -> None:
        """Says that this thread's copies so far fill the stage, as soon as they are there."""
        cp_async_mbarrier_arrive_noinc(self.barriers + state.index)


@dataclass(frozen=True)
class PipelineTmaAsync(_Pipeline):
    """A pipeline that copies of boxes fill: `tx_count` bytes arrive in each stage.

    One warp, or one thread, produces.  Of the consumers one lane of each warp arrives, at the
    barriers of all blocks of the cluster that copy to this one: those of its row and its column.
    """

    tx_count: int
    cluster_shape: Any

    @staticmethod
    def create(
        *,
        num_stages: int,
        producer_group: CooperativeGroup,
        consumer_group: CooperativeGroup,
        tx_count: int,
        barrier_storage: Any,
        cta_layout_vmnk: Any = None,
        defer_sync: bool = False,
    ) -> PipelineTmaAsync:
        """Makes the barriers, `2 * num_stages` Int64 in shared memory; all threads call it.

        `consumer_group` has one member for each warp and each block that a warp arrives at.
        `cta_layout_vmnk`: the blocks of the cluster, (1, m, n, k).
        """
        _make_barriers(barrier_storage, num_stages, producer_group.count, consumer_group.count)
        shape = (1, 1) if cta_layout_vmnk is None else _rows_and_columns(cta_layout_vmnk)
        if const_expr(not defer_sync):
            if const_expr(shape == (1, 1)):
                sync_threads()
            else:
                cluster_arrive_relaxed()
                cluster_wait()
        return PipelineTmaAsync(barrier_storage, num_stages, tx_count, shape)

    def producer_acquire(self, state: PipelineState, try_acquire_token: Any = None) -> None:
        """Waits until the stage is empty, and lets its barrier wait for the bytes of the copies."""
        _wait(self._empty(state), state.phase, try_acquire_token)
        if elect_one():
            mbarrier_arrive_and_expect_tx(self.barriers + state.index, self.tx_count)

    def producer_commit(self, state: PipelineState) -> None:
        """Nothing: the copies arrive by themselves."""

    def consumer_release(self, state: PipelineState) -> None:
        """Says that this warp has read the stage, to all blocks that copy to it."""
        sync_warp()  # the other lanes may not have read yet
        rows, columns = self.cluster_shape
        if const_expr(rows * columns == 1):
            if lane_idx() == 0:
                mbarrier_arrive(self._empty(state))
        else:
            self._release_in_cluster(state, rows, columns)

    def _release_in_cluster(self, state: PipelineState, rows: int, columns: int) -> None:
        """Lane i arrives at block i of the column, the lanes behind at the others of the row."""
        row, column, _ = block_in_cluster_idx()
        lane = lane_idx()
        if lane < rows:
            mbarrier_arrive(self._empty(state), lane + column * rows)
        elif lane < rows + columns - 1:
            other = (column + 1 + lane - rows) % columns
            mbarrier_arrive(self._empty(state), row + other * rows)


@dataclass(frozen=True)
class PipelineTmaStore:
    """Stages of shared memory from which copies of boxes are stored, by groups of copies.

    One thread or warp, the same one each time, asks for the copies and calls this.
    """

    num_stages: int

    @staticmethod
    def create(
        *, num_stages: int, producer_group: CooperativeGroup | None = None
    ) -> PipelineTmaStore:
        """A pipeline of so many stages."""
        return PipelineTmaStore(num_stages)

    def producer_acquire(self) -> None:
        """Waits until the copies have read all stages but the newest `num_stages - 1`."""
        cp_async_bulk_wait_group(self.num_stages - 1, read=True)

    def producer_commit(self) -> None:
        """Makes a group of the copies since the last one."""
        cp_async_bulk_commit_group()

    def producer_tail(self) -> None:
        """Waits until the copies have read all stages."""
        cp_async_bulk_wait_group(0, read=True)


@dataclass(frozen=True)
class StageHandle:
    """A stage of a pipeline that was acquired or waited for: its place then."""

    pipeline: Any
    state: PipelineState

    @property
    def index(self) -> Any:
        """The stage, an Int32."""
        return self.state.index

    @property
    def count(self) -> Any:
        """The number of the stage, counted from the beginning."""
        return self.state.count

    @property
    def barrier(self) -> Any:
        """The barrier at which copies to the stage arrive."""
        return self.pipeline.producer_get_barrier(self.state)

    def commit(self) -> None:
        """Says that this thread has written to the stage."""
        self.pipeline.producer_commit(self.state)

    def release(self) -> None:
        """Says that this thread has read the stage."""
        self.pipeline.consumer_release(self.state)


@dataclass(frozen=True)
class PipelineProducer:
    """A producer with its place in a pipeline."""

    ImmutableResourceHandle: ClassVar[type[StageHandle]] = StageHandle
    pipeline: Any
    state: PipelineState

    def acquire(self, try_acquire_token: Any = None) -> StageHandle:
        """Waits until the stage is empty."""
        self.pipeline.producer_acquire(self.state, try_acquire_token)
        return StageHandle(self.pipeline, self.state.clone())

    def try_acquire(self) -> Any:
        """Whether the stage is empty, a Boolean, after waiting for a while."""
        return self.pipeline.producer_try_acquire(self.state)

    def advance(self) -> None:
        """Goes on to the next stage."""
        self.state.advance()

    def acquire_and_advance(self, try_acquire_token: Any = None) -> StageHandle:
        """Waits until the stage is empty, and goes on to the next one."""
        handle = self.acquire(try_acquire_token)
        self.state.advance()
        return handle

    def commit(self, handle: StageHandle | None = None) -> None:
        """Says that this thread has written to a stage: that of a handle, or the one where the
        producer is."""
        state = self.state if handle is None else handle.state
        self.pipeline.producer_commit(state)

    def tail(self) -> None:
        """Waits until consumers have emptied all stages; the last call."""
        self.pipeline.producer_tail(self.state)

    def reset(self) -> None:
        """Begins to count again at 0."""
        self.state.reset_count()

    def clone(self) -> PipelineProducer:
        """Another producer at the same place."""
        return PipelineProducer(self.pipeline, self.state.clone())


@dataclass(frozen=True)
class PipelineConsumer:
    """A consumer with its place in a pipeline."""

    ImmutableResourceHandle: ClassVar[type[StageHandle]] = StageHandle
    pipeline: Any
    state: PipelineState

    def wait(self, try_wait_token: Any = None) -> StageHandle:
        """Waits until the stage is full."""
        self.pipeline.consumer_wait(self.state, try_wait_token)
        return StageHandle(self.pipeline, self.state.clone())

    def try_wait(self) -> Any:
        """Whether the stage is full, a Boolean, after waiting for a while."""
        return self.pipeline.consumer_try_wait(self.state)

    def advance(self) -> None:
        """Goes on to the next stage."""
        self.state.advance()

    def wait_and_advance(self, try_wait_token: Any = None) -> StageHandle:
        """Waits until the stage is full, and goes on to the next one."""
        handle = self.wait(try_wait_token)
        self.state.advance()
        return handle

    def release(self, handle: StageHandle | None = None) -> None:
        """Says that this thread has read a stage: that of a handle, or the one where the consumer
        is."""
        state = self.state if handle is None else handle.state
        self.pipeline.consumer_release(state)

    def reset(self) -> None:
        """Begins to count again at 0."""
        self.state.reset_count()

    def clone(self) -> PipelineConsumer:
        """Another consumer at the same place."""
        return PipelineConsumer(self.pipeline, self.state.clone())


def _make_barriers(barriers: Any, stages: int, producers: Any, consumers: Any) -> None:
    if is_first_thread():
        for stage in range_constexpr(stages):
            mbarrier_init(barriers + stage, producers)
            mbarrier_init(barriers + (stages + stage), consumers)
        mbarrier_init_fence()


def _wait(barrier: Any, phase: Any, token: Any) -> None:
    if const_expr(token is None):
        mbarrier_wait(barrier, phase)
    elif not token:
        mbarrier_wait(barrier, phase)


def _rows_and_columns(layout: Any) -> tuple[Any, Any]:
    """The blocks of a cluster along m and n."""
    return size(layout, mode=[1]), size(layout, mode=[2])
