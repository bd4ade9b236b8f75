"""A matrix product and a convolution whose sums stay in registers, for the CPU.

    python examples/register_tiles.py

With `--time` it stands beside NumPy and, if it is installed, PyTorch.

A processor with vectors of 512 bits adds 32 products in a cycle and loads two vectors.  A loop that
loads both factors of each product spends its time on loads.  So a block of one thread computes a
tile of 12 rows and 32 columns: its 24 vectors of sums stay in registers through the whole loop, and
each step loads two vectors of b, and 12 numbers of a, for 24 vectors of products.

* The loop over k is outside, the tile inside, unrolled: LLVM makes its lines vectors.
* `fast_math={"contract"}` makes one instruction of a product and a sum.
* The matrix b is brought into panels of 32 columns first, so that a tile reads it from front to
  back.  A panel stays in the second cache while all rows go by: x, the fastest axis of the grid,
  goes over rows.

The numbers of rows are multiples of 12, those of columns of 32.
"""

from __future__ import annotations

import sys
import timeit
from collections.abc import Callable

import numpy as np

import ferrule as fe
from ferrule import arch

ROWS, COLUMNS = 12, 32


def zeros():
    """The sums of a tile."""
    return tuple([fe.full((COLUMNS,), 0.0, fe.Float32) for _ in range(ROWS)])


@fe.kernel
def pack_kernel(b: fe.Tensor, panels: fe.Tensor):
    panel = arch.block_idx()[0]
    for k in range(b.shape[0]):
        fe.autovec_copy(fe.local_tile(b, (1, COLUMNS), (k, panel))[0, None], panels[panel, k, None])


@fe.kernel(fast_math={"contract"})
def matmul_kernel(a: fe.Tensor, panels: fe.Tensor, c: fe.Tensor):
    tile, panel = arch.block_idx()[0], arch.block_idx()[1]
    sums = zeros()
    for k in range(a.shape[1]):
        part = panels[panel, k, None].load()
        sums = tuple([sums[i] + a[tile * ROWS + i, k] * part for i in range(ROWS)])
    for i in fe.range_constexpr(ROWS):
        fe.local_tile(c, (1, COLUMNS), (tile * ROWS + i, panel))[0, None].store(sums[i])


@fe.jit
def matmul(a: fe.Tensor, b: fe.Tensor, c: fe.Tensor):
    """c = a @ b."""
    count = b.shape[1] // COLUMNS
    panels = fe.empty((count, b.shape[0], COLUMNS), fe.Float32)
    pack_kernel(b, panels).launch(grid=count, block=1)
    matmul_kernel(a, panels, c).launch(grid=(a.shape[0] // ROWS, count), block=1)


@fe.kernel(fast_math={"contract"})
def conv_kernel(x: fe.Tensor, weights: fe.Tensor, y: fe.Tensor):
    """A tile is 12 filters, and 32 pixels of a row."""
    part, row, tile = arch.block_idx()
    sums = zeros()
    for channel in range(x.shape[0]):
        for dy in fe.range_constexpr(3):
            for dx in fe.range_constexpr(3):
                pixels = fe.domain_offset((part * COLUMNS + dx,), x[channel, row + dy, None])
                line = fe.local_tile(pixels, (COLUMNS,), (0,)).load()
                tap = channel * 9 + dy * 3 + dx
                sums = tuple([sums[i] + weights[tile, tap, i] * line for i in range(ROWS)])
    for i in fe.range_constexpr(ROWS):
        fe.local_tile(y[tile * ROWS + i, row, None], (COLUMNS,), (part,)).store(sums[i])


@fe.jit
def conv(x: fe.Tensor, weights: fe.Tensor, y: fe.Tensor):
    """The 3 by 3 convolution of an image of some channels, without padding.

    weights: (filters / 12, 9 * channels, 12), so that a tile reads its own from front to back.
    """
    grid = (y.shape[2] // COLUMNS, y.shape[1], weights.shape[0])
    conv_kernel(x, weights, y).launch(grid=grid, block=1)


def compiled(options: str = "--target cpu") -> fe.Function:
    """The product of row-major matrices."""
    m, n = fe.sym_int(divisibility=ROWS), fe.sym_int(divisibility=COLUMNS)
    k = fe.sym_int()
    shapes = ((m, k), (k, n), (m, n))
    return fe.compile(matmul, *(fe.row_major(s, fe.Float32) for s in shapes), options=options)


def compiled_conv(options: str = "--target cpu") -> fe.Function:
    """The convolution of row-major images."""
    channels, tiles, height = fe.sym_int(), fe.sym_int(), fe.sym_int()
    width = fe.sym_int(divisibility=COLUMNS)
    shapes = (
        (channels, height + 2, width + 2),
        (tiles, 9 * channels, ROWS),
        (ROWS * tiles, height, width),
    )
    return fe.compile(conv, *(fe.row_major(s, fe.Float32) for s in shapes), options=options)


def packed(weights: np.ndarray) -> np.ndarray:
    """Weights (filters, channels, 3, 3) in the order of `conv`."""
    tiles = weights.reshape(weights.shape[0] // ROWS, ROWS, -1)
    return np.ascontiguousarray(tiles.transpose(0, 2, 1))


def convolved(x: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The convolution, by NumPy."""
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(1, 2))
    return np.einsum("chwyx,fcyx->fhw", windows, weights)


def best(work: Callable[[], object]) -> float:
    """The shortest of many runs, in milliseconds."""
    return 1e3 * min(timeit.repeat(work, number=1, repeat=30))


def show_times(product: fe.Function, convolution: fe.Function) -> None:
    """Print times beside other libraries; set OPENBLAS_NUM_THREADS and the like to 1 before."""
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape, dtype=np.float32) for shape in ((1020, 1024), (1024, 1024)))
    c, other = np.empty((2, 1020, 1024), np.float32)
    ours, theirs = best(lambda: product(a, b, c)), best(lambda: np.matmul(a, b, out=other))
    print(f"product: {ours:.2f} ms; NumPy's BLAS: {theirs:.2f} ms")
    x = rng.standard_normal((64, 58, 66), dtype=np.float32)
    weights = rng.standard_normal((60, 64, 3, 3), dtype=np.float32)
    order, y = packed(weights), np.empty((60, 56, 64), np.float32)
    print(f"convolution: {best(lambda: convolution(x, order, y)):.2f} ms", end="")
    try:
        import torch
    except ImportError:
        print()
        return
    torch.set_num_threads(1)
    given = torch.from_numpy(x)[None], torch.from_numpy(weights)
    print(f"; PyTorch's: {best(lambda: torch.nn.functional.conv2d(*given)):.2f} ms")


def main() -> None:
    """Compiles, runs, compares."""
    product, convolution = compiled(), compiled_conv()
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape, dtype=np.float32) for shape in ((24, 70), (70, 64)))
    c = np.empty((24, 64), np.float32)
    product(a, b, c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-4, atol=1e-4)
    x = rng.standard_normal((5, 6, 66), dtype=np.float32)
    weights = rng.standard_normal((24, 5, 3, 3), dtype=np.float32)
    y = np.empty((24, 4, 64), np.float32)
    convolution(x, packed(weights), y)
    np.testing.assert_allclose(y, convolved(x, weights), rtol=1e-4, atol=1e-4)
    print("equals NumPy's results")
    if "--time" in sys.argv[1:]:
        show_times(product, convolution)


if __name__ == "__main__":
    main()
