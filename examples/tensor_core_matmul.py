"""c = a @ b of bfloat16 or float16 on tensor cores, its tiles copied in the background.

    python examples/tensor_core_matmul.py

A block of 4 warps makes a tile of 64 x 64 of c, each warp 32 x 32 of it.  While the warps multiply
one slice of 32 columns of a and rows of b, the next one is on its way to shared memory.  On a CPU
this runs as well, to be tested, much slower than a plain loop.
"""

from __future__ import annotations

import importlib.util

import numpy as np

import ferrule as fe
from ferrule import arch

TILE, SLICE, THREADS, STAGES = 64, 32, 128, 2
CHUNK = 8  # elements in 16 bytes
A_ROW, B_ROW = SLICE + CHUNK, TILE + CHUNK  # with a gap, so that 8 rows are in 32 banks


def load_slice(source, target, rows, columns, row_size, row, column):
    """Begins the copy of a tile at a place; beyond the matrix there are zeros."""
    t = arch.thread_idx()[0]
    per_row = columns // CHUNK
    for chunk in fe.range_constexpr(rows * per_row // THREADS):
        i = t + chunk * THREADS
        r, c = i // per_row, i % per_row * CHUNK
        inside = row + r < source.shape[0] and column + c < source.shape[1]
        place = fe.Int64(row + r) * source.shape[1] + column + c
        chunk_of = source.iterator + fe.where(inside, place, 0)
        arch.cp_async(target + (r * row_size + c), chunk_of, CHUNK, cache="global", pred=inside)


def multiply(a_tile, b_tile, total):
    """total += a_tile @ b_tile of this warp's 32 rows and 32 columns."""
    lane, warp = arch.lane_idx(), arch.warp_idx()
    row, column = warp // 2 * 32, warp % 2 * 32
    for k in fe.range_constexpr(0, SLICE, 16):
        lefts = [
            arch.ldmatrix(a_tile + ((row + m * 16 + lane % 16) * A_ROW + k + lane // 16 * 8))
            for m in range(2)
        ]
        for n in fe.range_constexpr(4):
            at = (k + lane % 16) * B_ROW + column + n * 8
            right = arch.ldmatrix(b_tile + at, num_matrices=2, transpose=True)
            for m in fe.range_constexpr(2):
                part = total[None, m, n]
                part.store(arch.mma(lefts[m], right, part.load()))


@fe.kernel
def device_matmul(a: fe.Tensor, b: fe.Tensor, c: fe.Tensor):
    bx, by, _ = arch.block_idx()
    row, column = by * TILE, bx * TILE
    a_tiles = arch.alloc_smem(a.element_type, STAGES * TILE * A_ROW)
    b_tiles = arch.alloc_smem(b.element_type, STAGES * SLICE * B_ROW)
    total = fe.make_fragment((4, 2, 4), fe.Float32)
    total.fill(0.0)
    slices = (a.shape[1] + SLICE - 1) // SLICE
    load_slice(a, a_tiles, TILE, SLICE, A_ROW, row, 0)
    load_slice(b, b_tiles, SLICE, TILE, B_ROW, 0, column)
    arch.cp_async_commit_group()
    for step in range(slices):
        here, there = step % 2, (step + 1) % 2
        if step + 1 < slices:
            k = (step + 1) * SLICE
            load_slice(a, a_tiles + there * (TILE * A_ROW), TILE, SLICE, A_ROW, row, k)
            load_slice(b, b_tiles + there * (SLICE * B_ROW), SLICE, TILE, B_ROW, k, column)
        arch.cp_async_commit_group()
        arch.cp_async_wait_group(1)  # all but the newest: this slice is there
        arch.sync_threads()
        multiply(a_tiles + here * (TILE * A_ROW), b_tiles + here * (SLICE * B_ROW), total)
        arch.sync_threads()  # nobody reads it any more
    store(total, c, row, column)


def store(total, c, row, column):
    """Writes this warp's part of the tile of c."""
    lane, warp = arch.lane_idx(), arch.warp_idx()
    row, column = row + warp // 2 * 32 + lane // 4, column + warp % 2 * 32 + lane % 4 * 2
    for m in fe.range_constexpr(2):
        for n in fe.range_constexpr(4):
            for i in fe.range_constexpr(4):
                r, k = row + m * 16 + i // 2 * 8, column + n * 8 + i % 2
                if r < c.shape[0] and k < c.shape[1]:
                    c[r, k] = total[i, m, n]


@fe.jit
def matmul(a: fe.Tensor, b: fe.Tensor, c: fe.Tensor):
    """c = a @ b."""
    m, n = c.shape
    device_matmul(a, b, c).launch(grid=(fe.ceil_div(n, TILE), fe.ceil_div(m, TILE)), block=THREADS)


def compiled(options: str = "--target cpu", dtype: type = fe.BFloat16) -> fe.Function:
    """The function for row-major matrices, with rows that are multiples of 16 bytes."""
    m = fe.sym_int()
    n, k = (fe.sym_int(divisibility=CHUNK) for _ in range(2))

    def matrix(of, *shape):
        return fe.runtime.make_fake_compact_tensor(of, shape, stride_order=(1, 0), assumed_align=16)

    arguments = matrix(dtype, m, k), matrix(dtype, k, n), matrix(fe.Float32, m, n)
    return fe.compile(matmul, *arguments, options=options)


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
