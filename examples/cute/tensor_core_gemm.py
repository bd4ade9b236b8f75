"""c = a @ b.T of float16 or bfloat16 on tensor cores, written with tiled copies and a tiled mma.

    python examples/cute/tensor_core_gemm.py

`a` is M x K, `b` is N x K, both with rows along K; K and N are multiples of 8.  A block makes a
tile of c.  Slices of a and b come to shared memory in the background, `stages` of them at a time,
in swizzled rows, so that neither copies nor `ldmatrix` wait for a bank.  While the warps multiply
one part of a slice, they load the fragments of the next.  The tile of c goes through shared memory
too, so that each thread writes 16 bytes at once.

From sm_80 on, and on a CPU, where the tiles of SMALL let it be tested.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import ferrule as fe
from ferrule import arch

CHUNK = 8  # elements of a and b in 16 bytes


@dataclass(frozen=True)
class Tiles:
    """The tile of a block, slices in flight, and the warps side by side along M and N."""

    m: int = 128
    n: int = 128
    k: int = 32
    stages: int = 4
    warps: tuple[int, int] = (2, 2)

    @property
    def threads(self) -> int:
        """Of a block."""
        return self.warps[0] * self.warps[1] * 32


LARGE = Tiles()
SMALL = Tiles(32, 32, 32, 3, (1, 2))


def rows_of_slices(rows, tiles):
    """The layout of the slices of a or b in shared memory: blocks of 8 swizzled rows."""
    bits = min(3, (tiles.k // CHUNK).bit_length() - 1)
    swizzle = fe.make_swizzle(bits, 3, 3)
    block = fe.make_layout((8, tiles.k), stride=(tiles.k, 1))
    block = fe.make_composed_layout(swizzle, 0, block)
    return fe.tile_to_shape(block, (rows, tiles.k, tiles.stages), (0, 1, 2))


def rows_of_result(dtype, tiles):
    """The layout of the tile of c: 16 bytes of each row change places with those of 7 others."""
    chunk = 16 // dtype.itemsize
    shift = (tiles.n // chunk).bit_length() - 1
    swizzle = fe.make_swizzle(min(3, shift), chunk.bit_length() - 1, shift)
    return fe.make_composed_layout(
        swizzle, 0, fe.make_layout((tiles.m, tiles.n), stride=(tiles.n, 1))
    )


def copy_of_rows(atom, columns, threads, per):
    """Threads side by side along rows, each with the neighbours that one atom copies."""
    across = columns // per
    return fe.make_tiled_copy_tv(
        atom,
        fe.make_layout((threads // across, across), stride=(across, 1)),
        fe.make_layout((1, per)),
    )


def inside(coordinates, shape):
    """A predicate for each atom of a copy: whether its first element is in the matrix."""
    _, repeats = coordinates.shape[0]
    _, rows, columns = coordinates.shape
    holds = fe.make_rmem_tensor((repeats, rows, columns), fe.Boolean)
    for v in fe.range_constexpr(repeats):
        for i in fe.range_constexpr(rows):
            for j in fe.range_constexpr(columns):
                holds[v, i, j] = fe.elem_less(coordinates[(0, v), i, j], shape)
    return holds


def operand(mine, matrix, shared, tiler, at, proj):
    """What a thread copies of the slices of a matrix, and where in the matrix that is."""
    tile = fe.local_tile(matrix, tiler, at, proj=proj)
    places = fe.local_tile(fe.make_identity_tensor(matrix.shape), tiler, at, proj=proj)
    parts = mine.partition_S(tile), mine.partition_D(shared), mine.partition_S(places)
    return (*parts, matrix.shape)


def load_slice(copy, of_matrix, k, stage):
    """Begins to bring a slice to a stage; zeros beyond the end of the matrix."""
    source, target, coordinates, shape = of_matrix
    holds = inside(coordinates[None, None, None, k], shape)
    fe.copy(copy, source[None, None, None, k], target[None, None, None, stage], pred=holds)


@fe.kernel
def gemm_kernel(
    a: fe.Tensor,
    b: fe.Tensor,
    c: fe.Tensor,
    tiled_mma: fe.TiledMma,
    copy: fe.TiledCopy,
    copy_c: fe.TiledCopy,
    tiles: fe.Constexpr,
):
    t = arch.thread_idx()[0]
    bx, by, _ = arch.block_idx()
    tiler, at = (tiles.m, tiles.n, tiles.k), (bx, by, None)
    rows_a, rows_b = rows_of_slices(tiles.m, tiles), rows_of_slices(tiles.n, tiles)
    memory = arch.get_dyn_smem(a.element_type, alignment=128)
    shared_a = fe.make_tensor(memory, rows_a)
    shared_b = fe.make_tensor(memory + fe.cosize(rows_a), rows_b)
    of_a = operand(copy.get_slice(t), a, shared_a, tiler, at, (1, None, 1))
    of_b = operand(copy.get_slice(t), b, shared_b, tiler, at, (None, 1, 1))
    slices = of_a[0].shape[3]
    for stage in fe.range_constexpr(tiles.stages - 1):
        if stage < slices:
            load_slice(copy, of_a, stage, stage)
            load_slice(copy, of_b, stage, stage)
        arch.cp_async_commit_group()

    # The fragments of a slice, and what of shared memory this thread loads them from.
    own = tiled_mma.get_slice(t)
    left = own.make_fragment_A(own.partition_A(shared_a)[None, None, None, 0])
    right = own.make_fragment_B(own.partition_B(shared_b)[None, None, None, 0])
    total = own.make_fragment_C(own.partition_shape_C((tiles.m, tiles.n)))
    total.fill(0.0)
    matrices = fe.make_copy_atom(fe.nvgpu.warp.LdMatrix8x8x16bOp(False, 4), a.element_type)
    load_a = fe.make_tiled_copy_A(matrices, tiled_mma)
    load_b = fe.make_tiled_copy_B(matrices, tiled_mma)
    from_a, to_a = load_a.get_slice(t).partition_S(shared_a), load_a.get_slice(t).retile(left)
    from_b, to_b = load_b.get_slice(t).partition_S(shared_b), load_b.get_slice(t).retile(right)

    def load_fragments(part, stage):
        fe.copy(load_a, from_a[None, None, part, stage], to_a[None, None, part])
        fe.copy(load_b, from_b[None, None, part, stage], to_b[None, None, part])

    parts = left.shape[2]
    here, free = fe.Int32(0), fe.Int32(tiles.stages - 1)
    arch.cp_async_wait_group(tiles.stages - 2)
    arch.sync_threads()
    load_fragments(0, here)
    for k in range(slices):
        for part in fe.range_constexpr(parts):
            if part == parts - 1:
                arch.cp_async_wait_group(tiles.stages - 2)
                arch.sync_threads()  # the next slice is there, and nobody reads this one any more
                free, here = here, here + 1 if here < tiles.stages - 1 else 0
            load_fragments((part + 1) % parts, here)
            if part == 0:
                ahead = k + tiles.stages - 1
                if ahead < slices:
                    load_slice(copy, of_a, ahead, free)
                    load_slice(copy, of_b, ahead, free)
                arch.cp_async_commit_group()
            fe.gemm(tiled_mma, total, left[None, None, part], right[None, None, part], total)
    arch.cp_async_wait_group(0)
    arch.sync_threads()
    store(total, c, memory, tiled_mma, copy_c, tiles)


def store(total, c, memory, tiled_mma, copy_c, tiles):
    """Writes the tile of c, through shared memory."""
    t, dtype = arch.thread_idx()[0], c.element_type
    bx, by, _ = arch.block_idx()
    result = fe.make_fragment_like(total, dtype)
    result.store(total.load().to(dtype))
    shared = fe.make_tensor(fe.recast_ptr(memory, dtype=dtype), rows_of_result(dtype, tiles))
    atom = fe.make_copy_atom(fe.nvgpu.CopyUniversalOp(), dtype)
    put = fe.make_tiled_copy_C(atom, tiled_mma).get_slice(t)
    fe.copy(atom, put.retile(result), put.partition_D(shared))
    arch.sync_threads()
    tiler, at, mine = (tiles.m, tiles.n), (bx, by), copy_c.get_slice(t)
    source, target = mine.partition_S(shared), mine.partition_D(fe.local_tile(c, tiler, at))
    places = mine.partition_D(fe.local_tile(fe.make_identity_tensor(c.shape), tiler, at))
    rows = fe.make_fragment_like(source)
    fe.copy(copy_c, source, rows)
    fe.copy(copy_c, rows, target, pred=inside(places, c.shape))


@fe.jit
def gemm(a: fe.Tensor, b: fe.Tensor, c: fe.Tensor, tiles: fe.Constexpr):
    """c = a @ b.T."""
    m, n = c.shape
    down, across = tiles.warps
    op = fe.nvgpu.warp.MmaF16BF16Op(a.element_type, fe.Float32, (16, 8, 16))
    tiled_mma = fe.make_tiled_mma(op, (down, across, 1), (16 * down, 16 * across, 16))
    mode = fe.nvgpu.LoadCacheMode.GLOBAL
    background = fe.make_copy_atom(
        fe.nvgpu.cpasync.CopyG2SOp(mode), a.element_type, num_bits_per_copy=128
    )
    copy = copy_of_rows(background, tiles.k, tiles.threads, CHUNK)
    wide = fe.make_copy_atom(fe.nvgpu.CopyUniversalOp(), c.element_type, num_bits_per_copy=128)
    copy_c = copy_of_rows(wide, tiles.n, tiles.threads, 16 // c.element_type.itemsize)
    slices = tiles.stages * (tiles.m + tiles.n) * tiles.k * a.element_type.itemsize
    smem = max(slices, tiles.m * tiles.n * c.element_type.itemsize)
    grid = (fe.ceil_div(m, tiles.m), fe.ceil_div(n, tiles.n), 1)
    gemm_kernel(a, b, c, tiled_mma, copy, copy_c, tiles).launch(
        grid=grid, block=tiles.threads, smem=smem
    )


def compiled(
    options: str = "--target cpu",
    dtype: type = fe.Float16,
    result: type = fe.Float32,
    tiles: Tiles = SMALL,
) -> fe.Function:
    """The function for matrices of any M; N and K are multiples of 8."""
    m = fe.sym_int()
    n, k = (fe.sym_int(divisibility=CHUNK) for _ in range(2))

    def matrix(of, *shape):
        return fe.make_fake_compact_tensor(of, shape, stride_order=(1, 0), assumed_align=16)

    arguments = matrix(dtype, m, k), matrix(dtype, n, k), matrix(result, m, n)
    return fe.compile(gemm, *arguments, tiles, options=options)


def main() -> None:
    """Compiles, runs, compares."""
    function = compiled()
    print(function.signature)
    rng = np.random.default_rng(0)
    # Products and sums of these are exact.
    a = rng.integers(-8, 9, (100, 72)).astype(np.float16)
    b = rng.integers(-8, 9, (88, 72)).astype(np.float16)
    c = np.empty((100, 88), np.float32)
    function(a, b, c)
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32).T)
    print("equals NumPy's result")


if __name__ == "__main__":
    main()
