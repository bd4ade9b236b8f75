"""Emulated GPUs of whole processes: FERRULE_GPU, pytest's plugin, C programs, forks, errors."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from ferrule.emulator.settings import from_text

WITHOUT_TORCH = "import sys; sys.modules['torch'] = None"
"""tvm-ffi imports PyTorch where it is, which takes seconds."""

SUPPORT = Path(__file__).parents[1] / "support"


def run(code: str, *, gpu: str = "", check: bool = True, **variables: str) -> str:
    """What a process prints, and its errors if it fails."""
    done = subprocess.run(
        [sys.executable, "-c", f"{WITHOUT_TORCH}\n{code}"],
        capture_output=True,
        text=True,
        timeout=300,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(SUPPORT), *filter(None, sys.path)]),
            "FERRULE_GPU": gpu,
            **variables,
        },
    )
    assert not check or done.returncode == 0, done.stderr
    return done.stdout if check else done.stderr


COUNT = """
import ctypes, ferrule as fe
cuda, count = ctypes.CDLL("libcuda.so.1"), ctypes.c_int(-1)
print(cuda.cuInit(0), cuda.cuDeviceGetCount(ctypes.byref(count)), count.value)
"""


def test_a_variable_of_the_environment() -> None:
    assert run(COUNT, gpu="emulated:sm_90a,devices=3") == "0 0 3\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("sm_90a", "FERRULE_GPU is 'sm_90a'; wanted emulated:ARCH, such as emulated:sm_90a"),
        ("emulated:sm_91", "did you mean sm_90?"),
        ("emulated:sm_90a,devices=0", "devices must be in [1, 16], but got 0"),
        ("emulated:sm_90a,speed=9", "then devices, checks, schedule with values"),
        (
            "emulated:sm_90a,checks=memory+speed",
            "sync, leak, race, init, approx, or all, but got",
        ),
        ("emulated:sm_90a,schedule=fast", "schedule must be 'random:' and a seed"),
    ],
)
def test_a_variable_that_says_nothing_known(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        from_text(text)


def test_a_process_says_so() -> None:
    error = run("import ferrule", gpu="emulated:sm_91", check=False)
    assert "ValueError" in error and "did you mean sm_90?" in error


def test_wrong_arguments() -> None:
    import ferrule as fe

    with pytest.raises(ValueError, match="did you mean sm_90"):
        fe.emulated_gpu("sm_91")
    with pytest.raises(TypeError, match="arch must be a str such as 'sm_90a', but got 90"):
        fe.emulated_gpu(90)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"devices must be in \[1, 16\], but got 17"):
        fe.emulated_gpu("sm_90a", devices=17)
    with pytest.raises(TypeError, match="devices must be an int, but got True"):
        fe.emulated_gpu("sm_90a", devices=True)
    with pytest.raises(ValueError, match="checks must be of memory, .*, but got 'speed'"):
        fe.emulated_gpu("sm_90a", checks="memory,speed")
    with pytest.raises(ValueError, match="schedule must be 'random:' and a seed, but got 'random'"):
        fe.emulated_gpu("sm_90a", schedule="random")
    assert fe.emulated_gpu("sm_90a", checks=False).checks == frozenset()
    assert fe.emulated_gpu("sm_90a", checks=["sync"]).checks == {"sync"}
    with pytest.raises(RuntimeError, match="the emulated GPU is not in use: enter it with `with`"):
        fe.emulated_gpu("sm_90a").allocations()


def test_one_at_a_time() -> None:
    code = """
import ferrule as fe
with fe.emulated_gpu("sm_90a"):
    try:
        with fe.emulated_gpu("sm_80"):
            pass
    except RuntimeError as error:
        print(error)
print(fe.cuda.device_count())
"""
    assert run(code) == "this process emulates a GPU already, sm_90a: leave that first\n0\n"


def test_leaks_of_a_process() -> None:
    code = """
import ferrule as fe
from ferrule.emulator.gpu import active
from fake_machine import FakeMachine
active().driver.__dict__["machine"] = FakeMachine()
x = fe.cuda.empty(10)
"""
    error = run(code, gpu="emulated:sm_80,checks=leak", check=False)
    assert error.startswith("ferrule: 40 bytes in 1 allocations were not freed")


@pytest.mark.needs_cc
def test_beside_another_driver(tmp_path: Path) -> None:
    source = tmp_path / "other.c"
    source.write_text("int cuInit(unsigned flags) { return flags; }\n")
    library = tmp_path / "libcuda.so.1"
    options = ["-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o", str(library)]
    subprocess.run(["cc", *options, str(source)], check=True)
    code = f"""
import ctypes, ferrule as fe
ctypes.CDLL({str(library)!r})
try:
    fe.emulated_gpu("sm_90a").__enter__()
except fe.CudaError as error:
    print(error)
"""
    said = run(code)
    assert said.startswith(f"this process has loaded a CUDA driver, {library}, beside which no GPU")


def test_without_any_driver() -> None:
    code = """
import ferrule as fe
print(fe.cuda.device_count())
for call in (lambda: fe.cuda.empty(3), fe.cuda.use_as_allocator, fe.cuda.Stream):
    try:
        call()
    except fe.CudaError as error:
        print(error)
"""
    lines = run(code).splitlines()
    if "libcuda.so.1: cannot open" not in lines[1]:
        pytest.skip("this machine has a libcuda.so.1")
    assert lines[0] == "0"
    for line in lines[1:]:
        assert line.startswith("the CUDA driver cannot be loaded: libcuda.so.1: ")
        assert "without one, a GPU can be emulated: with fe.emulated_gpu('sm_90a')" in line


def test_a_fork_cannot_use_it() -> None:
    code = """
import ctypes, os, ferrule as fe
cuda = ctypes.CDLL("libcuda.so.1")
cuda.cuInit(0)
print(fe.cuda.device_count(), flush=True)
child = os.fork()
if not child:
    print(cuda.cuInit(0), cuda.cuDeviceGetCount(ctypes.byref(ctypes.c_int())), flush=True)
    os._exit(0)
os.waitpid(child, 0)
print(fe.cuda.device_count())
"""
    assert run(code, gpu="emulated:sm_80") == "1\n3 3\n1\n"


def test_a_fork_before_the_first_use_can() -> None:
    code = """
import os, ferrule as fe
child = os.fork()
os.write(1, b"%d\\n" % fe.cuda.device_count())  # at once: both processes write
if child:
    os.waitpid(child, 0)
"""
    assert run(code, gpu="emulated:sm_80") == "1\n1\n"


def test_calls_at_the_end_of_the_process() -> None:
    """What C calls when Python is gone is answered: the driver is, too."""
    code = """
import ctypes, atexit, ferrule as fe
cuda = ctypes.CDLL("libcuda.so.1")
cuda.cuInit(0)
place = ctypes.c_int()
libc = ctypes.CDLL(None)
at_end = ctypes.cast(cuda.cuCtxSynchronize, ctypes.c_void_p)
libc.__cxa_atexit(at_end, None, None)
print("done")
"""
    assert run(code, gpu="emulated:sm_80") == "done\n"


C_PROGRAM = r"""
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

static void *other(void *library)
{
    int (*current)(void **) = dlsym(library, "cuCtxGetCurrent");
    int (*set)(void *) = dlsym(library, "cuCtxSetCurrent");
    int (*retain)(void **, int) = dlsym(library, "cuDevicePrimaryCtxRetain");
    void *context = 0, *found = 0;
    retain(&context, 0);
    set(context);
    current(&found);
    return found == context ? library : 0;
}

int run(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW), *answer = 0;
    int (*init)(unsigned) = dlsym(library, "cuInit");
    int (*count)(int *) = dlsym(library, "cuDeviceGetCount");
    int devices = 0;
    pthread_t thread;
    if (!library || init(0) || count(&devices) || devices != 2)
        return 1;
    pthread_create(&thread, 0, other, library);
    pthread_join(thread, &answer);
    return answer != library;
}
"""


@pytest.mark.needs_cc
def test_c_finds_it(tmp_path: Path) -> None:
    """Also threads that C starts, each with a stack of contexts that lasts."""
    source, library = tmp_path / "run.c", tmp_path / "run.so"
    source.write_text(C_PROGRAM)
    command = ["cc", "-shared", "-fPIC", "-O1", "-o", str(library), str(source), "-lpthread"]
    subprocess.run(command, check=True)
    code = f"import ctypes, ferrule; print(ctypes.CDLL({str(library)!r}).run())"
    assert run(code, gpu="emulated:sm_90a,devices=2") == "0\n"


@pytest.mark.needs_cc
def test_c_links_with_it(tmp_path: Path) -> None:
    source, library = tmp_path / "linked.c", tmp_path / "linked.so"
    source.write_text("int cuInit(unsigned); int run(void) { return cuInit(0) + cuInit(1); }\n")
    code = f"""
import ctypes, subprocess
from ferrule.emulator.gpu import active
files = [{str(library)!r}, {str(source)!r}, str(active().libcuda)]
subprocess.run(["cc", "-shared", "-fPIC", "-o", *files], check=True)
print(ctypes.CDLL({str(library)!r}).run())
"""
    assert run(code, gpu="emulated:sm_90a") == "1\n"


TESTS = """
import ferrule as fe

def test_there_is_one(gpu):
    assert gpu.arch == "sm_80" and gpu.devices == 2
    assert fe.cuda.device_count() == 2
"""


def pytest_run(tmp_path: Path, *options: str) -> str:
    """What pytest prints of TESTS with the plugin."""
    (tmp_path / "test_gpu.py").write_text(TESTS)
    (tmp_path / "torch.py").write_text("raise ImportError\n")
    installed = any(each.name == "ferrule" for each in entry_points(group="pytest11"))
    plugin = ["-p", "no:cacheprovider"]
    if not installed:
        plugin += ["-p", "ferrule.emulator.pytest_plugin"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-rs", *plugin, *options, str(tmp_path)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(tmp_path), *filter(None, sys.path)]),
        },
    )
    return done.stdout + done.stderr


def test_the_plugin(tmp_path: Path) -> None:
    assert "1 passed" in pytest_run(tmp_path, "--emulated-gpu=sm_80,devices=2", "-n1")


@pytest.mark.nightly
def test_the_plugin_without_workers(tmp_path: Path) -> None:
    assert "1 passed" in pytest_run(tmp_path, "--emulated-gpu=sm_80,devices=2")
    skipped = pytest_run(tmp_path)
    assert "there is no GPU: run with --emulated-gpu=sm_90a to emulate one" in skipped
    wrong = pytest_run(tmp_path, "--emulated-gpu=sm_8")
    assert "--emulated-gpu=sm_8: FERRULE_GPU is 'emulated:sm_8'" in wrong


def test_the_plugin_is_an_entry_point() -> None:
    text = (Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")
    assert 'pytest11]\nferrule = "ferrule.emulator.pytest_plugin"' in text


WAITING = """
import os, signal, threading, time
import ferrule as fe
from gpu_waiting import wait

signal.signal(signal.SIGINT, signal.default_int_handler)  # workers of pytest ignore it
flags = fe.cuda.zeros(32)
wanted = fe.make_fake_compact_tensor(fe.Float32, (32,))
compiled = fe.compile(wait, wanted, options="--target cuda")
threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    while True:
        try:
            compiled(flags)
        except fe.CudaError as error:
            print("interrupted" in str(error), "start the process again" in str(error))
            while True:  # the interrupt comes once more, to the program
                time.sleep(0.01)
except KeyboardInterrupt:
    print("KeyboardInterrupt")
del flags
"""


def test_an_interrupt_ends_a_kernel_and_reaches_the_program() -> None:
    found = run(WAITING, gpu="emulated:sm_90a")
    assert found == "True False\nKeyboardInterrupt\n"


def test_all_checks_are_all() -> None:
    code = (
        "from ferrule.emulator.gpu import active; import ferrule; print(*sorted(active().checks))"
    )
    assert run(code, gpu="emulated:sm_90a,checks=all") == "init leak memory race sync\n"
