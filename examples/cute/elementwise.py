"""c = op(a, b) element by element, with tiled copies of 16 bytes and predicates.

    python examples/cute/elementwise.py

A block copies a tile of 16 x 128.  Each thread has 4 rows of 4 neighbours of it, and a predicate
for each of these: whether it is in the matrix, whose rows are multiples of 4.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

import ferrule as fe
from ferrule import arch


@fe.kernel
def elementwise_kernel(
    op: fe.Constexpr,
    a: fe.Tensor,
    b: fe.Tensor,
    c: fe.Tensor,
    places,
    shape: fe.Shape,
    copy: fe.TiledCopy,
):
    mine, block = copy.get_slice(arch.thread_idx()[0]), ((None, None), arch.block_idx()[0])
    a, b, c, places = (mine.partition_S(x[block]) for x in (a, b, c, places))
    rows = a.shape[0][1]
    holds = fe.make_rmem_tensor((rows, 1, 1), fe.Boolean)
    for i in fe.range_constexpr(rows):
        holds[i, 0, 0] = fe.elem_less(places[(0, i), 0, 0], shape)
    left, right = fe.make_fragment_like(a), fe.make_fragment_like(b)
    fe.copy(copy, a, left, pred=holds)
    fe.copy(copy, b, right, pred=holds)
    left.store(op(left.load(), right.load()))
    fe.copy(copy, left, c, pred=holds)


@fe.jit
def elementwise(op: fe.Constexpr, a: fe.Tensor, b: fe.Tensor, c: fe.Tensor):
    """c = op(a, b)."""
    atom = fe.make_copy_atom(fe.nvgpu.CopyUniversalOp(), a.element_type, num_bits_per_copy=128)
    threads, values = (fe.make_ordered_layout(s, (1, 0)) for s in ((4, 32), (4, 4)))
    copy = fe.make_tiled_copy_tv(atom, threads, values)
    tiler, _ = fe.make_layout_tv(threads, values)
    tiles = [fe.zipped_divide(x, tiler) for x in (a, b, c, fe.make_identity_tensor(c.shape))]
    grid = fe.size(tiles[2], mode=[1])
    elementwise_kernel(op, *tiles, c.shape, copy).launch(grid=grid, block=copy.size)


def compiled(
    options: str = "--target cpu", op: Callable[[Any, Any], Any] = operator.add
) -> fe.Function:
    """The function for matrices of any number of rows, with rows of whole 16 bytes."""
    shape = fe.sym_int(), fe.sym_int(divisibility=4)
    matrix = fe.make_fake_compact_tensor(fe.Float32, shape, stride_order=(1, 0), assumed_align=16)
    return fe.compile(elementwise, op, matrix, matrix, matrix, options=options)


def main() -> None:
    """Compiles, runs, compares."""
    a, b = np.random.default_rng(0).random((2, 37, 148), np.float32)
    c = np.empty_like(a)
    compiled()(a, b, c)
    np.testing.assert_array_equal(c, a + b)
    print("equals NumPy's result")


if __name__ == "__main__":
    main()
