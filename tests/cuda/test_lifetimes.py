"""How long an image is loaded: till its code goes, in this process, and anew after a reset."""

from __future__ import annotations

import gc
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import tvm_ffi
from cuda_body import Args, Launches, at_once
from cuda_device import FakeCuda, build, has_libcuda

from ferrule.runtime import find_runtime_libraries

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")

LET_GO = [
    "cuThreadExchangeStreamCaptureMode",
    "cuLibraryUnload",
    "cuDevicePrimaryCtxRelease_v2",
    "cuThreadExchangeStreamCaptureMode",
]


# ---- unloading ----


def test_an_image_goes_with_its_function(fake_cuda: FakeCuda) -> None:
    launches = Launches()
    launches(device=1)
    launches.call_from_c(device=1)  # of another copy of the object
    assert (fake_cuda.libraries, fake_cuda.retained(1)) == (2, 2)
    fake_cuda.clear()
    del launches
    gc.collect()
    assert fake_cuda.names() == LET_GO * 2
    assert (fake_cuda.libraries, fake_cuda.retained(1)) == (0, 0)


def test_a_function_that_was_not_called_unloads_nothing(fake_cuda: FakeCuda) -> None:
    launches = Launches()
    del launches
    gc.collect()
    assert fake_cuda.names() == []


def test_nothing_of_an_unload_disturbs_a_capture(fake_cuda: FakeCuda) -> None:
    launches = Launches()
    launches()
    with fake_cuda.capturing(fake_cuda.stream(0)):
        del launches
        gc.collect()
    assert fake_cuda.libraries == 0


def test_an_exported_library_unloads_when_it_is_closed(fake_cuda: FakeCuda, tmp_path: Path) -> None:
    path = tmp_path / "launches.so"
    Launches().function.export_library(path)
    module = tvm_ffi.load_module(str(path), keep_module_alive=False)
    function = module["launches"]
    function(*Args(device=1))
    assert (fake_cuda.libraries, fake_cuda.retained(1)) == (1, 1)
    fake_cuda.clear()
    del function, module
    gc.collect()
    assert fake_cuda.names() == LET_GO
    assert (fake_cuda.libraries, fake_cuda.retained(1)) == (0, 0)


# ---- a context that was reset ----


@pytest.mark.parametrize("current", [-1, 0])
def test_a_reset_device_is_noticed_and_the_image_loaded_again(
    fake_cuda: FakeCuda, launches: Launches, current: int
) -> None:
    fake_cuda.set_current(current)
    for device in (0, 1):
        launches(device=device)
    fake_cuda.reset_device(1)
    fake_cuda.clear()
    for device in (1, 0):
        launches(device=device)
    names = [call.name for call in fake_cuda.calls()]
    assert names.count("cuLibraryLoadData") == 1
    assert [launch.kernel for launch in fake_cuda.launches()] == ["first", "first"]
    assert fake_cuda.libraries == 1
    assert (fake_cuda.device, fake_cuda.retained(1)) == (current, 1)


def test_a_kernel_may_have_its_shared_memory_again_after_a_reset(fake_cuda: FakeCuda) -> None:
    launches = Launches()
    launches(device=1, smem=100_000)
    fake_cuda.reset_device(1)
    for device in (1, 0):
        launches(device=device, smem=100_000)
    fake_cuda.reset_device(0)
    launches(device=1, smem=200_000)
    assert [launch.smem for launch in fake_cuda.launches()] == [*[100_000] * 3, 200_000]


def test_eight_threads_load_once_after_a_reset(fake_cuda: FakeCuda, launches: Launches) -> None:
    launches.call_from_c(device=1)
    fake_cuda.reset_device(1)
    fake_cuda.delay_loads(0.01)
    fake_cuda.clear()
    errors = at_once(launches, 8)
    names = [call.name for call in fake_cuda.calls()]
    assert errors == []
    assert names.count("cuLibraryLoadData") == 1
    assert len(fake_cuda.launches()) == 8
    assert (fake_cuda.libraries, fake_cuda.retained(1)) == (1, 1)


def test_a_reload_that_fails_is_an_error_and_the_next_call_tries_again(
    fake_cuda: FakeCuda, launches: Launches
) -> None:
    launches.call_from_c()
    fake_cuda.reset_device(0)
    fake_cuda.fail("cuLibraryLoadData", 2)
    assert "cuLibraryLoadData failed with CUDA_ERROR_OUT_OF_MEMORY" in launches.refused()
    launches.call_from_c()
    assert fake_cuda.depth == 0


# ---- processes ----


def in_a_child(launches: Launches) -> str:
    """The error of a call in a fork of this process."""
    ours, theirs = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.write(theirs, launches.refused().encode())
        finally:
            os._exit(0)
    os.close(theirs)
    with os.fdopen(ours, "rb") as answer:
        error = answer.read().decode()
    os.waitpid(child, 0)
    return error


def test_a_child_of_a_fork_says_what_to_do(fake_cuda: FakeCuda, launches: Launches) -> None:
    launches.call_from_c()
    for device in (0, 1):
        fake_cuda.set_current(device)
        error = in_a_child(launches)
        assert "(3: initialization error) in the launch of {first}; CUDA cannot be used" in error
        assert error.endswith("start it with multiprocessing.get_context('spawn')")
    launches.call_from_c()


def test_a_child_of_a_fork_during_the_load_does_not_wait(
    fake_cuda: FakeCuda, launches: Launches
) -> None:
    fake_cuda.delay_loads(0.2)
    loader = threading.Thread(target=launches.call_from_c)
    loader.start()
    while fake_cuda.calls() == []:  # cuInit comes first
        pass
    error = in_a_child(launches)
    loader.join()
    assert error.startswith("CudaError: this process was forked while another thread loaded")
    assert error.endswith("start it with multiprocessing.get_context('spawn')")


SCRIPT = """
import ctypes, sys
sys.modules["torch"] = None  # which takes seconds to import
from pathlib import Path
driver = ctypes.CDLL(sys.argv[1], ctypes.RTLD_GLOBAL)
driver.fake_reset(2)
import tvm_ffi
from cuda_body import Args, Launches, at_once
launches = Launches()
launches()
launches.function.export_library(Path(sys.argv[2]))
held = tvm_ffi.load_module(sys.argv[2])["launches"]
held(*Args(device=1))
assert driver.fake_num_libraries() == 2
"""


def test_nothing_is_called_after_the_driver_has_shut_down(tmp_path: Path) -> None:
    if has_libcuda():
        pytest.skip("this machine has a real libcuda.so.1")
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(build(tmp_path)), str(tmp_path / "launches.so")],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": ":".join(filter(None, sys.path)), "PATH": os.environ["PATH"]},
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


HOST = """
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static int (*launches)(void *, void *, int, void *);
static struct { int index, padding; long long value; } args[12], result;

static void call(const char *when)
{
    args[0].value = 1;
    for (int i = 0; i < 12; i++)
        args[i].index = 1;
    for (int i = 2; i < 8; i++)
        args[i].value = 1;
    printf("%s %d\\n", when, launches(0, args, 12, &result));
}

static void *library;
static void late(void) { library ? call("at exit") : (void)puts("closed"); }
static void closing(void) { library = dlclose(library) ? library : 0; }

int main(int count, char **paths)
{
    atexit(late); /* runs last */
    for (int i = 1; i < count; i++)
        if (!(library = dlopen(paths[i], RTLD_NOW | RTLD_GLOBAL)))
            return puts(dlerror());
    ((void (*)(int))dlsym(RTLD_DEFAULT, "fake_reset"))(2);
    launches = dlsym(library, "__tvm_ffi_launches");
    if (getenv("CLOSES"))
        atexit(closing); /* after the driver, which begins with the first call */
    call("before");
    return 0;
}
"""


@pytest.mark.needs_cc
def test_at_the_end_of_a_process_calls_are_refused_and_nothing_is_unloaded(tmp_path: Path) -> None:
    if has_libcuda():
        pytest.skip("this machine has a real libcuda.so.1")
    Launches().function.export_library(tmp_path / "launches.so")
    source, program = tmp_path / "host.c", tmp_path / "host"
    source.write_text(HOST, encoding="utf-8")
    compiler = next(filter(shutil.which, (os.environ.get("CC", "cc"), "gcc", "clang")))
    subprocess.run([compiler, str(source), "-ldl", "-o", str(program)], check=True)
    libraries = [*find_runtime_libraries(), build(tmp_path), tmp_path / "launches.so"]
    for environment, said in ((None, "at exit -1"), ({"CLOSES": "1"}, "closed")):
        done = subprocess.run(
            [str(program), *map(str, libraries)],
            capture_output=True,
            text=True,
            check=False,
            env=environment,
        )
        assert (done.stdout, done.stderr) == (f"before 0\n{said}\n", "")


def test_a_child_of_a_fork_unloads_nothing(fake_cuda: FakeCuda) -> None:
    held = [Launches()]
    held[0].call_from_c()
    fake_cuda.clear()
    ours, theirs = os.pipe()
    child = os.fork()
    if not child:
        held.clear()
        gc.collect()
        os.write(theirs, " ".join(fake_cuda.names()).encode())
        os._exit(0)
    os.close(theirs)
    with os.fdopen(ours, "rb") as answer:
        assert answer.read() == b""
    os.waitpid(child, 0)
    assert fake_cuda.libraries == 1
