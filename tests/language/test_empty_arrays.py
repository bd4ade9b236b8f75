"""Arrays without elements as arguments of direct calls, whose sizes of 0 are known: code that never
runs for them is no error, and what does run is an IndexError, as in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ferrule as fe


@fe.jit
def reverse_sort(a: fe.Tensor):
    for end in range(a.shape[0] - 1, 0, -1):
        a[end], a[0] = a[0], a[end]


@fe.jit
def columns(a: fe.Tensor):
    for i in range(a.shape[0]):
        a[i, 1] = a[i, 0] * 2


@fe.jit
def rows(a: fe.Tensor):
    for _ in range(a.shape[0]):
        a[0, :] = a[1, :]


@fe.kernel
def first_kernel(a: fe.Tensor):
    if fe.arch.thread_idx()[0] < a.shape[0]:
        a[0] = 1


@fe.jit
def first_of_a_kernel(a: fe.Tensor):
    first_kernel(a).launch(grid=1, block=4)


@pytest.mark.parametrize(
    ("function", "shape"),
    [
        *((reverse_sort, (0,)), (columns, (0, 3)), (columns, (0, 0)), (rows, (0, 3))),
        (first_of_a_kernel, (0,)),
    ],
)
def test_code_that_never_runs_is_no_error(function: Any, shape: Any) -> None:
    function(np.zeros(shape, np.float32))


def test_with_elements_it_does_what_it_says() -> None:
    a = np.arange(4, dtype=np.float32)
    reverse_sort(a)
    np.testing.assert_array_equal(a, [1, 2, 3, 0])


@fe.jit
def writes(a: fe.Tensor):
    a[2] = 1


@fe.jit
def reads(a: fe.Tensor):
    return a[0]


@fe.jit
def takes_a_row(a: fe.Tensor):
    a[0, :] = 1.0


@fe.kernel
def always_kernel(a: fe.Tensor):
    a[0] = 1


@fe.jit
def in_a_kernel(a: fe.Tensor):
    always_kernel(a).launch(grid=1, block=4)


@pytest.mark.parametrize(
    ("function", "shape", "index"),
    [
        *((writes, (0,), 2), (reads, (0,), 0), (takes_a_row, (0, 3), 0)),
        (in_a_kernel, (0,), 0),
    ],
)
def test_what_runs_is_an_error_of_the_call(function: Any, shape: Any, index: int) -> None:
    text = f"coordinate 0 of a is {index}, but the size there is 0"
    with pytest.raises(IndexError, match=text):
        function(np.zeros(shape, np.float32))
