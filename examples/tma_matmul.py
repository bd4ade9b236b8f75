"""c = a @ b of float16: tiles come and go as boxes of tensors, one warp brings them for four.

    python examples/tma_matmul.py

The host function makes a tensor map of each matrix.  One thread of a fifth warp asks for the tiles
of a and b; they arrive at barriers in shared memory, where four warps wait for them and multiply
them on tensor cores, 32 x 32 of c each.  The result goes back by `stmatrix` and a copy of a box, so
that nobody computes an address in global memory.  It is for GPUs from sm_90 on; on a CPU it runs
as well, to be tested, much slower than a plain loop.
"""

from __future__ import annotations

import numpy as np

import ferrule as fe
from ferrule import arch

TILE, STAGES, WARPS = 64, 2, 4
CHUNK = 8  # elements in 16 bytes, which is what the swizzle moves
TILE_BYTES = TILE * TILE * 2
THREADS = (WARPS + 1) * 32


def place(row, column):
    """Where an element of a tile is whose rows of 128 bytes are swizzled."""
    return row * TILE + (column // CHUNK ^ row % 8) * CHUNK


def bring(of_a, of_b, tiles, full, empty, slices, row, column):
    """Brings the slices of a and b, each as soon as its place is free."""
    for step in range(slices):
        stage = step % STAGES
        if step >= STAGES:
            arch.mbarrier_wait(empty + stage, (step // STAGES + 1) % 2)
        a_tile = tiles + stage * (2 * TILE * TILE)
        arch.mbarrier_arrive_and_expect_tx(full + stage, 2 * TILE_BYTES)
        arch.cp_async_bulk_tensor(a_tile, of_a, (row, step * TILE), full + stage)
        arch.cp_async_bulk_tensor(a_tile + TILE * TILE, of_b, (step * TILE, column), full + stage)


def multiply(tiles, full, empty, slices, total):
    """Adds the products of all slices to this warp's part of the result."""
    lane, warp = arch.lane_idx(), arch.warp_idx()
    row, column = warp // 2 * 32, warp % 2 * 32
    for step in range(slices):
        stage = step % STAGES
        arch.mbarrier_wait(full + stage, step // STAGES % 2)
        a_tile = tiles + stage * (2 * TILE * TILE)
        b_tile = a_tile + TILE * TILE
        for k in range(0, TILE, 16):
            lefts = [
                arch.ldmatrix(a_tile + place(row + m * 16 + lane % 16, k + lane // 16 * 8))
                for m in range(2)
            ]
            for n in fe.range_constexpr(4):
                at = place(k + lane % 16, column + n * 8)
                right = arch.ldmatrix(b_tile + at, num_matrices=2, transpose=True)
                for m in fe.range_constexpr(2):
                    part = total[None, m, n]
                    part.store(arch.mma(lefts[m], right, part.load()))
        arch.sync_warp()
        if lane == 0:
            arch.mbarrier_arrive(empty + stage)


def put(total, c_tile):
    """Writes this warp's part of the result to shared memory, four matrices at a time."""
    lane, warp = arch.lane_idx(), arch.warp_idx()
    row, column = warp // 2 * 32 + lane % 16, warp % 2 * 32 + lane // 16 * 8
    for m in fe.range_constexpr(2):
        for n in fe.range_constexpr(0, 4, 2):
            words = fe.make_fragment(8, fe.Float16)
            for i in fe.range_constexpr(8):
                words[i] = fe.Float16(total[i % 4, m, n + i // 4])
            arch.stmatrix(c_tile + place(row + m * 16, column + n * 8), words.load())


@fe.kernel
def device_matmul(of_a, of_b, of_c, depth: fe.Int32):
    bx, by, _ = arch.block_idx()
    row, column, slices = by * TILE, bx * TILE, (depth + TILE - 1) // TILE
    tiles = arch.alloc_smem(fe.Float16, STAGES * 2 * TILE * TILE, alignment=1024)
    c_tile = arch.alloc_smem(fe.Float16, TILE * TILE, alignment=1024)
    full, empty = arch.alloc_smem(fe.Int64, STAGES), arch.alloc_smem(fe.Int64, STAGES)
    t = arch.thread_idx()[0]
    if t == 0:
        for stage in fe.range_constexpr(STAGES):
            arch.mbarrier_init(full + stage, 1)
            arch.mbarrier_init(empty + stage, WARPS)
        arch.mbarrier_init_fence()
    arch.sync_threads()
    if t == WARPS * 32:
        bring(of_a, of_b, tiles, full, empty, slices, row, column)
    if t < WARPS * 32:
        total = fe.make_fragment((4, 2, 4), fe.Float32)
        total.fill(0.0)
        multiply(tiles, full, empty, slices, total)
        put(total, c_tile)
        arch.fence_proxy("async.shared", space="cta")
        arch.barrier(barrier_id=1, number_of_threads=WARPS * 32)
        if t == 0:
            arch.cp_async_bulk_tensor(of_c, c_tile, (row, column))
            arch.cp_async_bulk_commit_group()
            arch.cp_async_bulk_wait_group(0)


@fe.jit
def matmul(a: fe.Tensor, b: fe.Tensor, c: fe.Tensor):
    """c = a @ b."""
    (m, n), depth = c.shape, a.shape[1]
    maps = [arch.make_tensor_map(x, (TILE, TILE), swizzle="128B") for x in (a, b, c)]
    grid = fe.ceil_div(n, TILE), fe.ceil_div(m, TILE)
    device_matmul(*maps, depth).launch(grid=grid, block=THREADS)


def compiled(options: str = "--target cpu --opt-level 1") -> fe.Function:
    """The function for row-major matrices, with rows that are multiples of 16 bytes."""
    m = fe.sym_int()
    n, k = (fe.sym_int(divisibility=CHUNK) for _ in range(2))

    def matrix(*shape):
        return fe.runtime.make_fake_compact_tensor(
            fe.Float16, shape, stride_order=(1, 0), assumed_align=16
        )

    return fe.compile(matmul, matrix(m, k), matrix(k, n), matrix(m, n), options=options)


def main() -> None:
    """Compiles, runs, compares."""
    function = compiled()
    print(function.signature)
    rng = np.random.default_rng(0)
    # Products and sums of these are exact.
    a = rng.integers(-3, 4, (72, 136)).astype(np.float16)
    b = rng.integers(-3, 4, (136, 88)).astype(np.float16)
    c = np.empty((72, 88), np.float16)
    function(a, b, c)
    np.testing.assert_array_equal(c, a @ b)
    print("equals NumPy's result")


if __name__ == "__main__":
    main()
