"""The kernels of the examples, on one thread: ferrule beside NumPy, PyTorch and Numba.

    python benchmarks/kernels.py [--quick] [--json FILE]

All sides of a row read the same arrays, and their results are compared before anything is timed.
Numba compiles plain loops (see numba_kernels.py) without `fastmath` and `parallel`; NumPy and
PyTorch write into memory that exists where their functions can.  Compiling is timed in this
process, when both compilers have compiled before.  `--quick` leaves PyTorch and Numba out.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

# Read when NumPy's BLAS is loaded.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# Read at a function's first launch.
os.environ.setdefault("FERRULE_NUM_THREADS", "1")

import kernel_works
import numba_kernels
import numpy as np
from harness import (
    FULL,
    MS,
    QUICK,
    Effort,
    Goal,
    Result,
    Row,
    Side,
    Skipped,
    Table,
    arguments,
    block_side,
    finish,
    measure,
)
from kernel_works import LARGE, SMALL, Sizes, Work

FERRULE: Final = "ferrule"
NUMPY: Final = "NumPy"
TORCH: Final = "PyTorch"
NUMBA: Final = "Numba"


@dataclass(frozen=True, slots=True)
class Others:
    """The libraries that are there: PyTorch's module, and whether Numba is; why others are not."""

    torch: Any
    numba: bool
    skipped: tuple[Skipped, ...]


def find_others(quick: bool) -> Others:
    """What can be compared with; PyTorch is set to one thread."""
    missing = "not with --quick" if quick else "not installed"
    there = {name: not quick and importlib.util.find_spec(name) for name in ("torch", "numba")}
    torch = importlib.import_module("torch") if there["torch"] else None
    if torch is not None:
        torch.set_num_threads(1)
    names = {"torch": TORCH, "numba": NUMBA}
    skipped = (Skipped(names[name], missing) for name, found in there.items() if not found)
    return Others(torch, bool(there["numba"]), tuple(skipped))


# ---- running ----


def run_row(
    work: Work,
    others: Others,
    effort: Effort,
    side: Callable[[str, Callable[[], object]], Side] = block_side,
) -> Row:
    """Compares the results, then the times."""
    calls = _calls(work, others)
    _compare(work, calls)
    return measure(work.name, [side(name, call) for name, call in calls.items()], effort)


def _calls(work: Work, others: Others) -> dict[str, Callable[[], Any]]:
    """For each side what it does; it gives the result."""
    ours = work.compiled()
    # As a caller writes them: a NumPy scalar would take the slow path of a call.
    given = tuple(float(a) if isinstance(a, np.floating) else a for a in work.args)

    def ferrule() -> Any:
        ours(*given)
        return work.out

    calls = {FERRULE: ferrule, NUMPY: work.numpy}
    if others.torch is not None:
        calls[TORCH] = work.torch(others.torch)
    if others.numba:
        theirs = numba_kernels.jit(work.loops)

        def numba() -> Any:
            theirs(*work.args)
            return work.out

        calls[NUMBA] = numba
    return calls


def _compare(work: Work, calls: dict[str, Callable[[], Any]]) -> None:
    """All sides give what NumPy gives, from the same contents of `out`."""
    before = work.out.copy()
    wanted = np.array(calls[NUMPY]())
    for name, call in calls.items():
        work.out[...] = before
        np.testing.assert_allclose(
            np.asarray(call()), wanted, rtol=1e-3, atol=1e-4, err_msg=f"{work.name}: {name}"
        )


# ---- compiling ----


def compile_row(work: Work, others: Others, effort: Effort) -> Row:
    """A new compilation each time."""
    sides = [block_side(FERRULE, work.compiled)]
    if others.numba:
        sides.append(_numba_compilation(work))
    return measure(work.name, sides, effort)


def _numba_compilation(work: Work) -> Side:
    import numba

    types = tuple(numba.typeof(argument) for argument in work.args)
    return block_side(NUMBA, lambda: numba_kernels.jit(work.loops).compile(types))


# ---- goals ----


def running_goals(work: Work, row: Row) -> list[Goal]:
    """At most 1.1 times the best of the others where memory is the limit; faster than Numba."""
    goals = [Goal(f"{work.name}, over Numba", 1.0, row.ratio(FERRULE, NUMBA), "times")]
    if work.limited == "memory":
        others = [side for side in row.sides if side.name != FERRULE]
        best = min(others, key=lambda side: side.median).name
        what = f"{work.name}, over the best ({best})"
        goals.append(Goal(what, 1.1, row.ratio(FERRULE, best), "times"))
    return goals


def run(sizes: Sizes, others: Others, effort: Effort) -> Result:
    """Measure all of it."""
    running, compiling, goals = [], [], []
    for work in kernel_works.works(sizes):
        row = run_row(work, others, effort)
        built = compile_row(work, others, effort.fewer(6))
        running.append(row)
        compiling.append(built)
        goals += running_goals(work, row)
        ratio = built.ratio(FERRULE, NUMBA)
        goals.append(Goal(f"compiling {work.name}, over Numba", 0.2, ratio, "times"))
    tables = (
        Table("Kernels on one thread", MS, tuple(running), (FERRULE, NUMBA)),
        Table("Compiling them", MS, tuple(compiling), (FERRULE, NUMBA)),
    )
    return Result(tables, tuple(goals), others.skipped)


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and show."""
    given = arguments("The kernels of the examples beside NumPy, PyTorch and Numba", argv)
    sizes, effort = (SMALL, QUICK) if given.quick else (LARGE, FULL)
    finish("kernels", run(sizes, find_others(given.quick), effort), given)


if __name__ == "__main__":
    main()
