"""What it takes from nothing to the first right result.

    python benchmarks/cold_start.py [--quick] [--json FILE]

Every sample is a process of its own, from its start to its end, with the files of its modules'
bytecode in place, and without PyTorch, which `tvm_ffi` would import. The kernel is x + 1 over a
float32 array; Numba's is an `@njit` function, which it too compiles for its arguments. What is
compiled is not cached on disk; "cached" are programs whose function an earlier process compiled,
Numba's with `cache=True`. Sides take turns. "imports alone" is a process that imports numpy and
tvm_ffi. At the end, the memory that a function takes while it lives.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from harness import (
    FULL,
    MS,
    QUICK,
    Goal,
    Result,
    Row,
    Side,
    Skipped,
    Table,
    arguments,
    finish,
    measure,
)

IMPORTS: Final = "imports alone"
FERRULE: Final = "ferrule"
NUMBA: Final = "Numba"
CACHED: Final = "ferrule, cached"
NUMBA_CACHED: Final = "Numba, cached"
GENERIC: Final = "tvm_ffi.load_module"
LIBRARY: Final = "ferrule, add_one.so"
OBJECT: Final = "ferrule, add_one.o"

BASE: Final = """\
import sys
sys.modules["torch"] = None
import numpy as np
import tvm_ffi
x, y = np.arange(16, dtype=np.float32), np.zeros(16, np.float32)
"""
CHECK: Final = "assert (y == x + 1).all()\n"
KERNEL: Final = """\
import ferrule as fe
@fe.kernel
def add(a: fe.Tensor, b: fe.Tensor):
    i, _, _ = fe.arch.thread_idx()
    b[i] = a[i] + 1
@fe.jit
def add_one(a: fe.Tensor, b: fe.Tensor):
    add(a, b).launch(grid=1, block=a.shape[0])
compiled = fe.compile(add_one, x, y)
"""
NJIT: Final = """\
import sys
sys.modules["torch"] = None
import numpy as np
import numba
x, y = np.arange(16, dtype=np.float32), np.zeros(16, np.float32)
@numba.njit{options}
def add_one(a, b):
    for i in range(a.shape[0]):
        b[i] = a[i] + 1
add_one(x, y)
"""
EXPORT: Final = """\
compiled.export_library("add_one.so")
compiled.export_to_c("add_one.o")
"""
LOAD: Final = "import ferrule as fe\nfe.runtime.load_module({file!r}).add_one(x, y)\n"
PROGRAMS: Final[Mapping[str, str]] = {
    IMPORTS: BASE,
    FERRULE: BASE + KERNEL + "compiled(x, y)\n" + CHECK,
    NUMBA: NJIT.format(options="") + CHECK,
    CACHED: BASE + KERNEL + "compiled(x, y)\n" + CHECK,
    NUMBA_CACHED: NJIT.format(options="(cache=True)") + CHECK,
    GENERIC: BASE + 'tvm_ffi.load_module("./add_one.so").add_one(x, y)\n' + CHECK,
    LIBRARY: BASE + LOAD.format(file="add_one.so") + CHECK,
    OBJECT: BASE + LOAD.format(file="add_one.o") + CHECK,
}


LIVING: Final = """\
import gc, re, sys
sys.modules["torch"] = None
import numpy as np
import ferrule as fe
@fe.kernel
def add(a: fe.Tensor, b: fe.Tensor, k: fe.Constexpr):
    i, _, _ = fe.arch.thread_idx()
    b[i] = a[i] + k
@fe.jit
def add_k(a: fe.Tensor, b: fe.Tensor, k: fe.Constexpr):
    add(a, b, k).launch(grid=1, block=a.shape[0])
x, y, kept = np.zeros(16, np.float32), np.zeros(16, np.float32), []
def make(count):
    for _ in range(count):
        kept.append(fe.compile(add_k, x, y, len(kept) + 0.5))
        kept[-1].prepare()
        kept[-1](x, y)
    gc.collect()
    rolled = open("/proc/self/smaps_rollup").read()
    return sum(map(int, re.findall(r"^(?:Anonymous|Pss_Shmem): *(\\d+)", rolled, re.M)))
before = make(20)
print((make({count}) - before) / {count})
"""
"""Prints the KiB that each of many functions takes: what of it is this process's own memory."""


def kib_of_a_function(folder: Path, quick: bool) -> float:
    """The memory of a function that lives, was prepared and called."""
    (folder / "living.py").write_text(LIVING.format(count=50 if quick else 200), encoding="utf-8")
    return float(run(folder, "living.py"))


def seconds(folder: Path, name: str) -> float:
    """How long the program of a side takes."""
    start = time.perf_counter()
    run(folder, f"{list(PROGRAMS).index(name)}.py")
    return time.perf_counter() - start


def run(folder: Path, program: str) -> str:
    """Run a program of the folder, which may write there and nowhere else; returns its output."""
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(folder / "bytecode")}
    environment["FERRULE_CACHE"] = str(int(program == f"{list(PROGRAMS).index(CACHED)}.py"))
    environment["FERRULE_CACHE_DIR"] = str(folder / "cache")
    environment["NUMBA_CACHE_DIR"] = str(folder / "numba")
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, program]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"a process failed:\n{done.stderr}")
    return done.stdout


def prepared(folder: Path) -> None:
    """Write the programs, and what those that load a file load."""
    for number, text in enumerate(PROGRAMS.values()):
        (folder / f"{number}.py").write_text(text, encoding="utf-8")
    (folder / "export.py").write_text(BASE + KERNEL + EXPORT, encoding="utf-8")
    run(folder, "export.py")


def row(folder: Path, title: str, names: Sequence[str], quick: bool) -> Row:
    """The sides of these names, which take turns; the first round writes their bytecode."""
    sides = [Side(name, partial(seconds, folder, name)) for name in names]
    return measure(title, sides, QUICK if quick else FULL.fewer(4))


def goals(first: Row, cached: Row, load: Row, kib: float) -> list[Goal]:
    """What the figures are held against."""

    def over_imports(title: str, row: Row, name: str, wanted: float) -> Goal:
        more = row.difference(name, IMPORTS)
        return Goal(title, wanted, None if more is None else more * MS.scale, "ms")

    return [
        Goal("the first result, over Numba's", 0.8, first.ratio(FERRULE, NUMBA), "times"),
        Goal("the same, cached", 0.58, cached.ratio(CACHED, NUMBA_CACHED), "times"),
        over_imports("cached: first result, over the imports", cached, CACHED, 40),
        over_imports(f"{LIBRARY}: load and call, over the imports", load, LIBRARY, 25),
        over_imports(f"{OBJECT}: load and call, over the imports", load, OBJECT, 25),
        Goal("memory of a function", 40, kib, "KiB"),
    ]


def measured(quick: bool, folder: Path) -> Result:
    """All rows."""
    prepared(folder)
    missing = importlib.util.find_spec("numba") is None

    def sides(*names: str) -> tuple[str, ...]:
        return tuple(name for name in names if not (missing and name in (NUMBA, NUMBA_CACHED)))

    first = row(folder, "compile", sides(IMPORTS, FERRULE, NUMBA), quick)
    cached = row(folder, "find", sides(IMPORTS, CACHED, NUMBA_CACHED), quick)
    load = row(folder, "load", (IMPORTS, GENERIC, LIBRARY, OBJECT), quick)
    tables = (
        Table("From nothing to the first result, compiled", MS, (first,), (FERRULE, NUMBA)),
        Table("From nothing to the first result, cached", MS, (cached,), (CACHED, NUMBA_CACHED)),
        Table("From nothing to the first result, of a file", MS, (load,), (LIBRARY, GENERIC)),
    )
    skipped = [Skipped(NUMBA, "numba is not installed")] if missing else []
    kib = kib_of_a_function(folder, quick)
    return Result(tables, tuple(goals(first, cached, load, kib)), tuple(skipped))


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and show."""
    given = arguments("What the first result of a process costs", argv)
    with tempfile.TemporaryDirectory() as folder:
        finish("cold_start", measured(given.quick, Path(folder)), given)


if __name__ == "__main__":
    main()
