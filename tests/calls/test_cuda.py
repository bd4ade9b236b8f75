"""Calls, errors and strings of functions for a GPU, as far as a machine without one can tell."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import tvm_ffi
from cuda_device import FakeCuda, forged
from cuda_device import fake_cuda as fake_cuda
from host_memory import all_freed

import ferrule as fe

CUDA = "--target cuda --gpu-arch sm_90a"
NAME = "ferrule.test.calls.cuda"


def vector(symbol: str = "n") -> Any:
    return fe.make_fake_compact_tensor(fe.Float32, (fe.sym_int(symbol=symbol),))


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


def fill(a: fe.Tensor, b: fe.Tensor):
    nothing_kernel(a).launch(grid=2, block=1)
    nothing_kernel(b).launch(grid=3, block=1)
    return fe.empty_like(a)


def test_kernels_of_a_compiled_function_run_on_the_device_of_the_call(fake_cuda: FakeCuda) -> None:
    inner = fe.compile(fill, vector(), vector(), options=CUDA)

    def proved(a):
        inner(a, a)

    def checked(a, b):
        inner(a, b)
        nothing_kernel(a).launch(grid=1, block=1)

    a, b = (forged(np.zeros(8, np.float32), 1) for _ in range(2))
    with all_freed():
        one = fe.compile(proved, vector("n"), options=CUDA)
        assert "call_body @fill" in one.inspect_ir()
        one(a)
        assert [launch.grid[0] for launch in fake_cuda.launches()] == [2, 3]
        fake_cuda.clear()
        two = fe.compile(checked, vector("n"), vector("m"), options=CUDA)
        assert "call linked @fill" in two.inspect_ir()
        two(a, b)
        assert [launch.grid[0] for launch in fake_cuda.launches()] == [2, 3, 1]
        assert {call.device for call in fake_cuda.calls() if "Launch" in call.name} == {1}
        with pytest.raises(ValueError, match="Mismatched b.shape"):
            two(a, forged(np.zeros(4, np.float32), 1))


def test_architectures_must_agree() -> None:
    inner = fe.compile(fill, vector(), vector(), options=CUDA)

    def host(a):
        inner(a, a)
        nothing_kernel(a).launch(grid=1, block=1)

    with pytest.raises(fe.CompileError, match="sm_80 and sm_90a: compile them for the same GPU"):
        fe.compile(host, vector(), options="--target cuda --gpu-arch sm_80")
