"""The stream of a launch: whatever a caller has for one, and what is captured into a graph."""

import ctypes
from typing import Any

import numpy as np
import pytest
import tvm_ffi
from cuda_device import FakeCuda, forged

import ferrule as fe
from ferrule.runtime import make_fake_compact_tensor, make_fake_stream
from ferrule.specs import params

CUDA = "--target cuda --gpu-arch sm_90a"


@fe.kernel
def set_kernel(a: fe.Tensor):
    i, _, _ = fe.arch.thread_idx()
    a[i] = 1.0


@fe.jit
def on_stream(a: fe.Tensor, stream):
    set_kernel(a).launch(grid=1, block=a.shape[0], stream=stream)


@fe.jit
def on_current(a: fe.Tensor):
    set_kernel(a).launch(grid=1, block=a.shape[0])


@fe.jit
def large(a: fe.Tensor, smem: fe.Int32):
    set_kernel(a).launch(grid=1, block=a.shape[0], smem=smem)


@fe.kernel
def take_kernel(n: fe.Int32):
    n + 1


@fe.jit
def on_device(device, n: fe.Int32):
    take_kernel(n).launch(grid=1, block=1)


class Protocol:
    """An object of the CUDA stream protocol."""

    def __init__(self, handle: int) -> None:
        self.handle = handle

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.handle


class CUstream(int):
    """As cuda-python has it: of a module `cuda`, with an int."""

    __module__ = "cuda.bindings.driver"


def compiled(function: Any, *examples: Any) -> fe.Function:
    vector = make_fake_compact_tensor(fe.Float32, (fe.sym_int(),))
    return fe.compile(function, vector, *examples, options=CUDA)


def floats(device: int = 0) -> Any:
    return forged(np.zeros(8, np.float32), device)


# ---- which one ----


@pytest.mark.parametrize("kind", [int, ctypes.c_void_p, Protocol, CUstream])
def test_a_stream_is_whatever_has_a_handle(fake_cuda: FakeCuda, kind: Any) -> None:
    function, stream = compiled(on_stream, make_fake_stream()), fake_cuda.stream(1)
    function(floats(1), kind(stream))
    assert [launch.stream for launch in fake_cuda.launches()] == [stream]


@pytest.mark.parametrize("default", [None, 0, 1, 2])
def test_the_default_streams_are_themselves(fake_cuda: FakeCuda, default: int | None) -> None:
    """Null, cudaStreamLegacy and cudaStreamPerThread."""
    compiled(on_stream, make_fake_stream())(floats(), default)
    assert [launch.stream for launch in fake_cuda.launches()] == [default or 0]


def test_the_env_stream_changes_from_call_to_call(fake_cuda: FakeCuda) -> None:
    function, streams = compiled(on_current), [fake_cuda.stream(0) for _ in range(2)]
    for stream in streams:
        with tvm_ffi.use_raw_stream(tvm_ffi.device("cuda:0"), stream):
            function(floats())
    function(floats())
    assert [launch.stream for launch in fake_cuda.launches()] == [*streams, 0]


def test_a_stream_that_is_named_goes_before_the_env_stream(fake_cuda: FakeCuda) -> None:
    function = compiled(on_stream, make_fake_stream())
    with tvm_ffi.use_raw_stream(tvm_ffi.device("cuda:0"), fake_cuda.stream(0)):
        function(floats(), None)
    assert [launch.stream for launch in fake_cuda.launches()] == [0]


@pytest.mark.parametrize("device", ["cuda:1", tvm_ffi.device("cuda:1")])
def test_a_parameter_can_say_which_device(fake_cuda: FakeCuda, device: Any) -> None:
    function = fe.compile(on_device, params.Device("device"), fe.Int32, options=CUDA)
    stream = fake_cuda.stream(1)
    with tvm_ffi.use_raw_stream(tvm_ffi.device("cuda:1"), stream):
        function(device, 3)
        function("cpu", 3)
    found = [(call.device, call.launch.stream) for call in fake_cuda.calls() if call.launch]
    assert found == [(1, stream), (0, 0)]


# ---- graphs ----


def test_the_first_call_can_be_captured_and_leaves_the_capture_whole(fake_cuda: FakeCuda) -> None:
    function, stream = compiled(on_current), fake_cuda.stream(0)
    fake_cuda.set_current(0)
    for _ in range(2):
        with (
            fake_cuda.capturing(stream),
            tvm_ffi.use_raw_stream(tvm_ffi.device("cuda:0"), stream),
        ):
            function(floats())
    function(floats())
    assert [launch.stream for launch in fake_cuda.launches()] == [stream, stream, 0]


@pytest.mark.parametrize("symbols", [False, True])
def test_so_can_the_first_call_on_a_stream_that_a_parameter_names(
    fake_cuda: FakeCuda, symbols: bool
) -> None:
    size = fe.sym_int() if symbols else 8
    vector = make_fake_compact_tensor(fe.Float32, (size,))
    function = fe.compile(on_stream, vector, make_fake_stream(), options=CUDA)
    stream = fake_cuda.stream(0)
    with fake_cuda.capturing(stream):
        function(floats(), stream)
    assert [launch.stream for launch in fake_cuda.launches()] == [stream]


def test_a_load_leaves_what_another_thread_captures(fake_cuda: FakeCuda) -> None:
    function, stream = compiled(on_current), fake_cuda.stream(0)
    with fake_cuda.capturing(stream):
        function(floats())


def test_a_failed_load_does_not_change_what_the_thread_may_do(fake_cuda: FakeCuda) -> None:
    function, stream = compiled(on_current), fake_cuda.stream(0)
    fake_cuda.fail("cuLibraryLoadData", 2)
    with pytest.raises(fe.CudaError, match="cuLibraryLoadData.*CUDA_ERROR_OUT_OF_MEMORY"):
        function(floats())
    mode = ctypes.c_int(1)
    fake_cuda.library.cuThreadExchangeStreamCaptureMode(ctypes.byref(mode))
    assert mode.value == 0
    with fake_cuda.capturing(stream):
        function(floats())


# ---- limits that are the device's own ----


def test_registers_limit_the_threads_of_a_block(fake_cuda: FakeCuda) -> None:
    fake_cuda.limit_threads(4)
    wanted = (
        "^a block has 8 threads in the launch of set_kernel, but of this kernel the registers of "
        "cuda:1 are enough for 4$"
    )
    with pytest.raises(fe.LaunchError, match=wanted):
        compiled(on_current)(floats(1))


def test_the_device_limits_the_shared_memory_of_a_block(fake_cuda: FakeCuda) -> None:
    function = compiled(large, fe.Int32)
    fake_cuda.limit_shared(100_000)
    wanted = (
        "^smem is 100001 bytes in the launch of set_kernel, but cuda:0 has 100000 for a block of "
        "this kernel$"
    )
    for first in (True, False):
        with pytest.raises(fe.LaunchError, match=wanted):
            function(floats(), 100_001)
        function(floats(), 100_000)
        assert fake_cuda.names().count("cuKernelSetAttribute") == int(first)
