"""What fails is a CudaError with the call and the driver's words, and leaves nothing behind."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from cuda_body import IMAGE, Launches, at_once
from cuda_device import FakeCuda, build, has_libcuda

import ferrule as fe

WHERE = "in the launch of {first}"
SIZES = "grid (4, 1, 1), block (128, 1, 1), 0 bytes of shared memory a block, stream 0"
OUT_OF_MEMORY = 2
ON_THE_WAY = [
    "cuInit",
    "cuLibraryLoadData",
    "cuCtxGetDevice",
    "cuDevicePrimaryCtxRetain",
    "cuCtxPushCurrent_v2",
    "cuLaunchKernelEx",
    "cuCtxPopCurrent_v2",
]


CODES = {
    2: ("CUDA_ERROR_OUT_OF_MEMORY", "out of memory", None),
    3: ("CUDA_ERROR_NOT_INITIALIZED", "initialization error", "a process that was forked"),
    4: ("CUDA_ERROR_DEINITIALIZED", "driver shutting down", None),
    222: ("CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "unsupported PTX version", "update the NVIDIA"),
    709: ("CUDA_ERROR_CONTEXT_IS_DESTROYED", "context is destroyed", None),
    710: ("CUDA_ERROR_ASSERT", "device-side assert triggered", "an assertion failed in an earlier"),
    719: ("CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure", "an earlier kernel failed"),
    900: (
        "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
        "not permitted in a capture",
        "call the function once",
    ),
}
"""What the driver says of an error, and a word of what to do."""
RECOVERED = {("cuCtxGetDevice", 709), ("cuCtxPushCurrent_v2", 709)}
"""What a destroyed context is made good for."""


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("name", ON_THE_WAY)
def test_a_call_that_fails_is_named(
    fake_cuda: FakeCuda, launches: Launches, name: str, code: int
) -> None:
    words, text, hint = CODES[code]
    fake_cuda.fail(name, code)
    if (name, code) in RECOVERED:
        launches.call_from_c(device=1)
        return
    error = launches.refused(device=1)
    sizes = f": {SIZES}" if name == "cuLaunchKernelEx" else ""
    said = f"CudaError: {name} failed with {words} ({code}: {text}) {WHERE}{sizes}"
    assert error == said if hint is None else error.startswith(f"{said}; ") and hint in error


@pytest.mark.parametrize("code", [2, 709, 719])
@pytest.mark.parametrize("name", [*ON_THE_WAY, "cuLibraryGetKernel"])
def test_a_failure_leaves_nothing_behind_and_the_next_call_works(
    fake_cuda: FakeCuda, launches: Launches, name: str, code: int
) -> None:
    fake_cuda.fail(name, code)
    fake_cuda.set_current(0)
    if (name, code) in RECOVERED:
        launches.call_from_c(device=1)
    else:
        launches.refused(device=1)
    loaded = name not in ("cuInit", "cuLibraryLoadData", "cuLibraryGetKernel")
    assert fake_cuda.libraries == int(loaded)
    # A pop that fails pops nothing.
    popped = name != "cuCtxPopCurrent_v2"
    assert (fake_cuda.depth, fake_cuda.device) == ((1, 0) if popped else (2, 1))
    fake_cuda.set_current(-1)
    fake_cuda.clear()
    launches.call_from_c(device=1)
    assert len(fake_cuda.launches()) == 1
    assert (fake_cuda.libraries, fake_cuda.retained(1), fake_cuda.depth) == (1, 1, 0)


SHARED = ("cuDeviceGetAttribute", "cuKernelGetAttribute", "cuKernelSetAttribute")


@pytest.mark.parametrize("name", SHARED)
def test_shared_memory_that_cannot_be_had_is_an_error_and_tried_again(
    fake_cuda: FakeCuda, launches: Launches, name: str
) -> None:
    launches.call_from_c(device=1)  # loading asks for attributes too
    fake_cuda.fail(name, OUT_OF_MEMORY)
    error = launches.refused(device=1, smem=100_000)
    assert error.startswith(f"CudaError: {name} failed with CUDA_ERROR_OUT_OF_MEMORY")
    assert fake_cuda.depth == 0
    launches.call_from_c(device=1, smem=100_000)


@pytest.mark.parametrize("after", [0, 1])
def test_a_kernel_that_is_not_there_is_named(
    fake_cuda: FakeCuda, launches: Launches, after: int
) -> None:
    fake_cuda.fail("cuLibraryGetKernel", 500, after)
    name = ("first", "second")[after]
    assert launches.refused() == (
        f"CudaError: cuLibraryGetKernel of the kernel {name} failed with CUDA_ERROR_NOT_FOUND "
        f"(500: named symbol not found) {WHERE}"
    )
    assert fake_cuda.libraries == 0


def test_python_gets_the_class_and_the_place(fake_cuda: FakeCuda, launches: Launches) -> None:
    fake_cuda.fail("cuLaunchKernelEx", 719)
    message = r"^cuLaunchKernelEx failed with CUDA_ERROR_LAUNCH_FAILED \(719: unspecified"
    with pytest.raises(fe.CudaError, match=message) as caught:
        launches()
    assert isinstance(caught.value, RuntimeError)
    assert caught.traceback[-1].name == "launches"


def test_an_error_that_the_driver_does_not_know(fake_cuda: FakeCuda, launches: Launches) -> None:
    fake_cuda.fail("cuLaunchKernelEx", 12345)
    assert launches.refused() == (
        "CudaError: cuLaunchKernelEx failed with an unknown error "
        f"(12345: the driver has no text for it) {WHERE}: {SIZES}"
    )


def test_a_pop_that_fails_does_not_hide_what_failed_first(
    fake_cuda: FakeCuda, launches: Launches
) -> None:
    fake_cuda.fail("cuLaunchKernelEx", 719)
    fake_cuda.fail("cuCtxPopCurrent_v2", 201)
    assert "cuLaunchKernelEx failed with CUDA_ERROR_LAUNCH_FAILED" in launches.refused()


def test_a_device_that_is_not_there(fake_cuda: FakeCuda, launches: Launches) -> None:
    for device in (2, 127, 128, 2**31 - 1):
        assert launches.refused(device=device) == (
            f"CudaError: there is no GPU cuda:{device} {WHERE}: the CUDA driver has 2, counted "
            "from cuda:0; CUDA_VISIBLE_DEVICES says which it shows"
        )
    launches.call_from_c(device=1)


def test_a_driver_without_devices(fake_cuda: FakeCuda, launches: Launches) -> None:
    fake_cuda.reset(devices=0)
    assert "cuInit failed with CUDA_ERROR_NO_DEVICE (100: no CUDA-cap" in launches.refused()
    fake_cuda.reset()
    launches.call_from_c()


def test_an_image_that_is_none(fake_cuda: FakeCuda) -> None:
    assert Launches(b"no PTX").refused() == (
        "CudaError: cuLibraryLoadData failed with CUDA_ERROR_INVALID_PTX "
        f"(218: a PTX JIT compilation failed) {WHERE}"
    )


@pytest.mark.parametrize(
    ("version", "cuda"), [("8.5", "12.5"), ("8.7", "12.8"), ("9.0", "13.0"), ("9.4", "13.4")]
)
def test_ptx_that_is_newer_than_the_driver(fake_cuda: FakeCuda, version: str, cuda: str) -> None:
    fake_cuda.fail("cuLibraryLoadData", 222)
    said = Launches(IMAGE.replace(b".version 7.8", f".version {version}".encode())).refused()
    assert "(222: unsupported PTX version)" in said
    assert said.endswith(
        f"; the PTX has version {version}, which the driver of CUDA {cuda} and newer ones know: "
        "update the NVIDIA driver, or embed a cubin"
    )


def test_a_stream_of_another_device(fake_cuda: FakeCuda, launches: Launches) -> None:
    stream = fake_cuda.stream(1)
    assert "cuLaunchKernelEx failed with CUDA_ERROR_INVALID_HANDLE" in launches.refused(
        device=0, stream=stream
    )


# ---- threads ----


def test_eight_threads_load_once(fake_cuda: FakeCuda, launches: Launches) -> None:
    fake_cuda.delay_loads(0.02)
    assert at_once(launches, 8) == []
    names = [call.name for call in fake_cuda.calls()]
    assert [names.count(name) for name in ("cuInit", "cuLibraryLoadData")] == [1, 1]
    assert names.count("cuLaunchKernelEx") == names.count("cuCtxPopCurrent_v2") == 8
    assert (fake_cuda.libraries, fake_cuda.retained(1)) == (1, 1)


def test_a_load_that_fails_fails_one_thread(fake_cuda: FakeCuda, launches: Launches) -> None:
    fake_cuda.delay_loads(0.01)
    fake_cuda.fail("cuLibraryGetKernel", 2)
    (error,) = at_once(launches, 8)
    assert "cuLibraryGetKernel of the kernel first" in error
    assert [call.name for call in fake_cuda.calls()].count("cuLibraryLoadData") == 2
    assert (fake_cuda.libraries, len(fake_cuda.launches())) == (1, 7)


# ---- no driver, an old one ----


def in_another_process(before: str) -> str:
    """The error of a launch in a process of its own."""
    without_torch = "import ctypes, sys\nsys.modules['torch'] = None"
    call = "from cuda_body import Launches, at_once\nprint(Launches().refused())"
    script = f"{without_torch}\n{before}\n{call}"
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": ":".join(filter(None, sys.path)), "PATH": ""},
    )
    return done.stdout.strip()


def test_without_a_driver(tmp_path: Path) -> None:
    if has_libcuda():
        pytest.skip("this machine has a real libcuda.so.1")
    error = in_another_process("")
    assert error.startswith(f"CudaError: the CUDA driver cannot be loaded {WHERE}: libcuda.so.1: ")
    assert error.endswith(
        "; libcuda.so.1 comes with the NVIDIA driver: install that; without one, a GPU can be "
        "emulated: with fe.emulated_gpu('sm_90a'), or FERRULE_GPU=emulated:sm_90a in the "
        "environment"
    )


def test_with_an_old_driver(tmp_path: Path) -> None:
    if has_libcuda():
        pytest.skip("this machine has a real libcuda.so.1")
    path = build(tmp_path, "-DOLD", "-Wno-unused-function")
    error = in_another_process(f"ctypes.CDLL({str(path)!r}, ctypes.RTLD_GLOBAL)")
    assert error == (
        f"CudaError: the CUDA driver has no cuLaunchKernelEx, which is needed {WHERE}: "
        "wanted the driver of CUDA 12.0 or later, but this is that of CUDA 11.8; update the NVIDIA "
        "driver"
    )
