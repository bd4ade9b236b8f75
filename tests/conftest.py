"""What all tests share: what they need of the machine, goldens, and a run that proves nothing.

* A test that needs more than Python and the core dependencies says so with a `needs_*` marker;
  where the machine lacks it the test is skipped, with the reason. One that takes long is marked
  `nightly`, and runs with `--hypothesis-profile=nightly`.
* `golden(name, text)` compares `text` with the file `golden/<name>` beside the test's file;
  `pytest --update-golden` writes the files instead. Names are given by the test, so they are
  the same on every run, and no two tests share one.
* Python processes that a test starts have PyTorch only where the test is marked `needs_torch`, or
  its module imports it: tvm-ffi imports it too, which takes longer than most of them.
* A run in which no test passed or failed (all were skipped, none was found) exits with 5.
"""

from __future__ import annotations

import ctypes
import difflib
import gc
import importlib
import importlib.util
import os
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import settings
from nightly import is_nightly

pytest_plugins = ["ptx_collector", "second_pipeline"]

# A machine with a GPU, or a test's stand-in for one, must not change what the others compile for.
os.environ["FERRULE_TARGET"] = "cpu"

# What is tested is the compiler.  A run with FERRULE_CACHE=1 tests what the cache gives; in no run
# is it the user's.
os.environ.setdefault("FERRULE_CACHE", "0")
_ALONE = Path(tempfile.gettempdir()) / f"ferrule-tests-{os.getpid()}"
os.environ.setdefault("FERRULE_CACHE_DIR", str(_ALONE))

# Tests run side by side: threads of one that spin while they have nothing to do slow down others.
# Read when an OpenMP runtime is loaded.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

# Many tests start processes, each of which would compile all of ferrule's modules again; and each
# process of pytest would rewrite the assertions of all tests again, half of what collecting takes.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# The same cases in every run: a change is refused for what it did.  Nightly runs draw new ones.
settings.register_profile("same", derandomize=True, deadline=None)
settings.load_profile("same")

# The property tests at night: about a hundred thousand calls, and as many other cases each.
settings.register_profile("nightly", max_examples=6_500, deadline=None, derandomize=False)


@pytest.fixture(scope="module", autouse=True)
def only_the_module_s_objects_are_collected() -> Iterator[None]:
    """What earlier modules left is not looked through again: a collection takes more than a second
    in a process that has run thousands of tests, and some tests collect often."""
    yield
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def calls_are_prepared_at_once() -> None:
    """Let the first call of a function make its entry, not the sixteenth.

    Few tests call a function so often, and entries are what programs run most. Tests of the first
    calls set the number back.
    """
    module = importlib.import_module("ferrule.runtime.calls.function")
    module.CALLS_BEFORE_PREPARED = 1  # type: ignore[attr-defined]


def has_c_compiler() -> bool:
    """True where a C compiler is named by $CC or found on the path."""
    names = (os.environ.get("CC", "cc"), "gcc", "clang")
    return any(shutil.which(name) for name in names)


def has_torch() -> bool:
    """True where PyTorch is installed; does not import it."""
    return importlib.util.find_spec("torch") is not None


def has_cuda() -> bool:
    """True where the CUDA driver finds a device, which may be emulated."""
    if os.environ.get("FERRULE_GPU"):
        importlib.import_module("ferrule")
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    count = ctypes.c_int(0)
    asked = (driver.cuInit(0), driver.cuDeviceGetCount(ctypes.byref(count)))
    return asked == (0, 0) and count.value > 0


def has_torch_cuda() -> bool:
    """True where PyTorch has tensors on a GPU, which it cannot on an emulated one."""
    return has_torch() and bool(importlib.import_module("torch").cuda.is_available())


def has_ptxas() -> bool:
    """True where NVIDIA's assembler is on the path or in a Python package."""
    return importlib.import_module("ptxas").find_ptxas() is not None


def has_wide_ints() -> bool:
    """True where tvm-ffi has ints of more than 64 bits."""
    importlib.import_module("tvm_ffi")
    return hasattr(ctypes.CDLL(None), "TVMFFIBigIntFromByteArray")


@dataclass(frozen=True, slots=True)
class Need:
    """Something that a test can need: how to find out, and what to say where it is missing."""

    present: Callable[[], bool]
    missing: str


NEEDS = {
    "needs_cc": Need(has_c_compiler, "no C compiler ($CC, cc, gcc or clang)"),
    "needs_torch": Need(has_torch, "PyTorch is not installed"),
    "needs_cuda": Need(has_cuda, "no CUDA device"),
    "needs_torch_cuda": Need(has_torch_cuda, "no PyTorch with a CUDA device"),
    "needs_ptxas": Need(has_ptxas, "no ptxas (of the CUDA toolkit or nvidia-cuda-nvcc)"),
    "nightly": Need(is_nightly, "no time for a long test (--hypothesis-profile=nightly has)"),
    "needs_wide_ints": Need(
        has_wide_ints, "no int of more than 64 bits (apache-tvm-ffi 0.1.14 has)"
    ),
}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="write the golden files instead of comparing"
    )


def pytest_configure(config: pytest.Config) -> None:
    for name, need in NEEDS.items():
        config.addinivalue_line("markers", f"{name}: skipped where there is {need.missing}")


_WITHOUT_TORCH = Path(__file__).with_name("support") / "without_torch"
_PATHS = os.environ.get("PYTHONPATH", "").split(os.pathsep)


def pytest_runtest_setup(item: pytest.Item) -> None:
    imports_torch = hasattr(getattr(item, "module", None), "torch")
    needs_torch = imports_torch or item.get_closest_marker("needs_torch") is not None
    paths = [path for path in _PATHS if path and path != str(_WITHOUT_TORCH)]
    given = paths if needs_torch else [str(_WITHOUT_TORCH), *paths]
    os.environ["PYTHONPATH"] = os.pathsep.join(given)
    for marker in item.iter_markers():
        need = NEEDS.get(marker.name)
        if need is not None and not need.present():
            pytest.skip(need.missing)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A green run means that something ran."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or session.config.option.collectonly:
        return
    ran = any(reporter.stats.get(outcome) for outcome in ("passed", "failed", "error", "xfailed"))
    if session.exitstatus == pytest.ExitCode.OK and not ran:
        session.exitstatus = pytest.ExitCode.NO_TESTS_COLLECTED


@dataclass(frozen=True, slots=True)
class Golden:
    """Compares a text with a file, or writes the file where an update was asked for."""

    folder: Path
    update: bool

    def __call__(self, name: str, text: str) -> None:
        path = self.folder / name
        wanted = text if text.endswith("\n") else text + "\n"
        if self.update:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(wanted, encoding="utf-8")
            return
        if not path.exists():
            pytest.fail(f"{path} does not exist: pytest --update-golden writes it", pytrace=False)
        kept = path.read_text(encoding="utf-8")
        if wanted != kept:
            pytest.fail(_difference(path, kept, wanted), pytrace=False)


MOST_LINES = 80
"""Of a difference that is shown."""


def _difference(path: Path, kept: str, wanted: str) -> str:
    """What a golden differs in, as `diff -u` shows it."""
    names = (str(path), "what the test has now")
    lines = list(difflib.unified_diff(kept.splitlines(), wanted.splitlines(), *names, lineterm=""))
    if len(lines) > MOST_LINES:
        lines[MOST_LINES:] = [f"… and {len(lines) - MOST_LINES} lines more"]
    return "\n".join([*lines, "If that was meant, run pytest --update-golden."])


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """See `Golden`; the files are in `golden/` beside the test's file."""
    update = bool(request.config.getoption("--update-golden"))
    return Golden(request.path.parent / "golden", update)


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Ctrl-C means KeyboardInterrupt; a shell starts what is in the background without that."""
    if threading.current_thread() is not threading.main_thread():
        pytest.skip("only the main thread is interrupted")
    former = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, former)
