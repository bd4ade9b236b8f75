"""Threads that work together: each construct compiled and interpreted, against NumPy."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from math import prod
from typing import Any

import numpy as np
import pytest
from agreement import run_all_ways
from plain_python import examples

import ferrule as fe

arch = fe.arch
run = partial(run_all_ways, plain=False)


def launched(kernel: Any, *arguments: Any, block: Any, grid: Any = 1, smem: Any = None) -> Any:
    """The last argument after a launch of a kernel with these sizes."""

    def host(*args):
        if smem is None:
            kernel(*args).launch(grid=grid, block=block)
        else:
            kernel(*args).launch(grid=grid, block=block, smem=smem)

    result = run(host, arguments)
    assert result.error is None, result.error
    return result.arguments[-1]


def i32(*shape: int) -> Any:
    return np.zeros(shape, np.int32)


# ---- coordinates ----


def test_warps_are_of_32_threads_that_are_counted_along_x_first() -> None:
    @fe.kernel
    def kernel(out):
        x, y, z = arch.thread_idx()
        nx, ny, _ = arch.block_dim()
        i = x + nx * (y + ny * z)
        out[i, 0] = arch.lane_idx()
        out[i, 1] = arch.warp_idx()
        out[i, 2] = arch.elect_one()
        out[i, 3] = arch.make_warp_uniform(arch.warp_idx()) + arch.WARP_SIZE

    found = launched(kernel, i32(70, 4), block=(5, 7, 2))
    number = np.arange(70)
    np.testing.assert_array_equal(found[:, 0], number % 32)
    np.testing.assert_array_equal(found[:, 1], number // 32)
    np.testing.assert_array_equal(found[:, 2], number % 32 == 0)
    np.testing.assert_array_equal(found[:, 3], number // 32 + 32)


def test_each_block_is_a_cluster_of_its_own() -> None:
    @fe.kernel
    def kernel(out):
        x, y, z = arch.cluster_idx()
        out[arch.block_idx()[0] + 3 * arch.block_idx()[1]] = x + 10 * y + 100 * z

    found = launched(kernel, i32(6), block=1, grid=(3, 2))
    np.testing.assert_array_equal(found, [0, 1, 2, 10, 11, 12])


# ---- barriers and shared memory ----


def test_threads_read_what_others_wrote_before_the_barrier() -> None:
    @fe.kernel
    def kernel(a, out):
        t, n = arch.thread_idx()[0], arch.block_dim()[0]
        i = arch.block_idx()[0] * n + t
        row = arch.alloc_smem(fe.Float32, 64)
        row[t] = a[i]
        arch.sync_threads()
        out[i] = row[n - 1 - t]

    a = np.arange(120, dtype=np.float32)
    found = launched(kernel, a, np.zeros_like(a), block=40, grid=3)
    np.testing.assert_array_equal(found, a.reshape(3, 40)[:, ::-1].ravel())


def test_a_tile_in_shared_memory_has_a_layout() -> None:
    @fe.kernel
    def kernel(a, out):
        x, y, _ = arch.thread_idx()
        tile = fe.make_tensor(
            arch.alloc_smem(fe.Int32, 4 * 5), fe.make_layout((4, 4), stride=(5, 1))
        )
        tile[y, x] = a[y, x]
        arch.sync_threads()
        out[y, x] = tile[x, y]

    a = np.arange(16, dtype=np.int32).reshape(4, 4)
    np.testing.assert_array_equal(launched(kernel, a, i32(4, 4), block=(4, 4)), a.T)


def test_allocations_are_apart_and_aligned() -> None:
    @fe.kernel
    def kernel(out):
        t = arch.thread_idx()[0]
        flags = arch.alloc_smem(fe.Boolean, 3)
        wide = arch.alloc_smem(fe.Float64, 8, alignment=128)
        small = arch.alloc_smem(fe.Int8, 8, alignment=1)
        wide[t], small[t] = t * 1.5, -t
        if t < 3:
            flags[t] = t == 1
        arch.sync_threads()
        out[t] = fe.Int32(wide[7 - t] * 100) + small[7 - t] + fe.Int32(flags[t % 3]) * 1000

    found = launched(kernel, i32(8), block=8)
    t = np.arange(8)
    np.testing.assert_array_equal(found, (7 - t) * 150 - (7 - t) + (t % 3 == 1) * 1000)


def test_an_allocation_in_a_loop_is_one_place() -> None:
    @fe.kernel
    def kernel(out):
        t = arch.thread_idx()[0]
        for i in range(4):
            sums = arch.alloc_smem(fe.Int32, 8)
            if i == 0:
                sums[t] = 0
            arch.sync_threads()
            sums[(t + i) % 8] += i
            arch.sync_threads()
            out[t] = sums[t]

    np.testing.assert_array_equal(launched(kernel, i32(8), block=8), [6] * 8)


def test_dynamic_shared_memory_has_the_size_of_the_launch() -> None:
    @fe.kernel
    def kernel(out):
        t, n = arch.thread_idx()[0], arch.block_dim()[0]
        words = arch.get_dyn_smem(fe.Int32)
        bytes_ = fe.recast_ptr(words + n, dtype=fe.Uint8)
        words[t] = t * t
        bytes_[t] = t
        arch.sync_threads()
        out[t] = words[n - 1 - t] + bytes_[(t + 1) % n]

    found = launched(kernel, i32(24), block=24, smem=24 * 5)
    t = np.arange(24)
    np.testing.assert_array_equal(found, (23 - t) ** 2 + (t + 1) % 24)


def test_barriers_in_loops_and_branches_that_all_threads_take() -> None:
    @fe.kernel
    def kernel(n, out):
        t, size = arch.thread_idx()[0], arch.block_dim()[0]
        row = arch.alloc_smem(fe.Int32, 64)
        row[t] = t
        if n > 2:
            arch.sync_threads()
            left = row[(t + 1) % size]
            arch.sync_threads()
            row[t] = left
        k = n
        while k > 0:
            arch.sync_threads()
            left = row[(t + 1) % size]
            arch.sync_threads()
            row[t] = left
            k -= 1
        out[t] = row[t]

    for n in (0, 3):
        found = launched(kernel, n, i32(40), block=40)
        np.testing.assert_array_equal(found, (np.arange(40) + n + (n > 2)) % 40)


def test_named_barriers_let_some_warps_wait_for_each_other() -> None:
    @fe.kernel
    def kernel(out):
        t, warp = arch.thread_idx()[0], arch.warp_idx()
        row = arch.alloc_smem(fe.Int32, 128)
        if warp < 2:
            row[t] = t
            arch.barrier(barrier_id=1, number_of_threads=64)
            out[t] = row[63 - t]
        else:
            for _ in range(2):
                row[t] = -t
                arch.barrier(barrier_id=2, number_of_threads=64)
                out[t] = row[191 - t]
                arch.barrier(barrier_id=2, number_of_threads=64)

    found = launched(kernel, i32(128), block=128)
    np.testing.assert_array_equal(found[:64], np.arange(64)[::-1])
    np.testing.assert_array_equal(found[64:], -np.arange(64, 128)[::-1])


def test_warps_meet_at_one_barrier_from_two_places() -> None:
    @fe.kernel
    def kernel(out):
        t = arch.thread_idx()[0]
        row = arch.alloc_smem(fe.Int32, 64)
        if arch.warp_idx() == 0:
            row[t] = t + 1
            arch.barrier(barrier_id=3, number_of_threads=64)
        else:
            arch.barrier(barrier_id=3, number_of_threads=64)
            out[t] = row[t - 32]

    found = launched(kernel, i32(64), block=64)
    np.testing.assert_array_equal(found, np.append(np.zeros(32), np.arange(1, 33)))


def test_a_warp_waits_for_its_lanes_alone() -> None:
    @fe.kernel
    def kernel(out):
        t, lane = arch.thread_idx()[0], arch.lane_idx()
        row = arch.alloc_smem(fe.Int32, 64)
        if arch.warp_idx() == 1:
            row[t] = t
            arch.sync_warp()
            out[t] = row[95 - t]
        elif lane < 8:
            row[t] = t
            arch.sync_warp(0xFF)
            arch.fence_acq_rel_cta()
            out[t] = row[7 - t]

    found = launched(kernel, i32(64), block=64)
    np.testing.assert_array_equal(found[:8], np.arange(8)[::-1])
    np.testing.assert_array_equal(found[8:32], 0)
    np.testing.assert_array_equal(found[32:], np.arange(32, 64)[::-1])


# ---- warps ----

LANES = np.arange(32)


@pytest.mark.parametrize(
    "dtype",
    [
        fe.Boolean,
        fe.Int8,
        fe.Uint16,
        fe.Int32,
        fe.Uint64,
        fe.Float16,
        fe.BFloat16,
        fe.Float32,
        fe.Float64,
    ],
)
def test_shuffles_of_every_dtype(dtype: Any) -> None:
    @fe.kernel
    def kernel(out):
        t = arch.thread_idx()[0]
        own = dtype(t * 3 % 7)
        out[t, 0] = fe.Int32(arch.shuffle_sync(own, 5))
        out[t, 1] = fe.Int32(arch.shuffle_sync_up(own, 2))
        out[t, 2] = fe.Int32(arch.shuffle_sync_down(own, 3))
        out[t, 3] = fe.Int32(arch.shuffle_sync_bfly(own, 9))

    found = launched(kernel, i32(32, 4), block=32)
    own = LANES * 3 % 7
    own = own != 0 if dtype is fe.Boolean else own
    sources = (
        np.full(32, 5),
        np.where(LANES >= 2, LANES - 2, LANES),
        np.where(LANES < 29, LANES + 3, LANES),
        LANES ^ 9,
    )
    np.testing.assert_array_equal(found.T, [own[source] for source in sources])


def test_shuffles_keep_all_bits() -> None:
    @fe.kernel
    def kernel(a, out):
        t = arch.thread_idx()[0]
        out[t] = arch.shuffle_sync_bfly(a[t], 1)

    a = np.random.default_rng(0).integers(0, 2**64, 32, np.uint64)
    for kind in (np.uint64, np.float64):
        given = a.view(kind)
        found = launched(kernel, given, np.zeros(32, kind), block=32)
        np.testing.assert_array_equal(found.view(np.uint64), a.reshape(16, 2)[:, ::-1].ravel())


def test_shuffles_in_segments_of_a_warp() -> None:
    segments_of_8 = (0b11000 << 8) | 7

    @fe.kernel
    def kernel(out):
        t = arch.thread_idx()[0]
        out[t, 0] = arch.shuffle_sync(t, 3, mask_and_clamp=segments_of_8 | 31)
        out[t, 1] = arch.shuffle_sync_up(t, 1, mask_and_clamp=0b11000 << 8)
        out[t, 2] = arch.shuffle_sync_down(t, 1, mask_and_clamp=segments_of_8)
        out[t, 3] = arch.shuffle_sync_bfly(t, 4, mask_and_clamp=segments_of_8)
        out[t, 4] = arch.shuffle_sync(t, t + 33)

    found = launched(kernel, i32(32, 5), block=32)
    first, lane = LANES - LANES % 8, LANES % 8
    np.testing.assert_array_equal(found[:, 0], first + 3)
    np.testing.assert_array_equal(found[:, 1], first + np.maximum(lane - 1, 0))
    np.testing.assert_array_equal(found[:, 2], first + np.minimum(lane + 1, 7))
    np.testing.assert_array_equal(found[:, 3], LANES ^ 4)
    np.testing.assert_array_equal(found[:, 4], (LANES + 33) % 32)


def test_a_vector_is_shuffled_number_by_number() -> None:
    @fe.kernel
    def kernel(a, out):
        t = arch.thread_idx()[0]
        v = fe.local_tile(a, (1, 2), (t, 0)).load()
        total = arch.warp_reduction_sum(v)
        out[t, 0], out[t, 1] = total[0, 0], total[0, 1]

    a = np.arange(64, dtype=np.float32).reshape(32, 2)
    found = launched(kernel, a, np.zeros_like(a), block=32)
    np.testing.assert_array_equal(found, np.broadcast_to(a.sum(0), (32, 2)))


def test_votes() -> None:
    @fe.kernel
    def kernel(out):
        t = arch.thread_idx()[0]
        out[t, 0] = fe.Int32(arch.vote_ballot_sync(t % 3 == 0))
        out[t, 1] = arch.vote_any_sync(t == 40)
        out[t, 2] = arch.vote_all_sync(t != 40)
        out[t, 3] = arch.vote_uni_sync(t < 32)
        out[t, 4] = arch.vote_uni_sync(t < 35)
        if t % 2 == 0:
            out[t, 5] = fe.Int32(arch.vote_ballot_sync(1, 0x55555555))

    found = launched(kernel, i32(50, 6), block=50)
    bits = [sum(1 << t % 32 for t in range(*warp) if t % 3 == 0) for warp in ((32,), (32, 50))]
    np.testing.assert_array_equal(found[::32, 0].view(np.uint32), bits)
    np.testing.assert_array_equal(found[[0, 49], 1], [0, 1])
    np.testing.assert_array_equal(found[[0, 49], 2], [1, 0])
    np.testing.assert_array_equal(found[[0, 49], 3], [1, 1])
    np.testing.assert_array_equal(found[[0, 49], 4], [1, 0])
    np.testing.assert_array_equal(found[[0, 32, 33], 5], [0x55555555, 0x15555, 0])


@pytest.mark.parametrize("dtype", [fe.Int32, fe.Uint64, fe.Float32, fe.Float64])
def test_matches(dtype: Any) -> None:
    @fe.kernel
    def kernel(out):
        t = arch.thread_idx()[0]
        out[t, 0] = arch.match_any_sync(dtype(t % 5))
        out[t, 1] = arch.match_all_sync(dtype(t // 40))
        out[t, 2] = arch.match_all_sync(dtype(t // 32))

    found = launched(kernel, np.zeros((64, 3), np.uint32), block=64)
    t = np.arange(64)
    alike = [sum(1 << (u % 32) for u in t if u // 32 == v // 32 and u % 5 == v % 5) for v in t]
    np.testing.assert_array_equal(found[:, 0], alike)
    np.testing.assert_array_equal(found[:, 1], np.where(t < 32, 0xFFFFFFFF, 0))
    np.testing.assert_array_equal(found[:, 2], 0xFFFFFFFF)


def test_floats_match_by_their_bits() -> None:
    @fe.kernel
    def kernel(a, out):
        t = arch.thread_idx()[0]
        out[t] = arch.match_any_sync(a[t])

    a = np.array([0.0, -0.0, np.nan, np.nan], np.float32)
    found = launched(kernel, a, np.zeros(4, np.uint32), block=4)
    np.testing.assert_array_equal(found, [1, 2, 12, 12])


# ---- atomics ----

INTEGERS = [fe.Int32, fe.Uint32, fe.Int64, fe.Uint64]
FLOATS = [fe.Float16, fe.Float32, fe.Float64]
REDUCED: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS])
def test_atomics_of_all_threads(dtype: Any) -> None:
    names = list(REDUCED) if dtype in INTEGERS else ["add", "min", "max"]
    functions = [getattr(arch, f"atomic_{name}") for name in names]

    @fe.kernel
    def kernel(a, out):
        t = arch.thread_idx()[0]
        i = arch.block_idx()[0] * arch.block_dim()[0] + t
        for row, function in enumerate(functions):
            function(out.iterator + row * 6 + t % 3, a[i])
            own = arch.alloc_smem(dtype, 3)
            if t < 3:
                own[t] = a[i]
            arch.sync_threads()
            if t >= 3:
                function(own + t % 3, a[i])
            arch.sync_threads()
            if t < 3:
                function(out.iterator + row * 6 + 3 + t, own[t])

    kind = np.dtype(dtype.name)
    a = np.random.default_rng(1).integers(0, 60, 36) - 30 * (kind.kind != "u")
    start = np.array([7, 100, 3, 100, 7, 3], kind)
    found = launched(kernel, a.astype(kind), np.tile(start, (len(names), 1)), block=12, grid=3)
    columns = np.tile(a.astype(kind).reshape(-1, 3), 2)
    wanted = [REDUCED[name].reduce(np.vstack([columns, start]), axis=0) for name in names]
    np.testing.assert_array_equal(found, wanted)


def test_atomics_give_the_old_element() -> None:
    @fe.kernel
    def kernel(count, out):
        out[arch.atomic_add(count.iterator, 1)] += 1

    np.testing.assert_array_equal(launched(kernel, i32(1), i32(64), block=32, grid=2), 1)


def test_counters_that_wrap() -> None:
    @fe.kernel
    def kernel(out):
        arch.atomic_inc(out.iterator, 4)
        arch.atomic_dec(out.iterator + 1, 4)
        arch.atomic_inc(out.iterator + 2, 4)
        arch.atomic_dec(out.iterator + 3, 4)

    out = np.array([0, 0, 9, 9], np.uint32)
    np.testing.assert_array_equal(launched(kernel, out, block=7), [2, 3, 1, 3])


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS])
def test_swaps(dtype: Any) -> None:
    @fe.kernel
    def kernel(out):
        for i in range(3):
            out[2 + i] = arch.atomic_cas(out.iterator, dtype(2 * i), dtype(i + 1))
        out[5] = arch.atomic_exch(out.iterator + 1, dtype(9))

    found = launched(kernel, np.zeros(6, dtype.name), block=1)
    np.testing.assert_array_equal(found, [1, 9, 0, 1, 1, 0])


def test_a_float_is_compared_by_its_bits() -> None:
    @fe.kernel
    def kernel(out):
        arch.atomic_cas(out.iterator, 0.0, 1.0)
        arch.atomic_cas(out.iterator + 1, 0.0, 1.0)

    out = np.array([0.0, -0.0], np.float32)
    found = launched(kernel, out, block=1)
    np.testing.assert_array_equal(found, [1.0, -0.0])


@pytest.mark.parametrize("dtype", [fe.Float16, fe.BFloat16, fe.Float32, fe.Float64])
def test_the_extremum_of_floats_is_that_of_the_language(dtype: Any) -> None:
    @fe.kernel
    def kernel(a, out):
        own = arch.alloc_smem(dtype, 2)
        for row in range(a.shape[0]):
            own[0] = own[1] = dtype(a[row, 0])
            for i in range(a.shape[1]):
                arch.atomic_min(own, dtype(a[row, i]))
                arch.atomic_max(own + 1, dtype(a[row, i]))
            out[row, 0], out[row, 1] = fe.Float32(own[0]), fe.Float32(own[1])

    nan = np.nan
    a = np.array([[0, -0.0, 1], [-0.0, 0, -1], [1, nan, 2], [-0.0, 0, -0.0]], np.float32)
    found = launched(kernel, a, np.zeros((4, 2), np.float32), block=1)
    np.testing.assert_array_equal(found, [[-0.0, 1], [-1, 0], [nan, nan], [-0.0, 0]])
    np.testing.assert_array_equal(np.signbit(found[[0, 1, 3, 3], [0, 1, 0, 1]]), [1, 0, 1, 0])


@pytest.mark.parametrize("scope", ["cta", "cluster", "gpu", "sys"])
def test_orders_and_scopes(scope: str) -> None:
    @fe.kernel
    def kernel(out):
        for sem in ("relaxed", "acquire", "release", "acq_rel"):
            arch.atomic_add(out.iterator, 2, sem=sem, scope=scope)
            arch.atomic_max(out.iterator + 1, arch.thread_idx()[0], sem=sem, scope=scope)

    np.testing.assert_array_equal(launched(kernel, i32(2), block=5, grid=2), [80, 4])


# ---- what all threads compute together ----

BLOCKS = [1, 5, 32, (3, 7, 2)]


@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_a_block_reduces(block: Any) -> None:
    @fe.kernel
    def kernel(a, out):
        x, y, z = arch.thread_idx()
        nx, ny, _ = arch.block_dim()
        i = x + nx * (y + ny * z)
        out[i, 0] = arch.block_reduction(a[i], operator.add)
        out[i, 1] = arch.block_reduction(a[i], max)
        out[i, 2] = arch.block_reduction(a[i], lambda p, q: p ^ q)
        out[i, 3] = arch.block_scan(a[i], fe.ReductionOp.ADD)
        out[i, 4] = arch.block_scan_exclusive(a[i], fe.ReductionOp.MIN, 50)

    count = prod(block) if isinstance(block, tuple) else block
    a = np.random.default_rng(2).integers(-99, 99, count, np.int32)
    found = launched(kernel, a, i32(count, 5), block=block)
    np.testing.assert_array_equal(found[:, 0], a.sum())
    np.testing.assert_array_equal(found[:, 1], a.max())
    np.testing.assert_array_equal(found[:, 2], np.bitwise_xor.reduce(a))
    np.testing.assert_array_equal(found[:, 3], np.cumsum(a))
    np.testing.assert_array_equal(found[:, 4], np.minimum.accumulate(np.append(50, a[:-1])))


def test_the_largest_block_reduces() -> None:
    @fe.kernel
    def kernel(a, out):
        t = arch.thread_idx()[0]
        out[t] = arch.block_scan(a[t], operator.add) - arch.block_reduction(a[t], max)

    def host(a, out):
        kernel(a, out).launch(grid=1, block=1024)

    a, out = np.random.default_rng(4).integers(-99, 99, 1024, np.int32), i32(1024)
    fe.compile(host, *examples(a, out), options="--target cpu")(a, out)
    np.testing.assert_array_equal(out, np.cumsum(a) - a.max())


def test_reductions_in_loops() -> None:
    @fe.kernel
    def kernel(a, out):
        t = arch.thread_idx()[0]
        for row in range(a.shape[0]):
            total = arch.block_reduction(a[row, t], operator.add)
            if t == 0:
                out[row] = total

    a = np.arange(400, dtype=np.float32).reshape(8, 50)
    found = launched(kernel, a, np.zeros(8, np.float32), block=50)
    np.testing.assert_array_equal(found, a.sum(1))


@pytest.mark.parametrize("group", [1, 8, 32])
def test_groups_of_a_warp_reduce(group: int) -> None:
    @fe.kernel
    def kernel(a, out):
        t = arch.thread_idx()[0]
        out[t, 0] = arch.warp_reduction_sum(a[t], group)
        out[t, 1] = arch.warp_reduction_max(a[t], threads_in_group=group)
        out[t, 2] = arch.warp_reduction_min(a[t], group)
        out[t, 3] = arch.warp_reduction(a[t], lambda p, q: p | q, group)

    a = np.random.default_rng(3).integers(0, 1000, 64, np.int32)
    found = launched(kernel, a, i32(64, 4), block=64)
    parts = a.reshape(-1, group)
    wanted = [parts.sum(1), parts.max(1), parts.min(1), np.bitwise_or.reduce(parts, 1)]
    np.testing.assert_array_equal(found.T, [np.repeat(row, group) for row in wanted])


# ---- blocks of any size ----

SIZES = range(1, 71)
GROUPS = (1, 2, 4, 8, 16, 32)


def in_blocks_of(kernel: Any, dtype: Any, columns: int) -> Any:
    """A function of a vector and a matrix that runs a kernel in one block as long as the vector."""

    def host(a, out):
        kernel(a, out).launch(grid=1, block=a.shape[0])

    vector = fe.make_fake_compact_tensor(dtype, (fe.sym_int(),))
    matrix = fe.make_fake_compact_tensor(dtype, (fe.sym_int(), columns), stride_order=(1, 0))
    return fe.compile(host, vector, matrix, options="--target cpu")


def of_groups(function: Any, a: Any, group: int) -> Any:
    """For each lane, a NumPy function of the values of its group: those of its warp and number."""
    starts = range(0, len(a), group)
    return np.concatenate(
        [np.full(len(a[i : i + group]), function(a[i : i + group])) for i in starts]
    )


@pytest.mark.parametrize("group", GROUPS)
def test_groups_reduce_in_blocks_of_every_size(group: int) -> None:
    @fe.kernel
    def kernel(a, out):
        t = arch.thread_idx()[0]
        out[t, 0] = arch.warp_reduction_sum(a[t], group)
        out[t, 1] = arch.warp_reduction_max(a[t], group)
        out[t, 2] = arch.warp_reduction_min(a[t], group)
        out[t, 3] = arch.warp_reduction(a[t], lambda p, q: p ^ q, group)

    function = in_blocks_of(kernel, fe.Int32, 4)
    wanted = (np.sum, np.max, np.min, np.bitwise_xor.reduce)
    for size in SIZES:
        a = np.random.default_rng(size).integers(-999, 999, size, np.int32)
        out = i32(size, 4)
        function(a, out)
        for column, each in enumerate(wanted):
            np.testing.assert_array_equal(out[:, column], of_groups(each, a, group), str(size))


def test_floats_of_groups_are_extreme_as_in_numpy() -> None:
    @fe.kernel
    def kernel(a, out):
        t = arch.thread_idx()[0]
        out[t, 0] = arch.warp_reduction_max(a[t], 8)
        out[t, 1] = arch.warp_reduction_min(a[t])

    function = in_blocks_of(kernel, fe.Float32, 2)
    for size in SIZES:
        a = np.random.default_rng(size).standard_normal(size, dtype=np.float32)
        a[size // 2 :: 19] = np.nan
        out = np.zeros((size, 2), np.float32)
        function(a, out)
        np.testing.assert_array_equal(out[:, 0], of_groups(np.max, a, 8), str(size))
        np.testing.assert_array_equal(out[:, 1], of_groups(np.min, a, 32), str(size))


def test_full_groups_add_floats_in_one_order_whatever_the_block() -> None:
    @fe.kernel
    def kernel(a, out):
        t = arch.thread_idx()[0]
        out[t, 0] = arch.warp_reduction_sum(a[t])

    function = in_blocks_of(kernel, fe.Float32, 1)
    a = np.random.default_rng(5).standard_normal(96, dtype=np.float32)
    tree = a.reshape(-1, 32)
    while tree.shape[1] > 1:
        tree = tree[:, ::2] + tree[:, 1::2]
    for size in (64, 65, 95, 96):
        out = np.zeros((size, 1), np.float32)
        function(a[:size], out)
        full = size // 32 * 32
        np.testing.assert_array_equal(out[:full, 0], np.repeat(tree[: full // 32, 0], 32))


def test_everything_of_a_warp_and_a_block_in_blocks_of_every_size() -> None:
    @fe.kernel
    def kernel(a, out):
        t = arch.thread_idx()[0]
        x = a[t]
        out[t, 0] = arch.warp_scan(x, operator.add)
        out[t, 1] = arch.block_reduction(x, max)
        out[t, 2] = arch.block_scan(x, operator.add)
        out[t, 3] = arch.block_scan_exclusive(x, operator.add, 7)
        out[t, 4] = arch.vote_any_sync(x > 90)
        out[t, 5] = arch.vote_all_sync(x > -90)
        out[t, 6] = fe.Int32(arch.vote_ballot_sync(x > 0))
        out[t, 7] = fe.Int32(arch.match_any_sync(x % 4))
        out[t, 8] = fe.Int32(arch.match_all_sync(fe.Int32(x > -200)))
        out[t, 9] = arch.vote_uni_sync(x > -90)

    function = in_blocks_of(kernel, fe.Int32, 10)
    for size in SIZES:
        a = np.random.default_rng(size).integers(-99, 99, size, np.int32)
        out = i32(size, 10)
        function(a, out)
        bits = (1 << np.arange(size) % 32).astype(np.uint32)
        ballot = of_groups(np.sum, np.where(a > 0, bits, 0), 32).astype(np.uint32)
        there = of_groups(np.sum, bits, 32).astype(np.uint32)
        warp = np.arange(size) // 32
        alike = (a[:, None] % 4 == a % 4) & (warp[:, None] == warp)
        low = of_groups(np.min, a, 32) > -90
        wanted = [
            np.concatenate([np.cumsum(a[i : i + 32]) for i in range(0, size, 32)]),
            np.full(size, a.max()),
            np.cumsum(a),
            7 + np.cumsum(a) - a,
            of_groups(np.max, a, 32) > 90,
            low,
            ballot.view(np.int32),
            np.where(alike, bits, 0).sum(1).astype(np.uint32).view(np.int32),
            there.view(np.int32),
            low | ~(of_groups(np.max, a, 32) > -90),
        ]
        np.testing.assert_array_equal(out.T, wanted, str(size))


@pytest.mark.parametrize("block", [1, 9, 40, (3, 7, 2)], ids=str)
def test_a_last_warp_reduces_in_all_ways(block: Any) -> None:
    @fe.kernel
    def kernel(a, out):
        x, y, z = arch.thread_idx()
        nx, ny, _ = arch.block_dim()
        i = x + nx * (y + ny * z)
        out[i, 0] = arch.warp_reduction_sum(a[i])
        out[i, 1] = arch.warp_reduction(a[i], max, 4)
        for turn in range(2):
            out[i, 2] = arch.warp_reduction(a[i] + turn, lambda p, q: p & q, 16)

    count = prod(block) if isinstance(block, tuple) else block
    a = np.random.default_rng(7).integers(0, 99, count, np.int32)
    found = launched(kernel, a, i32(count, 3), block=block)
    np.testing.assert_array_equal(found[:, 0], of_groups(np.sum, a, 32))
    np.testing.assert_array_equal(found[:, 1], of_groups(np.max, a, 4))
    np.testing.assert_array_equal(found[:, 2], of_groups(np.bitwise_and.reduce, a + 1, 16))


@pytest.mark.parametrize("dtype", [fe.Boolean, fe.Int8, fe.Float16, fe.Float64])
def test_narrow_and_wide_numbers_reduce_in_a_last_warp(dtype: Any) -> None:
    @fe.kernel
    def kernel(a, out):
        t = arch.thread_idx()[0]
        out[t] = fe.Float64(arch.warp_reduction_sum(dtype(a[t])))

    a = np.arange(37, dtype=np.float32) % 2
    found = launched(kernel, a, np.zeros(37), block=37)
    np.testing.assert_array_equal(found, of_groups(np.sum, a, 32))


def test_vectors_reduce_in_a_last_warp() -> None:
    @fe.kernel
    def kernel(a, out):
        t = arch.thread_idx()[0]
        v = fe.local_tile(a, (1, 2), (t, 0)).load()
        total = arch.warp_reduction_sum(v, 8)
        out[t, 0], out[t, 1] = total[0, 0], total[0, 1]

    a = np.random.default_rng(1).integers(0, 99, (13, 2), np.int32)
    found = launched(kernel, a, i32(13, 2), block=13)
    np.testing.assert_array_equal(found, np.repeat([a[:8].sum(0), a[8:].sum(0)], [8, 5], 0))
