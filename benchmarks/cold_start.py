"""What it takes from nothing to the first right result.

    python benchmarks/cold_start.py [--quick] [--json FILE]

Every sample is a process of its own, from its start to its end, with the files of its modules'
bytecode in place, nothing else cached on disk, and without PyTorch, which `tvm_ffi` would import.
The kernel is x + 1 over a float32 array; Numba's is an `@njit` function, which it too compiles for
its arguments. Sides take turns. "imports alone" is a process that imports numpy and tvm_ffi.
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
@numba.njit
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
    NUMBA: NJIT + CHECK,
    GENERIC: BASE + 'tvm_ffi.load_module("./add_one.so").add_one(x, y)\n' + CHECK,
    LIBRARY: BASE + LOAD.format(file="add_one.so") + CHECK,
    OBJECT: BASE + LOAD.format(file="add_one.o") + CHECK,
}


def seconds(folder: Path, name: str) -> float:
    """How long the program of a side takes."""
    start = time.perf_counter()
    run(folder, f"{list(PROGRAMS).index(name)}.py")
    return time.perf_counter() - start


def run(folder: Path, program: str) -> None:
    """Run a program of the folder, which may write bytecode there and nowhere else."""
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(folder / "bytecode")}
    environment["FERRULE_CACHE"] = "0"
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, program]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"a process failed:\n{done.stderr}")


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


def goals(first: Row, load: Row) -> list[Goal]:
    """What the figures are held against."""
    wanted = [Goal("the first result, over Numba's", 0.8, first.ratio(FERRULE, NUMBA), "times")]
    for name in (LIBRARY, OBJECT):
        more = load.difference(name, IMPORTS)
        measured = None if more is None else more * MS.scale
        wanted.append(Goal(f"{name}: load and call, over the imports", 25, measured, "ms"))
    return wanted


def measured(quick: bool, folder: Path) -> Result:
    """All rows."""
    prepared(folder)
    missing = importlib.util.find_spec("numba") is None
    first = row(folder, "compile", (IMPORTS, FERRULE, *(() if missing else (NUMBA,))), quick)
    load = row(folder, "load", (IMPORTS, GENERIC, LIBRARY, OBJECT), quick)
    tables = (
        Table("From nothing to the first result, compiled", MS, (first,), (FERRULE, NUMBA)),
        Table("From nothing to the first result, of a file", MS, (load,), (LIBRARY, GENERIC)),
    )
    skipped = [Skipped(NUMBA, "numba is not installed")] if missing else []
    return Result(tables, tuple(goals(first, load)), tuple(skipped))


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and show."""
    given = arguments("What the first result of a process costs", argv)
    with tempfile.TemporaryDirectory() as folder:
        finish("cold_start", measured(given.quick, Path(folder)), given)


if __name__ == "__main__":
    main()
