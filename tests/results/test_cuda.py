"""New tensors and results on a GPU, as far as a machine without one can tell."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest
import tvm_ffi
from cuda_device import FakeCuda
from cuda_device import fake_cuda as fake_cuda
from gpu_functions import floats
from host_memory import Memory
from host_memory import memory as memory
from lowered import vector

import ferrule as fe

CUDA = "--target cuda --gpu-arch sm_90a"


@fe.kernel
def add_one_kernel(a: fe.Tensor, b: fe.Tensor):
    i = fe.arch.block_idx()[0] * 256 + fe.arch.thread_idx()[0]
    if i < a.shape[0]:
        b[i] = a[i] + 1.0


@fe.jit
def add_one(a: fe.Tensor):
    b = fe.zeros_like(a)
    add_one_kernel(a, b).launch(grid=fe.ceil_div(a.shape[0], 256), block=256)
    return b


@fe.jit
def like(a: fe.Tensor):
    return fe.empty_like(a)


@fe.jit
def last(n: fe.Int32):
    t = fe.empty((n,), fe.Float32)
    add_one_kernel(t, t).launch(grid=1, block=256)
    return "done"


def compiled(function: Any, *examples: Any) -> fe.Function:
    return fe.compile(function, *(examples or (vector(),)), options=CUDA)


def test_new_tensors_are_on_the_device_of_the_call(fake_cuda: FakeCuda, memory: Memory) -> None:
    found = compiled(add_one)(floats(1000, device=1))
    assert memory.asked == [(4000, 2, 1)]
    assert (str(found.device), found.shape) == ("cuda:1", (1000,))
    assert [launch.kernel for launch in fake_cuda.launches()] == [
        "add_one_zeros_like",
        "add_one_kernel",
    ]
    address = int.from_bytes(fake_cuda.launches()[1].parameters[1][:8], "little")
    assert list(memory.live) == [address]
    del found
    assert not memory.live


def test_no_kernel_is_needed(memory: Memory) -> None:
    found = compiled(like)(floats(3, device=1))
    assert (str(found.device), memory.asked) == ("cuda:1", [(12, 2, 1)])


def test_without_tensors_it_is_the_current_device(fake_cuda: FakeCuda, memory: Memory) -> None:
    function = compiled(last, fe.Int32)
    fake_cuda.set_current(1)
    assert function(10) == "done"
    assert memory.asked == [(40, 2, 1)]
    assert not memory.live


def test_a_launch_that_fails_releases_them(fake_cuda: FakeCuda, memory: Memory) -> None:
    function = compiled(add_one)
    fake_cuda.fail("cuLaunchKernelEx", 1)
    with pytest.raises(fe.CudaError):
        function(floats(10))
    assert len(memory.asked) == 1
    assert not memory.live


def test_a_context_that_cannot_be_left_releases_them(fake_cuda: FakeCuda, memory: Memory) -> None:
    function = compiled(add_one)
    fake_cuda.set_current(0)
    fake_cuda.fail("cuCtxPopCurrent_v2", 1)
    with pytest.raises(fe.CudaError):
        function(floats(10, device=1))
    assert len(memory.asked) == 1
    assert not memory.live


def test_without_an_allocator_it_says_what_to_do(fake_cuda: FakeCuda) -> None:
    message = (
        r"there is no allocator for a new tensor on cuda: in C and other languages register .*"
        r"use_allocator\(allocate, free\) or ferrule\.cuda\.use_as_allocator\(\), or call with"
    )
    with pytest.raises(RuntimeError, match=message):
        compiled(add_one)(floats(10))


def test_a_result_of_the_caller_s_is_a_reference_of_his(fake_cuda: FakeCuda) -> None:
    @fe.jit
    def same(f, a: fe.Tensor):
        add_one_kernel(a, a).launch(grid=1, block=256)
        return f

    function = compiled(same, fe.specs.params.Function("f"), vector())
    callback = tvm_ffi.convert(lambda: 5)
    count = ctypes.c_uint32.from_address(callback.__chandle__())
    before = count.value
    assert function(callback, floats(4))() == 5
    fake_cuda.fail("cuLaunchKernelEx", 1)
    with pytest.raises(fe.CudaError):
        function(callback, floats(4))
    assert count.value == before
