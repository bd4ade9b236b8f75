"""C = A @ B.T by boxes and products of warpgroups: TMA and wgmma of sm_90a, in stages.

One warp copies tiles of A and B into stages of shared memory, two warpgroups multiply them, each
half of the rows of a tile of C.  Blocks stay and take one tile after the other.  The same program
runs on the CPU, and on an emulated GPU where there is none:

    python examples/cute/tma_wgmma_gemm.py
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import ferrule as fe
from ferrule import arch, pipeline, utils

cpasync, warpgroup = fe.nvgpu.cpasync, fe.nvgpu.warpgroup
THREADS = 384
"""Two warpgroups that multiply, and one of whose warps the first one copies."""


@dataclass(frozen=True)
class Tiles:
    """The sizes of a tile of C, (m, n), and of the part of k in a stage; how many stages."""

    m: int = 128
    n: int = 128
    k: int = 64
    stages: int = 4


def tiled_mma(tiles: Tiles) -> Any:
    """Two warpgroups, one above the other, with the columns of a tile each."""
    op = warpgroup.MmaF16BF16Op(
        fe.Float16,
        fe.Float32,
        (64, tiles.n, 16),
        warpgroup.OperandSource.SMEM,
        warpgroup.OperandMajorMode.K,
        warpgroup.OperandMajorMode.K,
    )
    return fe.make_tiled_mma(op, (tiles.m // 64, 1, 1))


def stages_of(rows: int, tiles: Tiles) -> Any:
    """Shared memory of so many rows of k, in stages, each in the hardware's arrangement."""
    atom = warpgroup.make_smem_layout_atom(warpgroup.SmemLayoutAtomKind.K_SW128, fe.Float16)
    return fe.tile_to_shape(atom, (rows, tiles.k, tiles.stages), (0, 1, 2))


@fe.kernel
def gemm_kernel(
    load_a, of_a, load_b, of_b, c: fe.Tensor, tiles: fe.Constexpr, params, k_tiles: fe.Int32
):
    layout_a, layout_b = stages_of(tiles.m, tiles), stages_of(tiles.n, tiles)
    smem = utils.SmemAllocator()
    barriers = smem.allocate_array(fe.Int64, 2 * tiles.stages)
    a = smem.allocate_tensor(fe.Float16, layout_a.outer, 1024, layout_a.inner)
    b = smem.allocate_tensor(fe.Float16, layout_b.outer, 1024, layout_b.inner)
    stages = pipeline.PipelineTmaAsync.create(
        num_stages=tiles.stages,
        producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread),
        consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, 8),
        tx_count=(tiles.m + tiles.n) * tiles.k * 2,
        barrier_storage=barriers,
    )
    scheduler = utils.StaticPersistentTileScheduler.create(
        params, arch.block_idx(), arch.grid_dim()
    )
    warp = arch.make_warp_uniform(arch.warp_idx())
    if warp >= 8:
        if warp == 8:
            produce(load_a, of_a, load_b, of_b, a, b, stages, scheduler, tiles, k_tiles)
    else:
        consume(c, a, b, stages, scheduler, tiles, k_tiles)


def produce(load_a, of_a, load_b, of_b, a, b, stages, scheduler, tiles, k_tiles):
    """Copies the tiles of A and B that the products of this block need, in order."""
    state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, tiles.stages)
    a, b = fe.group_modes(a, 0, 2), fe.group_modes(b, 0, 2)
    work = scheduler.initial_work_tile_info()
    while work.is_valid_tile:
        m, n, _ = work.tile_idx
        rows = fe.local_tile(of_a, (tiles.m, tiles.k), (m, None))
        columns = fe.local_tile(of_b, (tiles.n, tiles.k), (n, None))
        rows, columns = fe.group_modes(rows, 0, 2), fe.group_modes(columns, 0, 2)
        alone = fe.make_layout(1)
        a_there, a_here = cpasync.tma_partition(load_a, 0, alone, a, rows)
        b_there, b_here = cpasync.tma_partition(load_b, 0, alone, b, columns)
        for k in range(k_tiles):
            stages.producer_acquire(state)
            barrier = stages.producer_get_barrier(state)
            stage = state.index
            fe.copy(load_a, a_here[None, k], a_there[None, stage], tma_bar_ptr=barrier)
            fe.copy(load_b, b_here[None, k], b_there[None, stage], tma_bar_ptr=barrier)
            state.advance()
        scheduler.advance_to_next_work()
        work = scheduler.get_current_work()
    stages.producer_tail(state)


def consume(c, a, b, stages, scheduler, tiles, k_tiles):
    """Multiplies what has come, one product ahead of the stage that is given back."""
    t = arch.thread_idx()[0]
    mma = tiled_mma(tiles)
    group = mma.get_slice(arch.shuffle_sync(t // 128, 0) * 128)
    left = mma.make_fragment_A(group.partition_A(a))
    right = mma.make_fragment_B(group.partition_B(b))
    sums = fe.make_rmem_tensor(mma.partition_shape_C((tiles.m, tiles.n)), fe.Float32)
    places = mma.get_slice(t).partition_C(fe.make_identity_tensor((tiles.m, tiles.n)))
    kind = pipeline.PipelineUserType.Consumer
    read, release = (pipeline.make_pipeline_state(kind, tiles.stages) for _ in range(2))
    work = scheduler.initial_work_tile_info()
    while work.is_valid_tile:
        m, n, _ = work.tile_idx
        for k in range(k_tiles):
            stages.consumer_wait(read)
            warpgroup.fence()
            mma.set(warpgroup.Field.ACCUMULATE, k > 0)
            for part in fe.range(tiles.k // 16, unroll_full=True):
                at = None, None, part, read.index
                fe.gemm(mma, sums, left[at], right[at], sums)
                mma.set(warpgroup.Field.ACCUMULATE, True)
            mma.set(warpgroup.Field.ACCUMULATE, False)
            warpgroup.commit_group()
            warpgroup.wait_group(1)
            if k > 0:
                stages.consumer_release(release)
                release.advance()
            read.advance()
        warpgroup.wait_group(0)
        stages.consumer_release(release)
        release.advance()
        for i in fe.range_constexpr(fe.size(sums)):
            at = fe.idx2crd(i, sums.shape)
            row, column = places[at]
            row, column = m * tiles.m + row, n * tiles.n + column
            if fe.elem_less((row, column), c.shape):
                c[row, column] = sums[at].to(c.element_type)
        scheduler.advance_to_next_work()
        work = scheduler.get_current_work()


def gemm(tiles: Tiles = Tiles(), blocks: int = 132) -> Any:
    """The host function for tiles of these sizes, of at most so many blocks."""

    @fe.jit
    def tma_wgmma_gemm(a: fe.Tensor, b: fe.Tensor, c: fe.Tensor):
        load = cpasync.CopyBulkTensorTileG2SOp()
        one_a, one_b = (fe.slice_(stages_of(x, tiles), (None, None, 0)) for x in (tiles.m, tiles.n))
        load_a, of_a = cpasync.make_tiled_tma_atom(load, a, one_a, (tiles.m, tiles.k))
        load_b, of_b = cpasync.make_tiled_tma_atom(load, b, one_b, (tiles.n, tiles.k))
        m, n = c.shape
        counts = fe.ceil_div(m, tiles.m), fe.ceil_div(n, tiles.n), 1
        params = utils.PersistentTileSchedulerParams(counts, (1, 1, 1), 8)
        k_tiles = fe.ceil_div(a.shape[1], tiles.k)
        gemm_kernel(load_a, of_a, load_b, of_b, c, tiles, params, k_tiles).launch(
            grid=params.get_grid_shape(blocks), block=THREADS, min_blocks_per_mp=1
        )

    return tma_wgmma_gemm


def examples() -> tuple[Any, Any, Any]:
    """Matrices of any size whose rows begin at multiples of 16 bytes."""
    m, n = fe.sym_int(symbol="m"), fe.sym_int(symbol="n")
    k = fe.sym_int(symbol="k", divisibility=8)

    def matrix(dtype: Any, rows: Any, columns: Any) -> Any:
        shape = (rows, columns)
        return fe.make_fake_compact_tensor(dtype, shape, stride_order=(1, 0), assumed_align=16)

    return matrix(fe.Float16, m, k), matrix(fe.Float16, n, k), matrix(fe.Float32, m, n)


def main() -> None:
    """Multiplies on an emulated GPU, and compares with NumPy."""
    compiled = fe.compile(gemm(), *examples(), options="--target cuda --gpu-arch sm_90a")
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, (rows, 200)).astype(np.float16) for rows in (300, 270))
    with fe.emulated_gpu("sm_90a"):
        there = [fe.cuda.array(each) for each in (a, b, np.zeros((300, 270), np.float32))]
        compiled(*there)
        c = fe.cuda.to_numpy(there[2])
    assert np.array_equal(c, a.astype(np.float32) @ b.T.astype(np.float32))
    print(f"{a.shape} @ {b.T.shape} equals NumPy's result")


if __name__ == "__main__":
    main()
