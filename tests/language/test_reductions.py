"""Reductions of whole tensors in host functions: compiled, interpreted, and as NumPy has them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from agreement import run_all_ways
from lowered import lower, matrix, vector
from parts import ramp, run
from ptxas import assemble

import ferrule as fe


def along_rows(a, b):
    b[:] = fe.sum(a[:], axis=1)


def along_columns(a, b):
    b[:] = fe.max(a[:], axis=0)


def along_the_last(a, b):
    b[:] = fe.min(a[:], axis=-1)


@pytest.mark.parametrize(
    ("function", "wanted"),
    [
        (along_rows, lambda a: a.sum(1)),
        (along_columns, lambda a: a.max(0)),
        (along_the_last, lambda a: a.min(-1)),
    ],
    ids=lambda x: x.__name__,
)
def test_along_one_axis(function: Any, wanted: Callable[[Any], Any]) -> None:
    a = ramp(3, 5)
    _, b = run(function, a, np.zeros(wanted(a).shape, np.float32))
    np.testing.assert_array_equal(b, wanted(a))


def test_along_several_axes_of_an_expression() -> None:
    def host(a, b, c):
        b[:] = fe.sum(a[:] * a[:] + 1.0, axis=(0, 2)) * 2.0
        c[:] = fe.prod(a[:], axis=1, keepdims=True)

    a = ramp(2, 3, 4)
    _, b, c = run(host, a, np.zeros(3, np.float32), np.zeros((2, 1, 4), np.float32))
    np.testing.assert_array_equal(b, (a * a + 1).sum((0, 2)) * 2)
    np.testing.assert_array_equal(c, a.prod(1, keepdims=True))


def test_of_everything_to_one_element() -> None:
    def host(a, b):
        b[0] = fe.sum(a[:])
        b[1] = fe.max(a[:]) - fe.min(a[:])
        b[a.shape[0]] = fe.sum(a[:]) / 2.0

    a = ramp(3, 5)
    _, b = run(host, a, np.zeros(4, np.float32))
    np.testing.assert_array_equal(b, [a.sum(), a.max() - a.min(), 0, a.sum() / 2])


def test_to_a_tensor_without_dims() -> None:
    def host(a, b):
        b[()] = fe.sum(a[:])

    a = ramp(9)
    _, b = run(host, a, np.zeros((), np.float32))
    assert b == a.sum()


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ("int8", fe.Int64),
        ("uint16", fe.Uint64),
        ("bool", fe.Int64),
        ("float16", fe.Float32),
        ("float64", fe.Float64),
    ],
)
def test_sums_are_of_a_dtype_that_holds_them(source: str, wanted: Any) -> None:
    seen = []

    def host(a, b):
        seen.append(fe.sum(a[:]).dtype)
        seen.append(fe.max(a[:]).dtype)
        b[0] = fe.sum(a[:])

    a = np.ones(1000, source)
    _, b = run(host, a, np.zeros(1, np.float64))
    assert b[0] == 1000
    assert seen[:2] == [wanted, fe.specs.dtypes.as_dtype(source)]


def test_extrema_of_nan_and_the_sum_of_nothing() -> None:
    def host(a, b, c):
        b[0] = fe.max(a[:])
        b[1] = fe.prod(c[:])
        b[2] = fe.sum(c[:])

    a = np.array([1, np.nan, 2], np.float32)
    _, b, _ = run(host, a, np.zeros(3, np.float32), np.zeros(0, np.float32))
    np.testing.assert_array_equal(b, [np.nan, 1, 0])


def test_a_sum_is_in_order() -> None:
    def host(a, b):
        b[0] = fe.sum(a[:])

    a = np.array([1e8, 1, -1e8, 1] * 3, np.float32)
    _, b = run(host, a, np.zeros(1, np.float32))
    total = np.float32(0)
    for value in a:
        total += value
    assert b[0] == total


@pytest.mark.needs_ptxas
def test_on_a_gpu_they_are_kernels(tmp_path: Path) -> None:
    def host(a, b, c):
        b[:] = fe.sum(a[:], axis=1)
        c[0] = fe.max(a[:])

    options = "--target cuda --gpu-arch sm_90a --index-bitwidth 32"
    examples = matrix(), vector(symbol="m"), vector(symbol="k")
    compiled = fe.compile(host, *examples, options=options)
    assert compiled.inspect_ptx().count(".entry") == 2
    assemble(compiled.inspect_ptx(), "sm_90a", tmp_path)


# ---- errors ----


def of_a_tensor(a, b):
    b[:] = fe.sum(a, axis=1)


def of_an_axis_too_many(a, b):
    b[:] = fe.sum(a[:], axis=2)


def of_two_numbers(a, b):
    b[0] = fe.max(b[1], b[2])


def of_an_axis_twice(a, b):
    b[:] = fe.sum(a[:], axis=(1, -1))


def of_an_axis_at_run_time(a, b):
    for axis in range(2):
        b[:] = fe.sum(a[:], axis=axis)


def to_what_is_reduced(a, b):
    a[0, :] = fe.sum(a[:], axis=1)


def to_another_shape(a, b):
    b[:] = fe.sum(a[:], axis=1, keepdims=True)


def whole_beside_its_sum(a, b):
    a[:] = a[:] / fe.sum(a[:])


WRONG = [
    (of_a_tensor, "fe.sum takes a whole tensor or a vector, but got the tensor a"),
    (of_an_axis_too_many, "fe.sum: the axis is 2"),
    (of_two_numbers, "fe.max takes a whole tensor or a vector, but got a run-time float32"),
    (of_an_axis_twice, "fe.sum: an axis of (1, -1) is given twice"),
    (of_an_axis_at_run_time, "fe.sum: the axis is a run-time int32"),
    (to_what_is_reduced, "is written while the same memory is reduced"),
    (to_another_shape, "an expression of 2 dims is assigned to b, which has 1"),
    (whole_beside_its_sum, "a reduction of a is broadcast: it would be computed for each element"),
]


@pytest.mark.parametrize(("function", "message"), WRONG, ids=lambda x: getattr(x, "__name__", ""))
def test_wrong_programs(function: Callable[..., Any], message: str) -> None:
    with pytest.raises(fe.CompileError) as caught:
        lower(function, matrix(), vector(symbol="m"))
    diagnostic = caught.value.diagnostic
    assert message in diagnostic.message
    assert diagnostic.span is not None
    assert diagnostic.hint or diagnostic.expected


# ---- of no elements ----

RESULTS: dict[Any, Any] = {fe.sum: np.sum, fe.prod: np.prod, fe.max: np.max, fe.min: np.min}
SHAPES = [(0, 3), (3, 0), (0, 0), (2, 3), (1, 1)]


@pytest.mark.parametrize("axis", [None, 0, -1, (0, -1)], ids=str)
@pytest.mark.parametrize("function", RESULTS, ids=lambda function: function.__name__)
def test_no_elements_are_as_in_numpy(function: Any, axis: Any) -> None:
    def host(a, b):
        if fe.const_expr(isinstance(axis, int)):
            b[:] = function(a[:], axis=axis)
        else:
            b[0] = function(a[:], axis=axis)

    compiled = fe.compile(host, matrix(), vector(symbol=None), options="--target cpu")
    for shape in SHAPES:
        a = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
        b = np.ones(np.atleast_1d(np.sum(a, axis=axis)).shape, np.float32)
        try:
            wanted = RESULTS[function](a, axis=axis)
        except ValueError:
            with pytest.raises(ValueError, match="of no elements") as caught:
                compiled(a, b)
            told = f"fe.{function.__name__} of no elements: a has the shape {shape}"
            assert str(caught.value) == told
        else:
            compiled(a, b)
            np.testing.assert_array_equal(b, np.atleast_1d(wanted), str(shape))


def test_the_error_of_no_elements_comes_where_it_is_computed() -> None:
    def host(a, b, wanted: fe.Int32):
        if wanted > 0:
            b[0] = fe.max(a[:] + 1.0)

    a, b = np.zeros(0, np.float32), np.zeros(1, np.float32)
    assert run_all_ways(host, (a, b, 0), plain=False).error is None
    found = run_all_ways(host, (a, b, 1), plain=False).error
    assert found is not None and found[0] == "ValueError"


def test_the_largest_of_bools_is_whether_any_is_true() -> None:
    @fe.jit
    def ends(a: fe.Tensor, least: fe.Tensor, most: fe.Tensor):
        least[:] = fe.min(a[:], axis=1)
        most[:] = fe.max(a[:], axis=1)

    n, m = fe.sym_int(), fe.sym_int()
    example, of_rows = fe.row_major((n, m), fe.Boolean), fe.row_major((n,), fe.Boolean)
    a = np.array([[1, 0, 1], [1, 1, 1], [0, 0, 0]], bool)
    least, most = np.zeros(3, bool), np.zeros(3, bool)
    fe.compile(ends, example, of_rows, of_rows)(a, least, most)
    assert least.tolist() == a.all(1).tolist()
    assert most.tolist() == a.any(1).tolist()
