"""Variables of kernels, `__constant__` and `__device__`: a launch gives them their values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cuda_device import FakeCuda, forged
from gpu_functions import floats

import ferrule as fe
from ferrule import compiler, specs
from ferrule.compiler.conventions import CudaLaunch
from ferrule.compiler.errors import CompileError
from ferrule.specs import Signature, Tensor

N = specs.sym_int64(symbol="n")
PTX = """\
.version 8.0
.target sm_80
.address_size 64
.const .align 4 .b8 weights[16];
.const .align 4 .b8 known[8] = {1, 0, 0, 0};
.visible .global .align 4 .u32 counter;
.global .align 1 .b8 $str[4];
.global .align 4 .b8 _ZN2ns5tableE[12];
.extern .shared .align 16 .b8 scratch[];
.func (.param .b32 r) helper() { .reg .b64 %d<2>; mov.u64 %d1, _ZN2ns5tableE; ret; }
.visible .entry filter(.param .u64 x) { .reg .b64 %d<2>; mov.u64 %d1, weights; ret; }
.visible .entry counting(.param .u64 x) { .reg .b64 %d<2>; mov.u64 %d1, counter; ret; }
.visible .entry calling(.param .u64 x) { call helper; ret; }
.visible .entry none(.param .u64 x) { .reg .b64 %d<2>; mov.u64 %d1, known; ret; }
.visible .entry shared(.param .u64 x) { .reg .b64 %d<2>; mov.u64 %d1, scratch; ret; }
"""
X = Tensor("x", (N,), "float32")
WEIGHTS = np.array([1, 2, 3, 4], np.float32)


def launching(kernel: str, *params: Tensor, **more: Any) -> fe.Function:
    launch = CudaLaunch(fe.DeviceCode.from_ptx(PTX), kernel, [X.data], 1, 32, **more)
    return compiler.build(Signature(kernel, [X, *params]), launch)


def test_a_variable_without_a_value_is_refused() -> None:
    with pytest.raises(CompileError) as caught:
        launching("filter")
    said = str(caught.value)
    assert "kernel filter of sm_80 uses the variable weights, 16 bytes without a value" in said
    assert "hint: constants={'weights': …} gives it one" in said
    with pytest.raises(CompileError, match="the variable counter, 4 bytes without a value"):
        launching("counting")


def test_a_variable_that_a_function_of_the_kernel_uses_is_one_of_the_kernel() -> None:
    with pytest.raises(CompileError, match="uses the variable ns::table, 12 bytes"):
        launching("calling")
    assert launching("calling", constants={"ns::table": 0})


def test_a_kernel_that_uses_none_needs_none(fake_cuda: FakeCuda) -> None:
    launching("none")(floats(3))
    assert "cuLibraryGetGlobal" not in fake_cuda.names()


@pytest.mark.parametrize("value", [WEIGHTS, WEIGHTS.tobytes(), bytearray(WEIGHTS.tobytes())])
def test_bytes_are_written_before_each_launch(value: Any, fake_cuda: FakeCuda) -> None:
    fn = launching("filter", constants={"weights": value})
    for _ in range(2):
        fn(floats(3))
        assert fake_cuda.variable("weights") == WEIGHTS.tobytes()
        names = fake_cuda.names()
        written = ["cuLibraryGetGlobal", "cuMemcpyAsync", "cuLaunchKernelEx"]
        assert [each for each in names if each in written] == written


def test_a_tensor_of_the_call_is_copied_on_the_stream(fake_cuda: FakeCuda) -> None:
    weights = Tensor("w", (4,), "float32")
    fn = launching("filter", weights, constants={"weights": weights})
    for scale in (1, 3):
        fn(floats(3), forged(WEIGHTS * scale))
        assert fake_cuda.variable("weights") == (WEIGHTS * scale).tobytes()
    (copied,) = {each.numbers[0] for each in fake_cuda.calls() if each.name == "cuMemcpyAsync"}
    assert copied == 16


def test_a_tensor_of_another_size_is_an_error_of_the_call(fake_cuda: FakeCuda) -> None:
    k = specs.sym_int64(symbol="k")
    weights = Tensor("w", (k,), "float32")
    fn = launching("filter", weights, constants={"weights": weights.data})
    fn(floats(3), forged(WEIGHTS))
    fake_cuda.clear()
    with pytest.raises(ValueError, match="w is the value of the variable weights: expected 16 b"):
        fn(floats(3), forged(WEIGHTS[:3].copy()))
    assert not fake_cuda.launches()


def test_zeros_are_written_and_none_is_left(fake_cuda: FakeCuda) -> None:
    launching("counting", constants={"counter": 0})(floats(3))
    assert fake_cuda.variable("counter") == bytes(4)
    assert "cuMemsetD8Async" in fake_cuda.names()
    launching("counting", constants={"counter": None})(floats(3))
    assert not {"cuLibraryGetGlobal", "cuMemsetD8Async"} & set(fake_cuda.names())


def test_a_variable_with_a_value_can_get_another(fake_cuda: FakeCuda) -> None:
    launching("none", constants={"known": np.array([5, 6], np.int32)})(floats(3))
    assert fake_cuda.variable("known") == np.array([5, 6], np.int32).tobytes()


def test_each_gpu_has_its_own(fake_cuda: FakeCuda) -> None:
    fn = launching("filter", constants={"weights": WEIGHTS})
    for device in (0, 1):
        fn(floats(3, device=device))
        assert fake_cuda.variable("weights", device) == WEIGHTS.tobytes()


def test_what_the_driver_refuses_is_a_cuda_error(fake_cuda: FakeCuda) -> None:
    fn = launching("filter", constants={"weights": WEIGHTS})
    for name in ("cuLibraryGetGlobal", "cuMemcpyAsync"):
        fake_cuda.fail(name, 500)
        with pytest.raises(fe.CudaError, match=f"{name} failed .* writing of the variable weights"):
            fn(floats(3))
    fn(floats(3))


@pytest.mark.parametrize(
    ("constants", "said"),
    [
        ({"weights": b"123"}, "the variable weights has 16 bytes, but its value 3"),
        ({"weights": Tensor("w", (3,), "float32")}, "has 16 bytes, but its value 12"),
        (
            {"weights": Tensor("w", (4,), "float32", strides=(2,))},
            "the tensor w for weights must be contiguous",
        ),
        ({"wights": WEIGHTS}, "has no variable 'wights' .*\n  expected: weights, known, counter"),
        ({"weights": Tensor("w", (4,), "float32", device="cpu")}, "no kernel of CUDA can read"),
    ],
)
def test_a_value_that_does_not_fit_is_refused(constants: Any, said: str) -> None:
    given = [each for each in constants.values() if isinstance(each, Tensor)]
    with pytest.raises(CompileError, match=said):
        launching("filter", *given, constants=constants)


@pytest.mark.parametrize("value", [2, 1.5, "0", [1, 2], True])
def test_a_value_has_a_type(value: Any) -> None:
    with pytest.raises(TypeError, match="the constant weights must be bytes, an array"):
        launching("filter", constants={"weights": value})
    with pytest.raises(TypeError, match="constants must be a dict by the names of variables"):
        launching("filter", constants=[value])


# ---- shared memory ----


def test_shared_memory_that_the_launch_is_to_size_is_said() -> None:
    with pytest.raises(
        CompileError, match="shared of sm_80 uses shared memory whose size .*\n.*sm"
    ):
        launching("shared")
    assert launching("shared", smem=128)
    assert launching("shared", smem=0)
    assert launching("none")
