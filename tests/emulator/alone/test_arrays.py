"""`fe.cuda`: arrays, streams and events on an emulated GPU."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest
import tvm_ffi

import ferrule as fe
from ferrule.emulator.gpu import active


def test_an_array_goes_there_and_back(emulated: Any) -> None:
    values = np.arange(12, dtype=np.float32).reshape(3, 4)
    x = fe.cuda.array(values)
    assert (str(x.device), tuple(x.shape), str(x.dtype)) == ("cuda:0", (3, 4), "float32")
    np.testing.assert_array_equal(fe.cuda.to_numpy(x), values)
    transposed = fe.cuda.array(values.T)
    np.testing.assert_array_equal(fe.cuda.to_numpy(transposed), values.T)
    np.testing.assert_array_equal(fe.cuda.to_numpy(fe.cuda.array(x)), values)
    assert fe.cuda.to_numpy(fe.cuda.array([[1, 2], [3, 4]], "int16")).tolist() == [[1, 2], [3, 4]]
    assert fe.cuda.to_numpy(fe.cuda.array(2.5)).item() == 2.5


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float16", "float64", "bfloat16"])
def test_dtypes(emulated: Any, dtype: str) -> None:
    made = fe.cuda.zeros((2, 3), dtype)
    assert str(made.dtype) == dtype
    back = fe.cuda.to_numpy(made)
    assert (back.dtype.name, back.shape, back.any()) == (dtype, (2, 3), False)
    again = fe.cuda.to_numpy(fe.cuda.array(back))
    assert again.dtype == back.dtype


def test_memory_is_freed_with_its_array(emulated: Any) -> None:
    x = fe.cuda.array(np.ones(1000))
    y = fe.cuda.empty_like(x)
    other = tvm_ffi.from_dlpack(x)
    assert len(emulated.machine.memory.held) == 2
    del x, y
    gc.collect()
    assert len(emulated.machine.memory.held) == 1
    np.testing.assert_array_equal(fe.cuda.to_numpy(other), np.ones(1000))
    del other
    gc.collect()
    assert not emulated.machine.memory.held


def test_complex_numbers(emulated: Any) -> None:
    values = np.array([1 + 2j, 3], np.complex64)
    np.testing.assert_array_equal(fe.cuda.to_numpy(fe.cuda.array(values)), values)


def test_an_array_may_outlive_its_gpu() -> None:
    from fake_machine import FakeMachine

    held, machines = [], []
    for _ in range(2):
        with fe.emulated_gpu("sm_80") as gpu:
            gpu.driver.__dict__["machine"] = machine = FakeMachine()
            machines.append(machine)
            held.append(fe.cuda.array(np.ones(100)))
            stream = fe.cuda.Stream()
            if len(held) == 2:
                del held[0]
                gc.collect()
                assert len(machine.memory.held) == 1
                assert fe.cuda.to_numpy(held[0]).sum() == 100
            event = stream.record()
    del held, stream, event
    gc.collect()


def test_nothing_stays_current(emulated: Any) -> None:
    x = fe.cuda.array(np.ones(3), device=1)
    assert str(x.device) == "cuda:1"
    assert str(fe.cuda.empty_like(x).device) == "cuda:1"
    assert fe.cuda.to_numpy(x).tolist() == [1, 1, 1]
    fe.cuda.synchronize(1)
    assert emulated.result("cuCtxSynchronize") == 201


def test_copies(emulated: Any) -> None:
    host = np.arange(6, dtype=np.int32)
    x, y = fe.cuda.array(host), fe.cuda.zeros(6, "int32", device=1)
    fe.cuda.copy(y, x)
    assert fe.cuda.to_numpy(y).tolist() == list(range(6))
    fe.cuda.copy(x, host * 2)
    back = np.zeros(6, np.int32)
    fe.cuda.copy(back, x)
    assert back.tolist() == [0, 2, 4, 6, 8, 10]
    fe.cuda.copy(fe.cuda.empty((0, 3)), np.empty((0, 3), np.float32))


def test_copies_that_do_not_fit(emulated: Any) -> None:
    x = fe.cuda.zeros(6, "int32")
    with pytest.raises(ValueError, match=r"one shape and dtype, but got \(6,\) int32 and \(6,\) f"):
        fe.cuda.copy(x, np.zeros(6, np.float32))
    with pytest.raises(ValueError, match=r"one shape and dtype, but got \(6,\) int32 and \(5,\)"):
        fe.cuda.copy(x, np.zeros(5, np.int32))
    with pytest.raises(ValueError, match="the source has gaps"):
        fe.cuda.copy(x, np.zeros(12, np.int32)[::2])
    frozen = np.zeros(6, np.int32)
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match="the destination cannot be written"):
        fe.cuda.copy(frozen, x)
    np.testing.assert_array_equal(fe.cuda.to_numpy(frozen), frozen)


def test_wrong_arguments(emulated: Any) -> None:
    with pytest.raises(ValueError, match=r"device must be in \[0, 2\), but got 2"):
        fe.cuda.empty(3, device=2)
    with pytest.raises(TypeError, match="device must be an int, but got '0'"):
        fe.cuda.empty(3, device="0")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"shape must be ints, but got \(2.5,\)"):
        fe.cuda.empty((2.5,))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="shape must not be negative, but got -1"):
        fe.cuda.empty(-1)
    with pytest.raises(ValueError, match="'float' is no dtype"):
        fe.cuda.empty(3, "float")
    with pytest.raises(TypeError, match="float4_e2m1fn has 4 bits"):
        fe.cuda.empty(3, fe.Float4E2M1FN)
    with pytest.raises(TypeError, match="an array needs numbers, but got list of objects"):
        fe.cuda.array([object()])
    with pytest.raises(MemoryError, match=r"bytes on cuda:0, 85899345920 free"):
        fe.cuda.empty(1 << 40)
    assert not emulated.machine.memory.held


def test_streams_and_events(emulated: Any) -> None:
    stream, other = fe.cuda.Stream(), fe.cuda.Stream(blocking=True)
    start = stream.record()
    other.wait(start)
    stop = other.record(fe.cuda.Event())
    stop.synchronize()
    assert stop.happened() and 0 <= stop.elapsed(start) < 1000
    stream.synchronize()
    assert stream.__cuda_stream__() == (0, stream.handle)
    with pytest.raises(fe.CudaError, match="cuEventElapsedTime failed with CUDA_ERROR_INVALID_H"):
        stop.elapsed(fe.cuda.Event(timing=False))
    with pytest.raises(TypeError, match="event must be an Event, but got int"):
        stream.wait(5)  # type: ignore[arg-type]
    with stream:
        current = tvm_ffi.get_raw_stream(tvm_ffi.device("cuda", 0))
        assert current == stream.handle
    handle = stream.handle
    del stream
    gc.collect()
    assert handle not in emulated_handles()


def emulated_handles() -> Any:
    from ferrule.emulator.gpu import active

    gpu = active()
    assert gpu is not None
    return gpu.driver.handles


def test_tensors_of_calls_can_be_there(emulated: Any) -> None:
    @fe.jit
    def make(n: fe.Int32) -> fe.Tensor:
        return fe.empty((n,), fe.Float32, device="cuda")

    fe.cuda.use_as_allocator()
    try:
        compiled = fe.compile(make, fe.Int32(0), options="--target cuda --gpu-arch sm_90a")
        made = compiled(5)
        assert (str(made.device), tuple(made.shape)) == ("cuda:0", (5,))
        assert len(emulated.machine.memory.held) == 1
    finally:
        fe.runtime.use_allocator(None, None)


def test_tensors_of_calls_for_the_cpu_are_there_too(emulated: Any) -> None:
    @fe.jit
    def make(n: fe.Int32) -> fe.Tensor:
        made = fe.empty((n,), fe.Float32)
        made[:] = 2.0
        return made

    fe.cuda.use_as_allocator()
    try:
        compiled = fe.compile(make, fe.Int32(0), options="--target cpu")
        made = [compiled(n) for n in range(50)]
        assert {str(each.device) for each in made} == {"cpu:0"}
        assert all((np.from_dlpack(each) == 2).all() for each in made)
        assert not emulated.machine.memory.held
    finally:
        fe.runtime.use_allocator(None, None)


def test_without_a_gpu() -> None:
    fe.emulated_gpu("sm_80")
    assert fe.cuda.device_count() == 0
    with pytest.raises(fe.CudaError, match=r"a GPU can be emulated: with fe.emulated_gpu\('sm_90a"):
        fe.cuda.empty(3)
    with fe.emulated_gpu("sm_80"):
        assert fe.cuda.device_count() == 1
    assert fe.cuda.device_count() == 0
    with pytest.raises(fe.CudaError, match="there is no GPU: cuInit failed with .*DEINITIALIZED"):
        fe.cuda.empty(3)


@pytest.mark.parametrize(
    ("dtype", "count", "size"),
    [("float16", 3, 8), ("float16", 4, 8), ("uint8", 5, 5), ("float32", 3, 12)],
)
def test_the_last_number_of_16_bits_has_its_word(
    emulated: Any, dtype: str, count: int, size: int
) -> None:
    held = fe.cuda.empty(count, dtype)
    gpu = active()
    assert gpu is not None
    assert [each.size for each in gpu.allocations()] == [size]
    del held
