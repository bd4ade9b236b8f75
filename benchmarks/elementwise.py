"""What compiled kernels cost on the CPU, beside NumPy on the same arrays and one thread.

    python benchmarks/elementwise.py [--quick] [--json FILE]

NumPy writes into the same output with `out=`, so neither side allocates. A kernel that NumPy
needs several expressions for is compared with those, and the table says so. Each result is
compared with NumPy's before anything is timed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import subjects
from harness import (
    FULL,
    MS,
    QUICK,
    Effort,
    Goal,
    Result,
    Row,
    Table,
    arguments,
    block_side,
    finish,
    measure,
)

import ferrule as fe

# Read at a function's first launch.
os.environ.setdefault("FERRULE_NUM_THREADS", "1")

FERRULE: Final = "ferrule"
NUMPY: Final = "NumPy"
THREADS: Final = 128
ALPHA: Final = 1.5
EPS: Final = 1e-6


@fe.kernel
def device_add(a: fe.Tensor, b: fe.Tensor, c: fe.Tensor):
    bid, _, _ = fe.arch.block_idx()
    tid, _, _ = fe.arch.thread_idx()
    i = bid * THREADS + tid
    if i < a.shape[0]:
        c[i] = a[i] + b[i]


@fe.jit
def add(a: fe.Tensor, b: fe.Tensor, c: fe.Tensor):
    device_add(a, b, c).launch(grid=((a.shape[0] + THREADS - 1) // THREADS,), block=(THREADS,))


@fe.kernel
def device_scale_add(a: fe.Tensor, b: fe.Tensor, c: fe.Tensor, alpha: fe.Float32):
    bid, _, _ = fe.arch.block_idx()
    tid, _, _ = fe.arch.thread_idx()
    i = bid * THREADS + tid
    if i < a.shape[0]:
        c[i] = a[i] * alpha + b[i]


@fe.jit
def scale_add(a: fe.Tensor, b: fe.Tensor, c: fe.Tensor, alpha: fe.Float32):
    device_scale_add(a, b, c, alpha).launch(
        grid=((a.shape[0] + THREADS - 1) // THREADS,), block=(THREADS,)
    )


@fe.jit
def add_whole(a: fe.Tensor, b: fe.Tensor, c: fe.Tensor):
    c[:] = a[:] + b[:]


@fe.kernel
def device_exp(a: fe.Tensor, b: fe.Tensor):
    bid, _, _ = fe.arch.block_idx()
    tid, _, _ = fe.arch.thread_idx()
    i = bid * THREADS + tid
    if i < a.shape[0]:
        b[i] = fe.math.exp(a[i])


@fe.jit
def exp(a: fe.Tensor, b: fe.Tensor):
    device_exp(a, b).launch(grid=((a.shape[0] + THREADS - 1) // THREADS,), block=(THREADS,))


@dataclass(frozen=True, slots=True)
class Work:
    """A row: ferrule's call, NumPy's statements, and the array that both write."""

    name: str
    ours: Callable[[], object]
    theirs: Callable[[], object]
    out: Any


@dataclass(frozen=True, slots=True)
class Sizes:
    """Elements of the vectors, and the shape for kernels over rows."""

    memory: int
    maths: int
    rows: tuple[int, int]


LARGE: Final = Sizes(16 << 20, 4 << 20, (4096, 1024))
SMALL: Final = Sizes(1 << 12, 1 << 12, (16, 64))


def _compile(function: Any, *examples: Any) -> fe.Function:
    return fe.compile(function, *examples, options=subjects.OPTIONS)


def elementwise(size: int) -> Iterator[Work]:
    """The rows that a goal is set for."""
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(size, dtype=np.float32) for _ in range(2))
    c = np.zeros_like(a)
    # One symbol for all, so that LLVM sees one length.
    vector = subjects.vector()
    add_one = _compile(subjects.quickstart().add_one, vector, vector)
    yield Work("add one", lambda: add_one(a, c), lambda: np.add(a, np.float32(1), out=c), c)
    added = _compile(add, vector, vector, vector)
    yield Work("a + b", lambda: added(a, b, c), lambda: np.add(a, b, out=c), c)
    whole = _compile(add_whole, vector, vector, vector)
    name = "c[:] = a[:] + b[:]"
    yield Work(name, lambda: whole(a, b, c), lambda: np.add(a, b, out=c), c)
    scaled = _compile(scale_add, vector, vector, vector, fe.Float32)

    def two_passes() -> None:
        np.multiply(a, np.float32(ALPHA), out=c)
        np.add(c, b, out=c)

    yield Work("a * alpha + b (NumPy: two passes)", lambda: scaled(a, b, c, ALPHA), two_passes, c)


def maths(size: int) -> Work:
    """The exponential function."""
    a = np.random.default_rng(1).standard_normal(size, dtype=np.float32)
    b = np.zeros_like(a)
    compiled = _compile(exp, *[subjects.vector()] * 2)
    return Work("exp", lambda: compiled(a, b), lambda: np.exp(a, out=b), b)


def rows(shape: tuple[int, int]) -> Iterator[Work]:
    """The quickstart's kernels over rows; NumPy's expressions make temporary arrays."""
    _, softmax, rms_norm = subjects.quickstart().compile_all()
    rng = np.random.default_rng(2)
    x, weight = (rng.standard_normal(s, dtype=np.float32) for s in (shape, shape[1]))
    y = np.zeros_like(x)

    def numpy_softmax() -> None:
        np.exp(x - x.max(axis=1, keepdims=True), out=y)
        np.divide(y, y.sum(axis=1, keepdims=True), out=y)

    def numpy_rms_norm() -> None:
        scale = np.sqrt((x * x).mean(axis=1, keepdims=True) + np.float32(EPS))
        np.divide(x, scale, out=y)
        np.multiply(y, weight, out=y)

    size = f"{shape[0]} × {shape[1]}"
    yield Work(f"softmax, {size}", lambda: softmax(x, y), numpy_softmax, y)
    yield Work(f"rms_norm, {size}", lambda: rms_norm(x, weight, y, EPS), numpy_rms_norm, y)


def row(work: Work, effort: Effort) -> Row:
    """Compares the results, then the times."""
    work.theirs()
    wanted = work.out.copy()
    work.out.fill(0)
    work.ours()
    np.testing.assert_allclose(work.out, wanted, rtol=1e-4, atol=1e-6)
    sides = [block_side(FERRULE, work.ours), block_side(NUMPY, work.theirs)]
    return measure(work.name, sides, effort)


def run(sizes: Sizes, effort: Effort) -> Result:
    """Measure all of it."""
    simple = [row(work, effort) for work in elementwise(sizes.memory)]
    others = [row(work, effort) for work in (maths(sizes.maths), *rows(sizes.rows))]
    compared = (FERRULE, NUMPY)
    goals = tuple(
        Goal(f"{each.name}, over NumPy", 1.1, each.ratio(*compared), "times") for each in simple
    )
    tables = (
        Table(f"{_millions(sizes.memory)} floats", MS, tuple(simple), compared),
        Table(f"Maths: exp of {_millions(sizes.maths)} floats, rows", MS, tuple(others), compared),
    )
    return Result(tables, goals)


def _millions(count: int) -> str:
    return f"{count >> 20} Mi" if count >> 20 else str(count)


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and show."""
    given = arguments("What compiled kernels cost beside NumPy", argv)
    sizes, effort = (SMALL, QUICK) if given.quick else (LARGE, FULL)
    finish("elementwise", run(sizes, effort), given)


if __name__ == "__main__":
    main()
