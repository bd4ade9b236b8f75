"""What generated code does to the driver: which calls, in which order, with which bytes."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest
import tvm_ffi
from cuda_body import ANY_DEVICE, ENV_STREAM, KERNELS, Launches, body
from cuda_device import FakeCuda

from ferrule.compiler.cuda.launcher.launch import Launcher
from ferrule.runtime.llvm.emitter import Emitter

MODE = "cuThreadExchangeStreamCaptureMode"
LOAD = ["cuInit", MODE, "cuLibraryLoadData", *["cuLibraryGetKernel"] * len(KERNELS), MODE]
HOT = ["cuCtxGetDevice", "cuLaunchKernelEx"]


def test_the_first_call_loads_and_later_calls_launch_alone(
    fake_cuda: FakeCuda, launches: Launches
) -> None:
    fake_cuda.set_current(0)
    launches()
    assert fake_cuda.names() == [*LOAD, *HOT]
    launches()
    assert fake_cuda.names() == HOT
    assert fake_cuda.libraries == 1


def test_each_object_loads_its_image(fake_cuda: FakeCuda) -> None:
    fake_cuda.set_current(0)
    held = []
    for count in (1, 2):
        held.append(Launches())
        held[-1]()
        assert fake_cuda.libraries == count


def test_sizes_and_stream_come_through(fake_cuda: FakeCuda, launches: Launches) -> None:
    fake_cuda.set_current(0)
    stream = fake_cuda.stream(0)
    launches(grid=(2**31 - 1, 65535, 3), block=(4, 8, 16), smem=48 * 1024, stream=stream)
    (launch,) = fake_cuda.launches()
    assert (launch.kernel, launch.smem, launch.stream) == ("first", 48 * 1024, stream)
    assert (launch.grid, launch.block) == ((2**31 - 1, 65535, 3), (4, 8, 16))


def test_bytes_of_the_parameters_come_through(fake_cuda: FakeCuda, launches: Launches) -> None:
    fake_cuda.set_current(0)
    launches(a=0x0102030405060708, b=-9)
    launches(kernel=1, a=-2, b=3)
    first, second = fake_cuda.launches()
    assert (first.kernel, first.parameters) == (
        "first",
        (struct.pack("<q", 0x0102030405060708), struct.pack("<i", -9)),
    )
    assert (second.kernel, second.parameters) == ("second", (struct.pack("<qq", -2, 3),))


@pytest.mark.parametrize("grid", [(0, 1, 1), (5, 0, 1), (5, 1, 0), (0, 0, 0)])
def test_an_empty_grid_launches_nothing(
    fake_cuda: FakeCuda, launches: Launches, grid: tuple[int, int, int]
) -> None:
    launches(grid=grid)
    assert "cuLaunchKernelEx" not in fake_cuda.names()
    assert fake_cuda.depth == 0


def test_the_env_stream_is_that_of_the_device(fake_cuda: FakeCuda, launches: Launches) -> None:
    streams = [fake_cuda.stream(device) for device in range(2)]
    for device, stream in enumerate(streams):
        with tvm_ffi.use_raw_stream(tvm_ffi.device(f"cuda:{device}"), stream):
            launches(device=device, stream=ENV_STREAM)
    assert [launch.stream for launch in fake_cuda.launches()] == streams


@pytest.mark.parametrize("current", [-1, 0, 1])
def test_the_env_stream_of_any_device_is_that_of_the_one_that_is_used(
    fake_cuda: FakeCuda, launches: Launches, current: int
) -> None:
    fake_cuda.set_current(current)
    used = max(0, current)
    stream = fake_cuda.stream(used)
    with tvm_ffi.use_raw_stream(tvm_ffi.device(f"cuda:{used}"), stream):
        launches(device=ANY_DEVICE, stream=ENV_STREAM)
    assert [launch.stream for launch in fake_cuda.launches()] == [stream]


# ---- the device ----


@pytest.mark.parametrize("primary", [False, True])
def test_a_context_of_the_right_device_is_used_as_it_is(
    fake_cuda: FakeCuda, launches: Launches, primary: bool
) -> None:
    fake_cuda.set_current(1, primary=primary)
    before = fake_cuda.retained(1)
    launches(device=1)
    assert fake_cuda.names() == [*LOAD, *HOT]
    assert (fake_cuda.device, fake_cuda.depth, fake_cuda.retained(1)) == (1, 1, before)


@pytest.mark.parametrize("current", [-1, 0])
def test_another_device_is_made_current_for_the_call(
    fake_cuda: FakeCuda, launches: Launches, current: int
) -> None:
    fake_cuda.set_current(current)
    depth = fake_cuda.depth
    launches(device=1)
    change = ["cuDevicePrimaryCtxRetain", "cuCtxPushCurrent_v2"]
    calls = fake_cuda.calls()
    assert [call.name for call in calls] == [
        *LOAD, "cuCtxGetDevice", *change, "cuLaunchKernelEx", "cuCtxPopCurrent_v2",
    ]  # fmt: skip
    assert [call.device for call in calls if call.name == "cuLaunchKernelEx"] == [1]
    assert (fake_cuda.device, fake_cuda.depth) == (current, depth)


def test_a_context_is_retained_once(fake_cuda: FakeCuda, launches: Launches) -> None:
    for _ in range(3):
        launches(device=1)
        launches(device=0)
    assert [fake_cuda.retained(device) for device in range(2)] == [1, 1]


@pytest.mark.parametrize(("current", "used"), [(-1, 0), (0, 0), (1, 1)])
def test_any_device_is_the_current_one_or_the_first(
    fake_cuda: FakeCuda, launches: Launches, current: int, used: int
) -> None:
    fake_cuda.set_current(current)
    launches(device=ANY_DEVICE)
    assert [call.device for call in fake_cuda.calls() if call.launch] == [used]
    assert fake_cuda.device == current


def test_the_device_is_restored_after_an_error(fake_cuda: FakeCuda, launches: Launches) -> None:
    fake_cuda.set_current(0)
    fake_cuda.fail("cuLaunchKernelEx", 719)
    launches.refused(device=1)
    assert (fake_cuda.device, fake_cuda.depth) == (0, 1)
    assert fake_cuda.names()[-1] == "cuCtxPopCurrent_v2"


# ---- what is emitted ----


def test_text(golden: Callable[[str, str], None]) -> None:
    golden("body.ll", body().text)


def test_the_same_calls_give_the_same_text() -> None:
    assert body().text == body().text


@pytest.mark.parametrize("kernels", [[], ["f", "g", "f"]])
def test_kernels_have_one_name_each(kernels: list[str]) -> None:
    with pytest.raises(ValueError, match="wanted the names of kernels, each once"):
        Launcher(Emitter("m"), b"", kernels)
