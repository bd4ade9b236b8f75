"""Whole-tensor expressions of parts: all of a part is in its tensor, or the call is refused.

What a part has is told by NumPy, of an array with the number of each element.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import ferrule as fe
from ferrule import Int32


@fe.jit
def one_tile(a: fe.Tensor, k: Int32):
    fe.local_tile(a, (4,), (k,))[:] = 7.0


@fe.jit
def tile(a: fe.Tensor, i: Int32, j: Int32):
    fe.local_tile(a, (2, 4), (i, j))[:] = 7.0


@fe.jit
def divided(a: fe.Tensor, i: Int32, j: Int32):
    fe.zipped_divide(a, (2, 4))[(None, None), (i, j)][:] = 7.0


@fe.jit
def numbered(a: fe.Tensor, i: Int32, j: Int32):
    rows = (a.shape[0] + 1) // 2
    fe.zipped_divide(a, (2, 4))[None, i + rows * j][:] = 7.0


@fe.jit
def transposed(a: fe.Tensor, i: Int32, j: Int32):
    fe.local_tile(a.transpose(), (4, 2), (j, i))[:] = 7.0


@fe.jit
def called(a: fe.Tensor, i: Int32, j: Int32):
    write_seven(fe.local_tile(a, (2, 4), (i, j)))


@fe.jit
def joined(a: fe.Tensor, i: Int32, j: Int32):
    part = fe.local_tile(a, (2, 4), (i, j))
    if i > j:
        part = fe.zipped_divide(a, (2, 4))[(None, None), (i, j)]
    part[:] = 7.0


@fe.jit
def carried(a: fe.Tensor, i: Int32, j: Int32):
    part = fe.local_tile(a, (2, 4), (0, 0))
    for _ in range(1):
        part = fe.local_tile(a, (2, 4), (i, j))
    part[:] = 7.0


@fe.jit
def row(a: fe.Tensor, i: Int32):
    a[i, :] = 7.0


@fe.jit
def column(a: fe.Tensor, i: Int32):
    a[None, i][:] = 7.0


@fe.jit
def moved(a: fe.Tensor, i: Int32):
    fe.local_tile(fe.domain_offset((i,), a), (4,), (1,))[:] = 7.0


@fe.jit
def tile_of_tile(a: fe.Tensor, i: Int32, j: Int32):
    block = fe.local_tile(a, (4,), (i,))
    fe.local_tile(block, (2,), (j,))[:] = 7.0


@fe.jit
def flat(a: fe.Tensor, i: Int32):
    fe.local_tile(fe.coalesce(a), (4,), (i,))[:] = 7.0


@fe.jit
def partition(a: fe.Tensor, i: Int32):
    fe.local_partition(a, fe.make_layout((3,)), i)[:] = 7.0


@fe.jit
def every_third(a: fe.Tensor):
    fe.composition(a, fe.make_layout((2, 3), stride=(3, 1)))[:] = 7.0


@fe.jit
def seven(a: fe.Tensor):
    a[:] = 7.0


write_seven = fe.compile(
    seven, fe.runtime.make_fake_tensor(fe.Float32, (2, 4), stride=(fe.sym_int(), 1))
)


def _in(size: int, numbers: range) -> list[int] | None:
    return list(numbers) if numbers.start >= 0 and numbers[-1] < size else None


def _tile(shape: tuple[int, ...], i: int, j: int) -> Any:
    rows, columns = _in(shape[0], range(2 * i, 2 * i + 2)), _in(shape[1], range(4 * j, 4 * j + 4))
    return None if rows is None or columns is None else np.ix_(rows, columns)


def _third(shape: tuple[int, ...], i: int) -> Any:
    """The threads have a number modulo 3; each is to have as many elements as the first one."""
    return _in(shape[0], range(i % 3, i % 3 + 3 * (-(-shape[0] // 3) - 1) + 1, 3))


PARTS: list[tuple[Any, tuple[int, ...], Callable[..., Any]]] = [
    *((one_tile, (n,), lambda s, k: _in(s[0], range(4 * k, 4 * k + 4))) for n in (6, 8)),
    *((each, (5, 10), _tile) for each in (tile, divided, transposed, called, joined, carried)),
    *((each, (4, 8), _tile) for each in (tile, divided)),
    (row, (3, 5), lambda s, i: _in(s[0], range(i, i + 1))),
    (column, (3, 5), lambda s, i: np.s_[:, i] if 0 <= i < s[1] else None),
    (moved, (11,), lambda s, i: None if i < 0 else _in(s[0], range(i + 4, i + 8))),
    (flat, (6,), lambda s, k: _in(s[0], range(4 * k, 4 * k + 4))),
    (partition, (7,), _third),
    (partition, (6,), _third),
    (every_third, (6,), lambda s: _in(s[0], range(6))),
    (every_third, (5,), lambda s: None),
]


def _calls(function: Any) -> Iterator[tuple[int, ...]]:
    numbers = len(function.__wrapped__.__annotations__) - 1
    return itertools.product((-(1 << 30), -1, 0, 1, 2, 3, 4, 1 << 30), repeat=numbers)


@pytest.mark.parametrize(("function", "shape", "part"), PARTS)
def test_a_part_is_inside_or_refused(function: Any, shape: Any, part: Callable[..., Any]) -> None:
    symbols = tuple(fe.sym_int() for _ in shape)
    at = list(_calls(function))
    compiled = fe.compile(function, fe.row_major(symbols, fe.Float32), *[Int32] * len(at[0]))
    outcomes = set()
    for numbers in at:
        memory = np.full(64 + int(np.prod(shape)), -1, np.float32)
        a = memory[32:-32].reshape(shape)
        expected, found = a.copy(), part(shape, *numbers)
        outcomes.add(found is None)
        if found is None:
            with pytest.raises(IndexError, match="out of range for dim|reaches element"):
                compiled(a, *numbers)
        else:
            expected[found] = 7
            compiled(a, *numbers)
        np.testing.assert_array_equal(a, expected)
        assert (memory[:32] == -1).all() and (memory[-32:] == -1).all()
    assert outcomes


@fe.jit
def first_row(c: fe.Tensor):
    c[0, :] = 1.0


@fe.jit
def first_row_of_modes(c: fe.Tensor):
    c[0, None][:] = 1.0


@fe.jit
def first_tile(c: fe.Tensor):
    fe.local_tile(c, (1, 6), (0, 0))[:] = 1.0


@fe.jit
def first_column_of_columns(c: fe.Tensor):
    c.transpose()[:, 0] = 1.0


@fe.jit
def first_slice(c: fe.Tensor):
    fe.slice_(c, (0, None))[:] = 1.0


FIRST = (first_row, first_row_of_modes, first_tile, first_column_of_columns, first_slice)


@pytest.mark.parametrize("function", FIRST)
def test_the_first_row_of_no_rows_is_refused(function: Any) -> None:
    compiled = fe.compile(function, fe.row_major((fe.sym_int(), fe.sym_int()), fe.Float32))
    memory = np.zeros((8, 6), np.float32)
    with pytest.raises(IndexError, match="index 0 is out of range for dim"):
        compiled(memory[:0])
    assert not memory.any()
    compiled(memory[:2])
    assert memory.sum() == 6


def test_columns_of_no_rows_are_no_elements() -> None:
    @fe.jit
    def column(c: fe.Tensor):
        c[:, 0] = 1.0

    compiled = fe.compile(column, fe.row_major((fe.sym_int(), fe.sym_int()), fe.Float32))
    compiled(np.zeros((0, 3), np.float32))
    with pytest.raises(IndexError, match="index 0 is out of range for dim 1 of c, which has 0"):
        compiled(np.zeros((3, 0), np.float32))


def test_a_row_that_is_known_to_be_there_needs_no_check() -> None:
    sizes = fe.sym_int(min=1), fe.sym_int()
    compiled = fe.compile(first_row, fe.row_major(sizes, fe.Float32))
    assert "check" not in compiled.inspect_ir()


def test_elements_for_reductions_are_there_or_refused() -> None:
    @fe.jit
    def total(a: fe.Tensor, c: fe.Tensor, i: Int32):
        c[i] = fe.sum(a[:])

    @fe.jit
    def of_a_tile(a: fe.Tensor, c: fe.Tensor, i: Int32):
        fe.local_tile(c, (2,), (i // 2,))[i % 2] = fe.sum(a[:])

    examples = [fe.row_major((fe.sym_int(),), fe.Float32) for _ in range(2)]
    for function, size in itertools.product((total, of_a_tile), (0, 3)):
        compiled = fe.compile(function, *examples, Int32)
        for i in (-1, 0, 1, 2, 3, 4, 1 << 30):
            memory = np.zeros(16, np.float32)
            if 0 <= i < size:
                compiled(np.ones(4, np.float32), memory[4 : 4 + size], i)
                assert memory[4 + i] == memory.sum() == 4
            else:
                with pytest.raises(IndexError):
                    compiled(np.ones(4, np.float32), memory[4 : 4 + size], i)
                assert not memory.any()


@fe.jit
def filled(a: fe.Tensor, k: Int32):
    fe.local_tile(a, (4,), (k,)).fill(7.0)


@fe.jit
def stored(a: fe.Tensor, k: Int32):
    fe.local_tile(a, (4,), (k,)).store(fe.local_tile(a, (4,), (0,)).load() + 7.0)


@fe.jit
def loaded(a: fe.Tensor, k: Int32):
    fe.local_tile(a, (4,), (0,)).store(fe.local_tile(a, (4,), (k,)).load() + 7.0)


@fe.jit
def copied(a: fe.Tensor, k: Int32):
    a[0] = 7.0
    fe.autovec_copy(fe.local_tile(a, (4,), (k,)), fe.local_tile(a, (4,), (0,)))


@pytest.mark.parametrize("function", [filled, stored, loaded, copied])
def test_all_elements_of_a_part_are_inside_for_the_host(function: Any) -> None:
    compiled = fe.compile(function, fe.row_major((fe.sym_int(),), fe.Float32), Int32)
    memory = np.zeros(16, np.float32)
    compiled(memory[4:10], 0)
    assert memory[4:10].any() and not memory[:4].any() and not memory[10:].any()
    for k in (-1, 1, 2):
        with pytest.raises(IndexError, match="out of range|reaches element 7"):
            compiled(memory[4:10], k)
        assert not memory[:4].any() and not memory[10:].any()


def test_tiles_by_number_are_inside_or_refused() -> None:
    symbols = fe.sym_int(), fe.sym_int()
    compiled = fe.compile(numbered, fe.row_major(symbols, fe.Float32), Int32, Int32)
    for i, j in itertools.product(range(3), range(4)):
        a, found = np.zeros((5, 10), np.float32), _tile((5, 10), i, j)
        if found is None:
            with pytest.raises(IndexError):
                compiled(a, i, j)
            assert not a.any()
        else:
            compiled(a, i, j)
            assert a.sum() == 7 * 8 and (a[found] == 7).all()


def test_parts_that_are_read_are_inside_or_refused() -> None:
    @fe.jit
    def total(a: fe.Tensor, b: fe.Tensor, k: Int32):
        b[0] = fe.sum(fe.local_tile(a, (4,), (k,))[:])

    one = fe.row_major((fe.sym_int(),), fe.Float32)
    compiled = fe.compile(total, one, fe.row_major((1,), fe.Float32), Int32)
    a, b = np.arange(6, dtype=np.float32), np.zeros(1, np.float32)
    compiled(a, b, 0)
    assert b == 6
    with pytest.raises(IndexError, match="reaches element 7 of dim 0 of a, which has 6"):
        compiled(a, b, 1)


def test_a_known_part_is_refused_while_compiling() -> None:
    @fe.jit
    def last(a: fe.Tensor):
        fe.local_tile(a, (4,), (1,))[:] = 7.0

    with pytest.raises(fe.CompileError, match="reaches element 7 of dim 0 of a, which has 6"):
        fe.compile(last, fe.row_major((6,), fe.Float32))
    fe.compile(last, fe.row_major((8,), fe.Float32))


def test_exact_tiles_need_no_check() -> None:
    @fe.jit
    def first(a: fe.Tensor):
        fe.local_tile(a, (4,), (0,))[:] = 7.0

    compiled = fe.compile(first, fe.row_major((4 * fe.sym_int(min=1),), fe.Float32))
    assert "check" not in compiled.inspect_ir()


def test_parts_of_views_are_inside_or_refused() -> None:
    @fe.jit
    def every_second(a: fe.Tensor):
        fe.composition(fe.coalesce(a), fe.make_layout(3, stride=2))[:] = 7.0

    compiled = fe.compile(every_second, fe.row_major((fe.sym_int(),), fe.Float32))
    a = np.zeros(5, np.float32)
    compiled(a)
    assert a.tolist() == [7, 0, 7, 0, 7]
    with pytest.raises(IndexError, match="reaches element 4"):
        compiled(a[:4])


def test_a_part_of_unknown_elements_is_refused() -> None:
    @fe.jit
    def further(a: fe.Tensor):
        fe.append(a, fe.make_layout(3, stride=100))[:] = 7.0

    with pytest.raises(fe.CompileError, match="it is not known whether its elements are all in a"):
        fe.compile(further, fe.row_major((3, 4), fe.Float32))


def test_kernels_take_tiles_that_reach_over_the_end() -> None:
    @fe.kernel
    def fill(t: fe.Tensor, c: fe.Tensor, n: Int32):
        i = fe.arch.thread_idx()[0]
        if c[i][0] < n:
            t[i] = 7.0

    @fe.jit
    def last(a: fe.Tensor, k: Int32):
        c = fe.make_identity_tensor(a.shape)
        tiles = (fe.local_tile(x, (4,), (k,)) for x in (a, c))
        fill(*tiles, a.shape[0]).launch(grid=1, block=4)

    compiled = fe.compile(last, fe.row_major((fe.sym_int(),), fe.Float32), Int32)
    a = np.zeros(6, np.float32)
    compiled(a, 1)
    assert a.tolist() == [0, 0, 0, 0, 7, 7]
