"""Swizzled tensors, tensors of coordinates, tiled copies and matrix multiplications in kernels."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from agreement import run_all_ways

import ferrule as fe
from ferrule.language.layouts import crd2idx

arch = fe.arch
run = partial(run_all_ways, plain=False)
SWIZZLE = fe.make_swizzle(2, 1, 3)
ROWS = fe.make_layout((16, 8), stride=(8, 1))


def launched(kernel: Any, *arguments: Any, block: Any = 32) -> Any:
    """The last argument after a launch of a kernel."""

    shapes = [argument.shape for argument in arguments]

    def host(*args):
        known = [
            fe.make_tensor(a.iterator, fe.make_ordered_layout(s, tuple(range(len(s), 0, -1))))
            for a, s in zip(args, shapes, strict=True)
        ]
        kernel(*known).launch(grid=1, block=block)

    result = run(host, arguments)
    assert result.error is None, result.error
    return result.arguments[-1]


def composed(dtype: Any, stages: int = 1) -> Any:
    """In a kernel: a tensor of a composed layout, and its memory."""
    memory = arch.alloc_smem(dtype, 128 * stages, alignment=128)
    rows = fe.make_layout((16, 8, stages), stride=(8, 1, 128))
    return fe.make_tensor(memory, fe.make_composed_layout(SWIZZLE, 0, rows)), memory


def by_pointer(dtype: Any, stages: int = 1) -> Any:
    """The same by a pointer whose bytes are swizzled."""
    memory = arch.alloc_smem(dtype, 128 * stages, alignment=1024)
    base = 1 + (dtype.itemsize - 1).bit_length()
    pointer = fe.recast_ptr(memory, fe.make_swizzle(2, base, 3))
    rows = fe.make_layout((16, 8, stages), stride=(8, 1, 128))
    return fe.make_tensor(pointer, rows), memory


def swizzled(values: Any) -> Any:
    """What memory has if each element of a matrix is where the composed layout says."""
    layout = fe.make_composed_layout(SWIZZLE, 0, ROWS)
    memory = np.empty(128, values.dtype)
    for i, j in np.ndindex(16, 8):
        memory[crd2idx((i, j), layout)] = values[i, j]
    return memory


@pytest.mark.parametrize("make", [composed, by_pointer])
@pytest.mark.parametrize("dtype", [fe.Float32, fe.Int16], ids=lambda x: x.name)
def test_elements_are_where_the_swizzle_says(make: Any, dtype: Any) -> None:
    """Written at coordinates of the thread, by parts, and by numbers known while compiling."""

    @fe.kernel
    def kernel(a, out):
        t = arch.thread_idx()[0]
        tile, memory = make(dtype)
        tile[t // 2, t % 2, 0] = a[t // 2, t % 2]
        tile[None, 2, 0][t // 2] = a[t // 2, 2]
        half = fe.local_tile(tile[None, None, 0], (4, 2), (t // 8, 2))
        fe.autovec_copy(fe.local_tile(a, (4, 2), (t // 8, 2)), half)
        if t == 0:
            for i in fe.range_constexpr(16):
                tile[i, 3, 0] = a[i, 3]
            column = fe.make_fragment(16, dtype)
            for i in range(16):
                column[i] = a[i, 6]
            tile[None, 6, 0].store(column.load())
            tile[(None, 7, 0)] = a[None, 7].load()
        arch.sync_threads()
        for i in fe.range_constexpr(4):
            out[t + 32 * i] = memory[t + 32 * i]

    given = np.arange(128).reshape(16, 8).astype(np.float32 if dtype is fe.Float32 else np.int16)
    np.testing.assert_array_equal(
        launched(kernel, given, np.zeros(128, given.dtype)), swizzled(given)
    )


@pytest.mark.parametrize("make", [composed, by_pointer])
def test_stages_and_moved_views_are_found_again(make: Any) -> None:
    """A part that a loop carries, an offset, another layout of the same elements."""

    @fe.kernel
    def kernel(a, out):
        t = arch.thread_idx()[0]
        tile, _ = make(fe.Float32, 3)
        for i in range(t, 128, 32):
            for s in fe.range_constexpr(3):
                tile[i // 8, i % 8, s] = a[i // 8, i % 8] + s * 100
        arch.sync_threads()
        total, stage = fe.Float32(0), fe.Int32(0)
        threads = fe.make_layout((4, 8), stride=(8, 1))
        mine = fe.local_partition(tile[None, None, stage], threads, t)
        for _ in range(4):
            total += mine[1, 0] + fe.domain_offset((1, 0), mine)[0, 0]
            stage = stage + 1 if stage < 2 else 0
            mine = fe.local_partition(tile[None, None, stage], threads, t)
        turned = fe.composition(tile[None, None, 1], fe.make_layout((8, 16), stride=(16, 1)))
        out[t] = total + turned[t % 8, t // 8 + 2] * 1000

    a = np.arange(128, dtype=np.float32).reshape(16, 8)
    t = np.arange(32)
    place = 8 * (t // 8 + 4) + t % 8
    wanted = 8 * place + 2 * (100 + 200) + (100 + 8 * (t // 8 + 2) + t % 8) * 1000
    np.testing.assert_array_equal(launched(kernel, a, np.zeros(32, np.float32)), wanted)


def test_elements_of_identities_are_their_places() -> None:
    @fe.kernel
    def kernel(a, out):
        t = arch.thread_idx()[0]
        places = fe.zipped_divide(fe.make_identity_tensor(a.shape), (4, 4))
        tiled = fe.zipped_divide(a, (4, 4))
        for i in range(16):
            at = places[i, t]
            if fe.elem_less(at, a.shape):
                out[at[0], at[1]] = tiled[i, t] + 1
        arch.sync_threads()
        mine = fe.domain_offset((1, 2), places[(None, None), (0, t)])
        row, column = mine[(0, 1)]
        if t < 2:
            out[row, column] += column

    a = np.arange(70, dtype=np.float32).reshape(7, 10)
    out = np.zeros_like(a)
    wanted = a + 1
    wanted[1, 3] += 3
    wanted[1, 7] += 7
    np.testing.assert_array_equal(launched(kernel, a, out, block=6), wanted)


@pytest.mark.parametrize("bits", [None, 64])
def test_tiled_copies_move_what_their_predicates_allow(bits: Any) -> None:
    """To shared memory in rows, and from there in columns."""

    @fe.kernel
    def kernel(a, out):
        t = arch.thread_idx()[0]
        tile, _ = composed(fe.Float32)
        tile = tile[None, None, 0]
        atom = fe.make_copy_atom(fe.nvgpu.CopyUniversalOp(), fe.Float32, num_bits_per_copy=bits)
        threads = fe.make_layout((8, 4), stride=(4, 1))
        rows = fe.make_tiled_copy_tv(atom, threads, fe.make_layout((1, 2)))
        mine = rows.get_slice(t)
        source, target = mine.partition_S(a), mine.partition_D(tile)
        fe.basic_copy(source, target)
        arch.sync_threads()
        places = mine.partition_D(fe.make_identity_tensor(out.shape))
        own = fe.make_fragment_like(target)
        fe.copy(rows, target, own)
        result, _ = by_pointer(fe.Float32)
        result = result[None, None, 0]
        mine.partition_D(result).fill(-1.0)
        counts = fe.size(own) // fe.size(atom.layout_src_tv, mode=[1])
        holds = fe.make_fragment(counts, fe.Boolean)
        for i in fe.range_constexpr(counts):
            at = places[i * fe.size(own) // counts % 2, i * fe.size(own) // counts // 2, 0]
            holds[i] = at[0] + at[1] < 12
        fe.copy(rows, own, mine.partition_D(result), pred=holds)
        fe.basic_copy(mine.partition_D(result), mine.partition_D(out))

    a = np.arange(128, dtype=np.float32).reshape(16, 8)
    found = launched(kernel, a, np.zeros((16, 8), np.float32))
    rows, columns = np.indices(a.shape)
    first = columns if bits is None else columns // 2 * 2
    np.testing.assert_array_equal(found, np.where(rows + first < 12, a, -1))


HALVES, warp = np.float16, fe.nvgpu.warp
OPS = [
    (warp.MmaF16BF16Op(fe.Float16, fe.Float32, (16, 8, 16)), HALVES, np.float32),
    (warp.MmaF16BF16Op(fe.Float16, fe.Float16, (16, 8, 8)), HALVES, HALVES),
    (warp.MmaI8Op(), np.int8, np.int32),
    (fe.nvgpu.MmaUniversalOp(fe.Float32), np.float32, np.float32),
]


@pytest.mark.parametrize(("op", "given", "total"), OPS)
def test_products_of_tiles_are_numpys(op: Any, given: Any, total: Any) -> None:
    """Two warps side by side; A and B through registers that each thread fills itself."""
    atoms = (1, 2, 1) if op.collective else (8, 8, 1)

    @fe.kernel
    def kernel(a, b, c, d):
        t = arch.thread_idx()[0]
        tiled = fe.make_tiled_mma(op, atoms)
        own = tiled.get_slice(t)
        of_a, of_b, of_c = own.partition_A(a), own.partition_B(b), own.partition_C(c)
        left, right = tiled.make_fragment_A(of_a), own.make_fragment_B(of_b)
        before, after = own.make_fragment_C(of_c), own.make_fragment_C(of_c.shape)
        for source, target in ((of_a, left), (of_b, right), (of_c, before)):
            fe.basic_copy(source, target)
        fe.gemm(tiled, after, left, right, before)
        fe.autovec_copy(after, own.partition_C(d))

    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, (16, 32)).astype(given) for _ in range(2))
    c = rng.integers(-4, 5, (16, 16)).astype(total)
    wanted = a.astype(np.float64) @ b.T.astype(np.float64) + c
    np.testing.assert_array_equal(launched(kernel, a, b, c, np.zeros_like(c), block=64), wanted)


@pytest.mark.parametrize("transposed", [False, True])
def test_matrices_come_from_swizzled_memory(transposed: bool) -> None:
    """A and B by `ldmatrix`, B transposed or not."""

    @fe.kernel
    def kernel(a, b, d):
        t = arch.thread_idx()[0]
        rows = fe.make_composed_layout(
            fe.make_swizzle(1, 3, 3), 0, fe.make_layout((16, 16), stride=(16, 1))
        )
        shared = [fe.make_tensor(arch.alloc_smem(fe.Float16, 256), rows) for _ in range(2)]
        one = fe.make_copy_atom(fe.nvgpu.CopyUniversalOp(), fe.Float16)
        threads = fe.make_layout((16, 2), stride=(2, 1))
        mine = fe.make_tiled_copy_tv(one, threads, fe.make_layout((1, 8))).get_slice(t)
        for source, target in zip((a, b), shared, strict=True):
            fe.copy(one, mine.partition_S(source), mine.partition_D(target))
        arch.sync_threads()
        tiled = fe.make_tiled_mma(
            fe.nvgpu.warp.MmaF16BF16Op(fe.Float16, fe.Float32, (16, 8, 16)), (1, 1, 1), (16, 16, 16)
        )
        of_b = shared[1]
        if transposed:
            of_b = fe.composition(of_b, fe.make_layout((16, 16), stride=(16, 1)))
        own = tiled.get_slice(t)
        left = own.make_fragment_A(own.partition_A(shared[0]))
        right = own.make_fragment_B(own.partition_B(of_b))
        matrices = [
            fe.make_copy_atom(fe.nvgpu.warp.LdMatrix8x8x16bOp(turned, 4), fe.Float16)
            for turned in (False, transposed)
        ]
        for atom, make, source, target in (
            (matrices[0], fe.make_tiled_copy_A, shared[0], left),
            (matrices[1], fe.make_tiled_copy_B, of_b, right),
        ):
            load = make(atom, tiled).get_slice(t)
            fe.copy(atom, load.partition_S(source), load.retile(target))
        total = own.make_fragment_C(own.partition_shape_C((16, 16)))
        total.fill(0.0)
        fe.gemm(tiled, total, left, right, total)
        fe.autovec_copy(total, own.partition_C(d))

    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, (16, 16)).astype(np.float16) for _ in range(2))
    found = launched(kernel, a, b, np.zeros((16, 16), np.float32))
    np.testing.assert_array_equal(found, a.astype(np.float32) @ (b if transposed else b.T))


def test_vectors_are_broadcast_as_numpy_does() -> None:
    @fe.kernel
    def kernel(a, b, out):
        rows, columns = fe.make_fragment((4, 1), fe.Float32), fe.make_fragment((1, 3), fe.Float32)
        fe.basic_copy(a, rows)
        fe.basic_copy(b, columns)
        left, right = rows.load(), columns.load()
        total = left * 10 + right
        fe.static_assert(total.shape == (4, 3) and total.numel() == 12)
        total += right.broadcast_to((4, 3)) + left.reduce(fe.ReductionOp.ADD, 0.0, 0)
        out.store(fe.where(left > 2, total, -right))

    a, b = np.arange(4, dtype=np.float32)[:, None], np.arange(5, 8, dtype=np.float32)[None]
    wanted = np.where(a > 2, a * 10 + 2 * b + a.sum(), -b)
    found = launched(kernel, a.copy(), b.copy(), np.zeros((4, 3), np.float32), block=1)
    np.testing.assert_array_equal(found, wanted)


def test_loops_carry_parts_and_unroll_the_indices_of_registers(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What programs in the style of CuTe's GEMMs need of loops, text and pointers."""

    @fe.kernel
    def kernel(a, out):
        t = arch.thread_idx()[0]
        memory = arch.alloc_smem(fe.Float32, 128, alignment=16)
        tile = fe.make_tensor(memory.align(16), fe.make_layout((32, 2, 2), stride=(1, 32, 64)))
        for i in fe.range_constexpr(4):
            tile[t, i % 2, i // 2] = a[t // 8, t % 8, i]
        arch.sync_threads()
        one = fe.make_copy_atom(fe.nvgpu.CopyUniversalOp(), fe.Float32)
        mine = fe.make_tiled_copy_tv(one, fe.make_layout((32, 1)), fe.make_layout((1, 2)))
        parts = mine.get_slice(31 - t).partition_S(tile)
        stage = fe.Int32(0)
        part, own = parts[None, 0, 0, stage], fe.make_fragment((2, 4), fe.Float32)
        holds = fe.make_fragment(2, fe.Boolean)
        holds.fill(1)
        for k in range(3):
            for i in range(2, unroll_full=True):
                if i == 1:
                    stage = 1 - stage
                    part = parts[None, 0, 0, stage]
                fe.copy(one, part, own[None, i + 2 * (k % 2)], pred=holds)
        own[None, 3].store(own[None, 2].load() * 100)
        for i in fe.range_constexpr(8):
            out[t, i] = own[i % 2, i // 2]
        print(memory.type, parts.type)
        fe.static_assert(a.layout.max_alignment == 128)

    a = np.arange(128, dtype=np.float32).reshape(4, 8, 4)
    back = a.reshape(32, 4)[::-1]
    first, second = back[:, :2], back[:, 2:]
    found = launched(kernel, a, np.zeros((32, 8), np.float32))
    wanted = np.concatenate([first, second, second, second * 100], axis=1)
    np.testing.assert_array_equal(found, wanted)
    shown = "ptr<f32, smem, align<16>> tensor<ptr<f32, smem, align<16>> o ((1,2),1,1,2):"
    assert shown in capsys.readouterr().out
