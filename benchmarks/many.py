"""Many compilations at once: variants of a kernel by `fe.compile_all`, in one process and in more.

Each sample is a whole process, so its imports are in it; nothing is cached.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final

from harness import FULL, MS, QUICK, Goal, Result, Row, Side, Table, arguments, finish, measure

PROCESSES: Final = 2
VARIANTS: Final = 200

KERNELS: Final = """\
import ferrule as fe

@fe.kernel
def accumulate(a: fe.Tensor, b: fe.Tensor, steps: fe.Constexpr[int]):
    i, _, _ = fe.arch.thread_idx()
    total = fe.Float32(0.0)
    for k in range(steps):
        total = total + a[i] * b[i] + k
    b[i] = total

@fe.jit
def variant(a: fe.Tensor, b: fe.Tensor, steps: fe.Constexpr[int]):
    accumulate(a, b, steps).launch(grid=1, block=a.shape[0])
"""
COMPILE_ALL: Final = """\
import sys
sys.modules["torch"] = None
import ferrule as fe
import kernels
if __name__ == "__main__":
    x = fe.make_fake_compact_tensor(fe.Float32, (fe.sym_int(symbol="n"),))
    jobs = [fe.Job(kernels.variant, (x, x, k), options="--target cpu") for k in range({variants})]
    assert len(set(map(id, fe.compile_all(jobs, count={count}, progress=False)))) == {variants}
"""


def seconds(folder: Path, program: str) -> float:
    """How long a program takes that finds nothing in a cache."""
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "FERRULE_CACHE_DIR": cache}
        start = time.perf_counter()
        subprocess.run([sys.executable, program], cwd=folder, env=environment, check=True)
        return time.perf_counter() - start


def measured(quick: bool, folder: Path) -> Result:
    """The row, and its goal."""
    variants = 4 if quick else VARIANTS
    (folder / "kernels.py").write_text(KERNELS, encoding="utf-8")
    sides = []
    for count in (1, PROCESSES):
        program = COMPILE_ALL.format(variants=variants, count=count)
        (folder / f"{count}.py").write_text(program, encoding="utf-8")
        sides.append(Side(_processes(count), partial(seconds, folder, f"{count}.py")))
    row: Row = measure(f"{variants} variants", sides, QUICK if quick else FULL.fewer(6))
    names = _processes(PROCESSES), _processes(1)
    ratio = row.ratio(*names)
    goal = Goal(
        f"{variants} variants in {PROCESSES} processes, over one",
        1 / 1.8,
        None if quick or ratio is None else ratio,
        "times",
    )
    return Result((Table("fe.compile_all", MS, (row,), names),), (goal,))


def _processes(count: int) -> str:
    return f"{count} process{'es' * (count > 1)}"


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and show."""
    given = arguments("What many compilations cost, in one process and in more", argv)
    with tempfile.TemporaryDirectory() as folder:
        finish("many", measured(given.quick, Path(folder)), given)


if __name__ == "__main__":
    main()
