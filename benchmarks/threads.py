"""Kernels on all cores: how they scale, and beside NumPy, PyTorch and Numba on as many threads.

    python benchmarks/threads.py [--quick] [--json FILE]

A function of ferrule reads its number of threads at its first long launch, so each side has a
function of its own.  Numba compiles the loops of numba_kernels.py with `parallel=True` and the
outermost loop a `prange`.  Idle threads sleep (`OMP_WAIT_POLICY=passive`), so that those of one
side do not spin while another is timed.  `--quick` leaves PyTorch and Numba out, and one thread
beside all of them.
"""

from __future__ import annotations

import importlib.util
import inspect
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

# Read when an OpenMP runtime is loaded, and NumPy's BLAS.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import kernel_works
import numba_kernels
import numpy as np
import subjects
from harness import (
    FULL,
    MS,
    QUICK,
    Effort,
    Facts,
    Goal,
    Result,
    Row,
    Skipped,
    Table,
    arguments,
    block_side,
    finish,
    measure,
)
from kernel_works import LARGE, SMALL, Sizes, Work

import ferrule as fe

SETTING: Final = "FERRULE_NUM_THREADS"
CORES: Final = len(os.sched_getaffinity(0))
COUNTS: Final = tuple(count for count in (1, 2, 4, 8) if count <= CORES)
ALL: Final = f"ferrule, {CORES} threads"
NUMPY: Final = "NumPy"
TORCH: Final = "PyTorch"
NUMBA: Final = "Numba, parallel"


@fe.kernel
def device_orbit(x: fe.Tensor, y: fe.Tensor):
    i = fe.arch.block_idx()[0] * 64 + fe.arch.thread_idx()[0]
    if i < x.shape[0]:
        value = x[i]
        for _ in range(500):
            value = value * value * 0.5 - x[i]
        y[i] = value


@fe.jit
def orbit(x: fe.Tensor, y: fe.Tensor):
    device_orbit(x, y).launch(grid=(x.shape[0] + 63) // 64, block=64)


def with_threads(count: int, compiled: fe.Function, call: Callable[[fe.Function], Any]) -> None:
    """Makes the function's first call, with that number of threads."""
    before = os.environ.get(SETTING)
    os.environ[SETTING] = str(count)
    call(compiled)
    if before is None:
        del os.environ[SETTING]
    else:
        os.environ[SETTING] = before


def name_of(count: int) -> str:
    """What a side of ferrule is called."""
    return "ferrule, 1 thread" if count == 1 else f"ferrule, {count} threads"


# ---- scaling ----


def scaling(size: int, effort: Effort) -> Row:
    """A kernel that is bound by arithmetic, on one to all cores."""
    x, vector = np.random.default_rng(0).random(size, dtype=np.float32), subjects.vector()
    sides, wanted = [], np.empty(0)
    for count in COUNTS:
        compiled, y = fe.compile(orbit, vector, vector), np.zeros_like(x)

        def call(f: fe.Function = compiled, y: Any = y) -> None:
            f(x, y)

        with_threads(count, compiled, call)
        wanted = wanted if wanted.size else y.copy()
        np.testing.assert_array_equal(y, wanted)
        sides.append(block_side(name_of(count), call))
    return measure(f"500 steps of an orbit, {size} floats", sides, effort)


# ---- beside the others ----


def parallel(loops: Callable[..., None]) -> Any:
    """Numba's function of these loops, the outermost on all cores."""
    import numba

    source = inspect.getsource(loops).replace(" in range(", " in numba.prange(", 1)
    scope: dict[str, Any] = {**vars(numba_kernels), "numba": numba}
    exec(source, scope)
    return numba.njit(parallel=True)(scope[loops.__name__])


def compared(work: Work, torch: Any, numba: bool, effort: Effort) -> Row:
    """One kernel of the examples on all sides; the results are compared first."""
    given = tuple(float(a) if isinstance(a, np.floating) else a for a in work.args)
    calls: dict[str, Callable[[], Any]] = {}
    before = work.out.copy()
    for count in (CORES,) if effort == QUICK else sorted({1, CORES}):
        compiled = work.compiled()
        with_threads(count, compiled, lambda f: f(*given))
        calls[name_of(count)] = lambda f=compiled: (f(*given), work.out)[1]
    calls[NUMPY] = work.numpy
    if torch is not None:
        calls[TORCH] = work.torch(torch)
    if numba:
        theirs = parallel(work.loops)
        calls[NUMBA] = lambda: (theirs(*work.args), work.out)[1]
    work.out[...] = before
    wanted = np.array(calls[NUMPY]())
    for name, call in calls.items():
        work.out[...] = before
        np.testing.assert_allclose(
            np.asarray(call()), wanted, rtol=1e-3, atol=1e-4, err_msg=f"{work.name}: {name}"
        )
    return measure(work.name, [block_side(*side) for side in calls.items()], effort)


def works(sizes: Sizes) -> Iterator[Work]:
    """Kernels without barriers."""
    yield kernel_works.saxpy(sizes.vector)
    yield kernel_works.swiglu(*sizes.rows)
    yield kernel_works.softmax(*sizes.rows)
    yield kernel_works.matmul(sizes.matrix * 2)


def best_goal(work: Work, row: Row) -> Goal:
    """At most 1.1 times the best; of a naive product, of Numba's, which is as naive."""
    naive = "naive" in work.name
    ours = (name_of(1), name_of(CORES))
    others = [s for s in row.sides if s.name not in ours and (s.name == NUMBA or not naive)]
    if not others:
        return Goal(f"{work.name}, over Numba", 1.1, None, "times")
    best = min(others, key=lambda side: side.median).name
    return Goal(f"{work.name}, over {best}", 1.1, row.ratio(name_of(CORES), best), "times")


# ---- what is left ----


def leftovers(launches: int) -> Facts:
    """Threads and memory of the process before and after many launches."""
    compiled, vector = subjects.quickstart().add_one, subjects.vector()
    function = fe.compile(compiled, vector, vector)
    x = np.zeros(1 << 18, np.float32)

    def now() -> tuple[int, int]:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        return len(os.listdir("/proc/self/task")), pages * os.sysconf("SC_PAGESIZE") // 1024

    for _ in range(10):
        function(x, x)
    before = now()
    for _ in range(launches):
        function(x, x)
    after = now()
    lines = (
        ("threads", str(before[0]), str(after[0])),
        ("memory, KiB", str(before[1]), str(after[1])),
    )
    return Facts(f"What {launches} launches leave", ("", "before", "after"), lines)


def run(sizes: Sizes, quick: bool, effort: Effort) -> Result:
    """Measure all of it."""
    there = {name: not quick and importlib.util.find_spec(name) for name in ("torch", "numba")}
    torch = importlib.import_module("torch") if there["torch"] else None
    scaled = scaling(1 << 10 if quick else 1 << 20, effort)
    rows, goals = [], []
    if 2 in COUNTS:
        ratio = scaled.ratio(name_of(2), name_of(1))
        goals.append(Goal("two threads over one, bound by arithmetic", 0.556, ratio, "times"))
    for work in works(sizes):
        row = compared(work, torch, bool(there["numba"]), effort)
        rows.append(row)
        goals.append(best_goal(work, row))
    tables = (
        Table("From one core to all", MS, (scaled,), (name_of(COUNTS[-1]), name_of(1))),
        Table(
            "Kernels of the examples on all cores", MS, tuple(rows), (name_of(CORES), name_of(1))
        ),
        leftovers(10 if quick else 10_000),
    )
    reason = "not with --quick" if quick else "not installed"
    names = {"torch": TORCH, "numba": NUMBA}
    skipped = tuple(Skipped(names[name], reason) for name, found in there.items() if not found)
    return Result(tables, tuple(goals), skipped)


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and show."""
    given = arguments("Kernels on all cores beside NumPy, PyTorch and Numba", argv)
    sizes, effort = (SMALL, QUICK) if given.quick else (LARGE, FULL)
    finish("threads", run(sizes, given.quick, effort), given)


if __name__ == "__main__":
    main()
