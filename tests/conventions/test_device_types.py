"""Pinned and managed memory, and calls with tensors on the CPU and on a GPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tvm_ffi
from cuda_device import FakeCuda, forged
from cuda_device import fake_cuda as fake_cuda
from host_memory import allocating
from lowered import vector

import ferrule as fe
from ferrule import compiler, specs
from ferrule.compiler.conventions import (
    CFunction,
    CudaLaunch,
    DLTensors,
    HostCode,
    Sequence,
    Zero,
)
from ferrule.runtime.abi import DeviceType
from ferrule.specs import Signature, Tensor
from ferrule.specs.params import EnvStream

N = specs.sym_int64(symbol="n")
CPU, CUDA, HOST, MANAGED = (
    DeviceType.CPU,
    DeviceType.CUDA,
    DeviceType.CUDA_HOST,
    DeviceType.CUDA_MANAGED,
)
PTX = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry touch(.param .b64 x, .param .b64 n) { ret; }
"""
TOUCH = fe.DeviceCode.from_ptx(PTX)
KINDS = """
define i32 @kinds(ptr %x, ptr %y) {
  %p = getelementptr i8, ptr %x, i64 8
  %q = getelementptr i8, ptr %y, i64 8
  %a = load i32, ptr %p
  %b = load i32, ptr %q
  %c = mul i32 %a, 100
  %d = add i32 %c, %b
  ret i32 %d
}
"""


def tensor(array: Any, kind: int, index: int = 0) -> Any:
    """The memory of an array under the name of a device type."""
    return forged(array, index, kind)


def vector_on(name: str, device: str | None) -> Tensor:
    return Tensor(name, (N,), "float64", device=device)


def copy(to: Tensor, source: Tensor) -> CFunction:
    return CFunction("memmove", [to.data, source.data, source.nbytes])


def copied(to: str | None, source: str | None) -> fe.Function:
    y, x = vector_on("y", to), vector_on("x", source)
    return compiler.build(Signature("copied", [y, x]), copy(y, x))


def doubles() -> Any:
    return np.arange(4, dtype=np.float64)


@pytest.mark.parametrize("kind", [CPU, HOST, DeviceType.ROCM_HOST])
def test_the_cpu_takes_pinned_memory(kind: int) -> None:
    y, x = doubles() * 0, doubles()
    copied(None, None)(tensor(y, CPU), tensor(x, kind, 3))
    assert y.tolist() == x.tolist()


def test_managed_memory_on_the_cpu_must_be_meant() -> None:
    y, x = doubles() * 0, doubles()
    with pytest.raises(ValueError, match="expected device_type=cpu, but got device=cuda_managed:1"):
        copied(None, None)(tensor(y, CPU), tensor(x, MANAGED, 1))
    copied(None, "cuda_managed")(tensor(y, HOST), tensor(x, MANAGED, 1))
    assert y.tolist() == x.tolist()
    with pytest.raises(ValueError, match="expected device_type=cuda_managed, but got device=cpu"):
        copied(None, "cuda_managed")(y, x)
    with pytest.raises(ValueError, match="expected device_type=cuda, but got device=cuda_host:0"):
        copied("cuda", None)(tensor(y, HOST), x)


def test_other_compiled_functions_take_them_too(fake_cuda: FakeCuda) -> None:
    @fe.jit
    def total(x: fe.Tensor):
        found = fe.Float64(0)
        for i in range(x.shape[0]):
            found += x[i]
        return found

    @fe.kernel
    def double_kernel(x: fe.Tensor):
        i = fe.arch.block_idx()[0]
        x[i] = x[i] * 2

    @fe.jit
    def double(x: fe.Tensor):
        double_kernel(x).launch(grid=x.shape[0], block=1)

    x = doubles()
    on_cpu = fe.compile(total, vector(fe.Float64), options="--target cpu")
    on_gpu = fe.compile(double, vector(fe.Float64), options="--target cuda --gpu-arch sm_80")
    assert on_cpu(tensor(x, HOST)) == 6
    on_gpu(tensor(x, MANAGED, 1))
    (launch,) = fake_cuda.launches()
    assert int.from_bytes(launch.parameters[0][:8], "little") == x.ctypes.data
    both = fe.overload([on_cpu, on_gpu], name="both")
    assert both(tensor(x, HOST)) == 6
    both(tensor(x, MANAGED))
    assert len(fake_cuda.launches()) == 2
    with pytest.raises(TypeError, match="both"):
        both(tensor(x, DeviceType.ROCM))


def mixed(pinned: str | None, on_gpu: str | None, *more: Any) -> fe.Function:
    """Copies on the host, then launches on a GPU."""
    x, y, z = vector_on("x", pinned), vector_on("y", "cpu"), vector_on("z", on_gpu)
    launch = CudaLaunch(TOUCH, "touch", [z.data, N], grid=1, block=1)
    return compiler.build(Signature("mixed", [x, y, z]), Sequence([copy(y, x), *more, launch]))


@pytest.mark.parametrize("pinned", ["cpu", "cuda_host"])
@pytest.mark.parametrize("on_gpu", [CUDA, MANAGED])
def test_cpu_and_gpu_tensors_in_one_call(fake_cuda: FakeCuda, pinned: str, on_gpu: int) -> None:
    x, y, z = doubles(), doubles() * 0, doubles()
    stream = fake_cuda.stream(1)
    with tvm_ffi.use_raw_stream(tvm_ffi.device("cuda", 1), stream):
        mixed(pinned, None)(tensor(x, HOST, 0), y, tensor(z, on_gpu, 1))
    (launch,) = (call for call in fake_cuda.calls() if call.launch is not None)
    assert launch.launch is not None
    assert (launch.device, launch.launch.stream) == (1, stream), "pinned memory has no say"
    assert y.tolist() == x.tolist()


def test_a_stream_beside_managed_memory_is_the_gpu_s(fake_cuda: FakeCuda) -> None:
    z = vector_on("z", "cuda_managed")
    stream = EnvStream("stream")
    launch = CudaLaunch(TOUCH, "touch", [z.data, N], grid=1, block=1, stream=stream)
    function = compiler.build(Signature("f", [z, stream]), launch)
    current, array = fake_cuda.stream(1), doubles()
    with tvm_ffi.use_raw_stream(tvm_ffi.device("cuda", 1), current):
        function(tensor(array, MANAGED, 1))
    assert [each.stream for each in fake_cuda.launches()] == [current]


def test_gpus_of_a_call_are_still_one(fake_cuda: FakeCuda) -> None:
    a, b = vector_on("a", None), vector_on("b", None)
    launch = CudaLaunch(TOUCH, "touch", [a.data, N], grid=1, block=1)
    function = compiler.build(Signature("f", [a, b]), launch)
    array = doubles()
    with pytest.raises(ValueError, match="Mismatched device index"):
        function(forged(array), tensor(array, MANAGED, 1))


def test_a_callee_of_dltensors_is_told_the_device(fake_cuda: FakeCuda) -> None:
    code, array = HostCode.from_llvm(KINDS), doubles()
    for first, second in (("cpu", "cuda_host"), ("cuda", "cuda_managed"), ("cuda_managed", "cpu")):
        x, y = vector_on("x", first), vector_on("y", second)
        function = compiler.build(
            Signature("kinds", [x, y]), DLTensors("kinds", [x, y], returns="int32", code=code)
        )
        kinds = [specs.DEVICE_CODES[each] for each in (first, second)]
        assert function(*(tensor(array, kind) for kind in kinds)) == 100 * kinds[0] + kinds[1]


def test_results_in_pinned_memory_are_from_an_allocator_of_it() -> None:
    x, out = vector_on("x", None), vector_on("out", "cuda_host")
    function = compiler.build(Signature("f", [x]), copy(out, x), results=[out])
    with pytest.raises(RuntimeError, match="no allocator for a new tensor on cuda_host"):
        function(doubles())
    with allocating() as memory:
        made = function(doubles())
        assert (memory.asked, made.__dlpack_device__()) == ([(32, HOST, 0)], (HOST, 0))
        del made


def test_zeros_in_managed_memory_are_in_the_order_of_the_launches(fake_cuda: FakeCuda) -> None:
    z, array = vector_on("z", "cuda_managed"), doubles()
    compiler.build(Signature("f", [z]), Zero(z))(tensor(array, MANAGED))
    assert array.tolist() == [0] * 4
    called = fake_cuda.names()  # modules of other tests may be unloaded meanwhile
    assert not [name for name in called if "Memset" in name], "nothing is launched: at once"
    launch = CudaLaunch(TOUCH, "touch", [z.data, N], grid=1, block=1)
    other = doubles()
    compiler.build(Signature("f", [z]), Sequence([Zero(z), launch]))(tensor(other, MANAGED))
    assert "cuMemsetD8Async" in fake_cuda.names()
    assert other.tolist() == [0] * 4
    metal = vector_on("m", "metal")
    with pytest.raises(ValueError, match="m is on a GPU, and nothing is launched there"):
        compiler.build(Signature("f", [metal]), Zero(metal))
