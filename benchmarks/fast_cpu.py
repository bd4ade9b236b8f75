"""Five kernels for the CPU as they are first written, and as their remarks advise.

    python benchmarks/fast_cpu.py [--quick] [--json FILE]
    FERRULE_REMARKS=1 python benchmarks/fast_cpu.py

On one thread.  The second form prints what `Function.remarks` says of each.  Results are compared
first.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any, Final

os.environ.setdefault("FERRULE_NUM_THREADS", "1")

import numpy as np
from harness import (
    FULL,
    QUICK,
    US,
    Effort,
    Result,
    Row,
    Table,
    arguments,
    call_side,
    finish,
    measure,
)

import ferrule as fe

BEFORE: Final = "as first written"
AFTER: Final = "after the remark"
ROWS, WIDTH = 512, 2048
arch = fe.arch


@fe.jit
def dot_in_order(a: fe.Tensor, b: fe.Tensor, out: fe.Tensor):
    total = fe.Float32(0)
    for i in range(a.shape[0]):
        total += a[i] * b[i]
    out[0] = total


@fe.jit
def dot_in_any_order(a: fe.Tensor, b: fe.Tensor, out: fe.Tensor):
    total = fe.Float32(0)
    for i in fe.range(a.shape[0], reassociate=True):
        total += a[i] * b[i]
    out[0] = total


@fe.jit
def scale_down_columns(a: fe.Tensor, b: fe.Tensor, out: fe.Tensor):
    for j in range(a.shape[1]):
        for i in range(a.shape[0]):
            out[i, j] = a[i, j] * b[j]


@fe.jit
def scale_along_rows(a: fe.Tensor, b: fe.Tensor, out: fe.Tensor):
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            out[i, j] = a[i, j] * b[j]


@fe.kernel
def row_each_kernel(a: fe.Tensor, out: fe.Tensor):
    row = arch.block_idx()[0] * 128 + arch.thread_idx()[0]
    if row < a.shape[0]:
        total = fe.Float32(0)
        for j in range(a.shape[1]):
            total += a[row, j]
        out[row] = total


@fe.jit
def a_row_for_each_thread(a: fe.Tensor, b: fe.Tensor, out: fe.Tensor):
    row_each_kernel(a, out).launch(grid=(a.shape[0] + 127) // 128, block=128)


@fe.kernel
def row_together_kernel(a: fe.Tensor, out: fe.Tensor):
    row, thread = arch.block_idx()[0], arch.thread_idx()[0]
    total = fe.Float32(0)
    for j in range(thread, a.shape[1], 128):
        total += a[row, j]
    total = arch.block_reduction(total, lambda x, y: x + y)
    if thread == 0:
        out[row] = total


@fe.jit
def a_row_for_each_block(a: fe.Tensor, b: fe.Tensor, out: fe.Tensor):
    row_together_kernel(a, out).launch(grid=a.shape[0], block=128)


@fe.kernel
def waits_apart_kernel(a: fe.Tensor, out: fe.Tensor):
    thread = arch.thread_idx()[0]
    shared = arch.alloc_smem(fe.Float32, 256)
    for row in range(a.shape[0]):
        if a[row, 0] >= 0 and thread < 256:
            shared[thread] = a[row, thread]
            arch.sync_threads()
            out[row, thread] = shared[255 - thread]
            arch.sync_threads()


@fe.jit
def barriers_in_a_branch(a: fe.Tensor, b: fe.Tensor, out: fe.Tensor):
    waits_apart_kernel(a, out).launch(grid=1, block=256)


@fe.kernel
def waits_together_kernel(a: fe.Tensor, out: fe.Tensor):
    thread = arch.thread_idx()[0]
    shared = arch.alloc_smem(fe.Float32, 256)
    for row in range(a.shape[0]):
        shared[thread] = a[row, thread]
        arch.sync_threads()
        if a[row, 0] >= 0:
            out[row, thread] = shared[255 - thread]
        arch.sync_threads()


@fe.jit
def barriers_for_all(a: fe.Tensor, b: fe.Tensor, out: fe.Tensor):
    waits_together_kernel(a, out).launch(grid=1, block=256)


@fe.jit
def search_to_the_first(a: fe.Tensor, b: fe.Tensor, out: fe.Tensor):
    first = a.shape[0]
    for i in range(a.shape[0]):
        if a[i] > b[i]:
            first = i
            break
    out[0] = first


@fe.jit
def search_all(a: fe.Tensor, b: fe.Tensor, out: fe.Tensor):
    first = a.shape[0]
    for i in range(a.shape[0]):
        first = min(first, i if a[i] > b[i] else a.shape[0])
    out[0] = first


M, N = fe.sym_int(), fe.sym_int()
MATRIX: Final = fe.row_major((M, N), fe.Float32)
VECTOR: Final = fe.row_major((N,), fe.Float32)
PLACES: Final = fe.row_major((fe.sym_int(),), fe.Float32)

PAIRS: Final = (
    ("a sum in order", dot_in_order, dot_in_any_order, (VECTOR, VECTOR, PLACES)),
    ("down columns", scale_down_columns, scale_along_rows, (MATRIX, VECTOR, MATRIX)),
    ("a row for each thread", a_row_for_each_thread, a_row_for_each_block, None),
    ("barriers in a branch", barriers_in_a_branch, barriers_for_all, (MATRIX, VECTOR, MATRIX)),
    ("a search that stops", search_to_the_first, search_all, (VECTOR, VECTOR, PLACES)),
)


def examples_of(given: Any) -> tuple[Any, ...]:
    """The examples of a pair."""
    return given or (MATRIX, VECTOR, PLACES)


def compiled(fn: Any, given: Any) -> fe.Function:
    """The function of a pair for its examples."""
    return fe.compile(fn, *examples_of(given), options="--target cpu --no-cache").prepare()


def arrays(given: Any) -> list[np.ndarray]:
    """Arguments for a pair."""
    random = np.random.default_rng(0)
    shapes = {id(MATRIX): (ROWS, WIDTH), id(VECTOR): (WIDTH,), id(PLACES): (ROWS,)}
    found = [random.random(shapes[id(example)], np.float32) for example in examples_of(given)]
    if found[0].shape == found[1].shape:  # a search finds the last element
        found[1][:-1] += 1
        found[1][-1] -= 1
    return found


def rows(effort: Effort) -> Iterator[Row]:
    """One for each pair."""
    for name, before, after, given in PAIRS:
        first, second = (compiled(fn, given) for fn in (before, after))
        values = arrays(given)
        results = []
        for function in (first, second):
            values[-1][...] = 0
            function(*values)
            results.append(values[-1].copy())
        np.testing.assert_allclose(*results, rtol=1e-4)
        sides = [
            call_side(BEFORE, first, values, effort),
            call_side(AFTER, second, values, effort),
        ]
        yield measure(name, sides, effort)


def show_remarks() -> None:
    """Print the remarks of all functions."""
    for _, before, after, given in PAIRS:
        for fn in (before, after):
            print(f"{fn.__name__}:", compiled(fn, given).remarks, sep="\n", end="\n\n")


def run(effort: Effort) -> Result:
    """Measure all of it."""
    return Result((Table("Before and after", US, tuple(rows(effort)), (AFTER, BEFORE)),), ())


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and show."""
    given = arguments("Kernels before and after what their remarks advise", argv)
    if os.environ.get("FERRULE_REMARKS"):
        show_remarks()
    else:
        finish("fast_cpu", run(QUICK if given.quick else FULL), given)


if __name__ == "__main__":
    main()
