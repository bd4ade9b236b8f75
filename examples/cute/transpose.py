"""b = a.T through swizzled shared memory: both matrices are read and written along their rows.

    python examples/cute/transpose.py

A block copies a tile of 32 x 32.  A warp writes a row of the tile to shared memory, and reads a
column of it, which without the swizzle would be in a single bank.
"""

from __future__ import annotations

import numpy as np

import ferrule as fe
from ferrule import arch

TILE = 32
ROWS = 4  # of threads


@fe.kernel
def transpose_kernel(a: fe.Tensor, b: fe.Tensor):
    t, (bx, by, _) = arch.thread_idx()[0], arch.block_idx()
    square = fe.make_layout((TILE, TILE), stride=(TILE, 1))
    rows = fe.make_composed_layout(fe.make_swizzle(5, 0, 5), 0, square)
    tile = fe.make_tensor(arch.alloc_smem(a.element_type, TILE * TILE), rows)
    turned = fe.composition(tile, square)  # element (i, j) of it is element (j, i) of the tile

    atom = fe.make_copy_atom(fe.nvgpu.CopyUniversalOp(), a.element_type, num_bits_per_copy=32)
    threads = fe.make_layout((ROWS, TILE), stride=(TILE, 1))
    mine = fe.make_tiled_copy_tv(atom, threads, fe.make_layout((1, 1))).get_slice(t)

    def part(matrix, at):
        places = fe.local_tile(fe.make_identity_tensor(matrix.shape), (TILE, TILE), at)
        places = mine.partition_S(places)
        holds = fe.make_fragment(places.shape[1], fe.Boolean)
        for i in fe.range_constexpr(places.shape[1]):
            holds[i] = fe.elem_less(places[0, i, 0], matrix.shape)
        return mine.partition_S(fe.local_tile(matrix, (TILE, TILE), at)), holds

    source, inside = part(a, (by, bx))
    fe.copy(atom, source, mine.partition_D(tile), pred=inside)
    arch.sync_threads()
    target, inside = part(b, (bx, by))
    fe.copy(atom, mine.partition_S(turned), target, pred=inside)


@fe.jit
def transpose(a: fe.Tensor, b: fe.Tensor):
    """b = a.T."""
    m, n = a.shape
    grid = (fe.ceil_div(n, TILE), fe.ceil_div(m, TILE), 1)
    transpose_kernel(a, b).launch(grid=grid, block=ROWS * TILE)


def compiled(options: str = "--target cpu") -> fe.Function:
    """The function for matrices of any size."""
    m, n = fe.sym_int(), fe.sym_int()
    shapes = (m, n), (n, m)
    examples = [fe.make_fake_compact_tensor(fe.Float32, s, stride_order=(1, 0)) for s in shapes]
    return fe.compile(transpose, *examples, options=options)


def main() -> None:
    """Compiles, runs, compares."""
    a = np.arange(70 * 45, dtype=np.float32).reshape(70, 45)
    b = np.empty((45, 70), np.float32)
    compiled()(a, b)
    np.testing.assert_array_equal(b, a.T)
    print("equals NumPy's result")


if __name__ == "__main__":
    main()
