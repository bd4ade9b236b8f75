"""Loads that all threads make alike are made once, and only where a thread makes them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ferrule as fe

BLOCK = 32


@fe.kernel
def device_take(a: fe.Tensor, table: fe.Tensor, out: fe.Tensor):
    block, row, _ = fe.arch.block_idx()
    tid, _, _ = fe.arch.thread_idx()
    i = block * BLOCK + tid
    if row < out.shape[0] and i < out.shape[1]:
        out[row, i] = a[table[row], i]


@fe.jit
def take(a: fe.Tensor, table: fe.Tensor, out: fe.Tensor):
    blocks = fe.ceil_div(out.shape[1], BLOCK)
    device_take(a, table, out).launch(grid=(blocks, out.shape[0]), block=(BLOCK,))


@fe.kernel
def device_choose(a: fe.Tensor, table: fe.Tensor, out: fe.Tensor):
    block, row, _ = fe.arch.block_idx()
    tid, _, _ = fe.arch.thread_idx()
    i = block * BLOCK + tid
    if not (i >= out.shape[1] or row >= out.shape[0]):
        first = table[row]
        if first >= 0:
            second = table[first]
            if second < 0:
                out[row, i] = a[table[-second], i]
            else:
                out[row, i] = 2 * a[second, i]
        elif i > 0:
            out[row, i] = a[table[0], i]


@fe.jit
def choose(a: fe.Tensor, table: fe.Tensor, out: fe.Tensor):
    blocks = fe.ceil_div(out.shape[1], BLOCK)
    device_choose(a, table, out).launch(grid=(blocks, out.shape[0]), block=(BLOCK,))


def chosen(a: Any, table: Any, out: Any) -> Any:
    """What `choose` writes."""
    for row, first in enumerate(table[: len(out)]):
        if first < 0:
            out[row, 1:] = a[table[0], 1:]
        elif table[first] < 0:
            out[row] = a[table[-table[first]]]
        else:
            out[row] = 2 * a[table[first]]
    return out


@fe.kernel
def device_turns(a: fe.Tensor, out: fe.Tensor, limit: fe.Int32):
    tid, _, _ = fe.arch.thread_idx()
    if tid < limit:
        before = a[0]
        a[tid] = before + 1
        out[tid] = before * 100 + a[0]


@fe.jit
def turns(a: fe.Tensor, out: fe.Tensor, threads: fe.Int32, limit: fe.Int32):
    device_turns(a, out, limit).launch(grid=(1,), block=(threads,))


def matrix(dtype: Any, *shape: Any) -> Any:
    order = tuple(reversed(range(len(shape))))
    return fe.runtime.make_fake_compact_tensor(dtype, shape, stride_order=order)


def rows(function: Any) -> fe.Function:
    n, width, entries, m = (fe.sym_int() for _ in range(4))
    a, table = matrix(fe.Float32, n, width), matrix(fe.Int32, entries)
    return fe.compile(function, a, table, matrix(fe.Float32, m, width), options="--target cpu")


def test_a_row_found_through_a_table_is_copied_in_vectors() -> None:
    """Were the table read for each element, its row would be gathered one by one."""
    function = rows(take)
    body = function.inspect_llvm().partition('"blocks_device_take"')[2]
    before, _, loop = body.partition("thread.x.head:")
    assert before.count('%"load" = load ') == 1 and '%"load" = load i32' in before
    assert loop.partition("\n}")[0].count("= load ") == 1


def test_each_row_is_the_one_that_the_table_names() -> None:
    function = rows(take)
    a = np.arange(12 * 70, dtype=np.float32).reshape(12, 70)
    table = np.array([3, 11, 0, 0, 7], np.int32)
    out = np.zeros((5, 70), np.float32)
    function(a, table, out)
    np.testing.assert_array_equal(out, a[table])


def test_nothing_is_read_where_no_thread_runs() -> None:
    """The table names a row for each of a billion rows of no elements, and is empty."""
    function = rows(take)
    table = np.empty(0, np.int32)
    function(np.empty((3, 0), np.float32), table, np.empty((60_000, 0), np.float32))


def test_each_side_of_a_branch_makes_its_own_loads() -> None:
    """LLVM may move them back, so that running it would not tell."""
    text = rows(choose).inspect_llvm().partition('"blocks_device_choose"')[2]
    before = text.partition("thread.x.head:")[0].partition("threads:")[2]
    blocks = {part.partition(":")[0].split("\n")[-1]: part for part in before.split("\n  br ")}
    loads = [part.count("= load ") for part in blocks.values()]
    assert sum(loads) == 3 and max(loads) == 1


@pytest.mark.parametrize("width", [1, 31, 100])
def test_a_side_of_a_branch_reads_only_where_it_is_taken(width: int) -> None:
    """The entries of a side that is not taken are far outside of the table."""
    function = rows(choose)
    a = np.arange(8 * width, dtype=np.float32).reshape(8, width)
    table = np.array([3, 2, 4, 7, -1, -(1 << 30), 4, 5], np.int32)
    out = np.full((6, width), -5.0, np.float32)
    wanted = chosen(a, table, out.copy())
    function(a, table, out)
    np.testing.assert_array_equal(out, wanted)


def test_a_thread_that_is_alone_sees_its_own_writes_after_its_reads() -> None:
    example = matrix(fe.Int32, fe.sym_int())
    function = fe.compile(turns, example, example, fe.Int32, fe.Int32, options="--target cpu")
    for threads, limit in ((1, 1), (8, 1), (8, 0)):
        a, out = np.array([7, 0], np.int32), np.zeros(2, np.int32)
        function(a, out, threads, limit)
        assert a.tolist() == ([8, 0] if limit else [7, 0])
        assert out.tolist() == ([708, 0] if limit else [0, 0])
