"""c = a.T @ b of float32 without tensor cores: fused multiply-adds on tiles in registers.

    python examples/cute/sgemm.py

`a` is K x M, `b` is K x N, with rows of whole 16 bytes.  A block of 256 threads makes 128 x 128
elements of c, each thread 8 x 8: four neighbours in each of two places along M and along N, so that
it reads 16 bytes of shared memory at once.  Slices of a and b come to shared memory in the
background.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import ferrule as fe
from ferrule import arch


@dataclass(frozen=True)
class Tiles:
    """The tile of a block, slices in flight, and the threads along M and N."""

    m: int = 128
    n: int = 128
    k: int = 8
    stages: int = 3
    threads: tuple[int, int] = (16, 16)

    @property
    def block(self) -> int:
        """The threads of a block."""
        return self.threads[0] * self.threads[1]


LARGE = Tiles()
SMALL = Tiles(16, 16, 4, 3, (2, 2))


def inside(places, shape):
    """A predicate for each atom of a copy: whether its first element is in the matrix."""
    rows, columns = fe.size(places, mode=[1]), fe.size(places, mode=[2])
    holds = fe.make_rmem_tensor((1, rows, columns), fe.Boolean)
    for i in fe.range_constexpr(rows):
        for j in fe.range_constexpr(columns):
            holds[0, i, j] = fe.elem_less(places[0, i, j], shape)
    return holds


def operand(mine, matrix, shared, tiler, at, proj):
    """What a thread copies of the slices of a matrix, and where in the matrix that is."""
    tile = fe.local_tile(matrix, tiler, at, proj=proj)
    places = fe.local_tile(fe.make_identity_tensor(matrix.shape), tiler, at, proj=proj)
    parts = mine.partition_S(tile), mine.partition_D(shared), mine.partition_S(places)
    return (*parts, matrix.shape)


def load(copy, of_matrix, k, stage):
    """Begins to bring a slice to a stage; zeros beyond the end of the matrix."""
    source, target, places, shape = of_matrix
    holds = inside(places[None, None, None, k], shape)
    fe.copy(copy, source[None, None, None, k], target[None, None, None, stage], pred=holds)


@fe.kernel
def sgemm_kernel(
    a: fe.Tensor,
    b: fe.Tensor,
    c: fe.Tensor,
    tiled_mma: fe.TiledMma,
    copies: fe.Constexpr,
    tiles: fe.Constexpr,
):
    t, (bx, by, _) = arch.thread_idx()[0], arch.block_idx()
    tiler, at = (tiles.m, tiles.n, tiles.k), (bx, by, None)
    shared_a, shared_b = (
        fe.make_tensor(
            arch.alloc_smem(fe.Float32, rows * tiles.k * tiles.stages),
            fe.make_layout((rows, tiles.k, tiles.stages)),
        )
        for rows in (tiles.m, tiles.n)
    )
    of_a = operand(copies[0].get_slice(t), a, shared_a, tiler, at, (1, None, 1))
    of_b = operand(copies[1].get_slice(t), b, shared_b, tiler, at, (None, 1, 1))
    slices = of_a[0].shape[3]
    for stage in fe.range_constexpr(tiles.stages - 1):
        if stage < slices:
            load(copies[0], of_a, stage, stage)
            load(copies[1], of_b, stage, stage)
        arch.cp_async_commit_group()

    own = tiled_mma.get_slice(t)
    from_a, from_b = own.partition_A(shared_a), own.partition_B(shared_b)
    left = own.make_fragment_A(from_a[None, None, None, 0])
    right = own.make_fragment_B(from_b[None, None, None, 0])
    result = own.partition_C(fe.local_tile(c, tiler, at, proj=(1, 1, None)))
    total = own.make_fragment_C(result)
    total.fill(0.0)
    here, free = fe.Int32(0), fe.Int32(tiles.stages - 1)
    for k in range(slices):
        arch.cp_async_wait_group(tiles.stages - 2)
        arch.sync_threads()  # the slice is there, and nobody reads the one before any more
        if k + tiles.stages - 1 < slices:
            load(copies[0], of_a, k + tiles.stages - 1, free)
            load(copies[1], of_b, k + tiles.stages - 1, free)
        arch.cp_async_commit_group()
        fe.autovec_copy(from_a[None, None, None, here], left)
        fe.autovec_copy(from_b[None, None, None, here], right)
        fe.gemm(tiled_mma, total, left, right, total)
        free, here = here, here + 1 if here < tiles.stages - 1 else 0
    places = fe.local_tile(fe.make_identity_tensor(c.shape), tiler, at, proj=(1, 1, None))
    holds = inside(own.partition_C(places), c.shape)
    one = fe.make_copy_atom(fe.nvgpu.CopyUniversalOp(), fe.Float32)
    fe.copy(one, total, result, pred=holds)


@fe.jit
def sgemm(a: fe.Tensor, b: fe.Tensor, c: fe.Tensor, tiles: fe.Constexpr):
    """c = a.T @ b."""
    m, n = c.shape
    down, across = tiles.threads
    tiled_mma = fe.make_tiled_mma(
        fe.nvgpu.MmaUniversalOp(fe.Float32),
        fe.make_layout((down, across, 1), stride=(across, 1, 0)),
        (
            fe.make_layout((down, 4), stride=(4, 1)),
            fe.make_layout((across, 4), stride=(4, 1)),
            None,
        ),
    )
    background = fe.nvgpu.cpasync.CopyG2SOp()
    atom = fe.make_copy_atom(background, fe.Float32, num_bits_per_copy=128)
    copies = [
        fe.make_tiled_copy_tv(
            atom,
            fe.make_layout((rows // 4, tiles.block * 4 // rows)),
            fe.make_layout((4, 1)),
        )
        for rows in (tiles.m, tiles.n)
    ]
    grid = (fe.ceil_div(m, tiles.m), fe.ceil_div(n, tiles.n), 1)
    sgemm_kernel(a.transpose(), b.transpose(), c, tiled_mma, copies, tiles).launch(
        grid=grid, block=tiles.block
    )


def compiled(options: str = "--target cpu", tiles: Tiles = SMALL) -> fe.Function:
    """The function for matrices of any K; M and N are multiples of 4."""
    k = fe.sym_int()
    m, n = (fe.sym_int(divisibility=4) for _ in range(2))

    arguments = (
        fe.make_fake_compact_tensor(fe.Float32, shape, stride_order=(1, 0), assumed_align=16)
        for shape in ((k, m), (k, n), (m, n))
    )
    return fe.compile(sgemm, *arguments, tiles, options=options)


def main() -> None:
    """Compiles, runs, compares."""
    rng = np.random.default_rng(0)
    # Products and sums of these are exact.
    a, b = (rng.integers(-8, 9, (27, rows)).astype(np.float32) for rows in (36, 44))
    c = np.empty((36, 44), np.float32)
    compiled()(a, b, c)
    np.testing.assert_array_equal(c, a.T @ b)
    print("equals NumPy's result")


if __name__ == "__main__":
    main()
