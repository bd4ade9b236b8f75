"""Calls, errors and strings of functions for a GPU, as far as a machine without one can tell."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import tvm_ffi
from cuda_device import FakeCuda, forged
from cuda_device import fake_cuda as fake_cuda
from lowered import vector

import ferrule as fe

CUDA = "--target cuda --gpu-arch sm_90a"
NAME = "ferrule.test.calls.cuda"


@fe.kernel
def nothing_kernel(a: fe.Tensor):
    a[0] = 1.0


def launched(a: fe.Tensor, mode):
    if mode == "raise":
        fe.raise_error("ValueError", "mode {} for {} elements", mode, a.shape)
    nothing_kernel(a).launch(grid=1, block=1)
    fe.call(NAME, a, mode)


def called(a: fe.Tensor, mode):
    fe.call(NAME, a, mode)


@pytest.fixture
def seen() -> Iterator[list[Any]]:
    """What the registered function got: device, shape and string."""
    got: list[Any] = []
    tvm_ffi.register_global_func(NAME, lambda a, s: got.append((str(a.device), tuple(a.shape), s)))
    yield got
    tvm_ffi.registry.remove_global_func(NAME)


@pytest.mark.parametrize("function", [launched, called])
def test_a_callee_gets_the_tensor_on_its_device(
    function: Any, fake_cuda: FakeCuda, seen: list[Any]
) -> None:
    run = fe.compile(function, vector(), "s", options=CUDA)
    run(forged(np.zeros(8, np.float32), 1), "here")
    assert seen == [("cuda:1", (8,), "here")]


def test_an_error_ends_the_call_before_the_launch(fake_cuda: FakeCuda, seen: list[Any]) -> None:
    run = fe.compile(launched, vector(), "s", options=CUDA)
    with pytest.raises(ValueError, match=r"^mode raise for \(8,\) elements$"):
        run(forged(np.zeros(8, np.float32), 0), "raise")
    assert seen == []
