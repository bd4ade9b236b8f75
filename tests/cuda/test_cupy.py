"""Arrays of CuPy: a call with them runs on CuPy's current stream.  CuPy itself needs a GPU, so an
object with what is used of it stands in for it."""

from __future__ import annotations

import gc
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import tvm_ffi
from cuda_device import FakeCuda, forge
from lowered import vector

import ferrule as fe
from ferrule.runtime.calls import cupystream


@fe.kernel
def add_one_kernel(a: fe.Tensor, b: fe.Tensor):
    i = fe.arch.block_idx()[0] * 256 + fe.arch.thread_idx()[0]
    if i < a.shape[0]:
        b[i] = a[i] + 1


@fe.jit
def add_one(a: fe.Tensor, b: fe.Tensor):
    add_one_kernel(a, b).launch(grid=(a.shape[0] + 255) // 256, block=256)


def compiled() -> fe.Function:
    options = "--enable-tvm-ffi --target cuda --gpu-arch sm_90a"
    return fe.compile(add_one, vector(), vector(), options=options)


class Array:
    """What is used of `cupy.ndarray`; `asked` are the streams that were asked to wait."""

    def __init__(self, values: np.ndarray[Any, Any], device: int) -> None:
        self._forged = forge(values, device)
        self.device = SimpleNamespace(id=device)
        self.asked: list[object] = []

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._forged.__dlpack_device__()

    def __dlpack__(self, *, stream: int | None = None, **options: Any) -> Any:
        self.asked.append(stream)
        return self._forged.__dlpack__(**options)


Array.__module__ = "cupy"


class Owned(Array):
    """A class of a caller's own."""


@pytest.fixture
def current(monkeypatch: pytest.MonkeyPatch, fake_cuda: FakeCuda) -> int:
    """CuPy's current stream on device 1."""
    stream = fake_cuda.stream(1)
    cuda = SimpleNamespace(
        get_current_stream=lambda device: SimpleNamespace(ptr={1: stream}[device])
    )
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(ndarray=Array, cuda=cuda))
    return stream


def arrays(count: int = 2) -> list[Array]:
    return [Array(np.zeros(8, np.float32), 1) for _ in range(count)]


def test_a_call_runs_on_the_stream_and_gives_it_back(fake_cuda: FakeCuda, current: int) -> None:
    function, given = compiled(), [arrays()[0], Owned(np.zeros(8, np.float32), 1)]
    other = fake_cuda.stream(1)
    with tvm_ffi.use_raw_stream(tvm_ffi.device("cuda:1"), other):
        function(*given)
        assert tvm_ffi.get_raw_stream(tvm_ffi.device("cuda:1")) == other
    assert [launch.stream for launch in fake_cuda.launches()] == [current]
    assert all(array.asked == [-1] for array in given)


def test_a_call_that_fails_gives_it_back(current: int) -> None:
    function = compiled()
    with pytest.raises(ValueError, match="Mismatched"):
        function(Array(np.zeros(8, np.float64), 1), *arrays(1))
    gc.collect()
    assert tvm_ffi.get_raw_stream(tvm_ffi.device("cuda:1")) == 0


def test_a_bound_call_keeps_no_stream(fake_cuda: FakeCuda, current: int) -> None:
    call = compiled().bind(*arrays())
    assert tvm_ffi.get_raw_stream(tvm_ffi.device("cuda:1")) == 0
    call()
    assert [launch.stream for launch in fake_cuda.launches()] == [0]


def test_without_arrays_of_cupy_nothing_changes(current: int) -> None:
    values = (1, "x", np.zeros(2))
    assert cupystream.on_current_stream(values) is values
