"""Kernels on several cores: the same results, the same errors, and no thread where it hurts."""

from __future__ import annotations

import _thread
import os
import subprocess
import sys
import textwrap
import threading
import time
from ctypes.util import find_library
from pathlib import Path

import numpy as np
import pytest
from lowered import matrix, vector

import ferrule as fe

TEAMS = ["1", "2", "5"]
SETTING = "FERRULE_NUM_THREADS"

needs_runtime = pytest.mark.skipif(
    find_library("gomp") is None, reason="needs GNU's OpenMP runtime, libgomp"
)


@pytest.fixture(params=TEAMS)
def team(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """A number of threads, for functions that are compiled and called in the test."""
    monkeypatch.setenv(SETTING, request.param)
    return str(request.param)


@fe.kernel
def device_visit(seen: fe.Tensor, rounds: fe.Int32):
    x, y, z = fe.arch.block_idx()
    gx, gy, _ = fe.arch.grid_dim()
    value = seen[(z * gy + y) * gx + x]
    for _ in range(rounds):
        value = value * 3 + 1
    seen[(z * gy + y) * gx + x] = value


@fe.jit
def visit(seen: fe.Tensor, gx: fe.Int32, gy: fe.Int32, gz: fe.Int32, rounds: fe.Int32):
    device_visit(seen, rounds).launch(grid=(gx, gy, gz), block=(1,))


def test_every_block_runs_once(team: str) -> None:
    compiled = fe.compile(visit, vector(fe.Int64), *[fe.Int32] * 4)
    for grid in ((1, 1, 1), (500, 1, 1), (1, 300, 2), (7, 11, 13), (3, 1, 200), (0, 5, 5)):
        seen = np.zeros(np.prod(grid) + 1, np.int64)
        compiled(seen, *grid, 300)
        wanted = np.zeros(1, np.int64)
        for _ in range(300):
            wanted = wanted * 3 + 1
        assert (seen[:-1] == wanted[0]).all() and seen[-1] == 0


@fe.kernel
def device_plane(a: fe.Tensor, b: fe.Tensor):
    bx, by, _ = fe.arch.block_idx()
    tx, ty, _ = fe.arch.thread_idx()
    row, column = by * 4 + ty, bx * 8 + tx
    if row < a.shape[0]:
        if column < a.shape[1]:
            b[row, column] += fe.math.exp(a[row, column])


@fe.jit
def plane(a: fe.Tensor, b: fe.Tensor):
    rows, columns = a.shape
    device_plane(a, b).launch(grid=((columns + 7) // 8, (rows + 3) // 4), block=(8, 4))


def test_rows_of_fused_blocks_are_cut_anywhere(team: str) -> None:
    compiled = fe.compile(plane, matrix(), matrix())
    for shape in ((1, 1), (3, 7000), (7000, 3), (130, 250)):
        a = np.random.default_rng(0).standard_normal(shape, dtype=np.float32)
        b = np.zeros_like(a)
        compiled(a, b)
        np.testing.assert_allclose(b, np.exp(a), rtol=1e-6)


@fe.jit
def doubled(a: fe.Tensor, b: fe.Tensor, k: fe.Float32):
    b[:, :] = fe.math.exp(a[:, :]) * k


def test_a_whole_tensor_expression_is_shared(team: str) -> None:
    m, n, ld = fe.sym_int(), fe.sym_int(), fe.sym_int64()
    padded = fe.make_fake_tensor(fe.Float32, (m, n), (ld, 1))
    compiled = fe.compile(doubled, padded, padded, fe.Float32)
    for shape in ((1, 30_000), (30_000, 1), (5000, 7), (200, 300)):
        a = np.random.default_rng(0).standard_normal((shape[0], shape[1] + 2), dtype=np.float32)
        b = np.zeros_like(a)
        compiled(a[:, :-2], b[:, :-2], 2.0)
        np.testing.assert_allclose(b[:, :-2], np.exp(a[:, :-2]) * 2, rtol=1e-6)
        assert not b[:, -2:].any()


@fe.jit
def short_rows(a: fe.Tensor, b: fe.Tensor):
    b[:, :] = fe.math.exp(a[:, :])


def test_rows_of_a_constant_length_stay_whole(team: str) -> None:
    fake = fe.make_fake_tensor(fe.Float32, (fe.sym_int(), 8), (fe.sym_int64(), 1))
    compiled = fe.compile(short_rows, fake, fake)
    a = np.random.default_rng(0).standard_normal((4001, 9), dtype=np.float32)
    b = np.zeros_like(a)
    compiled(a[:, :8], b[:, :8])
    np.testing.assert_allclose(b[:, :8], np.exp(a[:, :8]), rtol=1e-6)
    assert not b[:, 8].any()


@fe.kernel
def device_positive(a: fe.Tensor, b: fe.Tensor):
    i = fe.arch.block_idx()[0]
    assert a[i] > 0, "not positive"
    x = a[i]
    for _ in range(200):
        x = fe.math.sin(x) + 1.0
    b[i] = x


@fe.jit
def positive(a: fe.Tensor, b: fe.Tensor):
    device_positive(a, b).launch(grid=(a.shape[0],), block=(1,))


def test_the_error_is_that_of_the_first_block_that_fails(team: str) -> None:
    compiled = fe.compile(positive, vector(), vector())
    a, b = np.ones(1000, np.float32), np.zeros(1000, np.float32)
    for first in (999, 417, 60, 0):
        a[first:] = -1
        with pytest.raises(AssertionError, match=rf"not positive in block \({first}, 0, 0\)"):
            compiled(a, b)
        assert b[:first].all()
    compiled(np.ones(1000, np.float32), b)
    assert b.all()


@pytest.mark.parametrize("text", ["0", "-2", "two", "", "4097", "2 "])
def test_a_wrong_number_of_threads_is_an_error_at_each_call(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled = fe.compile(visit, vector(fe.Int64), *[fe.Int32] * 4)
    seen = np.zeros(2000, np.int64)
    monkeypatch.setenv(SETTING, text)
    wanted = (
        f"FERRULE_NUM_THREADS must be a whole number from 1 to 4096, or unset, but it is '{text}'"
    )
    for _ in range(2):
        with pytest.raises(ValueError) as caught:
            compiled(seen, 2000, 1, 1, 1000)
        assert str(caught.value) == wanted
    monkeypatch.setenv(SETTING, "2")
    compiled(seen, 2000, 1, 1, 1)


def test_a_signal_ends_a_long_launch(team: str, interruptible: None) -> None:
    compiled = fe.compile(visit, vector(fe.Int64), *[fe.Int32] * 4)
    seen = np.zeros(1 << 20, np.int64)
    timer = threading.Timer(0.05, _thread.interrupt_main)
    with pytest.raises(KeyboardInterrupt):
        timer.start()
        compiled(seen, 1 << 20, 1, 1, 1 << 20)
    timer.join()
    assert not seen[-1]
    compiled(seen, 1 << 20, 1, 1, 0)


def run(body: str, **environment: str) -> str:
    """What a program prints that has the functions of this module; it ends within a minute.

    It has no torch, which would bring an OpenMP runtime.
    """
    program = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
    program += "sys.modules['torch'] = None\n"
    program += "from test_threads import *\n" + textwrap.dedent(body)
    environ = {name: text for name, text in os.environ.items() if name != SETTING}
    environ |= environment | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environ)
    assert done.returncode == 0, done.stderr
    return done.stdout


def tasks() -> int:
    """How many threads this process has."""
    return len(os.listdir("/proc/self/task"))


def visited(blocks: int, rounds: int = 300) -> fe.Function:
    """A new function, called once."""
    compiled = fe.compile(visit, vector(fe.Int64), *[fe.Int32] * 4)
    compiled(np.zeros(blocks, np.int64), blocks, 1, 1, rounds)
    return compiled


@needs_runtime
def test_threads_start_for_a_long_launch_and_not_for_a_short_one() -> None:
    body = """
    before = tasks()
    visited(4)
    print(tasks() - before)
    visited(20_000)
    print(tasks() - before)
    """
    assert run(body, FERRULE_NUM_THREADS="3").split() == ["0", "2"]
    assert run(body, OMP_NUM_THREADS="4").split() == ["0", "3"]


@needs_runtime
def test_a_forked_child_runs_alone() -> None:
    """GNU's runtime would wait in the child for threads that only the parent has."""
    body = """
    old = visited(20_000)
    print(tasks() > 1, flush=True)
    child = os.fork()
    if not child:
        old(np.zeros(20_000, np.int64), 20_000, 1, 1, 300)
        visited(20_000)
        print(tasks(), flush=True)
        os._exit(0)
    print(os.waitpid(child, 0)[1])
    """
    assert run(body, OMP_NUM_THREADS="4").split() == ["True", "1", "0"]


@needs_runtime
def test_a_runtime_that_is_loaded_under_another_name_is_used(tmp_path: Path) -> None:
    """As in wheels, where it has a name of its own and is no library of the whole process."""
    path = run("""
    import ctypes
    runtime = ctypes.CDLL("libgomp.so.1")
    print(next(l.split()[-1] for l in open("/proc/self/maps") if "libgomp" in l))
    """).strip()
    renamed = str(tmp_path / "libgomp-0a1b2c3d.so.1.0.0")
    body = f"""
    import ctypes, shutil
    shutil.copy({path!r}, {renamed!r})
    ctypes.CDLL({renamed!r})
    before = tasks()
    visited(20_000)
    print(tasks() - before, *{{l.split()[-1] for l in open("/proc/self/maps") if "libgomp" in l}})
    """
    assert run(body, OMP_NUM_THREADS="3").split() == ["2", renamed]


@needs_runtime
def test_the_runtime_of_an_installed_package_is_used(tmp_path: Path) -> None:
    """The extra `openmp` installs libiomp5.so where the loader does not look."""
    (tmp_path / "lib").mkdir()
    packaged = str(tmp_path / "lib" / "libiomp5.so")
    run(f"""
    import ctypes, shutil
    runtime = ctypes.CDLL("libgomp.so.1")
    path = next(l.split()[-1] for l in open("/proc/self/maps") if "libgomp" in l)
    shutil.copy(path, {packaged!r})
    """)
    body = f"""
    sys.prefix = {str(tmp_path)!r}
    before = tasks()
    visited(20_000)
    loaded = {{l.split()[-1] for l in open("/proc/self/maps")}}
    print(tasks() - before, *(path for path in loaded if path.split("/")[-1].count("omp")))
    """
    assert run(body, OMP_NUM_THREADS="3").split() == ["2", packaged]


@needs_runtime
def test_a_launch_inside_the_work_of_a_team_runs_alone() -> None:
    body = """
    import ctypes
    runtime = ctypes.CDLL("libgomp.so.1", ctypes.RTLD_GLOBAL)
    runtime.omp_set_max_active_levels(4)
    compiled = visited(20_000)
    before, ran = tasks(), []
    @ctypes.CFUNCTYPE(None, ctypes.c_void_p)
    def work(_):
        seen = np.zeros(20_000, np.int64)
        compiled(seen, 20_000, 1, 1, 300)
        ran.append(bool(seen.all()))
    runtime.GOMP_parallel(work, None, 2, 0)
    print(ran, tasks() - before)
    """
    assert run(body, OMP_NUM_THREADS="2").split() == ["[True,", "True]", "0"]


def test_many_launches_leave_nothing_behind() -> None:
    compiled = visited(2000)
    seen = np.zeros(2000, np.int64)

    def often() -> tuple[int, int]:
        for _ in range(500):
            compiled(seen, 2000, 1, 1, 100)
        pages = Path("/proc/self/statm").read_text().split()[1]
        return tasks(), int(pages)

    before = often()
    after = often()
    assert after[0] == before[0] and after[1] - before[1] < 256


def test_python_runs_meanwhile(team: str) -> None:
    compiled = fe.compile(visit, vector(fe.Int64), *[fe.Int32] * 4)
    seen, done, counted = np.zeros(1000, np.int64), threading.Event(), 0

    def launch() -> None:
        end = time.monotonic() + 0.2
        while time.monotonic() < end:
            compiled(seen, 1000, 1, 1, 20_000)
        done.set()

    thread = threading.Thread(target=launch)
    thread.start()
    while not done.wait(0.001):
        counted += 1
    thread.join()
    assert counted > 5
