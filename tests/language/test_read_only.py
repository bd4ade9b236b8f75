"""Arrays that cannot be written are never written, whatever the example was."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ferrule as fe


def frozen() -> Any:
    array = np.arange(3.0)
    array.flags.writeable = False
    return array


@fe.kernel
def bump_kernel(a: fe.Tensor):
    a[fe.arch.thread_idx()[0]] += 1.0


def by_elements(a: fe.Tensor):
    for i in range(a.shape[0]):
        a[i] = a[i] + 1.0


def whole(a: fe.Tensor):
    a[:] = a[:] + 1.0


def by_a_kernel(a: fe.Tensor):
    bump_kernel(a).launch(grid=1, block=3)


@fe.kernel
def address_kernel(a: fe.Tensor):
    there = fe.make_ptr(fe.Float64, a.iterator.toint())
    for i in range(3):
        there[i] = there[i] + 1.0


def by_address(a: fe.Tensor):
    address_kernel(a).launch(grid=1, block=1)


WRITERS = (by_elements, whole, by_a_kernel, by_address)


@pytest.mark.parametrize("writer", WRITERS, ids=lambda each: each.__name__)
def test_a_read_only_example_of_what_is_written(writer: Any) -> None:
    array = frozen()
    made = fe.compile(writer, array, options="--target cpu")
    assert "read_only" not in made.signature.text()
    with pytest.raises(BufferError, match="an array that can be written"):
        made(array)
    made(again := np.arange(3.0))
    assert array.tolist() == [0, 1, 2] and again.tolist() == [1, 2, 3]


@pytest.mark.parametrize("writer", WRITERS, ids=lambda each: each.__name__)
def test_direct_calls(writer: Any) -> None:
    function, array = fe.jit(writer), frozen()
    for _ in range(2):
        with pytest.raises(BufferError, match="an array that can be written"):
            function(array)
        function(np.arange(3.0))
    with pytest.raises(BufferError):
        function(a=np.broadcast_to(np.zeros(1), (3,)))
    assert array.tolist() == [0, 1, 2]


def test_bytes_stay_what_they_are() -> None:
    data = b"\0\0\0\0\0\0\xf0?"
    with pytest.raises(BufferError):
        fe.jit(by_elements)(np.frombuffer(data))
    assert data == b"\0\0\0\0\0\0\xf0?"


def test_in_tuples_each_for_itself() -> None:
    def host(pair: Any, n: fe.Int32, text: str):
        pair[1][0][0] = pair[0][0] + n

    made = fe.compile(host, (frozen(), (frozen(), 2)), 1, "x", options="--target cpu")
    assert made.signature.text().count("read_only=True") == 1
    out = np.zeros(3)
    made((frozen(), (out, 2)), 1, "x")
    assert out[0] == 1.0
    with pytest.raises(BufferError):
        made((frozen(), (frozen(), 2)), 1, "x")
