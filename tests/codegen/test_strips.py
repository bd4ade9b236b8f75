"""A loop that many threads run at once gives each of them what its own loop would."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from agreement import run_all_ways
from hypothesis import given, settings
from hypothesis import strategies as st

import ferrule as fe
from ferrule.language.codegen.cpu.strips import WIDTH

BLOCK = 32


def floats(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).standard_normal(shape, dtype=np.float32)


def is_in_strips(function: Any, *arguments: Any) -> bool:
    """Whether the loop is outside of the loop over threads; of few threads there is one strip."""
    text = fe.compile(function, *arguments, options="--target cpu").inspect_llvm()
    return "strip.head:" in text or "threads.none:" in text


@fe.kernel
def device_product(a: fe.Tensor, b: fe.Tensor, c: fe.Tensor):
    bx, row, _ = fe.arch.block_idx()
    tid, _, _ = fe.arch.thread_idx()
    column = bx * BLOCK + tid
    if row < c.shape[0] and column < c.shape[1]:
        total = c[row, column]
        for k in range(a.shape[1]):
            total += a[row, k] * b[k, column]
        c[row, column] = total


@fe.jit
def product(a: fe.Tensor, b: fe.Tensor, c: fe.Tensor):
    m, n = c.shape
    device_product(a, b, c).launch(grid=((n + BLOCK - 1) // BLOCK, m + 1), block=(BLOCK,))


@pytest.mark.parametrize("n", [1, 17, WIDTH - 1, WIDTH, WIDTH + 1])
def test_sums_are_bit_for_bit_those_of_one_thread_after_the_other(n: int) -> None:
    run_all_ways(product, (floats(2, 3), floats(3, n), floats(2, n)))


@settings(max_examples=30, deadline=None)
@given(m=st.integers(0, 5), n=st.integers(0, 700), k=st.integers(0, 40))
def test_products_of_any_size(m: int, n: int, k: int) -> None:
    a, b, c = floats(m, k), floats(k, n), floats(m, n)
    wanted = c.copy()
    for i in range(k):
        wanted += a[:, i, None] * b[i]
    compiled_product()(a, b, c)
    np.testing.assert_array_equal(c, wanted)


_COMPILED: list[fe.Function] = []


def compiled_product() -> fe.Function:
    if not _COMPILED:
        m, n, k = (fe.sym_int() for _ in range(3))
        examples = [
            fe.make_fake_compact_tensor(fe.Float32, shape, stride_order=(1, 0))
            for shape in ((m, k), (k, n), (m, n))
        ]
        _COMPILED.append(fe.compile(product, *examples, options="--target cpu"))
    return _COMPILED[0]


def test_the_naive_product_runs_in_strips_and_in_vectors() -> None:
    text = compiled_product().inspect_llvm()
    assert "strip.head:" in text
    wide = ("%zmm", "%ymm", "%xmm", "v0.4s", "fmla")
    body = compiled_product().inspect_asm().partition("ferrule_body:")[2]
    assert "mulps" in body or any(word in body for word in wide)


@fe.kernel
def device_windows(x: fe.Tensor, factors: fe.Tensor, y: fe.Tensor, step: fe.Int32):
    i = fe.arch.block_idx()[0] * BLOCK + fe.arch.thread_idx()[0]
    if i < y.shape[0]:
        total, count = x[i], 0
        for k in range(factors.shape[0] - 1, -1, step):
            at = i + k - 2
            factor = factors[k]
            if 0 <= at < x.shape[0]:
                total += x[at] * factor
                count += 1
        y[i] = total / (count + 1) if count > 2 else -total


@fe.jit
def windows(x: fe.Tensor, factors: fe.Tensor, y: fe.Tensor, step: fe.Int32):
    device_windows(x, factors, y, step).launch(
        grid=((y.shape[0] + BLOCK - 1) // BLOCK,), block=(BLOCK,)
    )


@pytest.mark.parametrize("step", [-1, -2, 1])
def test_a_loop_with_branches_carries_several_values_either_way(step: int) -> None:
    arguments = (floats(40), floats(6), floats(45)[:40].copy(), step)
    run_all_ways(windows, arguments)


def test_elements_beside_the_thread_s_own_still_lie_side_by_side() -> None:
    assert is_in_strips(windows, floats(40), floats(6), floats(40), fe.Int32)


@fe.kernel
def device_prefix(x: fe.Tensor, y: fe.Tensor):
    i = fe.arch.thread_idx()[0]
    total = 0.0
    for k in range(i % 5):
        total += x[k, i]
    y[i] = total


@fe.jit
def prefix(x: fe.Tensor, y: fe.Tensor):
    device_prefix(x, y).launch(grid=(1,), block=(64,))


@fe.kernel
def device_row_sums(x: fe.Tensor, y: fe.Tensor):
    i = fe.arch.thread_idx()[0]
    total = 0.0
    for k in range(x.shape[1]):
        total += x[i, k]
    y[i] = total


@fe.jit
def row_sums(x: fe.Tensor, y: fe.Tensor):
    device_row_sums(x, y).launch(grid=(1,), block=(x.shape[0],))


@fe.kernel
def device_in_place(x: fe.Tensor, y: fe.Tensor):
    i = fe.arch.thread_idx()[0]
    total = 0.0
    for k in range(4):
        y[k, i] = x[k, i] + total
        total += y[k, i]
    x[0, i] = total


@fe.jit
def in_place(x: fe.Tensor, y: fe.Tensor):
    device_in_place(x, y).launch(grid=(1,), block=(x.shape[1],))


def test_other_loops_stay_with_their_thread() -> None:
    """Bounds of a thread's own, rows of a thread's own, writes in the loop."""
    for function, arguments in (
        (prefix, (floats(4, 64), floats(64))),
        (row_sums, (floats(33, 5), floats(33))),
        (in_place, (floats(4, 33), floats(4, 33))),
    ):
        run_all_ways(function, arguments)
        assert not is_in_strips(function, *arguments)


@fe.kernel
def device_few(x: fe.Tensor, y: fe.Tensor):
    i = fe.arch.thread_idx()[0]
    total = 0.0
    for k in range(x.shape[0]):
        total += x[k, i]
    y[fe.arch.block_idx()[0], i] = total


@fe.jit
def four_columns(x: fe.Tensor, y: fe.Tensor):
    device_few(x, y).launch(grid=(y.shape[0],), block=(4,))


@fe.jit
def eight_columns(x: fe.Tensor, y: fe.Tensor):
    device_few(x, y).launch(grid=(y.shape[0],), block=(8,))


def test_few_threads_keep_their_loops() -> None:
    arguments = (floats(5, 8), np.zeros((2, 8), np.float32))
    assert not is_in_strips(four_columns, *arguments)
    assert is_in_strips(eight_columns, *arguments)
    for function in (four_columns, eight_columns):
        run_all_ways(function, arguments)


@fe.kernel
def device_columns(x: fe.Tensor, limits: fe.Tensor, y: fe.Tensor):
    row, bx, _ = fe.arch.block_idx()
    tid, _, _ = fe.arch.thread_idx()
    column = bx * fe.arch.block_dim()[0] + tid
    if column < x.shape[1]:
        limit = limits[row]
        largest = x[0, column]
        for k in range(limit):
            largest = max(largest, x[k, column])
        total = 0
        for k in range(x.shape[0]):
            if x[k, column] == largest:
                total += k
        y[row, column] = total


@fe.jit
def columns(x: fe.Tensor, limits: fe.Tensor, y: fe.Tensor, block: fe.Int32):
    device_columns(x, limits, y).launch(
        grid=(y.shape[0], (y.shape[1] + block - 1) // block), block=(block,)
    )


@pytest.mark.parametrize("block", [1, 7, 64])
def test_a_bound_from_memory_and_another_loop_behind(block: int) -> None:
    limits = np.array([0, 1, 5], np.int32)
    arguments = (floats(5, 50), limits, np.zeros((3, 50), np.int32), block)
    run_all_ways(columns, arguments)
    assert is_in_strips(columns, *arguments[:3], fe.Int32)


def test_nothing_is_read_where_no_thread_runs() -> None:
    """The limits of a billion rows without columns are not there."""
    compiled = fe.compile(
        columns,
        fe.make_fake_compact_tensor(fe.Float32, (5, fe.sym_int(symbol="n")), stride_order=(1, 0)),
        fe.make_fake_compact_tensor(fe.Int32, (fe.sym_int(),)),
        fe.make_fake_compact_tensor(
            fe.Int32, (fe.sym_int(), fe.sym_int(symbol="n")), stride_order=(1, 0)
        ),
        fe.Int32,
        options="--target cpu",
    )
    empty = np.empty(0, np.int32)
    compiled(np.empty((5, 0), np.float32), empty, np.empty((60_000, 0), np.int32), 4)


@fe.kernel
def device_halves(x: fe.Tensor, y: fe.Tensor):
    i = fe.arch.thread_idx()[0]
    total = y[i]
    for k in range(x.shape[0]):
        total = total + x[k, i]
    y[i] = total


@fe.jit
def halves(x: fe.Tensor, y: fe.Tensor):
    device_halves(x, y).launch(grid=(1,), block=(x.shape[1],))


@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.int8, np.uint64])
def test_carried_values_of_other_dtypes(dtype: Any) -> None:
    x = (floats(5, 70) * 100).astype(dtype)
    arguments = (x, x[0].copy())
    run_all_ways(halves, arguments, plain=False)
    assert is_in_strips(halves, *arguments)


# ---- loops without reads, and reads inside of bounds ----


@fe.kernel
def device_mixed(y: fe.Tensor, rounds: fe.Constexpr):
    i = fe.arch.block_idx()[0] * 64 + fe.arch.thread_idx()[0]
    if i < y.shape[0]:
        a, b = fe.Uint32(i), fe.Uint32(7)
        for _ in range(rounds):
            a, b = (a * 0x9E3779B9) ^ (b >> 3), b + a
        y[i] = a ^ b


@fe.jit
def mixed(y: fe.Tensor):
    device_mixed(y, 40).launch(grid=(y.shape[0] + 63) // 64, block=64)


@fe.jit
def mixed_thrice(y: fe.Tensor):
    device_mixed(y, 3).launch(grid=(y.shape[0] + 63) // 64, block=64)


def test_loops_without_reads_unless_they_are_unrolled() -> None:
    arguments = (np.zeros(100, np.uint32),)
    assert is_in_strips(mixed, *arguments)
    assert not is_in_strips(mixed_thrice, *arguments)
    for function in (mixed, mixed_thrice):
        run_all_ways(function, arguments, plain=False)


@fe.kernel
def device_blurred(a: fe.Tensor, out: fe.Tensor):
    x = fe.arch.block_idx()[0] * 32 + fe.arch.thread_idx()[0]
    y = fe.arch.block_idx()[1] * 2 + fe.arch.thread_idx()[1]
    height, width = a.shape
    if x < width and y < height:
        total, weights, own = 0.0, 0.0, a[y, x]
        for dy in range(-2, 3):
            for dx in range(-2, 3):
                value = a[min(max(y + dy, 0), height - 1), min(max(x + dx, 0), width - 1)]
                weight = fe.math.exp((value - own) * (own - value) - fe.Float32(dx * dx + dy * dy))
                total += weight * value
                weights += weight
        out[y, x] = total / weights


@fe.jit
def blurred(a: fe.Tensor, out: fe.Tensor):
    grid = (a.shape[1] + 31) // 32, (a.shape[0] + 1) // 2
    device_blurred(a, out).launch(grid=grid, block=(32, 2))


def test_indices_that_are_kept_inside_of_an_image() -> None:
    arguments = (floats(7, 45), np.zeros((7, 45), np.float32))
    function = fe.compile(blurred, *arguments, options="--target cpu")
    assert "cut around its loops" in str(function.remarks)
    run_all_ways(blurred, arguments, plain=False)
