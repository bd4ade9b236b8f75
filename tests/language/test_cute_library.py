"""Helpers of CuTe DSL's programs: divisors, schedulers, prefetches, copies by offsets."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

import numpy as np
import pytest
from agreement import run_all_ways
from lowered import vector

import ferrule as cute
import ferrule as fe
from ferrule import arch, utils
from ferrule.cutlass import pipeline as cute_pipeline

run = partial(run_all_ways, plain=False)


def left(host: Any, *arguments: Any) -> Any:
    """The last argument after a call."""
    result = run(host, arguments)
    assert result.error is None, result.error
    return result.arguments[-1]


# ---- divisors ----

DIVISORS = [1, 2, 3, 7, 641, 2**30, 2**30 + 1, 10**9 + 7, 2**31 - 1]
EDGES = [-(2**31), 2**31 - 1, 0, 1, -1, 2**30, 6, 7, 8, -7]


@fe.kernel
def divided_kernel(a: fe.Tensor, out: fe.Tensor, d: cute.FastDivmodDivisor):
    i = arch.block_idx()[0] * 32 + arch.thread_idx()[0]
    if i < a.shape[0]:
        q, r = divmod(a[i], d)
        out[i, 0], out[i, 1] = q, r
        out[i, 2], out[i, 3] = a[i] // d, a[i] % d
        out[i, 4] = d.divisor


def divided(a: fe.Tensor, n: fe.Int32, out: fe.Tensor):
    d = cute.fast_divmod_create_divisor(n)
    divided_kernel(a, out, d).launch(grid=cute.ceil_div(a.shape[0], 32), block=32)


@pytest.mark.parametrize("divisor", DIVISORS)
def test_quotients_of_divisors_are_pythons(divisor: int) -> None:
    rng = np.random.default_rng(divisor)
    near = [divisor * k + i for k in (0, 1, 2, (2**31 - 2) // divisor) for i in (-1, 0, 1)]
    near = [x for x in near if x < 2**31]
    a = np.array([*EDGES, *near, *rng.integers(-(2**31), 2**31, 20)], np.int32)
    found = left(divided, a, divisor, np.zeros((len(a), 5), np.int32))
    wide = a.astype(np.int64)
    q, r = wide // divisor, wide % divisor
    for column, wanted in enumerate((q, r, q, r, np.full_like(q, divisor))):
        np.testing.assert_array_equal(found[:, column], wanted)


def test_a_divisor_of_a_host_function_and_its_errors() -> None:
    @fe.jit
    def host(n: fe.Int32, d: fe.Int32) -> fe.Int32:
        return n // cute.FastDivmodDivisorV2(d, is_power_of_2=False)

    assert host(-7, 2) == -4
    for divisor in (0, -3):
        with pytest.raises(ValueError, match="a FastDivmodDivisor is an Int32 from 1 on"):
            host(1, divisor)


def test_a_kernel_divides_by_multiplying() -> None:
    example = fe.make_fake_compact_tensor(fe.Int32, (fe.sym_int(), 5), stride_order=(1, 0))
    given = (vector(fe.Int32), fe.Int32(0), example)
    text = fe.compile(divided, *given, options="--target cuda --gpu-arch sm_80").inspect_ptx()
    assert "mul.wide.u32" in text and "div." not in text and "rem." not in text


def _by_zero(n: fe.Int32):
    return n // cute.FastDivmodDivisor(0)


def _of_64_bits(n: fe.Int64):
    return cute.FastDivmodDivisor(n).divisor


def _into_64_bits(n: fe.Int32):
    return fe.Int64(7) * n // cute.FastDivmodDivisor(n)


@pytest.mark.parametrize(
    ("function", "example", "said"),
    [
        (_by_zero, fe.Int32(1), "FastDivmodDivisor of 0;.*expected: an Int32 from 1 on"),
        (_of_64_bits, fe.Int64(1), "FastDivmodDivisor of .*int64.*expected: an Int32 from 1 on"),
        (_into_64_bits, fe.Int32(1), "a FastDivmodDivisor divides Int32: convert the number"),
    ],
)
def test_what_a_divisor_is_not(function: Any, example: Any, said: str) -> None:
    with pytest.raises(fe.CompileError) as raised:
        fe.compile(function, example, options="--target cpu")
    assert re.search(said, " ".join(str(raised.value).replace("\n", ";").split()))


def test_kernels_make_no_divisors() -> None:
    @fe.kernel
    def kernel(out):
        out[0] = out[1] // cute.FastDivmodDivisor(out[2])

    def host(out):
        kernel(out).launch(grid=1, block=1)

    with pytest.raises(fe.CompileError, match="known only in a host function"):
        fe.compile(host, vector(fe.Int32), options="--target cpu")


# ---- schedulers ----

# What CuTe DSL 4.8.1 gives for 4 x 6 x 2 tiles in clusters of (2, 1): inner mode, block and grid
# along z, then m and n of five tiles, one after the other.
TILES = [
    (0, 0, 5, [(0, 0), (1, 2), (0, 5), (1, 7), (0, 10)]),
    (1, 0, 5, [(0, 0), (0, 5), (1, 4), (2, 3), (3, 2)]),
    (0, 3, 5, [(1, 1), (0, 4), (1, 6), (0, 9), (1, 11)]),
    (1, 3, 5, [(0, 3), (1, 2), (2, 1), (3, 0), (3, 5)]),
    (0, 4, 7, [(0, 2), (1, 5), (0, 9), (1, 12), (0, 16)]),
    (1, 4, 7, [(0, 4), (1, 5), (3, 0), (4, 1), (5, 2)]),
]


@pytest.mark.parametrize(("inner", "block", "grid", "wanted"), TILES)
def test_tiles_that_the_program_counts(inner: int, block: int, grid: int, wanted: Any) -> None:
    params = utils.PersistentTileSchedulerParams((4, 6, 2), (2, 1, 1))

    @fe.kernel
    def kernel(place, out):
        scheduler = utils.StaticPersistentRuntimeTileScheduler.create(
            params, (1, 0, place[0]), (2, 1, place[1]), inner_mode=inner
        )
        work = scheduler.initial_work_tile_info()
        for i in range(out.shape[0]):
            out[i, 0], out[i, 1], out[i, 2] = work.tile_idx
            out[i, 3], out[i, 4] = work.is_valid_tile, scheduler.num_tiles_executed
            scheduler.advance_to_next_work()
            work = scheduler.get_current_work()

    def host(place, out):
        kernel(place, out).launch(grid=1, block=1)

    found = left(host, np.array([block, grid], np.int32), np.zeros((5, 5), np.int32))
    assert [tuple(row) for row in found] == [(m, n, 0, 1, i) for i, (m, n) in enumerate(wanted)]


def test_the_tile_of_k_in_a_stage() -> None:
    """As CuTe DSL 4.8.1 has it, with 4 stages."""
    found = [
        cute_pipeline.compute_k_tile(s, c, o, 4) for s, c, o in ((0, 0, 1), (3, 3, 1), (1, 1, 3))
    ]
    assert [int(each) for each in found] == [3, 14, 6]


# ---- numbers ----


def test_a_float_as_tfloat32() -> None:
    """To nearest, ties away from 0: `cvt.rna.tf32.f32`, which the PTX manual's section has."""

    @fe.kernel
    def kernel(a, out):
        i = arch.thread_idx()[0]
        out[i] = arch.cvt_f32_tf32(a[i])

    def host(a, out):
        kernel(a, out).launch(grid=1, block=a.shape[0])

    bits = np.array(
        [0x3F800FFF, 0x3F801000, 0x3F803000, 0xBF801000, 0x7F7FFFFF, 0x7F800000, 0xFF800000]
        + [0x7F800001, 0xFFC00000, 0x00000FFF, 0x00001000, 0x80000000, 0],
        np.uint32,
    )
    wanted = np.array(
        [0x3F800000, 0x3F802000, 0x3F804000, 0xBF802000, 0x7F800000, 0x7F800000, 0xFF800000]
        + [0x7FFFFFFF, 0x7FFFFFFF, 0, 0x2000, 0x80000000, 0],
        np.uint32,
    )
    found = left(host, bits.view(np.float32), np.zeros(len(bits), np.int32))
    np.testing.assert_array_equal(found.view(np.uint32), wanted)


# ---- prefetches ----

Load, Store = fe.nvgpu.cpasync.CopyBulkTensorTileG2SOp, fe.nvgpu.cpasync.CopyBulkTensorTileS2GOp


def fetched(op: Any, prefetched: Any) -> Any:
    """A host function whose kernel prefetches parts of a matrix."""

    @fe.kernel
    def kernel(atom, of_a, out: fe.Tensor):
        tiles = fe.local_tile(of_a, (64, 32), (0, None))
        fe.prefetch(atom, prefetched(fe.group_modes(tiles, 0, 2), out))
        if arch.thread_idx()[0] == 0:
            out[0, 0] = 1.0

    def host(a: fe.Tensor, out: fe.Tensor):
        rows = fe.make_layout((64, 32), stride=(32, 1))
        atom, of_a = fe.nvgpu.cpasync.make_tiled_tma_atom(op(), a, rows, (64, 32))
        kernel(atom, of_a, out).launch(grid=1, block=32)

    return host


def compiled(
    host: Any, columns: Any = 128, options: str = "--target cuda --gpu-arch sm_90a"
) -> Any:
    a = fe.make_fake_compact_tensor(
        fe.Float16, (64, columns), stride_order=(1, 0), assumed_align=16
    )
    out = fe.make_fake_compact_tensor(fe.Float32, (1, 1))
    return fe.compile(host, a, out, options=options)


@pytest.mark.parametrize(
    ("part", "count"),
    [(lambda tiles, _: tiles[None, 3], 1), (lambda tiles, _: tiles, 4)],
    ids=["one", "all"],
)
def test_a_prefetch_is_of_each_box(part: Any, count: int) -> None:
    text = compiled(fetched(Load, part)).inspect_ptx()
    assert text.count("cp.async.bulk.prefetch.tensor.2d.L2.global") == count
    out = np.zeros((1, 1), np.float32)
    compiled(fetched(Load, part), options="--target cpu")(np.zeros((64, 128), np.float16), out)
    assert out[0, 0] == 1


def test_what_is_not_prefetched() -> None:
    whole = lambda tiles, _: tiles  # noqa: E731
    for host, columns, said in (
        (fetched(Store, whole), 128, "prefetch by CopyBulkTensorTileS2GOp"),
        (fetched(Load, lambda _, out: out), 128, "part of the second result of make_tiled_tma_ato"),
        (fetched(Load, whole), fe.sym_int(divisibility=32), "compile-time sizes of the modes"),
    ):
        with pytest.raises(fe.CompileError, match=said):
            compiled(host, columns)


# ---- copies by offsets ----

HALF_WORDS = fe.make_copy_atom(fe.nvgpu.CopyUniversalOp(), fe.Float16, num_bits_per_copy=32)
# Offsets of (thread, value), the tensor, and what CuTe DSL 4.8.1 prints: tiler and (thread, value).
OFFSETS = [
    ((256, 16), (16, 1), (64, 64), (64, 1), "(64:1,(4,16):(16,1))", "((4,64),16):((64,1),256)"),
    ((256, 16), (16, 1), (64, 64), (1, 64), "((4,16):(16,1),64:1)", "((4,64),16):((1,64),4)"),
    ((8, 2), (8, 1), (8, 8), (8, 1), "(8:1,2:1)", "(8,2):(1,8)"),
    ((1, 8), (0, 1), (8, 4, 2), (1, 8, 32), "(8:1,1:0,1:0)", "(1,8):(0,1)"),
]


@pytest.mark.parametrize(("shape", "stride", "of", "at", "tiler", "values"), OFFSETS)
def test_copies_by_offsets_are_cute_dsls(
    shape: Any, stride: Any, of: Any, at: Any, tiler: str, values: str
) -> None:
    given = fe.make_layout(shape, stride=stride), fe.make_layout(of, stride=at)
    text = str(fe.make_cotiled_copy(HALF_WORDS, *given))
    assert f"Tiler MN:        {tiler}\n" in text and f"TV Layout tiled: {values}\n" in text


def test_threads_copy_what_lies_side_by_side() -> None:
    """Of a column-major matrix, so that a thread's values are in one column."""

    @fe.kernel
    def kernel(a, out):
        tiled = fe.make_cotiled_copy(
            fe.make_copy_atom(fe.nvgpu.CopyUniversalOp(), fe.Float32, num_bits_per_copy=64),
            fe.make_layout((16, 4), stride=(4, 1)),
            fe.make_layout((8, 8)),
        )
        mine = tiled.get_slice(arch.thread_idx()[0])
        tiles = [fe.local_tile(each, (8, 8), (0, 0)) for each in (a, out)]
        source, target = mine.partition_S(tiles[0]), mine.partition_D(tiles[1])
        own = fe.make_fragment_like(source)
        fe.basic_copy(source, own)
        for i in fe.range_constexpr(fe.size(own)):
            own[i] += fe.Float32(100 * arch.thread_idx()[0])
        fe.basic_copy(own, target)

    def host(a, out):
        kernel(a, out).launch(grid=1, block=16)

    a = np.arange(64, dtype=np.float32).reshape(8, 8)
    found = left(host, a, np.zeros_like(a))
    row, column = np.indices(a.shape)
    np.testing.assert_array_equal(found, a + 100 * ((row + 8 * column) // 4))


@pytest.mark.parametrize(
    ("values", "of", "said"),
    [
        (
            ((8, 2), (8, 1)),
            ((4, 4), (4, 1)),
            r"\(8,2\):\(8,1\) has offsets that .* not, such as 16",
        ),
        (((8, 2), (2, 1)), ((4, 4), (8, 1)), "such as 4; give offsets of elements of the tensor"),
    ],
)
def test_offsets_that_a_tensor_has_not(values: Any, of: Any, said: str) -> None:
    layouts = (fe.make_layout(shape, stride=stride) for shape, stride in (values, of))
    with pytest.raises(fe.LayoutError, match=said):
        fe.make_cotiled_copy(HALF_WORDS, *layouts)


# ---- unions ----


@cute.union
class Either:
    small: fe.Int16
    wide: fe.Int64
    many: cute.struct.MemRange[fe.Float32, 5]


@cute.struct
class Holder:
    first: fe.Int32
    either: cute.struct.Align[Either, 16]
    last: fe.Int32


def test_fields_of_unions_lie_on_one_another() -> None:
    """Sizes and alignments are those that CuTe DSL 4.8.1 gives."""
    assert (Either.size_in_bytes(), Either.__alignof__()) == (24, 8)
    assert (Holder.size_in_bytes(), Holder.__alignof__()) == (48, 16)
    assert [Either.offset_of(name) for name in ("small", "wide", "many")] == [0, 0, 0]

    @fe.kernel
    def kernel(out):
        holder = utils.SmemAllocator().allocate(Holder)
        holder.last = 7
        holder.either.many[1] = 1.5
        out[0] = holder.either.wide.ptr.load() >> 32
        holder.either.small = -2
        out[1] = holder.either.many.data_ptr()[0].bitcast(fe.Uint32) & 0xFFFF
        out[2] = holder.last.ptr.load()

    def host(out):
        kernel(out).launch(grid=1, block=1)

    out = np.zeros(3, np.int64)
    fe.compile(host, vector(fe.Int64), options="--target cpu")(out)
    assert out.tolist() == [0x3FC00000, 0xFFFE, 7]


# ---- parts of layouts ----


def test_parts_that_bases_and_swizzles_name() -> None:
    pairs = ((10, 20), (30, 40))
    assert cute.basis_get(cute.E(1), pairs) == (30, 40)
    assert cute.basis_get(cute.ScaledBasis(2, [0, 1]), pairs) == 20
    assert cute.basis_get(5, pairs) == pairs
    assert str(cute.basis_get(cute.E(1), cute.make_layout((4, (2, 3))))) == "(2,3):(4,8)"
    assert (cute.basis_value(cute.ScaledBasis(5, 0)), cute.basis_value(42)) == (5, 42)
    plain = cute.make_layout((8, 32))
    swizzled = cute.make_composed_layout(cute.make_swizzle(2, 3, 3), 0, plain)
    assert str(cute.get_swizzle_portion(swizzled)) == "S<2,3,3>"
    assert str(cute.get_swizzle_portion(plain)) == "S<0,4,3>"
    assert cute.get_nonswizzle_portion(swizzled) == cute.get_nonswizzle_portion(plain) == plain
    for function in (cute.get_swizzle_portion, cute.get_nonswizzle_portion):
        with pytest.raises(fe.LayoutError, match="the layout is 3; give a layout"):
            function(3)
