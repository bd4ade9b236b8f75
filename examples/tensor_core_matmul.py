"""c = a @ b of bfloat16 or float16 on tensor cores, its slices copied in the background.

    python examples/tensor_core_matmul.py

A block makes a tile of c, each of its warps a part of that.  While the warps multiply a slice of a
and b that is in shared memory, the next slices are on their way there; and while a warp multiplies
16 columns of a with 16 rows of b, it brings the next ones into registers.  Shared memory is
swizzled: chunks of 16 bytes change places within their row, so that neither writing nor reading
them waits for a bank.  What each thread copies and reads of a slice is computed once, before.

LARGE is for GPUs.  On a CPU this runs as well, to be tested, with the tiles of SMALL.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass

import numpy as np

import ferrule as fe
from ferrule import arch

CHUNK = 8  # elements in 16 bytes
DEPTH = 16  # of what tensor cores multiply at once


@dataclass(frozen=True)
class Tiles:
    """How c is divided: a tile of a block, the depth of a slice (32 or 64), how many slices shared
    memory has room for, the part of a warp, and how many tiles below each other are made at about
    one time.  What a block copies at once, a chunk a thread, is to be whole groups of 8 rows."""

    m: int = 128
    n: int = 256
    k: int = 32
    stages: int = 4
    warp_m: int = 64
    warp_n: int = 64
    group: int = 8

    @property
    def threads(self) -> int:
        """Of a block."""
        return self.m // self.warp_m * (self.n // self.warp_n) * 32

    @property
    def stage(self) -> int:
        """Elements of a slice of a, and behind it one of b."""
        return (self.m + self.n) * self.k


LARGE = Tiles()
SMALL = Tiles(32, 32, 32, 3, 16, 16)


def swizzled(row, column, columns):
    """Where a chunk of a slice is: 8 of them below each other are in all 32 banks."""
    key = row % 8 if columns >= 64 else row // 2 % 4
    return row * columns + (column // CHUNK ^ key) * CHUNK


def tile_of_block(m, n, tiles):
    """Row and column of the block's tile: one group of rows after another, so that blocks that run
    at one time read the same rows and columns from the cache."""
    across = fe.ceil_div(n, tiles.n)
    number, of_group = arch.block_idx()[0], tiles.group * across
    first = number // of_group * tiles.group
    height = min(fe.ceil_div(m, tiles.m) - first, tiles.group)
    inner = number % of_group
    return (first + inner % height) * tiles.m, inner // height * tiles.n


def copies_of_a(a, row, tiles):
    """What a thread copies of each slice of a: from where, to where, and for each of its chunks the
    place in k where the matrix ends."""
    t, per_row = arch.thread_idx()[0], tiles.k // CHUNK
    r, c = t // per_row, t % per_row * CHUNK
    downs = range(0, tiles.m, tiles.threads // per_row)
    ends = [a.shape[1] - c if row + r + down < a.shape[0] else fe.Int32(0) for down in downs]
    source = a.iterator + (fe.Int64(row + r) * a.shape[1] + c)
    return source, swizzled(r, c, tiles.k), ends


def copies_of_b(b, column, tiles):
    """The same of b."""
    t, per_row = arch.thread_idx()[0], tiles.n // CHUNK
    r, c = t // per_row, t % per_row * CHUNK
    end = b.shape[0] - r if column + c < b.shape[1] else fe.Int32(0)
    ends = [end - down for down in range(0, tiles.k, tiles.threads // per_row)]
    source = b.iterator + (fe.Int64(r) * b.shape[1] + column + c)
    return source, tiles.m * tiles.k + swizzled(r, c, tiles.n), ends


def copy_chunks(source, target, k, ends, columns, rows, row_size):
    """Begins the copies of a thread, so many rows of a slice apart; zeros beyond the end."""
    for i, end in enumerate(ends):
        place = target + i * rows * columns
        arch.cp_async(place, source, CHUNK, cache="global", pred=k < end)
        source = source + fe.Int64(row_size) * rows


def load_slices(a, b, copies, stage, k, tiles):
    """Begins to bring a slice of a and one of b to a stage."""
    (of_a, to_a, a_ends), (of_b, to_b, b_ends) = copies
    rows = tiles.threads * CHUNK // tiles.k
    copy_chunks(of_a + k, stage + to_a, k, a_ends, tiles.k, rows, a.shape[1])
    rows, k_rows = tiles.threads * CHUNK // tiles.n, fe.Int64(k) * b.shape[1]
    copy_chunks(of_b + k_rows, stage + to_b, k, b_ends, tiles.n, rows, b.shape[1])
    arch.cp_async_commit_group()


def fragment_places(memory, tiles):
    """Where this lane's rows of the fragments are in the first stage: of a for each step in k, of b
    for each 16 columns."""
    lane, warp = arch.lane_idx(), arch.warp_idx()
    row, column = warp_place(warp, tiles)
    of_a = [
        memory + swizzled(row + lane % 16, k + lane // 16 * CHUNK, tiles.k)
        for k in range(0, tiles.k, DEPTH)
    ]
    of_b = [
        memory + tiles.m * tiles.k + swizzled(lane % 16, column + n + lane // 16 * CHUNK, tiles.n)
        for n in range(0, tiles.warp_n, 16)
    ]
    return of_a, of_b


def warp_place(warp, tiles):
    """Row and column of the part of a warp in the tile."""
    across = tiles.n // tiles.warp_n
    return warp // across * tiles.warp_m, warp % across * tiles.warp_n


def load_fragments(fragments, places, stage, step, tiles):
    """Loads the fragments of a step in k."""
    (left, right), (of_a, of_b) = fragments, places
    for m in fe.range_constexpr(tiles.warp_m // 16):
        left[None, m].store(arch.ldmatrix(of_a[step] + stage + m * 16 * tiles.k))
    for n in fe.range_constexpr(tiles.warp_n // 16):
        rows = of_b[n] + stage + step * DEPTH * tiles.n
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


@fe.kernel
def device_matmul(a: fe.Tensor, b: fe.Tensor, c: fe.Tensor, tiles: fe.Constexpr):
    memory = arch.get_dyn_smem(a.element_type, alignment=128)
    row, column = tile_of_block(c.shape[0], c.shape[1], tiles)
    copies = copies_of_a(a, row, tiles), copies_of_b(b, column, tiles)
    places = fragment_places(memory, tiles)
    down, across, steps = tiles.warp_m // 16, tiles.warp_n // 8, tiles.k // DEPTH
    total = fe.make_fragment((4, down, across), fe.Float32)
    total.fill(0.0)
    # Fragments to multiply, and those that are being loaded.
    fragments = [
        [fe.make_fragment((8, count), a.element_type) for count in (down, across // 2)]
        for _ in range(2)
    ]
    for stage in fe.range_constexpr(tiles.stages - 1):
        k = fe.Int32(stage * tiles.k)
        load_slices(a, b, copies, memory + stage * tiles.stage, k, tiles)
    arch.cp_async_wait_group(tiles.stages - 2)
    arch.sync_threads()
    load_fragments(fragments[0], places, 0, 0, tiles)
    last = tiles.stage * (tiles.stages - 1)
    here, free = fe.Int32(0), fe.Int32(last)
    for k in range(0, a.shape[1], tiles.k):
        for step in fe.range_constexpr(steps):
            after = (step + 1) % steps
            if fe.const_expr(after == 0):
                arch.cp_async_wait_group(tiles.stages - 2)
                arch.sync_threads()  # the next slice is there, and nobody reads this one any more
                free, here = here, here + tiles.stage if here < last else 0
            load_fragments(fragments[(step + 1) % 2], places, here, after, tiles)
            if fe.const_expr(step == 0):
                ahead = k + (tiles.stages - 1) * tiles.k
                load_slices(a, b, copies, memory + free, ahead, tiles)
            multiply(fragments[step % 2], total)
    arch.cp_async_wait_group(0)
    arch.sync_threads()
    store(total, c, memory, row, column, tiles)


def store(total, c, memory, row, column, tiles):
    """Writes this warp's part of c: 16 rows at a time go through shared memory of its own, so that
    lanes write 16 bytes each, next to each other."""
    lane, warp, dtype = arch.lane_idx(), arch.warp_idx(), c.element_type
    width, down = 16 // dtype.itemsize, warp_place(warp, tiles)
    row, column = row + down[0], column + down[1]
    chunks = tiles.warp_n // width
    own = fe.recast_ptr(memory, dtype=dtype) + warp * (16 * tiles.warp_n)

    def part(r, k, count):
        key = r * dtype.itemsize // 2 % min(8, chunks)
        place = own + (r * tiles.warp_n + (k // width ^ key) * width + k % width)
        return fe.make_tensor(place, fe.make_layout(count))

    for m in fe.range_constexpr(tiles.warp_m // 16):
        for n in fe.range_constexpr(tiles.warp_n // 8):
            words = total[None, m, n].load().to(dtype)
            for i in fe.range_constexpr(2):
                pair = part(lane // 4 + 8 * i, n * 8 + lane % 4 * 2, 2)
                pair[0], pair[1] = words[2 * i], words[2 * i + 1]
        arch.sync_warp()
        for i in fe.range_constexpr(16 * chunks // 32):
            r, k = lane // chunks + i * (32 // chunks), lane % chunks * width
            chunk, at = part(r, k, width).load(), row + m * 16 + r
            if at < c.shape[0] and column + k < c.shape[1]:
                fe.local_tile(c, (1, width), (at, (column + k) // width))[0, None] = chunk
        arch.sync_warp()


@fe.jit
def matmul(a: fe.Tensor, b: fe.Tensor, c: fe.Tensor, tiles: fe.Constexpr):
    """c = a @ b."""
    m, n = c.shape
    grid = fe.ceil_div(m, tiles.m) * fe.ceil_div(n, tiles.n)
    smem = tiles.stages * tiles.stage * 2
    device_matmul(a, b, c, tiles).launch(
        grid=grid, block=tiles.threads, smem=smem, min_blocks_per_mp=1
    )


def compiled(
    options: str = "--target cpu",
    dtype: type = fe.BFloat16,
    result: type = fe.Float32,
    tiles: Tiles = SMALL,
) -> fe.Function:
    """The function for row-major matrices, with rows that are multiples of 16 bytes."""
    m = fe.sym_int()
    n, k = (fe.sym_int(divisibility=CHUNK) for _ in range(2))

    def matrix(of, *shape):
        return fe.runtime.make_fake_compact_tensor(of, shape, stride_order=(1, 0), assumed_align=16)

    arguments = matrix(dtype, m, k), matrix(dtype, k, n), matrix(result, m, n)
    return fe.compile(matmul, *arguments, tiles, options=options)


def compare_bfloat16(a: np.ndarray, b: np.ndarray, expected: np.ndarray) -> None:
    """The kernel for bfloat16, of numbers that it has too, in PyTorch's tensors."""
    import torch

    c = torch.empty(expected.shape)
    compiled()(*(torch.from_numpy(x.astype(np.float32)).bfloat16() for x in (a, b)), c)
    np.testing.assert_array_equal(c.numpy(), expected)
    print("bfloat16: equals PyTorch's result")


def main() -> None:
    """Compiles, runs, compares."""
    function = compiled(dtype=fe.Float16)
    print(function.signature)
    rng = np.random.default_rng(0)
    # Products and sums of these are exact.
    a = rng.integers(-8, 9, (100, 72)).astype(np.float16)
    b = rng.integers(-8, 9, (72, 88)).astype(np.float16)
    c = np.empty((100, 88), np.float32)
    function(a, b, c)
    expected = a.astype(np.float32) @ b.astype(np.float32)
    np.testing.assert_array_equal(c, expected)
    print("float16: equals NumPy's result")
    if importlib.util.find_spec("torch") is not None:
        compare_bfloat16(a, b, expected)


if __name__ == "__main__":
    main()
