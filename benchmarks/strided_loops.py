"""Loops over `range(thread, n, block)` in kernels, wherever they are, beside Numba's plain loops.

    python benchmarks/strided_loops.py [--quick] [--json FILE]

One thread; 64 rows of 16384 floats.  The results are compared first.
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
    Goal,
    Result,
    Row,
    Table,
    arguments,
    call_side,
    finish,
    measure,
)

import ferrule as fe

OURS: Final = "ferrule"
NUMBA: Final = "Numba"
ROWS, WIDTH, BLOCK = 64, 16384, 128
arch = fe.arch


@fe.kernel
def once_kernel(x, o, w: fe.Int32):
    t, g = arch.thread_idx()[0], arch.block_idx()[0]
    s = fe.Float32(0)
    for i in range(t, WIDTH, BLOCK):
        s += x[g * WIDTH + i]
    o[g * BLOCK + t] = s


@fe.kernel
def halves_kernel(x, o, w: fe.Int32):
    t, g = arch.thread_idx()[0], arch.block_idx()[0]
    s = fe.Float32(0)
    for c in range(2):
        for i in range(t, WIDTH // 2, BLOCK):
            s += x[g * WIDTH + c * (WIDTH // 2) + i]
    o[g * BLOCK + t] = s


@fe.kernel
def quotients_kernel(x, o, w: fe.Int32):
    t, g = arch.thread_idx()[0], arch.block_idx()[0]
    s = fe.Float32(0)
    for i in range(t, WIDTH, BLOCK):
        s += x[g * WIDTH + (i // w) * w + i % w]
    o[g * BLOCK + t] = s


@fe.kernel
def conditions_kernel(x, o, w: fe.Int32):
    t, g = arch.thread_idx()[0], arch.block_idx()[0]
    s, m = fe.Float32(0), fe.Float32(0)
    for i in range(t, WIDTH, BLOCK):
        v = x[g * WIDTH + i]
        if v > 0.5:
            s += v
        m = fe.math.max(m, v)
    o[g * BLOCK + t] = s + m


@fe.kernel
def grid_kernel(x, o, w: fe.Int32):
    first = arch.block_idx()[0] * arch.block_dim()[0] + arch.thread_idx()[0]
    for i in range(first, x.shape[0], arch.block_dim()[0] * arch.grid_dim()[0]):
        o[i] = x[i] * 2 + 1


def numba_once(x, o, w):
    for g in range(ROWS):
        for i in range(WIDTH):
            o[g * BLOCK + i % BLOCK] += x[g * WIDTH + i]


def numba_quotients(x, o, w):
    for g in range(ROWS):
        for i in range(WIDTH):
            o[g * BLOCK + i % BLOCK] += x[g * WIDTH + (i // w) * w + i % w]


def numba_conditions(x, o, w):
    for g in range(ROWS):
        for t in range(BLOCK):
            s, m = np.float32(0), np.float32(0)
            for i in range(t, WIDTH, BLOCK):
                v = x[g * WIDTH + i]
                if v > np.float32(0.5):
                    s += v
                m = max(m, v)
            o[g * BLOCK + t] = s + m


def numba_grid(x, o, w):
    for i in range(x.shape[0]):
        o[i] = x[i] * np.float32(2) + np.float32(1)


@fe.kernel
def solve_kernel(x, o, w: fe.Int32):
    """Columns of w rows of a triangular system with 2 in the diagonal."""
    t, g = arch.thread_idx()[0], arch.block_idx()[0]
    for i in range(w):
        s = x[(g * w + i) * BLOCK + t]
        for k in range(i):
            s -= x[i * BLOCK + k] * o[(g * w + k) * BLOCK + t] * 0.015625
        o[(g * w + i) * BLOCK + t] = s * 0.5


def numba_solve(x, o, w):
    small, half = np.float32(0.015625), np.float32(0.5)
    for g in range(ROWS):
        for i in range(w):
            for t in range(BLOCK):
                o[(g * w + i) * BLOCK + t] = x[(g * w + i) * BLOCK + t]
            for k in range(i):
                for t in range(BLOCK):
                    row = (g * w + k) * BLOCK + t
                    o[(g * w + i) * BLOCK + t] -= x[i * BLOCK + k] * o[row] * small
            for t in range(BLOCK):
                o[(g * w + i) * BLOCK + t] *= half


CASES: Final = (
    ("a sum for each thread", once_kernel, numba_once),
    ("the same in two halves", halves_kernel, numba_once),
    ("with // and % of the index", quotients_kernel, numba_quotients),
    ("with a condition and a maximum", conditions_kernel, numba_conditions),
    ("a loop over the grid", grid_kernel, numba_grid),
    ("triangular systems, a thread for each column", solve_kernel, numba_solve),
)


def compiled(kernel: Any) -> fe.Function:
    """The launch of a kernel."""

    def launched(x: fe.Tensor, o: fe.Tensor, w: fe.Int32):
        kernel(x, o, w).launch(grid=ROWS, block=BLOCK)

    vector = fe.make_fake_compact_tensor("float32", (fe.sym_int(),))
    options = "--target cpu --no-cache"
    return fe.compile(launched, vector, vector, fe.Int32, options=options)


def rows(effort: Effort) -> Iterator[Row]:
    """One for each form of loop."""
    import numba

    x = np.random.default_rng(0).random(ROWS * WIDTH, np.float32)
    for name, kernel, loops in CASES:
        ours, theirs = compiled(kernel), numba.njit(loops)
        results = np.zeros((2, ROWS * WIDTH), np.float32)
        ours(x, results[0], 64)
        theirs(x, results[1], 64)
        np.testing.assert_array_equal(*results)
        sides = [
            call_side(OURS, ours, (x, results[0], 64), effort),
            call_side(NUMBA, theirs, (x, results[1], 64), effort),
        ]
        yield measure(name, sides, effort)


def run(effort: Effort) -> Result:
    """Measure all of it."""
    found = tuple(rows(effort))
    goals = [Goal(row.name, 1.1, row.ratio(OURS, NUMBA), "times Numba") for row in found]
    return Result((Table("Strided loops", US, found, (OURS, NUMBA)),), tuple(goals))


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and show."""
    given = arguments("Loops over range(thread, n, block)", argv)
    finish("strided_loops", run(QUICK if given.quick else FULL), given)


if __name__ == "__main__":
    main()
