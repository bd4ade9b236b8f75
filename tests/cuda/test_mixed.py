"""A machine whose GPUs differ: each gets the best image for it, loaded when it is first used."""

from __future__ import annotations

import gc
import os
import pickle
import threading
from functools import cache
from pathlib import Path

import pytest
import tvm_ffi
from cuda_device import FakeCuda
from gpu_functions import compiled, floats

import ferrule as fe
from ferrule.compiler import conventions
from ferrule.runtime import Function
from ferrule.specs import Int32, Scalar, Signature, Tensor

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")

BOTH = "--target cuda --gpu-arch sm_80,sm_90a"
ONLY_NEW = "--target cuda --gpu-arch sm_90a"
OLD, NEW = 0, 1


@pytest.fixture
def mixed(fake_cuda: FakeCuda) -> FakeCuda:
    """Three GPUs: cuda:0 has capability 8.0, cuda:1 has 9.0 and cuda:2 has 8.9."""
    fake_cuda.reset(devices=3)
    for device, capability in enumerate((80, 90, 89)):
        fake_cuda.set_capability(device, capability)
    return fake_cuda


@pytest.fixture
def function(mixed: FakeCuda) -> Function:
    """`add_one` for both architectures."""
    return fresh(BOTH)


@cache
def pickled(options: str) -> bytes:
    return pickle.dumps(compiled(options=options))


def fresh(options: str) -> Function:
    """`add_one` with nothing in its state."""
    loaded: Function = pickle.loads(pickled(options))
    return loaded


def call(function: Function, device: int) -> None:
    function(floats(8, device=device), floats(8, device=device))


def archs(fake: FakeCuda) -> list[tuple[int, str]]:
    """Device and architecture of each launch."""
    return [(each.device, each.launch.arch) for each in fake.calls() if each.launch is not None]


def loads(fake: FakeCuda) -> int:
    return [each.name for each in fake.calls()].count("cuLibraryLoadData")


def test_each_device_gets_the_best_image(mixed: FakeCuda, function: Function) -> None:
    for device in (0, 1, 2, 1, 0, 2):
        call(function, device)
    best = {0: "sm_80", 1: "sm_90a", 2: "sm_80"}
    assert archs(mixed) == [(device, best[device]) for device in (0, 1, 2, 1, 0, 2)]
    assert (loads(mixed), mixed.libraries, mixed.depth) == (2, 2, 0)


def test_an_image_is_loaded_when_a_device_that_gets_it_is_used(
    mixed: FakeCuda, function: Function
) -> None:
    for device, loaded in ((2, 1), (0, 1), (1, 2), (2, 2)):
        call(function, device)
        assert mixed.libraries == loaded


def test_gpus_that_get_the_same_image_are_as_if_they_were_alike(fake_cuda: FakeCuda) -> None:
    for device, capability in ((0, 86), (1, 89)):
        fake_cuda.set_capability(device, capability)
    function = fresh(BOTH)
    for device in (0, 1):
        call(function, device)
    assert fake_cuda.libraries == 1
    fake_cuda.set_current(1)
    fake_cuda.clear()
    call(function, 1)
    assert fake_cuda.names() == ["cuCtxGetDevice", "cuLaunchKernelEx"]


def test_eight_threads_load_each_image_once(mixed: FakeCuda, function: Function) -> None:
    mixed.delay_loads(0.02)
    start, errors = threading.Barrier(8), []

    def work(device: int) -> None:
        arrays = floats(8, device=device), floats(8, device=device)
        start.wait()
        try:
            for _ in range(20):
                function(*arrays)
        except Exception as error:
            errors.append(str(error))

    threads = [threading.Thread(target=work, args=(number % 3,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert (loads(mixed), mixed.libraries) == (2, 2)
    assert len(archs(mixed)) == 160
    assert set(archs(mixed)) == {(0, "sm_80"), (1, "sm_90a"), (2, "sm_80")}


@pytest.mark.parametrize("first", [OLD, NEW])
def test_a_device_without_an_image_is_an_error_and_the_other_works(
    mixed: FakeCuda, first: int
) -> None:
    function = fresh(ONLY_NEW)
    for device in (first, 1 - first, first, 1 - first):
        if device == NEW:
            call(function, NEW)
            continue
        with pytest.raises(fe.CudaError, match=r"cuda:0 has compute capability 8\.0, but the kern"):
            call(function, OLD)
    assert archs(mixed) == [(1, "sm_90a")] * 2
    assert (loads(mixed), mixed.depth) == (1, 0)


def test_a_device_that_is_not_there(mixed: FakeCuda, function: Function) -> None:
    for _ in range(2):
        with pytest.raises(fe.CudaError, match=r"there is no GPU cuda:3 .* the CUDA driver has 3"):
            call(function, 3)
        call(function, NEW)
    assert archs(mixed) == [(1, "sm_90a")] * 2


@pytest.mark.parametrize("name", ["cuLibraryLoadData", "cuLibraryGetKernel", "cuLaunchKernelEx"])
def test_a_failure_on_one_device_leaves_nothing_behind(
    mixed: FakeCuda, function: Function, name: str
) -> None:
    call(function, OLD)
    mixed.fail(name, 2)
    with pytest.raises(fe.CudaError, match=f"{name}.*CUDA_ERROR_OUT_OF_MEMORY"):
        call(function, NEW)
    assert (mixed.libraries, mixed.depth) == (2 if name == "cuLaunchKernelEx" else 1, 0)
    for device in (OLD, NEW):
        call(function, device)
    assert archs(mixed) == [(0, "sm_80"), (0, "sm_80"), (1, "sm_90a")]


def test_the_first_call_of_each_device_can_be_captured(mixed: FakeCuda, function: Function) -> None:
    call(function, OLD)
    stream = mixed.stream(NEW)
    with tvm_ffi.use_raw_stream(tvm_ffi.device("cuda", NEW), stream):
        with mixed.capturing(stream):
            call(function, NEW)
    assert [launch.arch for launch in mixed.launches()] == ["sm_80", "sm_90a"]


def test_without_a_device_it_is_the_current_one(mixed: FakeCuda) -> None:
    code = fe.DeviceCode.from_ptx([_text("sm_80"), _text("sm_90a")])
    sig = Signature("nothing", [Scalar("n", Int32)])
    launch = conventions.CudaLaunch(code, "nothing", [sig["n"]], 1, 32)
    function = fe.compiler.build(sig, launch)
    for current in (-1, 1, 2):
        mixed.set_current(current)
        function(7)
    assert archs(mixed) == [(0, "sm_80"), (1, "sm_90a"), (2, "sm_80")]


def _text(arch: str) -> str:
    head = f".version 8.0\n.target {arch}\n.address_size 64\n"
    return f"{head}.visible .entry nothing(.param .u32 n) {{ ret; }}\n"


def test_each_device_allows_its_shared_memory(mixed: FakeCuda) -> None:
    code = fe.DeviceCode.from_ptx([_text("sm_80"), _text("sm_90a")])
    sig = Signature("nothing", [Tensor("x", (1,), "float32", device="cuda"), Scalar("n", Int32)])
    launch = conventions.CudaLaunch(code, "nothing", [sig["n"]], 1, 32, smem=sig["n"].value)
    function = fe.compiler.build(sig, launch)
    for device in (0, 1, 2, 0):
        function(floats(1, device=device), 100_000)
    mixed.reset_device(NEW)
    for device in (1, 2, 0):
        function(floats(1, device=device), 100_000)
    assert [device for device, _ in archs(mixed)] == [0, 1, 2, 0, 1, 2, 0]
    assert {launch.smem for launch in mixed.launches()} == {100_000}
    mixed.limit_shared(200_000)
    with pytest.raises(fe.LaunchError, match="smem is 200001 bytes .* but cuda:2 has 200000"):
        fe.compiler.build(sig, launch)(floats(1, device=2), 200_001)


def test_a_reset_device_is_noticed(mixed: FakeCuda, function: Function) -> None:
    for device in (0, 1, 2):
        call(function, device)
    mixed.reset_device(NEW)
    mixed.clear()
    for device in (1, 0, 2, 1):
        call(function, device)
    assert archs(mixed) == [(1, "sm_90a"), (0, "sm_80"), (2, "sm_80"), (1, "sm_90a")]
    assert (loads(mixed), mixed.libraries, mixed.depth) == (2, 2, 0)


def test_both_images_go_with_their_function(mixed: FakeCuda, tmp_path: Path) -> None:
    path = tmp_path / "k.so"
    compiled(options=BOTH).export_library(path)
    module = tvm_ffi.load_module(str(path), keep_module_alive=False)
    add_one = module["add_one"]
    for device in (0, 1):
        call(add_one, device)
    assert (mixed.libraries, mixed.retained(0), mixed.retained(1)) == (2, 1, 1)
    mixed.clear()
    del add_one, module
    gc.collect()
    assert mixed.names().count("cuLibraryUnload") == 2
    assert (mixed.libraries, mixed.retained(0), mixed.retained(1)) == (0, 0, 0)


@pytest.mark.parametrize("device", [OLD, NEW])
def test_a_child_of_a_fork_says_what_to_do(
    mixed: FakeCuda, function: Function, device: int
) -> None:
    call(function, OLD)
    arrays = floats(8, device=device), floats(8, device=device)
    reading, writing = os.pipe()
    if os.fork() == 0:
        try:
            function(*arrays)
        except fe.CudaError as error:
            os.write(writing, str(error).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as said:
        assert "CUDA cannot be used in a process that was forked" in said.read()
    os.wait()
    call(function, NEW)


def test_a_driver_that_loads_for_all_contexts_gets_what_they_all_run(
    mixed: FakeCuda, function: Function
) -> None:
    mixed.load_eagerly()
    for device in (OLD, NEW, OLD):
        call(function, device)
    assert archs(mixed) == [(0, "sm_80"), (1, "sm_80"), (0, "sm_80")]
    assert mixed.libraries == 1


def test_where_it_finds_none_it_says_what_the_driver_says(mixed: FakeCuda) -> None:
    mixed.load_eagerly()
    holding = fresh(BOTH)
    call(holding, OLD)
    for _ in range(2):
        with pytest.raises(fe.CudaError, match="cuLibraryLoadData .*CUDA_ERROR_NO_BINARY_FOR_GPU"):
            call(fresh(ONLY_NEW), NEW)
