"""Loops that threads of a kernel end at different times, beside Numba's plain loops.

    python benchmarks/ending_loops.py [--quick] [--json FILE]

One thread; 16384 of them in the kernel.  The results are compared first.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
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

OURS: Final = "ferrule"
NUMBA: Final = "Numba"
COUNT, BLOCK = 16384, 64
arch = fe.arch


@fe.kernel
def search_kernel(keys, table, out):
    i = arch.block_idx()[0] * BLOCK + arch.thread_idx()[0]
    if i < out.shape[0]:
        low, high, key = 0, table.shape[0], keys[i]
        while low < high:
            middle = (low + high) // 2
            if table[middle] < key:
                low = middle + 1
            else:
                high = middle
        out[i] = low


def numba_search(keys, table, out):
    for i in range(out.shape[0]):
        low, high, key = 0, table.shape[0], keys[i]
        while low < high:
            middle = (low + high) // 2
            if table[middle] < key:
                low = middle + 1
            else:
                high = middle
        out[i] = low


@fe.kernel
def newton_kernel(values, table, out):
    i = arch.block_idx()[0] * BLOCK + arch.thread_idx()[0]
    if i < out.shape[0]:
        value = values[i]
        root = value
        for _step in range(50):
            better = 0.5 * (root + value / root)
            if abs(better - root) < 1e-6 * better:
                break
            root = better
        out[i] = root


def numba_newton(values, table, out):
    half, small = np.float32(0.5), np.float32(1e-6)
    for i in range(out.shape[0]):
        value = values[i]
        root = value
        for _step in range(50):
            better = half * (root + value / root)
            if abs(better - root) < small * better:
                break
            root = better
        out[i] = root


@fe.kernel
def collatz_kernel(values, table, out):
    i = arch.block_idx()[0] * BLOCK + arch.thread_idx()[0]
    if i < out.shape[0]:
        x, steps = values[i], 0
        while x > 1:
            x = x // 2 if x % 2 == 0 else 3 * x + 1
            steps += 1
        out[i] = steps


def numba_collatz(values, table, out):
    for i in range(out.shape[0]):
        x, steps = values[i], 0
        while x > 1:
            x = x // 2 if x % 2 == 0 else 3 * x + 1
            steps += 1
        out[i] = steps


@fe.kernel
def fixed_kernel(values, table, out):
    i = arch.block_idx()[0] * BLOCK + arch.thread_idx()[0]
    if i < out.shape[0]:
        x, steps = values[i], 0
        change = fe.Float32(1)
        while change > 1e-5 and steps < 60:
            following = fe.math.exp(-x)
            change = abs(following - x)
            x = following
            steps += 1
        out[i] = x


def numba_fixed(values, table, out):
    for i in range(out.shape[0]):
        x, steps, change = values[i], 0, np.float32(1)
        while change > np.float32(1e-5) and steps < 60:
            following = np.float32(math.exp(-x))
            change = abs(following - x)
            x = following
            steps += 1
        out[i] = x


def host(kernel: Any) -> Any:
    """A function that launches a kernel for all elements of its last argument."""

    @fe.jit
    def launched(values, table, out):
        kernel(values, table, out).launch(grid=(out.shape[0] + BLOCK - 1) // BLOCK, block=BLOCK)

    return launched


def cases() -> list[tuple[str, Any, Any, tuple[Any, ...]]]:
    """The name of each case, its kernel, Numba's function, and the arguments."""
    random = np.random.default_rng(0)
    floats = random.uniform(0.1, 900, COUNT).astype(np.float32)
    table = np.sort(random.uniform(0, 900, 10_000)).astype(np.float32)
    numbers = random.integers(1, 10_000, COUNT)
    counts, results = np.zeros(COUNT, np.int32), np.zeros(COUNT, np.float32)
    return [
        ("binary search", search_kernel, numba_search, (floats, table, counts)),
        ("Newton's root", newton_kernel, numba_newton, (floats, table, results)),
        ("Collatz, int64", collatz_kernel, numba_collatz, (numbers, table, counts)),
        ("fixed point of exp(-x)", fixed_kernel, numba_fixed, (floats / 900, table, results)),
    ]


def row(name: str, kernel: Any, theirs: Any, given: tuple[Any, ...], effort: Effort) -> Row:
    """Both sides of a case."""
    import numba

    signature = [fe.row_major((fe.sym_int(),), array.dtype.name) for array in given]
    ours = fe.compile(host(kernel), *signature, options="--target cpu")
    sides = {OURS: ours, NUMBA: numba.njit(theirs)}
    results = []
    for function in sides.values():
        function(*given)
        results.append(given[-1].copy())
    np.testing.assert_allclose(*results, rtol=1e-4)
    return measure(name, [call_side(n, f, given, effort) for n, f in sides.items()], effort)


def run(effort: Effort) -> Result:
    """Measure all of it."""
    rows = tuple(row(*case, effort) for case in cases())
    return Result((Table("Loops that threads end at different times", US, rows, (OURS, NUMBA)),))


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and show."""
    given = arguments("Loops that threads end at different times", argv)
    finish("ending_loops", run(QUICK if given.quick else FULL), given)


if __name__ == "__main__":
    main()
