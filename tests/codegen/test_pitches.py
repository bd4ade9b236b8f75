"""Threads that a kernel arranges in rows of constant length become loops along these rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ferrule as fe

arch = fe.arch
BLOCK = 240
MATRIX = fe.row_major((fe.sym_int(), fe.sym_int()), fe.Float32)
VECTOR = fe.row_major((fe.sym_int(),), fe.Int32)
DIVISIONS: dict[str, Any] = {
    "floor": lambda t, n: (t // n, t % n),
    "bits": lambda t, n: (t >> (n.bit_length() - 1), t & (n - 1)),
    "mixed": lambda t, n: (t // n, t & (n - 1)),
    "remainder": lambda t, n: (t // n, t - t // n * n),
}


def compiled(kernel: Any, *examples: Any, block: Any = BLOCK, grid: Any = 3) -> fe.Function:
    @fe.jit
    def host(a, b):
        kernel(a, b).launch(grid=grid, block=block)

    return fe.compile(host, *examples, options="--target cpu")


def has_rows(function: fe.Function) -> bool:
    return "thread.x.row" in function.inspect_llvm()


def stirred(divided: Any, length: int) -> Any:
    """A kernel that reads along rows, waits, and reads its own memory by columns and by shifts."""

    @fe.kernel
    def kernel(a, b):
        t, block = arch.thread_idx()[0], arch.block_idx()[0]
        row, column = divided(t, length)
        held = arch.alloc_smem(fe.Int32, 2 * BLOCK)
        held[2 * row * length + column] = a[block * BLOCK + t]
        held[(2 * row + 1) * length + column] = a[block * BLOCK + row * length + column] + 1
        arch.sync_threads()
        low, high = held[2 * row * length + column], held[(2 * row + 1) * length + column]
        if row % 2 == 0:
            low, high = high, low
        other = held[2 * ((row + 1) * length % BLOCK) + column]
        b[block * BLOCK + t] = low * 3 + high + other * column

    return kernel


def wanted(a: np.ndarray, length: int) -> np.ndarray:
    row, column = np.divmod(np.arange(BLOCK), length)
    whole = a.reshape(3, BLOCK)
    low, high = np.where(row % 2 == 0, (whole + 1, whole), (whole, whole + 1))
    other = np.take(whole, (row + 1) * length % BLOCK // length * length + column, 1)
    return (low * 3 + high + other * column).ravel()


@pytest.mark.parametrize("length", [2, 3, 4, 5, 8, 12, 16, 30, 80])
@pytest.mark.parametrize("way", DIVISIONS)
def test_each_thread_has_its_row_and_column(way: str, length: int) -> None:
    if way in ("bits", "mixed") and length & (length - 1):
        pytest.skip("only powers of two are shifts and masks")
    function = compiled(stirred(DIVISIONS[way], length), VECTOR, VECTOR)
    a = np.random.default_rng(length).integers(-1000, 1000, 3 * BLOCK).astype(np.int32)
    b = np.zeros_like(a)
    function(a, b)
    np.testing.assert_array_equal(b, wanted(a, length))
    if way != "remainder":
        assert has_rows(function)


def tile(length: int, other: int = 0) -> Any:
    @fe.kernel
    def kernel(a, b):
        t = arch.thread_idx()[0]
        row, column = t // length, t % length
        b[row, column] = a[row, column] * 2.0 + (t // other if other else 0)

    return kernel


def test_a_tile_is_copied_in_vectors_and_not_one_by_one() -> None:
    function = compiled(tile(16), MATRIX, MATRIX, block=256, grid=1)
    assert has_rows(function)
    assert "gather" not in function.inspect_asm() and "scatter" not in function.inspect_asm()
    a, b = np.random.rand(16, 16).astype(np.float32), np.zeros((16, 16), np.float32)
    function(a, b)
    assert (b == 2 * a).all()


@pytest.mark.parametrize(
    ("kernel", "block"),
    [
        (tile(16), 250),
        (tile(16, 5), 240),
        (tile(256), 256),
        (tile(2), 256),
        (tile(1), 64),
    ],
    ids=["not whole rows", "two lengths", "one row", "steps of a whole row", "columns"],
)
def test_other_threads_stay_in_one_loop(kernel: Any, block: int) -> None:
    assert not has_rows(compiled(kernel, MATRIX, MATRIX, block=block, grid=1))


def test_a_block_of_a_size_that_the_call_knows() -> None:
    kernel = tile(16)

    @fe.jit
    def host(a, b, n: fe.Int32):
        kernel(a, b).launch(grid=1, block=n)

    function = fe.compile(host, MATRIX, MATRIX, fe.Int32, options="--target cpu")
    a, b = np.ones((16, 16), np.float32), np.zeros((16, 16), np.float32)
    function(a, b, 100)
    assert not has_rows(function)
    assert (b.ravel() == [2] * 100 + [0] * 156).all()


@pytest.mark.parametrize("block", [(32, 4, 2), (8, 32, 1)])
def test_rows_of_x_in_blocks_with_other_axes(block: tuple[int, int, int]) -> None:
    """What is divided is x alone, and not the number of the thread in its block."""

    @fe.kernel
    def kernel(a, b):
        x, y, z = arch.thread_idx()
        number = (z * block[1] + y) * block[0] + x
        held = arch.alloc_smem(fe.Int32, 256)
        held[number] = a[number]
        arch.sync_threads()
        b[number] = held[x // 8 * 8 + x % 8] + number // 8 + number % 8 * 100

    a, b = np.arange(256, dtype=np.int32) * 7, np.zeros(256, np.int32)
    compiled(kernel, VECTOR, VECTOR, block=block, grid=1)(a, b)
    n = np.arange(256)
    np.testing.assert_array_equal(b, a[n % block[0]] + n // 8 + n % 8 * 100)


@pytest.mark.parametrize("length", [2, 3, 4, 8, 20])
@pytest.mark.parametrize("guard", [BLOCK, 100])
def test_butterflies_change_pairs_in_place(length: int, guard: int) -> None:
    """Rows of 2 and 3 threads are unrolled; with a guard both loops are there."""

    @fe.kernel
    def kernel(a, b):
        t = arch.thread_idx()[0]
        if t < guard:
            low = t // length * (2 * length) + t % length
            first, second = b[low], b[low + length]
            b[low] = first * 2 - second
            b[low + length] = second + first + t

    @fe.jit
    def host(a, b):
        kernel(a, b).launch(grid=1, block=BLOCK)

    function = fe.compile(host, VECTOR, VECTOR, options="--target cpu")
    b = np.random.default_rng(length).integers(-99, 99, 2 * BLOCK).astype(np.int32)
    expected = b.copy()
    t = np.arange(guard)
    low = t // length * 2 * length + t % length
    expected[low], expected[low + length] = (
        2 * b[low] - b[low + length],
        b[low] + b[low + length] + t,
    )
    function(b.copy(), b)
    np.testing.assert_array_equal(b, expected)
    assert has_rows(function)


def test_remarks_say_it() -> None:
    (threads,) = (
        each
        for each in compiled(tile(16), MATRIX, MATRIX, block=256, grid=1).remarks
        if each.what == "kernel"
    )
    assert threads.text.endswith(" lanes; row by row")
    (other,) = (
        each
        for each in compiled(tile(2), MATRIX, MATRIX, block=256, grid=1).remarks
        if each.what == "kernel"
    )
    assert "row by row" not in other.text and "not side by side" in other.text
