"""What tensors say of themselves in a host function: `dim`, `size`, `numel`, `data_ptr`, …"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from lowered import matrix, vector

import ferrule as fe

CPU = "--target cpu"


def compiled(function: Any, *examples: Any) -> fe.Function:
    return fe.compile(function, *examples, options=CPU)


def wrong(function: Any, *examples: Any) -> str:
    with pytest.raises(fe.CompileError) as caught:
        compiled(function, *examples)
    return str(caught.value)


def strided(rank: int = 2) -> Any:
    shape, strides = (tuple(fe.sym_int() for _ in range(rank)) for _ in "ab")
    return fe.make_fake_tensor(fe.Float32, shape, stride=strides)


def test_sizes_and_strides() -> None:
    def facts(a):
        return a.dim(), a.sizes(), a.size(0), a.size(-1), a.strides(), a.stride(1), a.stride[0]

    a = np.zeros((3, 8), np.float32)[:, ::2]
    assert compiled(facts, strided())(a) == (2, (3, 4), 3, 4, (8, 2), 2, 8)


def test_the_number_of_elements_is_a_size() -> None:
    def count(a):
        t = fe.zeros((a.numel(),), fe.Int32)
        return t, a.numel()

    tensor, number = compiled(count, matrix())(np.zeros((3, 5), np.float32))
    assert (tuple(tensor.shape), number) == ((15,), 15)


def test_the_address_is_that_of_the_first_element() -> None:
    def addresses(a):
        t = fe.zeros((4,), fe.Float32)
        return a.data_ptr(), a[1, None].data_ptr(), t.data_ptr() % 64, t

    a = np.zeros((3, 8), np.float32)[1:, 1::2]
    first, second, rest, tensor = compiled(addresses, strided())(a)
    assert (first, second, rest) == (a.ctypes.data, a[1].ctypes.data, 0)
    assert np.from_dlpack(tensor).tolist() == [0] * 4


@pytest.mark.parametrize(
    "a",
    [
        np.zeros((3, 4), np.float32),
        np.zeros((4, 3), np.float32).T,
        np.zeros((3, 8), np.float32)[:, ::2],
        np.zeros((1, 4), np.float32).T,
        np.zeros((6, 4), np.float32)[::6],
        np.zeros((0, 4), np.float32),
        np.zeros((4, 0), np.float32).T,
    ],
)
def test_contiguous_is_what_numpy_calls_so(a: Any) -> None:
    def contiguous(a):
        return a.is_contiguous()

    assert compiled(contiguous, strided())(a) == a.flags.c_contiguous


def test_a_compact_tensor_is_contiguous_at_compile_time() -> None:
    def contiguous(a):
        return 1 if fe.const_expr(a.is_contiguous()) else 0

    assert compiled(contiguous, matrix())(np.zeros((2, 2), np.float32)) == 1


@pytest.mark.parametrize("axis", [2, -3, 0.0, "x", None])
def test_a_wrong_axis_is_a_compile_error(axis: Any) -> None:
    def facts(a):
        return a.size(axis)

    assert "expected: an integer in [-2, 1], known at compile time" in wrong(facts, matrix())


def test_an_axis_of_the_call_is_a_compile_error() -> None:
    def facts(a, i: fe.Int32):
        return a.stride(i)

    assert "the axis of stride is a run-time int32" in wrong(facts, vector(), 1)


@fe.kernel
def asking(a):
    a[0] = a.data_ptr()


def test_an_address_is_known_in_the_host_function_alone() -> None:
    def launches(a):
        asking(a).launch(grid=1, block=1)

    assert "data_ptr is known in the host function alone" in wrong(launches, vector())


def test_a_method_without_axes_takes_none() -> None:
    def facts(a):
        return a.numel(1)

    assert "numel takes no arguments, but got 1" in wrong(facts, vector())
