"""softmax(q @ k.T) @ v of heads, without the matrix of scores, written with tiled copies and mma.

    python examples/cute/flash_attention.py

Tensors are heads x tokens x 64 or 128, of float16 or bfloat16.  A block makes some rows of one
head: it goes over tiles of k and v, and keeps for each row the largest score and the sum so far.
The next tile of v is on its way while scores are computed, and the next of k during the softmax.
The scores of a tile stay in registers: the result of one product is the left side of the next.

From sm_80 on with LARGE rows, and on a CPU, where SMALL ones let it be tested.
"""

from __future__ import annotations

import math
import operator

import numpy as np

import ferrule as fe
from ferrule import arch

LARGE, SMALL = 64, 16  # rows of q in a block, and of k and v in a tile; a warp has 16
CHUNK = 8  # elements in 16 bytes
LOG2_E = math.log2(math.e)


def swizzled_rows(rows, columns):
    """The layout of a tile in shared memory."""
    block = fe.make_layout((8, 64), stride=(64, 1))
    block = fe.make_composed_layout(fe.make_swizzle(3, 3, 3), 0, block)
    return fe.tile_to_shape(block, (rows, columns), (0, 1))


def load(copy, operand, tile):
    """Begins to bring a tile to shared memory; rows beyond the last are zeros."""
    source, target, places, count = operand
    rows, columns = target.shape[1], fe.size(target, mode=[2])
    layout = fe.make_layout((1, rows, columns), stride=(0, 1, 0))
    holds = fe.make_rmem_tensor(layout, fe.Boolean)
    for i in fe.range_constexpr(rows):
        holds[0, i, 0] = places[0, i, 0, tile][0] < count
    fe.copy(copy, source[None, None, None, tile], target, pred=holds)


def operand(copy, matrix, shared):
    """What a thread copies of the tiles of a matrix, and where in the matrix that is."""
    mine, tiler = copy.get_slice(arch.thread_idx()[0]), fe.product_each(shared.shape)
    tiles = fe.local_tile(matrix, tiler, (None, 0))
    places = fe.local_tile(fe.make_identity_tensor(matrix.shape), tiler, (None, 0))
    parts = mine.partition_S(tiles), mine.partition_D(shared), mine.partition_S(places)
    return (*parts, matrix.shape[0])


def by_rows(total):
    """A fragment of C as a matrix: rows of this thread, and its columns."""
    ((c, r), m, n), ((dc, dr), dm, dn) = total.shape, total.stride
    layout = fe.make_layout(((r, m), (c, n)), stride=((dr, dm), (dc, dn)))
    return fe.make_tensor(total.iterator, layout)


def as_left_side(scores):
    """A fragment of C as one of A: two tiles along N are one along K."""
    (values, m, (pair, n)), (dv, dm, (dp, dn)) = (
        getattr(fe.logical_divide(scores.layout, (None, None, 2)), what)
        for what in ("shape", "stride")
    )
    layout = fe.make_layout(((values, pair), m, n), stride=((dv, dp), dm, dn))
    return fe.make_tensor(scores.iterator, layout)


def loads(make, tiled_mma, shared, registers, *, transpose=False):
    """An atom, and what of shared memory and registers this thread loads by it."""
    t = arch.thread_idx()[0]
    matrices = fe.nvgpu.warp.LdMatrix8x8x16bOp(transpose, 4)
    copy = make(fe.make_copy_atom(matrices, registers.element_type), tiled_mma).get_slice(t)
    return copy, copy.partition_S(shared), copy.retile(registers)


def multiply(tiled_mma, total, left, right, from_memory):
    """total += left @ right, whose parts come from shared memory one after the other."""
    for part in fe.range_constexpr(fe.size(left, mode=[2])):
        for copy, source, target in from_memory:
            fe.copy(copy, source[None, None, part], target[None, None, part])
        fe.gemm(tiled_mma, total, left[None, None, part], right[None, None, part], total)


def hide(scores, own, tile, rows, count):
    """Scores of tokens beyond the last are those of nothing."""
    places = fe.make_identity_tensor((rows, rows))
    columns = by_rows(own.partition_C(places))
    of_scores = by_rows(scores)
    for c in fe.range_constexpr(fe.size(of_scores, mode=[1])):
        if tile * rows + columns[0, c][1] >= count:
            for r in fe.range_constexpr(fe.size(of_scores, mode=[0])):
                of_scores[r, c] = -float("inf")


def softmax(scores, output, largest, sums, scale):
    """Turns scores into weights, and scales what was summed up to the new largest score."""
    of_scores, of_output = by_rows(scores), by_rows(output)
    for r in fe.range_constexpr(fe.size(of_scores, mode=[0])):
        row = of_scores[r, None].load()
        top = arch.warp_reduction(row.reduce(fe.ReductionOp.MAX, largest[r], 0), max, 4)
        weights = fe.math.exp2((row - top) * scale, fastmath=True)
        factor = fe.math.exp2((largest[r] - top) * scale, fastmath=True)
        total = weights.reduce(fe.ReductionOp.ADD, 0.0, 0)
        sums[r] = sums[r] * factor + arch.warp_reduction(total, operator.add, 4)
        largest[r] = top
        of_scores[r, None] = weights
        of_output[r, None] = of_output[r, None].load() * factor


@fe.kernel
def attention_kernel(
    q: fe.Tensor,
    k: fe.Tensor,
    v: fe.Tensor,
    out: fe.Tensor,
    scale: fe.Float32,
    copy: fe.TiledCopy,
    tiled_mma: fe.TiledMma,
    rows: fe.Constexpr,
):
    t, (block, head, _) = arch.thread_idx()[0], arch.block_idx()
    dtype, columns = q.element_type, q.shape[2]
    shared = [
        fe.make_tensor(
            arch.alloc_smem(dtype, rows * columns, alignment=128), swizzled_rows(rows, columns)
        )
        for _ in range(3)
    ]
    of_q, of_k, of_v = (
        operand(copy, matrix[head, None, None], tile)
        for matrix, tile in zip((q, k, v), shared, strict=True)
    )
    load(copy, of_q, block)
    load(copy, of_k, 0)
    arch.cp_async_commit_group()
    turned = fe.composition(shared[2], fe.make_layout((columns, rows), stride=(rows, 1)))
    own = tiled_mma.get_slice(t)
    left = own.make_fragment_A(own.partition_A(shared[0]))
    right = own.make_fragment_B(own.partition_B(shared[1]))
    values = own.make_fragment_B(own.partition_B(turned))
    of_scores = (
        loads(fe.make_tiled_copy_A, tiled_mma, shared[0], left),
        loads(fe.make_tiled_copy_B, tiled_mma, shared[1], right),
    )
    of_values = (loads(fe.make_tiled_copy_B, tiled_mma, turned, values, transpose=True),)
    output = own.make_fragment_C(own.partition_shape_C((rows, columns)))
    scores = own.make_fragment_C(own.partition_shape_C((rows, rows)))
    weights = fe.make_fragment_like(scores, dtype)
    output.fill(0.0)
    largest, sums = fe.make_fragment(2, fe.Float32), fe.make_fragment(2, fe.Float32)
    largest.fill(-3e38)  # not infinite: a difference of infinities is no number
    sums.fill(0.0)
    tiles = fe.ceil_div(k.shape[1], rows)
    for tile in range(tiles):
        arch.cp_async_wait_group(0)
        arch.sync_threads()  # the tile of k is there, and nobody reads that of v any more
        load(copy, of_v, tile)
        arch.cp_async_commit_group()
        scores.fill(0.0)
        multiply(tiled_mma, scores, left, right, of_scores)
        arch.cp_async_wait_group(0)
        arch.sync_threads()
        if tile + 1 < tiles:
            load(copy, of_k, tile + 1)
            arch.cp_async_commit_group()
        if (tile + 1) * rows > k.shape[1]:
            hide(scores, own, tile, rows, k.shape[1])
        softmax(scores, output, largest, sums, scale)
        weights.store(scores.load().to(dtype))
        multiply(tiled_mma, output, as_left_side(weights), values, of_values)
    store(output, sums, out[head, None, None], block, shared[0], copy, tiled_mma)


def store(output, sums, out, block, shared, copy, tiled_mma):
    """Divides by the sums, and writes the rows through shared memory."""
    t, dtype = arch.thread_idx()[0], out.element_type
    total = by_rows(output)
    for r in fe.range_constexpr(fe.size(total, mode=[0])):
        total[r, None] = total[r, None].load() / sums[r]
    result = fe.make_fragment_like(output, dtype)
    result.store(output.load().to(dtype))
    one = fe.make_copy_atom(fe.nvgpu.CopyUniversalOp(), dtype)
    put = fe.make_tiled_copy_C(one, tiled_mma).get_slice(t)
    arch.sync_threads()
    fe.copy(one, put.retile(result), put.partition_D(shared))
    arch.sync_threads()
    mine, tiler = copy.get_slice(t), fe.product_each(shared.shape)
    source = mine.partition_S(shared)
    target = mine.partition_D(fe.local_tile(out, tiler, (block, 0)))
    places = mine.partition_D(fe.local_tile(fe.make_identity_tensor(out.shape), tiler, (block, 0)))
    chunks = fe.make_fragment_like(source)
    fe.basic_copy(source, chunks)
    wide = fe.make_copy_atom(fe.nvgpu.CopyUniversalOp(), dtype, num_bits_per_copy=128)
    for i in fe.range_constexpr(source.shape[1]):
        if places[0, i, 0][0] < out.shape[0]:
            fe.copy(wide, chunks[None, i, None], target[None, i, None])


@fe.jit
def attention(
    q: fe.Tensor,
    k: fe.Tensor,
    v: fe.Tensor,
    out: fe.Tensor,
    scale: fe.Float32,
    rows: fe.Constexpr,
):
    """out = softmax(scale * q @ k.T) @ v, for each head."""
    heads, count, _ = q.shape
    warps = rows // 16
    background = fe.nvgpu.cpasync.CopyG2SOp(fe.nvgpu.LoadCacheMode.GLOBAL)
    atom = fe.make_copy_atom(background, q.element_type, num_bits_per_copy=128)
    threads = fe.make_layout((warps * 4, 8), stride=(8, 1))
    copy = fe.make_tiled_copy_tv(atom, threads, fe.make_layout((1, CHUNK)))
    op = fe.nvgpu.warp.MmaF16BF16Op(q.element_type, fe.Float32, (16, 8, 16))
    tiled_mma = fe.make_tiled_mma(op, (warps, 1, 1), (rows, 16, 16))
    grid = (fe.ceil_div(count, rows), heads, 1)
    attention_kernel(q, k, v, out, scale * LOG2_E, copy, tiled_mma, rows).launch(
        grid=grid, block=warps * 32
    )


def compiled(
    options: str = "--target cpu",
    dtype: type = fe.Float16,
    columns: int = 64,
    rows: int = SMALL,
) -> fe.Function:
    """The function for any number of heads and of tokens; those of k and v differ from q's."""
    heads, count, others = (fe.sym_int() for _ in range(3))

    def matrix(tokens):
        return fe.make_fake_compact_tensor(
            dtype, (heads, tokens, columns), stride_order=(2, 1, 0), assumed_align=16
        )

    arguments = matrix(count), matrix(others), matrix(others), matrix(count)
    return fe.compile(attention, *arguments, fe.Float32(1.0), rows, options=options)


def expected(q: np.ndarray, k: np.ndarray, v: np.ndarray, scale: float) -> np.ndarray:
    """The same in NumPy, in float32."""
    scores = scale * np.einsum("hmd,hnd->hmn", q.astype(np.float32), k.astype(np.float32))
    weights = np.exp(scores - scores.max(2, keepdims=True))
    return np.einsum("hmn,hnd->hmd", weights / weights.sum(2, keepdims=True), v.astype(np.float32))


def main() -> None:
    """Compiles, runs, compares."""
    function = compiled()
    print(function.signature)
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((2, n, 64)).astype(np.float16) for n in (40, 50, 50))
    out = np.empty_like(q)
    function(q, k, v, out, 0.125)
    np.testing.assert_allclose(out, expected(q, k, v, 0.125), atol=2e-3)
    print("equals NumPy's result")


if __name__ == "__main__":
    main()
