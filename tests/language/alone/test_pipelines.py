"""Pipelines, their states, named barriers and schedulers, on the CPU and an emulated GPU."""

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import ferrule as fe
from ferrule import arch, pipeline, utils

Array = np.ndarray[Any, np.dtype[Any]]
WARP = pipeline.CooperativeGroup(pipeline.Agent.Thread, 32)
ONE = pipeline.CooperativeGroup(pipeline.Agent.Thread)
STAGES = 3


def rows(dtype: Any = fe.Float32, columns: int = 32) -> Any:
    shape = (fe.sym_int(), columns)
    return fe.make_fake_compact_tensor(dtype, shape, stride_order=(1, 0), assumed_align=16)


def results(function: Any, examples: tuple[Any, ...], *arrays: Any) -> Iterator[Array]:
    """The last array after a call on each target."""
    for options in ("--target cpu", "--target cuda --gpu-arch sm_90a"):
        compiled = fe.compile(function, *examples, options=options)
        if "cpu" in options:
            given = [each.copy() if isinstance(each, np.ndarray) else each for each in arrays]
            compiled(*given)
            yield given[-1]
            continue
        with fe.emulated_gpu("sm_90a", checks="memory,sync,race"):
            there = [fe.cuda.array(e) if isinstance(e, np.ndarray) else e for e in arrays]
            compiled(*there)
            yield fe.cuda.to_numpy(there[-1])


# ---- states ----


@fe.kernel
def places_kernel(out: fe.Tensor, steps: fe.Tensor, producer: fe.Constexpr):
    kinds = pipeline.PipelineUserType
    state = pipeline.make_pipeline_state(kinds.Producer if producer else kinds.Consumer, STAGES)
    for i in range(steps.shape[0]):
        before = state.clone()
        if steps[i] == -1:
            state.reverse()
        elif steps[i] == 1:
            state.advance()
        else:
            state.advance_iters(steps[i])
        out[i, 0], out[i, 1], out[i, 2] = state.count, state.index, state.phase
        out[i, 3] = before.index


@fe.jit
def places(out: fe.Tensor, steps: fe.Tensor, producer: fe.Constexpr):
    places_kernel(out, steps, producer).launch(grid=1, block=1)


@pytest.mark.parametrize("producer", [True, False])
def test_a_state_goes_round(producer: bool) -> None:
    steps = np.array([1, 1, 1, 1, -1, -1, -1, 5, 0, 7, 1, -1], np.int32)
    out = np.zeros((len(steps), 4), np.int32)
    n = fe.sym_int()
    vector = fe.make_fake_compact_tensor(fe.Int32, (n,))
    table = fe.make_fake_compact_tensor(fe.Int32, (n, 4), stride_order=(1, 0))
    fe.compile(places, table, vector, producer, options="--target cpu")(out, steps)
    at = 0
    for step, found in zip(steps, out, strict=True):
        assert found[3] == at % STAGES
        at += step
        assert tuple(found[:3]) == (at, at % STAGES, (at // STAGES + producer) % 2)


# ---- pipelines of threads ----


@fe.struct
class Storage:
    barriers: fe.struct.MemRange[fe.Int64, 2 * STAGES]
    data: fe.struct.Align[fe.struct.MemRange[fe.Float32, STAGES * 32], 128]


@fe.kernel
def warps_kernel(a: fe.Tensor, out: fe.Tensor, tries: fe.Constexpr):
    warp, lane = arch.make_warp_uniform(arch.warp_idx()), arch.lane_idx()
    storage = utils.SmemAllocator().allocate(Storage)
    stages = pipeline.PipelineAsync.create(
        num_stages=STAGES,
        producer_group=WARP,
        consumer_group=WARP,
        barrier_storage=storage.barriers.data_ptr(),
    )
    data = storage.data.get_tensor(fe.make_layout((STAGES, 32), stride=(32, 1)))
    producer, consumer = stages.make_participants()
    if warp == 0:
        for i in range(a.shape[0]):
            token = producer.try_acquire() if fe.const_expr(tries) else None
            stage = producer.acquire_and_advance(token)
            data[stage.index, lane] = a[i, lane]
            stage.commit()
        producer.tail()
    else:
        for i in range(a.shape[0]):
            token = consumer.try_wait() if fe.const_expr(tries) else None
            stage = consumer.wait(token)
            out[i, lane] = data[stage.index, 31 - lane] + fe.Float32(stage.count)
            consumer.release()
            consumer.advance()


@fe.jit
def warps(a: fe.Tensor, out: fe.Tensor, tries: fe.Constexpr):
    warps_kernel(a, out, tries).launch(grid=1, block=64)


@pytest.mark.parametrize("tries", [True, False])
def test_a_warp_produces_and_another_consumes(tries: bool) -> None:
    a = np.arange(11 * 32, dtype=np.float32).reshape(11, 32)
    wanted = a[:, ::-1] + np.arange(11, dtype=np.float32)[:, None]
    for found in results(warps, (rows(), rows(), tries), a, np.zeros_like(a)):
        assert np.array_equal(found, wanted)


# ---- pipelines of copies that threads begin ----


@fe.kernel
def copied_kernel(a: fe.Tensor, out: fe.Tensor):
    """The producing warp never waits for its copies."""
    warp, lane = arch.make_warp_uniform(arch.warp_idx()), arch.lane_idx()
    storage = utils.SmemAllocator().allocate(Storage)
    stages = pipeline.PipelineCpAsync.create(
        num_stages=STAGES,
        producer_group=WARP,
        consumer_group=WARP,
        barrier_storage=storage.barriers.data_ptr(),
    )
    data = storage.data.data_ptr()
    producer, consumer = stages.make_participants()
    if warp == 0:
        for i in range(a.shape[0]):
            stage = producer.acquire_and_advance()
            place = stage.index * 32 + lane
            arch.cp_async(data + place, fe.domain_offset((i, lane), a).iterator, 1)
            stage.commit()
        producer.tail()
    else:
        for i in range(a.shape[0]):
            stage = consumer.wait_and_advance()
            out[i, lane] = data[stage.index * 32 + 31 - lane]
            stage.release()


@fe.jit
def copied(a: fe.Tensor, out: fe.Tensor):
    copied_kernel(a, out).launch(grid=1, block=64)


def test_threads_begin_copies_that_fill_stages() -> None:
    a = np.arange(11 * 32, dtype=np.float32).reshape(11, 32)
    for found in results(copied, (rows(), rows()), a, np.zeros_like(a)):
        assert np.array_equal(found, a[:, ::-1])
    text = fe.compile(copied, rows(), rows(), options="--target cuda --gpu-arch sm_90a")
    assert "cp.async.mbarrier.arrive.noinc.shared.b64" in text.inspect_ptx()


# ---- pipelines of copies ----


@fe.struct
class Boxes:
    barriers: fe.struct.MemRange[fe.Int64, 2 * STAGES]
    come: fe.struct.Align[fe.struct.MemRange[fe.Float32, STAGES * 64], 128]
    go: fe.struct.Align[fe.struct.MemRange[fe.Float32, 2 * 64], 128]


@fe.kernel
def boxes_kernel(a, out, count: fe.Int32):
    warp, t = arch.make_warp_uniform(arch.warp_idx()), arch.thread_idx()[0]
    storage = utils.SmemAllocator().allocate(Boxes)
    loads = pipeline.PipelineTmaAsync.create(
        num_stages=STAGES,
        producer_group=ONE,
        consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, 2),
        tx_count=256,
        barrier_storage=storage.barriers.data_ptr(),
        defer_sync=True,
    )
    stores = pipeline.PipelineTmaStore.create(num_stages=2)
    pipeline.pipeline_init_arrive()
    pipeline.pipeline_init_wait()
    come, go = storage.come.data_ptr(), storage.go.data_ptr()
    if warp == 2:
        state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, STAGES)
        for i in range(count):
            loads.producer_acquire(state)
            if arch.elect_one():
                place = come + state.index * 64
                barrier = loads.producer_get_barrier(state)
                arch.cp_async_bulk_tensor(place, a, (i, 0), barrier)
            loads.producer_commit(state)
            state.advance()
        loads.producer_tail(state)
    else:
        ours = pipeline.NamedBarrier(1, 64)
        state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, STAGES)
        for i in range(count):
            loads.consumer_wait(state)
            go[i % 2 * 64 + t] = come[state.index * 64 + t] * 2.0
            loads.consumer_release(state)
            state.advance()
            arch.fence_proxy("async.shared", space="cta")
            ours.arrive_and_wait()
            if t == 0:
                arch.cp_async_bulk_tensor(out, go + i % 2 * 64, (i, 0))
                stores.producer_commit()
                stores.producer_acquire()
            ours.arrive_and_wait()
        if t == 0:
            stores.producer_tail()


@fe.jit
def boxes(a: fe.Tensor, out: fe.Tensor):
    of_a, of_out = (arch.make_tensor_map(each, (1, 64)) for each in (a, out))
    boxes_kernel(of_a, of_out, a.shape[0]).launch(grid=1, block=96)


def test_copies_fill_stages_and_empty_them() -> None:
    a = np.arange(10 * 64, dtype=np.float32).reshape(10, 64)
    for found in results(boxes, (rows(columns=64), rows(columns=64)), a, np.zeros_like(a)):
        assert np.array_equal(found, 2 * a)


@fe.kernel
def shared_kernel(a, out: fe.Tensor, count: fe.Int32):
    """Both blocks of a cluster get the rows that each of them copies, one after the other."""
    rank, t = arch.block_in_cluster_idx()[0], arch.thread_idx()[0]
    storage = utils.SmemAllocator().allocate(Boxes)
    loads = pipeline.PipelineTmaAsync.create(
        num_stages=STAGES,
        producer_group=ONE,
        consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, 2 * 2),
        tx_count=2 * 128,
        barrier_storage=storage.barriers.data_ptr(),
        cta_layout_vmnk=fe.make_layout((1, 2, 1, 1)),
    )
    come = storage.come.data_ptr()
    producer, consumer = loads.make_participants()
    for i in range(count):
        if arch.warp_idx() == 0:
            stage = producer.acquire_and_advance()
            if arch.elect_one():
                place = come + (stage.index * 64 + rank * 32)
                row = (2 * i + rank, 0)
                arch.cp_async_bulk_tensor(place, a, row, stage.barrier, multicast_mask=3)
        stage = consumer.wait_and_advance()
        out[2 * i + t // 32, rank * 32 + t % 32] = come[stage.index * 64 + t]
        stage.release()
    if arch.warp_idx() == 0:
        producer.tail()
    arch.cluster_arrive()
    arch.cluster_wait()


@fe.jit
def shared(a: fe.Tensor, out: fe.Tensor):
    of_a = arch.make_tensor_map(a, (1, 32))
    shared_kernel(of_a, out, a.shape[0] // 2).launch(grid=2, block=64, cluster=2)


def test_blocks_of_a_cluster_release_each_others_stages() -> None:
    a = np.arange(14 * 32, dtype=np.float32).reshape(14, 32)
    options = "--target cuda --gpu-arch sm_90a"
    compiled = fe.compile(shared, rows(), rows(columns=64), options=options)
    with fe.emulated_gpu("sm_90a"):
        there = fe.cuda.array(a), fe.cuda.array(np.zeros((14, 64), np.float32))
        compiled(*there)
        assert np.array_equal(fe.cuda.to_numpy(there[1]), np.hstack([a, a]))


# ---- turns and named barriers ----


@fe.kernel
def turns_kernel(rounds: fe.Int32, out: fe.Tensor):
    warp, lane = arch.make_warp_uniform(arch.warp_idx()), arch.lane_idx()
    barriers = arch.alloc_smem(fe.Int64, 2 * 3)
    numbers = arch.alloc_smem(fe.Int32, 2)
    if arch.thread_idx()[0] < 2:
        numbers[arch.thread_idx()[0]] = 0
    turn = pipeline.PipelineOrder.create(barriers, 2, 3, warp, WARP)
    for _ in range(rounds):
        turn.wait()
        if lane == 0:
            stage = turn.state.index
            out[stage, numbers[stage]] = warp
            numbers[stage] = numbers[stage] + 1
        arch.sync_warp()
        turn.arrive()


@fe.jit
def turns(rounds: fe.Int32, out: fe.Tensor):
    turns_kernel(rounds, out).launch(grid=1, block=96)


def test_warps_take_turns() -> None:
    out = np.zeros((2, 9), np.int32)
    for found in results(turns, (fe.Int32(0), rows(fe.Int32, 9)), 6, out):
        assert found.tolist() == [[0, 1, 2] * 3] * 2


@fe.kernel
def met_kernel(out: fe.Tensor):
    t = arch.thread_idx()[0]
    numbers = arch.alloc_smem(fe.Int32, 64)
    numbers[t] = t * t
    pipeline.wait_unaligned(1, 64)
    sums = numbers[63 - t] - numbers[t]
    pipeline.agent_sync(pipeline.Agent.ThreadBlock)
    numbers[t] = sums
    pipeline.agent_sync(pipeline.Agent.ThreadBlockCluster)
    out[0, t] = numbers[t ^ 1]
    pipeline.agent_sync(pipeline.Agent.ThreadBlockCluster, is_relaxed=True)


@fe.jit
def met(out: fe.Tensor):
    met_kernel(out).launch(grid=1, block=64)


def test_threads_meet_by_a_number_and_by_what_they_are() -> None:
    t = np.arange(64) ^ 1
    for found in results(met, (rows(fe.Int32, 64),), np.zeros((1, 64), np.int32)):
        assert found[0].tolist() == ((63 - t) ** 2 - t**2).tolist()


@fe.kernel
def arrived_kernel(a: fe.Tensor):
    if arch.warp_idx() == 0:
        pipeline.arrive_unaligned(2, 64)
    else:
        pipeline.wait_unaligned(2, 64)
    a[0, arch.thread_idx()[0]] = 1


@fe.kernel
def alone_kernel(a: fe.Tensor):
    pipeline.agent_sync(pipeline.Agent.Thread)


@pytest.mark.parametrize("kernel", [arrived_kernel, alone_kernel])
def test_arriving_is_for_gpus_and_a_thread_has_nobody_to_wait_for(kernel: Any) -> None:
    @fe.jit
    def host(a: fe.Tensor):
        kernel(a).launch(grid=1, block=64)

    options = "--target cuda --gpu-arch sm_90a"
    if kernel is alone_kernel:
        with pytest.raises(fe.CompileError, match="agent_sync waits for Agent.ThreadBlock or"):
            fe.compile(host, rows(columns=64), options=options)
        return
    assert re.search(
        r"bar\S*\.arrive", fe.compile(host, rows(columns=64), options=options).inspect_ptx()
    )


# ---- schedulers ----


@fe.kernel
def tiles_kernel(out: fe.Tensor, params: fe.Constexpr):
    scheduler = utils.StaticPersistentTileScheduler.create(
        params, arch.block_idx(), arch.grid_dim()
    )
    work = scheduler.initial_work_tile_info()
    while work.is_valid_tile:
        m, n, layer = work.tile_idx
        if m < out.shape[0] and n < out.shape[1]:
            out[m, n, layer] = out[m, n, layer] + 1 + 100 * scheduler.num_tiles_executed
        scheduler.advance_to_next_work()
        work = scheduler.get_current_work()


@pytest.mark.parametrize(
    "shape, cluster, swizzle, along_m, active",
    [
        ((5, 3, 2), (1, 1, 1), 1, True, 4),
        ((5, 7, 1), (2, 1, 1), 1, False, 3),
        ((6, 7, 2), (1, 2, 1), 3, True, 5),
        ((9, 4, 1), (1, 1, 1), 4, False, 100),
    ],
)
def test_each_tile_is_taken_once(
    shape: Any, cluster: Any, swizzle: int, along_m: bool, active: int
) -> None:
    params = utils.PersistentTileSchedulerParams(shape, cluster, swizzle, along_m)

    @fe.jit
    def tiles(out: fe.Tensor):
        grid = params.get_grid_shape(active)
        tiles_kernel(out, params).launch(grid=grid, block=1)

    out = np.zeros(shape, np.int32)
    example = fe.make_fake_compact_tensor(fe.Int32, shape, stride_order=(2, 1, 0))
    fe.compile(tiles, example, options="--target cpu")(out)
    assert (out % 100 == 1).all()
    clusters = int(np.prod(params.clusters))
    assert out.max() // 100 == -(-clusters // min(active, clusters)) - 1


# ---- shared memory by names ----


@fe.struct
class Inner:
    x: fe.Int32
    y: fe.struct.MemRange[fe.Float64, 3]


@fe.struct
class Outer:
    a: fe.Uint8
    inner: fe.struct.Align[Inner, 64]
    b: fe.struct.MemRange[fe.Float16, 5]


def test_a_struct_is_laid_out_as_in_c() -> None:
    assert [(name, offset) for name, _, offset in Inner.fields] == [("x", 0), ("y", 8)]
    assert [Outer.offset_of(name) for name in ("a", "inner", "b")] == [0, 64, 96]
    assert (Inner.size_in_bytes(), Outer.size_in_bytes(), Outer.align) == (32, 128, 64)


@fe.kernel
def memory_kernel(out: fe.Tensor):
    t = arch.thread_idx()[0]
    smem = utils.SmemAllocator()
    outer = smem.allocate(Outer, 64)
    large = smem.allocate_tensor(fe.Float32, fe.make_layout((128, 128)), 1024)
    words = smem.allocate_array(fe.Int32, 64)
    outer.inner.y.data_ptr()[t % 3] = 2.0
    large[t, 127] = fe.Float32(t)
    words[t] = 5
    arch.sync_threads()
    found = fe.Float32(outer.inner.y.data_ptr()[0]) + large[63 - t, 127]
    out[t] = found + fe.Float32(words[63 - t])


@fe.jit
def memory(out: fe.Tensor):
    memory_kernel(out).launch(grid=1, block=64)


def test_a_launch_provides_what_an_allocator_divides() -> None:
    vector = fe.make_fake_compact_tensor(fe.Float32, (64,))
    for found in results(memory, (vector,), np.zeros(64, np.float32)):
        assert np.array_equal(found, 2 + 63 - np.arange(64) + 5)
    text = fe.compile(memory, vector, options="--target cpu").inspect_ir()
    assert "dynamic_shared 1024" in text


def refused(body: Any, launch: dict[str, Any]) -> str:
    @fe.kernel
    def kernel():
        body()

    @fe.jit
    def host():
        kernel().launch(grid=1, block=32, **launch)

    with pytest.raises((fe.CompileError, fe.LaunchError)) as found:
        fe.compile(host, options="--target cpu")()
    return str(found.value)


def too_much() -> None:
    utils.SmemAllocator().allocate_array(fe.Float32, 60000)


def mixed() -> None:
    utils.SmemAllocator().allocate_array(fe.Float32, 64)
    arch.get_dyn_smem(fe.Float32)


def mixed_before() -> None:
    arch.get_dyn_smem(fe.Float32)
    utils.SmemAllocator().allocate_array(fe.Float32, 64)


@pytest.mark.parametrize(
    "body, launch, message",
    [
        (too_much, {}, "the shared memory of this kernel takes 240000 bytes"),
        (mixed, {}, "get_dyn_smem beside a SmemAllocator"),
        (mixed_before, {"smem": 128}, "a SmemAllocator beside get_dyn_smem"),
    ],
)
def test_memory_that_is_refused(body: Any, launch: dict[str, Any], message: str) -> None:
    assert message in refused(body, launch)


def test_a_launch_with_too_little_memory_gets_what_the_allocator_needs() -> None:
    @fe.kernel
    def kernel(out: fe.Tensor):
        words = utils.SmemAllocator().allocate_array(fe.Float32, 64)
        t = arch.thread_idx()[0]
        words[t] = fe.Float32(t)
        arch.sync_threads()
        out[t] = words[63 - t]

    @fe.jit
    def host(out: fe.Tensor):
        kernel(out).launch(grid=1, block=64, smem=128)

    vector = fe.make_fake_compact_tensor(fe.Float32, (64,))
    with pytest.warns(UserWarning, match="needs 256 bytes .* but the launch says smem=128"):
        found = list(results(host, (vector,), np.zeros(64, np.float32)))
    for each in found:
        assert np.array_equal(each, 63 - np.arange(64))


def test_fields_that_are_refused() -> None:
    wrong: dict[str, Any] = {
        "the field 'x' of S is 3": lambda: fe.struct(type("S", (), {"__annotations__": {"x": 3}})),
        "the annotation of S.x is the text 'fe.Int3'": lambda: fe.struct(
            type("S", (), {"__annotations__": {"x": "fe.Int3"}})
        ),
        "MemRange takes two values in brackets": lambda: fe.struct.MemRange[fe.Int32],
        "MemRange[Int32, -1]": lambda: fe.struct.MemRange[fe.Int32, -1],
        "an alignment is a power of two": lambda: fe.struct.Align[fe.Int32, 24],
    }
    for message, make in wrong.items():
        with pytest.raises((TypeError, ValueError)) as found:
            make()
        assert message in str(found.value)
    with pytest.raises(ValueError, match="the architecture is 'sm_12', not one of sm_80, "):
        utils.get_smem_capacity_in_bytes("sm_12")
    assert utils.get_smem_capacity_in_bytes("sm_90a") == 232448
