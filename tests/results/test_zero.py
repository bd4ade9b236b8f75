"""Results, temporaries and parameters that a call fills with zeros."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
from cuda_device import FakeCuda
from cuda_device import fake_cuda as fake_cuda
from gpu_functions import floats
from host_memory import Memory, allocating
from host_memory import memory as memory

import ferrule as fe
from ferrule import compiler, specs
from ferrule.compiler.conventions import (
    CFunction,
    CudaLaunch,
    FirstOf,
    HostCode,
    Sequence,
    Zero,
)
from ferrule.runtime import CudaError
from ferrule.specs import Scalar, Signature, Tensor

n = specs.sym_int64(symbol="n")
X, Y, T = (Tensor(name, (n,), "float32") for name in ("x", "y", "t"))
NOTHING = HostCode.from_llvm("define void @nothing() {\n  ret void\n}")
IDLE = CFunction("nothing", [], code=NOTHING)
SIG = Signature("f", [X])
PTX = """
.version 7.8
.target sm_80
.address_size 64
.visible .entry add(.param .u64 y, .param .u64 x) { ret; }
"""
CODE = fe.DeviceCode.from_ptx(PTX)
LAUNCH = CudaLaunch(CODE, "add", [Y.data, X.data], grid=1, block=1)


class Dirty(Memory):
    """Memory in which something is."""

    def allocate(self, size: int, align: int, kind: int, index: int) -> int:
        address = super().allocate(size, align, kind, index)
        buffer = self.live[address]
        buffer[:] = b"\xff" * len(buffer)
        return address


@pytest.fixture
def dirty(monkeypatch: Any) -> Any:
    monkeypatch.setattr("host_memory.Memory", Dirty)
    with allocating() as memory:
        yield memory


def values(found: Any) -> Any:
    return np.from_dlpack(found).tolist()


@pytest.mark.parametrize("zero", [True, ["y"], "y", ("y", "y")])
def test_results_are_filled_before_the_call(zero: Any, dirty: Any) -> None:
    fn = compiler.build(SIG, IDLE, results=[Y], zero=zero)
    assert values(fn(np.ones(5, np.float32))) == [0] * 5
    assert values(fn(np.ones(0, np.float32))) == []


def test_all_of_none_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="zero=True fills results, and there is none"):
        compiler.build(SIG, IDLE, zero=True)


def test_a_size_of_a_number_says_what_to_do() -> None:
    k, m = specs.Scalar("k", "int64"), specs.sym_int64(symbol="m")
    said = r"the value of k, .* hand it over in a specs.Shape\('shape', \(n,\)\)"
    with pytest.raises(ValueError, match=said):
        made = Tensor("made", (k.value * 2,), "float32")
        compiler.build(Signature("f", [k]), IDLE, results=[made])
    made = Tensor("made", (m * 2,), "float32")
    fn = compiler.build(Signature("f", [specs.Shape("s", (m,))]), IDLE, results=[made], zero=True)
    assert values(fn((2,))) == [0] * 4


def test_others_have_what_was_there(dirty: Any) -> None:
    small = Tensor("small", (3,), "uint8")
    fn = compiler.build(SIG, IDLE, results=[Y, small], zero=["y"])
    filled, rest = map(values, fn(np.ones(2, np.float32)))
    assert filled == [0, 0] and rest == [255] * 3
    both = compiler.build(SIG, IDLE, results=[Y, small], zero=True)(np.ones(2, np.float32))
    assert [values(each) for each in both] == [[0, 0], [0, 0, 0]]


def test_an_aligned_one_too(dirty: Any) -> None:
    wide = Tensor("wide", (n, 3), "float16", align=512)
    fn = compiler.build(SIG, IDLE, results=[wide], zero=True)
    assert values(fn(np.ones(2, np.float32))) == [[0] * 3] * 2


def test_temporaries_and_parameters_are_filled_where_it_says() -> None:
    copy = CFunction("memcpy", [Y.data, T.data, X.nbytes])
    fill = CFunction("memcpy", [T.data, X.data, X.nbytes])
    call = Sequence([fill, Zero(T.data, X), copy], temporaries=[T])
    given = np.ones(4, np.float32)
    assert values(compiler.build(SIG, call, results=[Y])(given)) == [0] * 4
    assert given.tolist() == [0] * 4


def test_where_a_condition_holds(dirty: Any) -> None:
    call = FirstOf([Zero(Y, when=n > 3), IDLE])
    fn = compiler.build(SIG, call, results=[Y])
    assert values(fn(np.ones(4, np.float32))) == [0] * 4
    assert np.isnan(values(fn(np.ones(3, np.float32)))).all()


def test_on_a_gpu_in_the_order_of_the_stream(fake_cuda: FakeCuda, dirty: Any) -> None:
    fn = compiler.build(SIG, LAUNCH, results=[Y], zero=True)
    found = fn(floats(5, device=1))
    names = [call.name for call in fake_cuda.calls()]
    assert names.index("cuMemsetD8Async") < names.index("cuLaunchKernelEx")
    (memset,) = [call for call in fake_cuda.calls() if call.name == "cuMemsetD8Async"]
    (launch,) = fake_cuda.launches()
    address = int.from_bytes(launch.parameters[0][:8], "little")
    assert tuple(memset.numbers[:3]) == (address, 0, 20)
    assert ctypes.string_at(address, 20) == b"\0" * 20 and str(found.device) == "cuda:1"
    fake_cuda.clear()
    fn(floats(0))
    assert "cuMemsetD8Async" not in [call.name for call in fake_cuda.calls()]


def test_temporaries_on_a_gpu(fake_cuda: FakeCuda, dirty: Any) -> None:
    launch = CudaLaunch(CODE, "add", [T.data, X.data], grid=1, block=1)
    call = Sequence([launch, Zero(T), launch], temporaries=[T])
    compiler.build(SIG, call)(floats(5))
    names = [call.name for call in fake_cuda.calls()]
    first = names.index("cuLaunchKernelEx")
    assert names[first : first + 3] == ["cuLaunchKernelEx", "cuMemsetD8Async", "cuLaunchKernelEx"]


def test_the_stream_is_that_of_the_launch(fake_cuda: FakeCuda, dirty: Any) -> None:
    stream = specs.params.Stream("stream")
    launch = CudaLaunch(CODE, "add", [Y.data, X.data], grid=1, block=1, stream=stream)
    fn = compiler.build(Signature("f", [X, stream]), launch, results=[Y], zero=True)
    fn(floats(5), 2)
    (memset,) = [call for call in fake_cuda.calls() if call.name == "cuMemsetD8Async"]
    assert memset.numbers[3] == 2 == fake_cuda.launches()[0].stream


def test_what_the_driver_refuses_is_an_error_that_names_the_array(
    fake_cuda: FakeCuda, dirty: Any
) -> None:
    fn = compiler.build(SIG, LAUNCH, results=[Y], zero=True)
    fn(floats(5))
    fake_cuda.fail("cuMemsetD8Async", 719)
    with pytest.raises(CudaError, match="cuMemsetD8Async failed with .*for the zeros of y"):
        fn(floats(5))
    assert len(dirty.live) == 0


@pytest.mark.filterwarnings("error")
def test_a_result_that_is_read_first_may_be_filled() -> None:
    text = """define void @add(ptr %y) {
      %a = load float, ptr %y
      %b = fadd float %a, 1.0
      store float %b, ptr %y
      ret void
    }"""
    call = CFunction("add", [Y.data], code=HostCode.from_llvm(text))
    fn = compiler.build(SIG, call, results=[Y], zero=["y"])
    assert values(fn(np.ones(2, np.float32))) == [1, 0]


@pytest.mark.parametrize(
    ("make", "kind", "said"),
    [
        (lambda: Zero(), ValueError, r"expected a tensor, Zero\(y\)"),
        (lambda: Zero(Scalar("k", "int32")), TypeError, "expected a tensor.*Scalar 'k'"),
        (lambda: Zero(X.data.byte_offset(4)), TypeError, "expected a tensor"),
        (lambda: Zero(Tensor("x", (n,), "int8", strides=(n,))), ValueError, "strides of its own"),
        (lambda: Zero(Tensor("x", (n,), "int8", read_only=True)), ValueError, "x is read-only"),
        (lambda: Zero(X, stream=X), TypeError, "stream must be a stream parameter"),
        (lambda: compiler.build(SIG, IDLE, results=[Y], zero=["x"]), ValueError, "result: y"),
        (lambda: compiler.build(SIG, IDLE, zero="y"), ValueError, "there is none"),
        (lambda: compiler.build(SIG, IDLE, results=[Y], zero=[Y]), TypeError, "but got Tensor 'y'"),
        (lambda: compiler.build(SIG, IDLE, results=[Y], zero=3), TypeError, "zero must be in a"),
    ],
)
def test_wrong_arguments(make: Any, kind: type[Exception], said: str) -> None:
    with pytest.raises(kind, match=said):
        make()


def test_a_tensor_on_a_gpu_where_nothing_is_launched() -> None:
    there = Tensor("there", (n,), "float32", device="cuda")
    with pytest.raises(ValueError, match="there is on a GPU, and nothing is launched there"):
        compiler.build(Signature("f", [there]), Zero(there))
