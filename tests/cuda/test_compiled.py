"""Functions of the kernel language on a GPU: what compiled ones do to the driver."""

import ctypes
import struct
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tvm_ffi
from cuda_device import FakeCuda, forged
from gpu_functions import add_one, add_one_kernel, floats, vector
from ptxas import ARCHS, assemble

import ferrule as fe
from ferrule.runtime import make_fake_compact_tensor, make_fake_stream, make_fake_tensor

CUDA = "--target cuda --gpu-arch sm_90a"


@fe.jit
def add_on_stream(a: fe.Tensor, b: fe.Tensor, stream):
    add_one_kernel(a, b).launch(grid=((a.shape[0] + 255) // 256,), block=(256,), stream=stream)


@fe.kernel
def scale_kernel(x: fe.Tensor, factor: fe.Float32, half: fe.Float16, up: fe.Boolean, n: fe.Int32):
    tx, _, _ = fe.arch.thread_idx()
    if up:
        x[tx, n] = x[tx, 0] * factor + fe.Float32(half)


@fe.jit
def scale(x: fe.Tensor, factor: fe.Float32, half: fe.Float16, up: fe.Boolean, n: fe.Int32):
    scale_kernel(x, factor, half, up, n).launch(grid=(2, 3, 4), block=(8,))


def compiled(function: Any = add_one, *examples: Any, options: str = CUDA) -> fe.Function:
    return fe.compile(function, *(examples or (vector(), vector())), options=options)


def test_a_launch_hands_over_addresses_and_sizes(fake_cuda: FakeCuda) -> None:
    a, b = np.zeros(1000, np.float32), np.zeros(1000, np.float32)
    compiled()(forged(a), forged(b))
    (launch,) = fake_cuda.launches()
    assert (launch.kernel, launch.grid, launch.block) == ("add_one_kernel", (4, 1, 1), (256, 1, 1))
    found = [struct.unpack("<Qi4x", data) for data in launch.parameters]
    assert found == [(array.ctypes.data, 1000) for array in (a, b)]


def test_every_kind_of_parameter_has_its_documented_bytes(fake_cuda: FakeCuda) -> None:
    rows, step = fe.sym_int(), fe.sym_int64()
    x = make_fake_tensor(fe.Float32, (rows, 4), (step, 1))
    array = np.zeros((5, 9), np.float32)[:, :4]
    function = compiled(scale, x, fe.Float32, fe.Float16, fe.Boolean, fe.Int32)
    function(forged(array), 0.5, 1.5, True, -3)
    (launch,) = fake_cuda.launches()
    assert launch.grid == (2, 3, 4)
    formats = ("<Qi4xq", "<f", "<e", "<B", "<i")
    found = [struct.unpack(f, data) for f, data in zip(formats, launch.parameters, strict=True)]
    assert found == [(array.ctypes.data, 5, 9), (0.5,), (1.5,), (1,), (-3,)]


def test_the_device_of_the_tensors_is_made_current_and_restored(fake_cuda: FakeCuda) -> None:
    function = compiled()
    fake_cuda.set_current(0)
    function(floats(8, device=1), floats(8, device=1))
    (launch,) = [call for call in fake_cuda.calls() if call.launch is not None]
    assert launch.device == 1
    assert (fake_cuda.device, fake_cuda.depth) == (0, 1)


def test_a_device_that_is_current_already_is_left_alone(fake_cuda: FakeCuda) -> None:
    function = compiled()
    fake_cuda.set_current(1)
    function(floats(8, device=1), floats(8, device=1))
    fake_cuda.clear()
    function(floats(8, device=1), floats(8, device=1))
    assert fake_cuda.names() == ["cuCtxGetDevice", "cuLaunchKernelEx"]


def test_a_tensor_in_a_tuple_says_which_device(fake_cuda: FakeCuda) -> None:
    @fe.jit
    def first(pair, b: fe.Tensor):
        add_one_kernel(pair[1], b).launch(grid=(1,), block=(256,))

    function = compiled(first, (fe.Int32, vector()), vector())
    function((7, floats(8, device=1)), floats(8, device=1))
    assert [call.device for call in fake_cuda.calls() if call.launch is not None] == [1]


def test_an_optional_tensor_says_which_device_where_it_came(fake_cuda: FakeCuda) -> None:
    @fe.jit
    def maybe(a: fe.Tensor | None, b: fe.Tensor):
        if a is None:
            add_one_kernel(b, b).launch(grid=(1,), block=(256,))
        else:
            add_one_kernel(a, b).launch(grid=(1,), block=(256,))

    function = compiled(maybe, vector(), vector())
    function(None, floats(8, device=1))
    function(floats(8, device=1), floats(8, device=1))
    assert [call.device for call in fake_cuda.calls() if call.launch is not None] == [1, 1]


def test_tensors_on_two_devices_are_refused(fake_cuda: FakeCuda) -> None:
    with pytest.raises(ValueError, match=r"Mismatched b\.device\.index|device index") as caught:
        compiled()(floats(8, device=0), floats(8, device=1))
    assert "cuda:0" in str(caught.value) or "0" in str(caught.value)
    assert fake_cuda.calls() == []


def test_a_tensor_on_the_cpu_is_refused(fake_cuda: FakeCuda) -> None:
    with pytest.raises(ValueError, match="expected device_type=cuda, but got device=cpu:0"):
        compiled()(np.zeros(8, np.float32), floats(8))
    assert fake_cuda.calls() == []


def test_without_a_stream_the_callers_current_one_is_used(fake_cuda: FakeCuda) -> None:
    function, a, b = compiled(), floats(8, device=1), floats(8, device=1)
    stream = fake_cuda.stream(1)
    function(a, b)
    with tvm_ffi.use_raw_stream(tvm_ffi.device("cuda:1"), stream):
        function(a, b)
    function(a, b)
    assert [launch.stream for launch in fake_cuda.launches()] == [0, stream, 0]


def test_a_launch_can_name_its_stream(fake_cuda: FakeCuda) -> None:
    stream = fake_cuda.stream(0)
    function = compiled(add_on_stream, vector(), vector(), make_fake_stream())
    function(floats(8), floats(8), ctypes.c_void_p(stream))
    function(floats(8), floats(8), None)
    assert [launch.stream for launch in fake_cuda.launches()] == [stream, 0]


def test_a_launch_can_ask_for_shared_memory(fake_cuda: FakeCuda) -> None:
    @fe.jit
    def with_smem(a: fe.Tensor, b: fe.Tensor, size: fe.Int32):
        add_one_kernel(a, b).launch(grid=(1,), block=(256,), smem=size)
        add_one_kernel(a, b).launch(grid=(1,), block=(256,), smem=4096)

    function = compiled(with_smem, vector(), vector(), fe.Int32)
    function(floats(8), floats(8), 512)
    assert [launch.smem for launch in fake_cuda.launches()] == [512, 4096]
    with pytest.raises(fe.LaunchError, match=r"smem to be in \[0, 232448\], but got 232449"):
        function(floats(8), floats(8), 232449)


def test_a_kernel_is_allowed_the_shared_memory_that_a_launch_needs(fake_cuda: FakeCuda) -> None:
    @fe.kernel
    def kernel(b):
        own = fe.arch.alloc_smem(fe.Float32, 256)
        own[0] = b[0]
        fe.arch.get_dyn_smem(fe.Float32)[0] = own[0]

    @fe.jit
    def with_smem(b: fe.Tensor, size: fe.Int32):
        kernel(b).launch(grid=1, block=32, smem=size)

    function, most = compiled(with_smem, vector(), fe.Int32), 232448 - 1024
    for call in ("cuKernelSetAttribute", "cuKernelGetAttribute"):
        fake_cuda.fail(call, 2)
        with pytest.raises(fe.CudaError, match=rf"{call} failed with .* in the launch of kernel$"):
            function(floats(8), most)
    fake_cuda.clear()
    for size in (48128, 48129, most):
        for device in (0, 1):
            function(floats(8, device=device), size)
    sizes = [48128, 48128, 48129, 48129, most, most]
    assert [launch.smem for launch in fake_cuda.launches()] == sizes
    allowed = [c.numbers for c in fake_cuda.calls() if c.name == "cuKernelSetAttribute"]
    assert allowed == [(8, most, 0), (8, most, 1)]  # once on each device
    with pytest.raises(fe.LaunchError, match=r"smem to be in \[0, 231424\], but got 231425"):
        function(floats(8), most + 1)


def test_an_env_stream_is_not_in_the_signature(fake_cuda: FakeCuda) -> None:
    example = make_fake_stream(use_tvm_ffi_env_stream=True)
    function = compiled(add_on_stream, vector(), vector(), example)
    stream = fake_cuda.stream(0)
    with tvm_ffi.use_raw_stream(tvm_ffi.device("cuda:0"), stream):
        function(floats(8), floats(8))
    assert [launch.stream for launch in fake_cuda.launches()] == [stream]


def test_an_empty_tensor_launches_nothing(fake_cuda: FakeCuda) -> None:
    compiled()(floats(0), floats(0))
    assert fake_cuda.launches() == []


def test_a_whole_tensor_expression_becomes_a_kernel(fake_cuda: FakeCuda) -> None:
    @fe.jit
    def axpy(a: fe.Tensor, b: fe.Tensor, c: fe.Tensor, alpha: fe.Float32):
        c[:] = a[:] * alpha + b[:]

    m, n = fe.sym_int(), fe.sym_int()
    matrix = [make_fake_compact_tensor(fe.Float32, (m, n), stride_order=(1, 0)) for _ in range(3)]
    function = compiled(axpy, *matrix, fe.Float32)
    function(*(floats(30, 40) for _ in range(3)), 2.0)
    (launch,) = fake_cuda.launches()
    assert (launch.grid, launch.block) == ((2, 1, 1), (256, 1, 1))  # 4 elements a thread
    assert f".entry {launch.kernel}(" in function.inspect_ptx()


def test_elements_of_a_gpu_tensor_are_out_of_reach_of_host_code() -> None:
    def reads(a: fe.Tensor, b: fe.Tensor):
        b[:] = a[0]

    def writes(a: fe.Tensor, b: fe.Tensor):
        b[0] = 1.0

    for function, name in ((reads, "a"), (writes, "b")):
        with pytest.raises(
            fe.CompileError, match=f"{name} is on a GPU: host code cannot"
        ) as caught:
            compiled(fe.jit(function))
        assert caught.value.diagnostic.hint == (
            f"do it in a kernel, or with whole tensors, {name}[:] = …"
        )


def test_a_function_without_kernels_needs_no_gpu(fake_cuda: FakeCuda) -> None:
    @fe.jit
    def nothing(a: fe.Tensor):
        pass

    function = compiled(nothing, vector())
    function(floats(8))
    assert fake_cuda.calls() == []
    with pytest.raises(fe.runtime.StageError, match="no 'ptx' text: it has no kernels for a GPU"):
        function.inspect_ptx()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("cuInit", "cuInit failed with CUDA_ERROR_NO_DEVICE"),
        ("cuLibraryLoadData", "cuLibraryLoadData failed with CUDA_ERROR_NO_DEVICE"),
        ("cuLibraryGetKernel", "cuLibraryGetKernel of the kernel add_one_kernel failed"),
        ("cuDevicePrimaryCtxRetain", "cuDevicePrimaryCtxRetain failed with CUDA_ERROR_NO_DEVICE"),
        ("cuCtxPushCurrent_v2", "cuCtxPushCurrent"),
        ("cuCtxPopCurrent_v2", "cuCtxPopCurrent"),
        ("cuLaunchKernelEx", "cuLaunchKernelEx failed with CUDA_ERROR_NO_DEVICE"),
    ],
)
def test_a_call_that_fails_is_named_and_the_next_one_works(
    fake_cuda: FakeCuda, call: str, message: str
) -> None:
    function = compiled()
    fake_cuda.set_current(0)
    fake_cuda.fail(call, 100)
    with pytest.raises(fe.CudaError, match=message) as caught:
        function(floats(8, device=1), floats(8, device=1))
    assert isinstance(caught.value, RuntimeError)
    assert fake_cuda.device == 0 or call == "cuCtxPopCurrent_v2"
    fake_cuda.set_current(0)
    fake_cuda.clear()
    function(floats(8, device=1), floats(8, device=1))
    assert len(fake_cuda.launches()) == 1
    assert fake_cuda.device == 0


def test_a_failed_launch_names_the_kernel_and_the_line(fake_cuda: FakeCuda) -> None:
    function = compiled()
    function.prepare()  # the first calls have a frame more
    fake_cuda.fail("cuLaunchKernelEx", 1)
    with pytest.raises(fe.CudaError, match="in the launch of add_one_kernel") as caught:
        function(floats(8), floats(8))
    lines = [entry.name for entry in caught.traceback]
    assert "add_one" in lines
    assert len(lines) <= 4


@pytest.mark.parametrize(
    ("call", "where"),
    [("cuInit", "at the start of add_one"), ("cuCtxPopCurrent_v2", "at the end of add_one")],
)
def test_a_failure_outside_of_the_launches_shows_the_definition(
    fake_cuda: FakeCuda, call: str, where: str
) -> None:
    function = compiled()
    function.prepare()  # the first calls have a frame more
    fake_cuda.fail(call, 2)
    with pytest.raises(fe.CudaError, match=rf"^{call} failed with .* {where}$") as caught:
        function(floats(8), floats(8))
    last = caught.traceback[-1]
    assert (last.name, last.path.name) == ("add_one", "gpu_functions.py")
    assert len(caught.traceback) <= 4


def test_an_error_of_host_code_restores_the_device(fake_cuda: FakeCuda) -> None:
    @fe.jit
    def launches_too_much(a: fe.Tensor, b: fe.Tensor, size: fe.Int32):
        add_one_kernel(a, b).launch(grid=(1,), block=(size,))

    function = compiled(launches_too_much, vector(), vector(), fe.Int32)
    fake_cuda.set_current(0)
    with pytest.raises(fe.LaunchError, match="block x to be in"):
        function(floats(8, device=1), floats(8, device=1), 4096)
    assert (fake_cuda.device, fake_cuda.depth) == (0, 1)
    assert fake_cuda.launches() == []


def test_eight_threads_load_once(fake_cuda: FakeCuda) -> None:
    function = compiled()
    fake_cuda.delay_loads(0.05)
    a, b = floats(8), floats(8)
    start = threading.Barrier(8)

    def call() -> None:
        start.wait()
        function(a, b)

    threads = [threading.Thread(target=call) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    names = fake_cuda.names()
    assert names.count("cuLibraryLoadData") == 1
    assert names.count("cuLaunchKernelEx") == 8


def test_an_exported_object_launches_as_well(fake_cuda: FakeCuda, tmp_path: Path) -> None:
    path = tmp_path / "add.so"
    compiled().export_library(path)
    function = tvm_ffi.load_module(str(path))["add_one"]
    function(floats(600), floats(600))
    assert [launch.grid for launch in fake_cuda.launches()] == [(3, 1, 1)]


def test_the_same_program_gives_the_same_ptx() -> None:
    assert compiled().inspect_ptx() == compiled().inspect_ptx()


@pytest.mark.needs_ptxas
@pytest.mark.parametrize("arch", ARCHS)
def test_ptxas_takes_the_examples(arch: str, tmp_path: Path) -> None:
    sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
    try:
        import quickstart
    finally:
        sys.path.pop(0)
    m, n = fe.sym_int(), fe.sym_int()
    matrix = make_fake_compact_tensor(fe.Float32, (m, n), stride_order=(1, 0))
    weight = make_fake_compact_tensor(fe.Float32, (n,))
    for function, *examples in (
        (quickstart.add_one, vector(), vector()),
        (quickstart.softmax, matrix, matrix),
        (quickstart.rms_norm, matrix, weight, matrix),
    ):
        options = f"--target cuda --gpu-arch {arch}"
        assemble(compiled(function, *examples, options=options).inspect_ptx(), arch, tmp_path)
