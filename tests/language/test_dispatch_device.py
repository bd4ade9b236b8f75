"""The device of a call's tensors in host code: compared, passed on, given back."""

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
from ferrule.specs import params

CUDA = "--target cuda --gpu-arch sm_90a"
CPU = "--target cpu"
DEVICE = params.Device("d")
NAME = "ferrule.test.dispatch.device"


def compiled(function: Any, *examples: Any, options: str = CPU) -> fe.Function:
    return fe.compile(function, *examples, options=options)


@pytest.fixture
def seen() -> Iterator[list[str]]:
    """What the registered function was given."""
    got: list[str] = []
    tvm_ffi.register_global_func(NAME, lambda d: got.append(str(d)))
    yield got
    tvm_ffi.registry.remove_global_func(NAME)


@fe.kernel
def first_kernel(a: fe.Tensor, index: fe.Int32):
    a[0] = index


@fe.jit
def where(a: fe.Tensor, b: fe.Tensor):
    fe.static_assert(a.device == b.device)
    fe.call(NAME, a.device)
    return a.device, a.device.index


@fe.jit
def launched(a: fe.Tensor):
    first_kernel(a, a.device.index).launch(grid=1, block=1)
    if a.device == "cuda:1":
        return a.device.index
    return -1


@fe.jit
def is_here(a: fe.Tensor, d):
    if d != a.device:
        fe.raise_error("ValueError", "a is on {}, d is {}", a.device, d)
    return d.index


@fe.jit
def made(a: fe.Tensor, d):
    b = fe.empty(a.shape, a.dtype, device=d)
    b[0] = a[0]
    return b


@fe.jit
def known(a: fe.Tensor):
    fe.static_assert(a.device.type == "cpu" and a.device.index == 0)
    fe.static_assert(a.device == "cpu" and a.device == "cpu:0" and a.device != "cpu:1")
    fe.static_assert(a.device != "cuda" and "cuda:1" != a.device)
    return fe.empty_like(a), fe.zeros((2,), fe.Int8, device=a.device)


def test_on_a_cpu_all_is_known_while_compiling():
    compiled(known, vector())(np.zeros(2, np.float32))


def test_it_is_passed_on_and_given_back(seen):
    a = np.zeros(2, np.float32)
    assert compiled(where, vector(), vector())(a, a) == (tvm_ffi.device("cpu"), 0)
    assert seen == ["cpu:0"]


def test_on_a_gpu_the_index_is_that_of_the_call(fake_cuda: FakeCuda, seen):
    run = compiled(where, vector(), vector(), options=CUDA)
    a = forged(np.zeros(2, np.float32), 1)
    assert run(a, a) == (tvm_ffi.device("cuda:1"), 1)
    assert seen == ["cuda:1"]


def test_beside_a_launch_the_index_is_that_of_the_call(fake_cuda: FakeCuda):
    run = compiled(launched, vector(), options=CUDA)
    found = [run(forged(np.zeros(2, np.float32), index)) for index in (1, 0)]
    assert found == [1, -1]
    numbers = [launch.parameters[1][:4] for launch in fake_cuda.launches()]
    assert [int.from_bytes(number, "little") for number in numbers] == [1, 0]


def test_a_device_parameter_is_compared_with_it():
    run = compiled(is_here, vector(), DEVICE)
    a = np.zeros(2, np.float32)
    assert run(a, "cpu") == 0
    with pytest.raises(ValueError, match="^a is on cpu:0, d is cuda:3$"):
        run(a, "cuda:3")


def test_a_new_tensor_is_where_the_tensors_are():
    run = compiled(made, vector(), DEVICE)
    a = np.ones(2, np.float32)
    assert np.from_dlpack(run(a, "cpu"))[0] == 1
    message = (
        "^Invalid device of a new tensor, expected cpu:0, where the call's tensors are, "
        "but got cuda:0$"
    )
    with pytest.raises(ValueError, match=message):
        run(a, "cuda")


def test_printf_shows_it(capfd):
    def shown(a: fe.Tensor):
        fe.printf("on {}", a.device)

    compiled(shown, vector())(np.zeros(2, np.float32))
    assert capfd.readouterr().out == "on cpu:0\n"


def in_kernel(a: fe.Tensor, d):
    asking_kernel(a).launch(grid=1, block=1)


@fe.kernel
def asking_kernel(a: fe.Tensor):
    a[0] = a.device.index


def unknown(a: fe.Tensor, d):
    return a.device.kind


def no_device(a: fe.Tensor, d):
    return a.device == "gpu"


def elsewhere(a: fe.Tensor, d):
    return fe.empty((3,), fe.Int8, device="cuda")


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (in_kernel, "the device of a is known in the host function alone"),
        (unknown, "the device a.device has no attribute 'kind'"),
        (no_device, "'gpu' is no device"),
        (elsewhere, "the new tensor is to be on cuda, but the target is cpu"),
    ],
)
def test_wrong_uses_are_refused(function, message):
    with pytest.raises(fe.CompileError) as caught:
        compiled(function, vector(), DEVICE)
    assert str(caught.value).splitlines()[0] == message
