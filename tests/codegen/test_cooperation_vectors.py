"""Phases as vectors: shuffles over known distances, tensors that outlive a phase, short rows."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from agreement import run_all_ways

import ferrule as fe
from ferrule.language.codegen.facts.extents import extents
from ferrule.language.codegen.facts.launched import Launched
from ferrule.language.ir import ops
from ferrule.language.ir.builder import Builder
from ferrule.specs import Int32

arch = fe.arch


def compiled(kernel: Any, *arguments: Any, block: Any, grid: Any = 1, options: str = "") -> Any:
    def host(*args):
        kernel(*args).launch(grid=grid, block=block)

    return fe.compile(host, *arguments, options=f"--target cpu {options}")


def run(kernel: Any, *arguments: Any, block: Any) -> None:
    """Compares the CPU with the interpreter, and so all that a kernel does with its threads."""
    run_all_ways(host_of(kernel, block), arguments, plain=False)


@cache
def host_of(kernel: Any, block: Any) -> Any:
    @fe.jit
    def host(*args):
        kernel(*args).launch(grid=1, block=block)

    return host


# ---- shuffles ----


@pytest.mark.parametrize("block", [64, (8, 4, 3)])
@pytest.mark.parametrize("distance", [1, 5, 8, 16, 31])
def test_lanes_at_a_known_distance_give_what_ptx_says(distance: int, block: Any) -> None:
    @fe.kernel
    def kernel(out):
        x, y, z = arch.thread_idx()
        wide, high, _ = arch.block_dim()
        t = (z * high + y) * wide + x
        out[0, t] = arch.shuffle_sync_up(t, distance)
        out[1, t] = arch.shuffle_sync_down(t, distance)
        out[2, t] = arch.shuffle_sync_bfly(t, distance)
        # Segments of 16 lanes, and of 8 of which the last two are out of bounds.
        out[3, t] = arch.shuffle_sync_down(t, distance, mask_and_clamp=(16 << 8) | 31)
        out[4, t] = arch.shuffle_sync_up(t, distance, mask_and_clamp=16 << 8)
        out[5, t] = arch.shuffle_sync_bfly(t, distance, mask_and_clamp=(24 << 8) | 5)

    run(kernel, np.zeros((6, 96), np.int32), block=block)


@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.float16, np.float64])
def test_lanes_give_each_other_numbers_of_any_width(dtype: Any) -> None:
    @fe.kernel
    def kernel(a, out):
        t = arch.thread_idx()[0]
        out[t] = arch.shuffle_sync_down(a[t], 2)

    run(kernel, np.arange(64).astype(dtype), np.zeros(64, dtype), block=64)


@pytest.mark.parametrize("size", [1, 31, 33, 70, 1000])
def test_a_block_of_any_size_reduces(size: int) -> None:
    @fe.kernel
    def kernel(a, out):
        t = arch.thread_idx()[0]
        out[t] = arch.block_reduction(a[t], max)

    a, out = np.random.default_rng(size).standard_normal(size), np.zeros(size)
    compiled(kernel, a, out, block=size)(a, out)
    np.testing.assert_array_equal(out, np.full(size, a.max()))


# ---- tensors that outlive a phase ----


def rotated(first: Any, indices: Any) -> Any:
    @fe.kernel
    def kernel(a, out):
        x, y, _ = arch.thread_idx()
        t = y * arch.block_dim()[0] + x
        own = fe.make_fragment((2, 3), first)
        for k in fe.range_constexpr(6):
            own[k % 2, k // 2] = a[t] + k
        arch.sync_threads()
        for i, j in indices:
            own[i, j] = own[i, j] * 2 + own[1 - i, j]
        arch.sync_threads()
        for k in fe.range_constexpr(6):
            out[t, k] = own[k % 2, k // 2]

    return kernel


@pytest.mark.parametrize("block", [40, (8, 5)])
@pytest.mark.parametrize("dtype", [fe.Int8, fe.Float16, fe.Float32, fe.Float64])
def test_each_thread_finds_its_own_elements_again(dtype: Any, block: Any) -> None:
    a, out = np.arange(40, dtype=np.int8), np.zeros((40, 6), np.float64)
    run(rotated(dtype, [(0, 1), (1, 2)]), a, out, block=block)


def test_elements_chosen_at_run_time_are_found_again() -> None:
    @fe.kernel
    def kernel(a, out):
        t = arch.thread_idx()[0]
        own = fe.make_fragment((5,), fe.Float32)
        for k in range(5):
            own[k] = a[t] * (k + 1)
        arch.sync_threads()
        out[t] = own[t % 5] + own[(t + 2) % 5]

    run(kernel, np.arange(50, dtype=np.float32), np.zeros(50, np.float32), block=50)


def test_a_tensor_of_which_a_view_is_used_keeps_its_layout() -> None:
    @fe.kernel
    def kernel(a, out):
        t = arch.thread_idx()[0]
        own = fe.make_fragment((4,), fe.Float32)
        own.fill(a[t])
        own[1] = 3.0
        arch.sync_threads()
        out[t] = fe.recast_tensor(own, fe.Int32)[1] + fe.recast_tensor(own, fe.Int32)[0]

    run(kernel, np.arange(33, dtype=np.float32), np.zeros(33, np.int32), block=33)


def test_a_block_whose_size_is_known_at_the_call_has_room_for_all_threads() -> None:
    kernel = rotated(fe.Float64, [(0, 0), (1, 1)])

    @fe.jit
    def host(a, out):
        kernel(a, out).launch(grid=1, block=a.shape[0])

    for size in (1, 100):
        run_all_ways(host, (np.arange(size, dtype=np.int16), np.zeros((size, 6))), plain=False)
    a, out = np.arange(1024, dtype=np.int16), np.zeros((1024, 6))
    fe.compile(host, a, out, options="--target cpu")(a, out)
    wanted = a[:, None] + np.arange(6.0)
    wanted[:, 0] = wanted[:, 0] * 2 + wanted[:, 1]
    wanted[:, 3] = wanted[:, 3] * 2 + wanted[:, 2]
    np.testing.assert_array_equal(out, wanted)


# ---- rows of a few threads ----


@fe.kernel
def product(a, b, c):
    x, y, _ = arch.thread_idx()
    row = fe.make_tensor(arch.alloc_smem(fe.Float32, 64), fe.make_layout((64,)))
    total = fe.Float32(0.0)
    for base in range(0, a.shape[1], 8):
        if y == 0:
            row[x] = b[base // 8, x]
        arch.sync_threads()
        for k in range(8):
            total += a[y, base + k] * row[(x + k) % 4 + 4 * (x // 4)] + row[x]
        arch.sync_threads()
    c[y, x] = total


@pytest.mark.parametrize("level", [1, 2, 3])
@pytest.mark.parametrize("width", [4, 32, 36])
def test_short_rows_of_threads_are_compiled_without_a_word(
    width: int, level: int, capfd: pytest.CaptureFixture[str]
) -> None:
    """LLVM warns on the standard error of a loop that it was told to unroll and could not."""
    rng = np.random.default_rng(width)
    a, b = (rng.standard_normal(s, dtype=np.float32) for s in ((2, 24), (3, width)))
    c = np.zeros((2, width), np.float32)
    options = f"--opt-level {level}"
    compiled(product, a, b, c, block=(width, 2), options=options)(a, b, c)
    x, wanted = np.arange(width), np.zeros_like(c)
    for base in range(3):
        for k in range(8):
            turned = b[base][(x + k) % 4 + 4 * (x // 4)]
            wanted += a[:, base * 8 + k, None] * turned + b[base]
    np.testing.assert_allclose(c, wanted, rtol=1e-4, atol=1e-4)
    assert capfd.readouterr().err == ""


def test_long_programs_of_short_rows_are_compiled_without_a_word(
    capfd: pytest.CaptureFixture[str],
) -> None:
    @fe.kernel
    def kernel(a):
        x, y, _ = arch.thread_idx()
        row = fe.make_tensor(arch.alloc_smem(fe.Float64, 64), fe.make_layout((64,)))
        row[x] = a[y, x]
        arch.sync_threads()
        value = row[63 - x]
        for _ in fe.range_constexpr(4):
            value = fe.math.atan2(fe.math.pow(fe.math.sinh(value), 3.5), fe.math.erfc(value))
        a[y, x] = value

    a = np.ones((2, 64))
    compiled(kernel, a, block=(64, 2))(a)
    assert np.isfinite(a).all() and capfd.readouterr().err == ""


def test_the_vectors_of_a_short_row_are_no_loop() -> None:
    arrays = [np.zeros(s, np.float32) for s in ((2, 24), (3, 32), (2, 32))]
    short = compiled(product, *arrays, block=(32, 2)).inspect_llvm()
    long = compiled(product, *arrays, block=(128, 2)).inspect_llvm()
    assert "followup_vectorized" in short and "followup_vectorized" not in long


# ---- what is known of indices ----


def interval(build: Any, block: tuple[int, int]) -> tuple[int, int] | None:
    b = Builder()
    with b.region() as region:
        result = build(b)
    known = extents(region.ops, Launched(block=(block, (1, 4), (1, 1))))
    return known.get(result)


def test_indices_made_of_coordinates_lie_in_an_interval() -> None:
    def place(b: Builder) -> ops.Value:
        row = b.binary("mul", b.special("thread_idx", 1), b.constant(Int32, 100))
        return b.binary("add", row, b.special("thread_idx", 0))

    assert interval(place, (32, 32)) == (0, 331)
    assert interval(place, (0, 1 << 40)) == (0, 1323), "a block has at most 1024 threads"


def test_what_could_wrap_or_is_not_known_has_no_interval() -> None:
    def far(b: Builder) -> ops.Value:
        return b.binary("mul", b.special("thread_idx", 0), b.constant(Int32, 1 << 30))

    def block(b: Builder) -> ops.Value:
        return b.binary("add", b.special("block_idx", 0), b.special("thread_idx", 0))

    assert interval(far, (1, 2)) == (0, 1 << 30)
    assert interval(far, (1, 3)) is None
    assert interval(block, (1, 2)) is None


# ---- atomics in loops that threads share ----


@fe.kernel
def histogram_kernel(x, counts):
    t, b = arch.thread_idx()[0], arch.block_idx()[0]
    own = arch.alloc_smem(fe.Int32, 64)
    own[t] = 0
    arch.sync_threads()
    for i in range(b * 64 + t, x.shape[0], 64 * arch.grid_dim()[0]):
        arch.atomic_add(own + x[i], 1)
    arch.sync_threads()
    arch.atomic_add(counts.iterator + t, own[t])


@fe.kernel
def kept_kernel(x, counts):
    """Each kept number gets a place of its own, in any order."""
    for i in range(arch.thread_idx()[0], x.shape[0], 64):
        if x[i] > 20:
            counts[1 + arch.atomic_add(counts.iterator, 1)] = x[i]


@fe.jit
def histogram(x, counts):
    histogram_kernel(x, counts).launch(grid=2, block=64)


@fe.jit
def kept(x, counts):
    kept_kernel(x, counts).launch(grid=1, block=64)


def test_threads_go_side_by_side_through_loops_with_atomics() -> None:
    x = np.random.default_rng(3).integers(0, 64, 1000, np.int32)
    counts = np.zeros(64, np.int32)
    run_all_ways(histogram, (x, counts), plain=False)
    function = fe.compile(histogram, x, counts, options="--target cpu")
    function(x, counts)
    np.testing.assert_array_equal(counts, np.bincount(x, minlength=64))
    (loop,) = (remark for remark in function.remarks if remark.what == "loop")
    assert "made by all threads of a block together" in loop.text


def test_each_thread_has_the_result_of_its_own_atomic() -> None:
    x = np.random.default_rng(5).integers(0, 64, 1000, np.int32)
    counts = np.zeros(1001, np.int32)
    fe.compile(kept, x, counts, options="--target cpu")(x, counts)
    wanted = np.sort(x[x > 20])
    assert counts[0] == len(wanted)
    np.testing.assert_array_equal(np.sort(counts[1 : 1 + len(wanted)]), wanted)


# ---- loops that compute the index of the thread ----


@fe.kernel
def tiles_kernel(x, out):
    """Each thread keeps what it has where its tile hangs over the end."""
    t, b = arch.thread_idx()[0], arch.block_idx()[0]
    total, largest, count = fe.Float32(0), fe.Float32(-9), 0
    for k in range(16):
        i = (b * 16 + k) * 64 + t
        if i < x.shape[0]:
            total += x[i]
            largest = max(largest, x[i])
            count += 1
    out[b, 0, t], out[b, 1, t], out[b, 2, t] = total, largest, fe.Float32(count)


@fe.kernel
def otherwise_kernel(x, out):
    """A thread does something else there."""
    t, b = arch.thread_idx()[0], arch.block_idx()[0]
    total, last = fe.Float32(0), fe.Float32(0)
    for k in range(16):
        i = (b * 16 + k) * 64 + t
        before = total
        if i < x.shape[0]:
            total += x[i]
            last = before
        else:
            total -= 1.0
    out[b, 0, t], out[b, 1, t], out[b, 2, t] = total, last, 0.0


@fe.kernel
def changed_kernel(x, out):
    """What a thread carries changes in each iteration, also without the condition."""
    t, b = arch.thread_idx()[0], arch.block_idx()[0]
    total, odd = fe.Float32(0), fe.Float32(1)
    for k in range(16):
        i = (b * 16 + k) * 64 + t
        odd = -odd * 0.5
        if i < x.shape[0]:
            total += x[i] * odd
    out[b, 0, t], out[b, 1, t], out[b, 2, t] = total, odd, 0.0


@pytest.mark.parametrize("size", [1, 1000, 1024, 2500])
@pytest.mark.parametrize("kernel", [tiles_kernel, otherwise_kernel, changed_kernel])
def test_tiles_that_hang_over_the_end(kernel: Any, size: int) -> None:
    x = np.random.default_rng(size).standard_normal(size, dtype=np.float32)
    out = np.zeros((3, 3, 64), np.float32)
    run_all_ways(tiles_of(kernel), (x, out), plain=False)


@cache
def tiles_of(kernel: Any) -> Any:
    @fe.jit
    def tiles(x, out):
        kernel(x, out).launch(grid=out.shape[0], block=64)

    return tiles


def test_the_index_of_a_tile_is_known_not_to_wrap() -> None:
    x, out = np.ones(1000, np.float32), np.zeros((2, 3, 64), np.float32)
    function = compiled(tiles_kernel, x, out, grid=2, block=64)
    (launch,) = (remark.text for remark in function.remarks if remark.what == "launch")
    assert "its threads run in 3 phases, cut around its loops" in launch
    assert "gather" not in function.inspect_asm()


# ---- loops whose last statement is a condition of each thread ----


@pytest.mark.parametrize("block", [4, 16, 128])
def test_a_condition_of_what_a_thread_loaded_is_known_in_each_iteration(block: int) -> None:
    """Loaded before the loop, in it, and computed of both."""

    @fe.kernel
    def kernel(x, y, out, d):
        t = arch.thread_idx()[0]
        f, v, w, u = x[t], y[t], y[t], y[t]
        for _ in range(d):
            if f == 0.0:
                v = y[t + 1]
        for j in range(d):
            if x[t] == j:
                w = y[t + 2]
        for j in range(d):
            g = y[t + j] % 3
            if g + f > 1:
                u = y[t + 3]
        out[0, t], out[1, t], out[2, t] = v, w, u

    x = (np.arange(block) % 3).astype(np.float32)
    y = np.arange(block + 9, dtype=np.int32) * 7 % 11
    for d in (0, 1, 3):
        out = np.zeros((3, block), np.int32)
        compiled(kernel, x, y, out, d, block=block)(x, y, out, d)
        t = np.arange(block)
        greater = [any(y[i + j] % 3 + x[i] > 1 for j in range(d)) for i in t]
        for row, taken, other in (
            (0, (x == 0) & (d > 0), y[t + 1]),
            (1, x < d, y[t + 2]),
            (2, np.array(greater, bool), y[t + 3]),
        ):
            assert out[row].tolist() == np.where(taken, other, y[t]).tolist(), (row, d)


def test_threads_side_by_side_are_one_piece() -> None:
    @fe.kernel
    def kernel(a, out):
        t = arch.thread_idx()[0]
        total = fe.Float32(0)
        for i in range(t, a.shape[0], 64):
            total += a[i]
        out[0] = arch.block_reduction(total, lambda x, y: x + y)

    row = fe.row_major((fe.sym_int(),), fe.Float32)
    text = compiled(kernel, row, row, block=64, options="--opt-level 0").inspect_llvm()
    assert "thread.x.head" in text and "piece" not in text


def test_one_thread_is_no_loop() -> None:
    @fe.kernel
    def kernel(out):
        if arch.thread_idx()[0] == 3:
            out[0] = 1.0

    one = np.zeros(1, np.float32)
    text = compiled(kernel, one, block=64, options="--opt-level 0").inspect_llvm()
    assert "thread.x.head" not in text
