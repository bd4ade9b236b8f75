"""Transposes a matrix through shared memory, a tile a block.

    python examples/transpose.py

Reading rows and writing columns directly, the threads of a warp would write to 32 places far from
each other.  Through the tile, both the reads and the writes of a warp are neighbours.
"""

from __future__ import annotations

import numpy as np

import ferrule as fe
from ferrule import arch

TILE = 32
ROWS = 8  # of threads; each thread moves TILE // ROWS elements


@fe.kernel
def device_transpose(a: fe.Tensor, out: fe.Tensor):
    tx, ty, _ = arch.thread_idx()
    bx, by, _ = arch.block_idx()
    m, n = a.shape
    # A column more than the tile needs, so that the threads of a warp read from 32 banks.
    layout = fe.make_layout((TILE, TILE), stride=(TILE + 1, 1))
    tile = fe.make_tensor(arch.alloc_smem(a.element_type, TILE * (TILE + 1)), layout)
    for i in range(ty, TILE, ROWS):
        if by * TILE + i < m and bx * TILE + tx < n:
            tile[i, tx] = a[by * TILE + i, bx * TILE + tx]
    arch.sync_threads()
    for i in range(ty, TILE, ROWS):
        if bx * TILE + i < n and by * TILE + tx < m:
            out[bx * TILE + i, by * TILE + tx] = tile[tx, i]


@fe.jit
def transpose(a: fe.Tensor, out: fe.Tensor):
    """out = a.T."""
    m, n = a.shape
    grid = (fe.ceil_div(n, TILE), fe.ceil_div(m, TILE))
    device_transpose(a, out).launch(grid=grid, block=(TILE, ROWS))


def compiled(options: str = "--target cpu") -> fe.Function:
    """The function for float32 matrices of any size."""
    m, n = fe.sym_int(), fe.sym_int()
    a = fe.make_fake_compact_tensor(fe.Float32, (m, n), stride_order=(1, 0))
    out = fe.make_fake_compact_tensor(fe.Float32, (n, m), stride_order=(1, 0))
    return fe.compile(transpose, a, out, options=options)


def main() -> None:
    """Compiles, runs, compares."""
    function = compiled()
    print(function.signature)
    a = np.random.default_rng(0).standard_normal((317, 203), dtype=np.float32)
    out = np.empty((203, 317), np.float32)
    function(a, out)
    np.testing.assert_array_equal(out, a.T)
    print("equals NumPy's result, bit for bit")


if __name__ == "__main__":
    main()
