"""Whole tensors of different shapes together, as in NumPy; reductions of everything as results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from emulated_alone import run_alone
from hypothesis import given, settings
from hypothesis import strategies as st
from lowered import lower, matrix, vector

import ferrule as fe

CPU = "--target cpu"


@fe.jit
def combined(a: fe.Tensor, b: fe.Tensor, c: fe.Tensor, out: fe.Tensor):
    out[:] = fe.where(a[:] > b[:], a[:] * 2.0, b[:]) + c[:] - (b[:] + 1.0)


SIDES = st.tuples(*(st.integers(2, 4) for _ in range(3)))


@settings(max_examples=30, deadline=None)
@given(st.data(), SIDES)
def test_it_broadcasts_as_numpy_does(data: st.DataObject, sides: tuple[int, ...]) -> None:
    def shape() -> tuple[int, ...]:
        begin = data.draw(st.integers(0, 2))
        return tuple(data.draw(st.sampled_from((1, side))) for side in sides[begin:])

    a, b, c = (
        np.arange(np.prod(s), dtype=np.float32).reshape(s) for s in (shape(), shape(), shape())
    )
    wanted = np.where(a > b, a * 2, b) + c - (b + 1)
    out = np.zeros(sides, np.float32)
    combined(a, b, c, out)
    np.testing.assert_array_equal(out, np.broadcast_to(wanted, sides))


def test_it_broadcasts_on_a_gpu() -> None:
    run_alone(__file__, "here.broadcasts_on_a_gpu()")


def broadcasts_on_a_gpu() -> None:
    a, b, c = (
        np.ones((3, 1), np.float32),
        np.arange(4, dtype=np.float32),
        np.ones((1, 1), np.float32),
    )
    with fe.emulated_gpu("sm_80"):
        on_gpu = [fe.cuda.array(each) for each in (a, b, c, np.zeros((3, 4), np.float32))]
        combined(*on_gpu)
        found = fe.cuda.to_numpy(on_gpu[-1])
    np.testing.assert_array_equal(found, np.where(a > b, a * 2, b) + c - (b + 1))


def test_sizes_of_the_call_are_equal_or_refused() -> None:
    @fe.jit
    def added(a: fe.Tensor, b: fe.Tensor):
        a[:] = a[:] + b[:]

    compiled = fe.compile(added, matrix(), vector(symbol="r"), options=CPU)
    a, b = np.ones((3, 2), np.float32), np.ones(2, np.float32)
    compiled(a, b)
    assert (a == 2).all()
    with pytest.raises(
        ValueError, match=r"Mismatched b.shape\[0\].* match a.shape\[1\] = 2, but got 1"
    ):
        compiled(a, b[:1])


def reduction_beside_its_tensor(a, b):
    a[:] = a[:] - fe.max(a[:], axis=1, keepdims=True)


def everything_beside_its_tensor(a, b):
    b[:] = b[:] / fe.sum(b[:])


def too_many_dims(a, b):
    b[:] = a[:]


def a_row_of_itself(a, b):
    a[:] = a[:] - fe.local_tile(a, (1, 4), (0, 0))[:]


REFUSED = {
    reduction_beside_its_tensor: "a reduction of a is broadcast: it would be computed for each",
    everything_beside_its_tensor: "a reduction of b is broadcast: it would be computed for each",
    too_many_dims: "an expression of 2 dims is assigned to b, which has 1",
    a_row_of_itself: "a is written while the same memory is read in another layout",
}


@pytest.mark.parametrize("program", REFUSED, ids=lambda f: f.__name__)
def test_what_would_be_slow_or_wrong_is_refused(program: Callable[..., Any]) -> None:
    with pytest.raises(fe.CompileError) as caught:
        fe.compile(program, np.zeros((4, 4), np.float32), np.zeros(4, np.float32), options=CPU)
    assert str(caught.value).startswith(REFUSED[program])


@fe.jit
def total(a: fe.Tensor):
    return fe.sum(a[:])


@fe.jit
def statistics(a: fe.Tensor, n: fe.Int32) -> tuple[fe.Float64, fe.Float32, fe.Float32]:
    if n > 3:
        return fe.sum(a[:]) / a.shape[0], fe.max(a[:]), fe.min(a[:]) - 1.0
    return fe.sum(a[:] * a[:]), 0.0, fe.prod(a[:])


def test_reductions_of_everything_are_results() -> None:
    a = np.array([1, 2, 5], np.float32)
    assert total(a) == 8.0
    assert total(np.ones((2, 3), np.int8)) == 6
    assert statistics(a, 4) == (float(np.float32(8) / 3), 5.0, 0.0)
    assert statistics(a, 1) == (30.0, 0.0, 10.0)
    assert total(a[:0]) == 0.0
    with pytest.raises(ValueError, match=r"fe.max of no elements: a has the shape \(0,\)"):
        statistics(a[:0], 4)


def test_the_host_does_not_wait_for_a_gpu() -> None:
    with pytest.raises(fe.CompileError) as caught:
        fe.compile(total, vector(), options="--target cuda --gpu-arch sm_80")
    assert "which a GPU computes" in str(caught.value)
    assert "t[()] = fe.sum(...); return t" in str(caught.value)

    @fe.jit
    def stored(a: fe.Tensor):
        t = fe.empty((), fe.Float32)
        t[()] = fe.sum(a[:])
        return t

    compiled = fe.compile(stored, vector(), options="--target cuda --gpu-arch sm_80")
    assert "-> Tensor([], float32)" in repr(compiled)


def test_a_result_after_a_write_is_refused() -> None:
    def late(a):
        s = fe.sum(a[:])
        a[0] = 1.0
        return s

    with pytest.raises(fe.CompileError, match="used after a tensor was written to"):
        lower(late, vector())
