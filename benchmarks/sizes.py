"""Kernels over sizes, and against what the processor can do: a roofline. On one thread.

    python benchmarks/sizes.py [--quick] [--json FILE]

The kernels of the examples from 2^10 to 2^22 floats, beside NumPy, PyTorch and Numba; then kernels
that do more and more arithmetic for each byte, beside two ceilings that the same run measures: how
fast NumPy adds one array in memory to another, and how fast its BLAS multiplies matrices. A kernel
moves the bytes of its arguments, each once to read it and once to write it. The clock counts how
long this thread runs on a processor, so other programs hardly change a time. `--quick` leaves
PyTorch and Numba out.
"""

from __future__ import annotations

import os
import time
import timeit
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

# Read when NumPy's BLAS is loaded, and at a function's first launch.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("FERRULE_NUM_THREADS", "1")

import kernel_works
import numpy as np
import subjects
from harness import (
    FULL,
    QUICK,
    US,
    Effort,
    Facts,
    Goal,
    Result,
    Row,
    Side,
    Table,
    arguments,
    finish,
    measure,
    repetitions,
)
from kernels import FERRULE, NUMBA, NUMPY, Others, find_others, run_row

import ferrule as fe

WIDTH: Final = 256
"""Elements of a row, of kernels over rows."""
DEGREES: Final = (1, 2, 4, 8, 16, 32)
CEILINGS: Final = ("memory: x += y by NumPy", "arithmetic: a matrix product by NumPy's BLAS")


@dataclass(frozen=True, slots=True)
class Scope:
    """How large the arrays are: floats of each size, of the roofline, and the side of matrices."""

    floats: tuple[int, ...]
    in_memory: int
    matrix: int


LARGE: Final = Scope(tuple(1 << bit for bit in range(10, 23, 2)), 1 << 24, 512)
SMALL: Final = Scope((1 << 10,), 1 << 10, 16)


def timed(effort: Effort, name: str, call: Callable[[], object]) -> Side:
    """Calls one after the other, by the time of this thread."""
    timer = timeit.Timer(call, timer=time.thread_time)
    number = repetitions(timer.timeit, effort.batch)
    return Side(name, lambda: timer.timeit(number) / number)


# ---- over sizes ----

KERNELS: Final[dict[str, Callable[[int], kernel_works.Work]]] = {
    "saxpy": kernel_works.saxpy,
    "softmax": lambda n: kernel_works.softmax(n // WIDTH, WIDTH),
    "layer norm": lambda n: kernel_works.layer_norm(n // WIDTH, WIDTH),
}


def over_sizes(scope: Scope, others: Others, effort: Effort) -> Iterator[Table]:
    """A table for each kernel, with a row for each number of floats."""
    for name, make in KERNELS.items():
        rows = [
            Row(
                f"{count} floats",
                run_row(make(count), others, effort, partial(timed, effort)).sides,
            )
            for count in scope.floats
        ]
        yield Table(f"{name} over sizes", US, tuple(rows), (FERRULE, NUMBA))


# ---- the roofline ----


@fe.kernel
def polynomial_kernel(x: fe.Tensor, y: fe.Tensor, degree: fe.Constexpr):
    i = fe.arch.block_idx()[0] * 128 + fe.arch.thread_idx()[0]
    if i < x.shape[0]:
        value, total = x[i], fe.Float32(1.0)
        for power in fe.range_constexpr(degree):
            total = total * value + 1.0 / (power + 2)
        y[i] = total


@fe.jit
def polynomial(x: fe.Tensor, y: fe.Tensor, degree: fe.Constexpr):
    polynomial_kernel(x, y, degree).launch(grid=fe.ceil_div(x.shape[0], 128), block=128)


@dataclass(frozen=True, slots=True)
class Point:
    """A kernel of the roofline: operations on floats, and bytes of its arguments."""

    name: str
    operations: int
    bytes: int
    call: Callable[[], Any]


def ceilings(scope: Scope) -> Iterator[Point]:
    """What hardly any kernel passes: bytes a second from memory, operations a second."""
    x, y = (np.ones(scope.in_memory, np.float32) for _ in range(2))
    yield Point(CEILINGS[0], 0, 12 * scope.in_memory, lambda: np.add(x, y, out=y))
    n = scope.matrix
    a, product = np.ones((n, n), np.float32), np.empty((n, n), np.float32)
    yield Point(CEILINGS[1], 2 * n**3, 0, lambda: np.matmul(a, a, out=product))


def points(scope: Scope) -> Iterator[Point]:
    """Kernels with more and more arithmetic for each byte."""
    count = scope.in_memory
    for name, operations, moved in (("saxpy", 2, 12), ("layer norm", 7, 8)):
        work = KERNELS[name](count)
        yield Point(name, operations * count, moved * count, _ours(work))
    x = np.random.default_rng(0).random(count, np.float32)
    y = np.empty_like(x)
    vector = subjects.vector()
    for degree in DEGREES:
        compiled = fe.compile(polynomial, vector, vector, degree, options=subjects.OPTIONS)
        name = f"polynomial of degree {degree}"
        yield Point(name, 2 * degree * count, 8 * count, lambda f=compiled: f(x, y))
    n = scope.matrix
    yield Point(f"naive matmul, {n}", 2 * n**3, 12 * n**2, _ours(kernel_works.matmul(n)))


def _ours(work: kernel_works.Work) -> Callable[[], Any]:
    compiled = work.compiled()
    given = tuple(float(a) if isinstance(a, np.floating) else a for a in work.args)
    return lambda: compiled(*given)


def roofline(scope: Scope, effort: Effort) -> tuple[Table, Facts]:
    """The times of ferrule's kernels and of the ceilings, and what each computes and moves."""
    every = [*ceilings(scope), *points(scope)]
    rows = tuple(measure(p.name, [timed(effort, FERRULE, p.call)], effort) for p in every)
    lines = tuple((p.name, str(p.operations), str(p.bytes)) for p in every)
    columns = ("kernel", "operations", "bytes")
    return Table("A roofline", US, rows), Facts("What each computes and moves", columns, lines)


# ---- running ----


def run(scope: Scope, others: Others, effort: Effort) -> Result:
    """Measure all of it."""
    sizes = tuple(over_sizes(scope, others, effort))
    return Result((*sizes, *roofline(scope, effort)), _goals(sizes), others.skipped)


def _goals(tables: Sequence[Table]) -> tuple[Goal, ...]:
    """As fast as NumPy at every size."""
    return tuple(
        Goal(f"{table.title}: {row.name}, over NumPy", 1.0, row.ratio(FERRULE, NUMPY), "times")
        for table in tables
        for row in table.rows
    )


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and show."""
    given = arguments("Kernels over sizes, and a roofline", argv)
    scope, effort = (SMALL, QUICK) if given.quick else (LARGE, FULL.fewer(5))
    finish("sizes", run(scope, find_others(given.quick), effort), given)


if __name__ == "__main__":
    main()
