"""c = a @ b through tiles in shared memory; a thread computes FEW rows of a column of the tile.

    python examples/tiled_matmul.py

A block walks along the rows of a and the columns of b.  In each step its threads bring a tile of
both into shared memory, so that an element is read from far away once for a whole tile; then each
thread adds to its sums, which stay in registers.  Sizes need not be multiples of the tile: what is
outside counts as 0.
"""

from __future__ import annotations

import numpy as np

import ferrule as fe
from ferrule import arch

TILE = 32
FEW = 4
ROWS = TILE // FEW  # of threads


@fe.jit
def load_tile(tile, a, row, column):
    """Brings a tile of a, from that row and column on, into shared memory."""
    tx, ty, _ = arch.thread_idx()
    for step in fe.range_constexpr(FEW):
        i = step * ROWS + ty
        inside = row + i < a.shape[0] and column + tx < a.shape[1]
        tile[i, tx] = a[row + i, column + tx] if inside else 0.0


@fe.kernel
def device_matmul(a: fe.Tensor, b: fe.Tensor, c: fe.Tensor):
    tx, ty, _ = arch.thread_idx()
    bx, by, _ = arch.block_idx()
    layout = fe.make_layout((TILE, TILE), stride=(TILE, 1))
    of_a = fe.make_tensor(arch.alloc_smem(fe.Float32, TILE * TILE), layout)
    of_b = fe.make_tensor(arch.alloc_smem(fe.Float32, TILE * TILE), layout)
    sums = fe.full((FEW,), 0.0, fe.Float32)
    for base in range(0, a.shape[1], TILE):
        load_tile(of_a, a, by * TILE, base)
        load_tile(of_b, b, base, bx * TILE)
        arch.sync_threads()
        for k in range(TILE):
            sums += fe.local_tile(of_a, (FEW, 1), (ty, k))[None, 0].load() * of_b[k, tx]
        arch.sync_threads()
    column = bx * TILE + tx
    for i in fe.range_constexpr(FEW):
        row = by * TILE + ty * FEW + i
        if row < c.shape[0] and column < c.shape[1]:
            c[row, column] = sums[i]


@fe.jit
def matmul(a: fe.Tensor, b: fe.Tensor, c: fe.Tensor):
    """c = a @ b."""
    m, n = c.shape
    grid = (fe.ceil_div(n, TILE), fe.ceil_div(m, TILE))
    device_matmul(a, b, c).launch(grid=grid, block=(TILE, ROWS))


def compiled(options: str = "--target cpu") -> fe.Function:
    """The function for row-major float32 matrices of any sizes that agree."""
    m, n, k = (fe.sym_int() for _ in range(3))

    def matrix(*shape):
        return fe.make_fake_compact_tensor(fe.Float32, shape, stride_order=(1, 0))

    return fe.compile(matmul, matrix(m, k), matrix(k, n), matrix(m, n), options=options)


def main() -> None:
    """Compiles, runs, compares."""
    function = compiled()
    print(function.signature)
    rng = np.random.default_rng(0)
    a = rng.standard_normal((123, 201), dtype=np.float32)
    b = rng.standard_normal((201, 77), dtype=np.float32)
    c = np.empty((123, 77), np.float32)
    function(a, b, c)
    expected = a @ b
    # Sums of 201 products, in another order.
    np.testing.assert_allclose(c, expected, rtol=1e-4, atol=1e-4)
    print(f"equals NumPy's result (max difference {abs(c - expected).max():.1e})")


if __name__ == "__main__":
    main()
