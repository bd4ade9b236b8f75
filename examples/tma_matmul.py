"""c = a @ b of float16 or bfloat16: slices come and tiles go as boxes of tensors.

    python examples/tma_matmul.py

The host function makes a tensor map of each matrix.  One thread of a warp of its own asks for the
slices of a and b, several ahead; they arrive at barriers in shared memory, where the other warps
wait for them and multiply them on tensor cores.  The result goes back by `stmatrix` and copies of
boxes, so that nobody computes an address in global memory.  Everything in shared memory is in boxes
of 64 columns, 128 bytes, which the copies swizzle.

It is for GPUs from sm_90 on, with the tiles of LARGE; on a CPU it runs as well, to be tested, with
those of SMALL.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import ferrule as fe
from ferrule import arch

CHUNK = 8  # elements in 16 bytes, which is what the swizzle moves
WIDTH = 64  # columns of a box, and the depth of a slice
DEPTH = 16  # of what tensor cores multiply at once


@dataclass(frozen=True)
class Tiles:
    """How c is divided: a tile of a block, the part of a warp; how many slices shared memory has
    room for, and how many tiles below each other are made at about one time."""

    m: int = 128
    n: int = 256
    warp_m: int = 64
    warp_n: int = 64
    stages: int = 4
    group: int = 8
    registers: int = 232

    @property
    def warps(self) -> int:
        """That multiply."""
        return self.m // self.warp_m * (self.n // self.warp_n)

    @property
    def threads(self) -> int:
        """Of a block: registers move between groups of 4 warps."""
        return (self.warps + (4 if self.registers else 1)) * 32

    @property
    def stage(self) -> int:
        """Elements of a slice of a, and behind it one of b."""
        return (self.m + self.n) * WIDTH


LARGE = Tiles()
SMALL = Tiles(32, 64, 32, 16, 2, registers=0)
PRODUCER_REGISTERS = 40


def place(row, column):
    """Where an element of a box is: chunks of a row have changed places."""
    return row * WIDTH + (column // CHUNK ^ row % 8) * CHUNK


def next_stage(stage, phase, tiles):
    """The stage after this one; the phase of its barriers changes each time around."""
    is_last = stage == tiles.stages - 1
    return 0 if is_last else stage + 1, 1 - phase if is_last else phase


def bring(maps, memory, full, empty, slices, row, column, tiles):
    """Brings the slices of a and b, each as soon as its place is free."""
    of_a, of_b = maps
    stage, phase = fe.Int32(0), fe.Int32(1)  # at first every place is free
    for step in range(slices):
        arch.mbarrier_wait(empty + stage, phase)
        there = memory + stage * tiles.stage
        arch.mbarrier_arrive_and_expect_tx(full + stage, tiles.stage * 2)
        arch.cp_async_bulk_tensor(there, of_a, (row, step * WIDTH), full + stage)
        for n in fe.range_constexpr(0, tiles.n, WIDTH):
            box = there + (tiles.m + n) * WIDTH
            arch.cp_async_bulk_tensor(box, of_b, (step * WIDTH, column + n), full + stage)
        stage, phase = next_stage(stage, phase, tiles)


def fragment_places(memory, tiles):
    """Where this lane's rows of the fragments are in the first stage: of a for each step in k, of b
    for each 16 columns."""
    lane = arch.lane_idx()
    row, column = warp_place(tiles)
    box = memory + tiles.m * WIDTH + column // WIDTH * (WIDTH * WIDTH)
    of_a = [memory + place(row + lane % 16, k + lane // 16 * CHUNK) for k in range(0, WIDTH, DEPTH)]
    of_b = [
        box + place(lane % 16, column % WIDTH + n + lane // 16 * CHUNK)
        for n in range(0, tiles.warp_n, 16)
    ]
    return of_a, of_b


def warp_place(tiles):
    """Row and column of this warp's part of the tile."""
    warp, across = arch.warp_idx(), tiles.n // tiles.warp_n
    return warp // across * tiles.warp_m, warp % across * tiles.warp_n


def load_fragments(fragments, places, stage, step, tiles):
    """Loads the fragments of a step in k."""
    (left, right), (of_a, of_b) = fragments, places
    start = stage * tiles.stage
    for m in fe.range_constexpr(tiles.warp_m // 16):
        left[None, m].store(arch.ldmatrix(of_a[step] + start + m * 16 * WIDTH))
    for n in fe.range_constexpr(tiles.warp_n // 16):
        rows = of_b[n] + start + step * DEPTH * WIDTH
        right[None, n].store(arch.ldmatrix(rows, transpose=True))


def multiply(fragments, total):
    """total += left @ right, 16 x 8 of it at a time."""
    left, right = fragments
    _, down, across = total.shape
    for m in fe.range_constexpr(down):
        for i in fe.range_constexpr(across):
            n = i if m % 2 == 0 else across - 1 - i  # there and back: neighbours share a fragment
            half = fe.local_tile(right[None, n // 2], (4,), (n % 2,))
            part = total[None, m, n]
            part.store(arch.mma(left[None, m].load(), half.load(), part.load()))


def multiply_slices(memory, full, empty, slices, total, dtype, tiles):
    """Adds the products of all slices to this warp's part of the result."""
    lane, places, steps = arch.lane_idx(), fragment_places(memory, tiles), WIDTH // DEPTH
    # Fragments to multiply, and those that are being loaded.
    fragments = [
        [fe.make_fragment((8, size // 16), dtype) for size in (tiles.warp_m, tiles.warp_n)]
        for _ in range(2)
    ]
    stage, phase = fe.Int32(0), fe.Int32(0)
    if slices > 0:
        arch.mbarrier_wait(full, 0)
        load_fragments(fragments[0], places, 0, 0, tiles)
    for i in range(slices):
        for step in fe.range_constexpr(steps):
            after = (step + 1) % steps
            if fe.const_expr(after == 0):
                arch.sync_warp()
                if lane == 0:
                    arch.mbarrier_arrive(empty + stage)
                stage, phase = next_stage(stage, phase, tiles)
                if i + 1 < slices:
                    arch.mbarrier_wait(full + stage, phase)
            load_fragments(fragments[(step + 1) % 2], places, stage, after, tiles)
            multiply(fragments[step % 2], total)


def put(total, memory, dtype, tiles):
    """Writes this warp's part of the result to shared memory, four matrices at a time."""
    lane = arch.lane_idx()
    row, column = warp_place(tiles)
    box = memory + column // WIDTH * (tiles.m * WIDTH)
    for m in fe.range_constexpr(tiles.warp_m // 16):
        for n in fe.range_constexpr(0, tiles.warp_n, 16):
            words = fe.make_fragment(8, dtype)
            for half in fe.range_constexpr(2):
                part = total[None, m, n // 8 + half].load()
                fe.local_tile(words, (4,), (half,)).store(part.to(dtype))
            r, k = row + m * 16 + lane % 16, column % WIDTH + n + lane // 16 * CHUNK
            arch.stmatrix(box + place(r, k), words.load())


def tile_of_block(down, across, group):
    """The block's tile: one group of rows after another, so that blocks that run at one time read
    the same rows and columns from the cache."""
    number, of_group = arch.block_idx()[0], group * across
    first = number // of_group * group
    height = min(down - first, group)
    inner = number % of_group
    return first + inner % height, inner // height


@fe.kernel
def device_matmul(
    of_a,
    of_b,
    of_c,
    down: fe.Int32,
    across: fe.Int32,
    slices: fe.Int32,
    dtype: fe.Constexpr,
    tiles: fe.Constexpr,
):
    t, threads = arch.thread_idx()[0], tiles.warps * 32
    y, x = tile_of_block(down, across, tiles.group)
    row, column = y * tiles.m, x * tiles.n
    memory = arch.get_dyn_smem(dtype, alignment=1024)
    full, empty = (arch.alloc_smem(fe.Int64, tiles.stages) for _ in range(2))
    if t == 0:
        for stage in fe.range_constexpr(tiles.stages):
            arch.mbarrier_init(full + stage, 1)
            arch.mbarrier_init(empty + stage, tiles.warps)
        arch.mbarrier_init_fence()
    arch.sync_threads()
    if t >= threads:
        if fe.const_expr(tiles.registers):
            arch.setmaxregister_decrease(PRODUCER_REGISTERS)
        if t == threads:
            bring((of_a, of_b), memory, full, empty, slices, row, column, tiles)
    else:
        if fe.const_expr(tiles.registers):
            arch.setmaxregister_increase(tiles.registers)
        total = fe.make_fragment((4, tiles.warp_m // 16, tiles.warp_n // 8), fe.Float32)
        total.fill(0.0)
        multiply_slices(memory, full, empty, slices, total, dtype, tiles)
        arch.barrier(barrier_id=1, number_of_threads=threads)  # the slices have been read
        put(total, memory, dtype, tiles)
        arch.fence_proxy("async.shared", space="cta")
        arch.barrier(barrier_id=1, number_of_threads=threads)
        if t == 0:
            for n in fe.range_constexpr(0, tiles.n, WIDTH):
                arch.cp_async_bulk_tensor(of_c, memory + n * tiles.m, (row, column + n))
            arch.cp_async_bulk_commit_group()
            arch.cp_async_bulk_wait_group(0)


@fe.jit
def matmul(a: fe.Tensor, b: fe.Tensor, c: fe.Tensor, tiles: fe.Constexpr):
    """c = a @ b."""
    m, n = c.shape
    boxes = (a, tiles.m), (b, WIDTH), (c, tiles.m)
    maps = [arch.make_tensor_map(x, (rows, WIDTH), swizzle="128B") for x, rows in boxes]
    down, across = fe.ceil_div(m, tiles.m), fe.ceil_div(n, tiles.n)
    slices = fe.ceil_div(a.shape[1], WIDTH)
    device_matmul(*maps, down, across, slices, a.element_type, tiles).launch(
        grid=down * across,
        block=tiles.threads,
        smem=tiles.stages * tiles.stage * 2,
        min_blocks_per_mp=1,
    )


def compiled(
    options: str = "--target cpu --opt-level 1", dtype: type = fe.Float16, tiles: Tiles = SMALL
) -> fe.Function:
    """The function for row-major matrices, with rows that are multiples of 16 bytes."""
    m = fe.sym_int()
    n, k = (fe.sym_int(divisibility=CHUNK) for _ in range(2))

    def matrix(*shape):
        return fe.runtime.make_fake_compact_tensor(
            dtype, shape, stride_order=(1, 0), assumed_align=16
        )

    arguments = matrix(m, k), matrix(k, n), matrix(m, n)
    return fe.compile(matmul, *arguments, tiles, options=options)


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
