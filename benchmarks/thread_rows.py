"""Kernels whose threads are in rows, `t // 16, t % 16`, beside Numba's plain loops.

    python benchmarks/thread_rows.py [--quick] [--json FILE]

One thread of the machine; matrices of 256 by 256 floats, tiles of 16 by 16, and 65,536 numbers of
Philox by four, of threads with a guard `i * 4 < n`.  The results are compared first.
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
SIZE: Final = 256
TILE: Final = 16
MULTIPLIERS: Final = (0xD2511F53, 0xCD9E8D57)
STEPS: Final = (0x9E3779B9, 0xBB67AE85)
arch = fe.arch


# ---- a product by tiles ----


@fe.kernel
def product_kernel(a, b, out):
    t, across, down = arch.thread_idx()[0], arch.block_idx()[0] * TILE, arch.block_idx()[1] * TILE
    row, column = t // TILE, t % TILE
    left = arch.alloc_smem(fe.Float32, TILE * TILE)
    right = arch.alloc_smem(fe.Float32, TILE * TILE)
    total = fe.Float32(0)
    for k in range(0, a.shape[1], TILE):
        left[row * TILE + column] = a[down + row, k + column]
        right[row * TILE + column] = b[k + row, across + column]
        arch.sync_threads()
        for i in fe.range_constexpr(TILE):
            total += left[row * TILE + i] * right[i * TILE + column]
        arch.sync_threads()
    out[down + row, across + column] = total


@fe.jit
def product(a, b, out):
    tiles = (b.shape[1] // TILE, a.shape[0] // TILE)
    product_kernel(a, b, out).launch(grid=tiles, block=TILE * TILE)


def numba_product(a, b, out):
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            out[i, j] = 0
        for k in range(a.shape[1]):
            for j in range(b.shape[1]):
                out[i, j] += a[i, k] * b[k, j]


# ---- a transposition ----


@fe.kernel
def transposition_kernel(a, b, out):
    t, across, down = arch.thread_idx()[0], arch.block_idx()[0] * TILE, arch.block_idx()[1] * TILE
    row, column = t // TILE, t % TILE
    tile = arch.alloc_smem(fe.Float32, TILE * (TILE + 1))
    tile[row * (TILE + 1) + column] = a[down + row, across + column]
    arch.sync_threads()
    out[across + row, down + column] = tile[column * (TILE + 1) + row]


@fe.jit
def transposition(a, b, out):
    tiles = (a.shape[1] // TILE, a.shape[0] // TILE)
    transposition_kernel(a, b, out).launch(grid=tiles, block=TILE * TILE)


def numba_transposition(a, b, out):
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            out[j, i] = a[i, j]


# ---- an expression, by tiles with guards ----


@fe.kernel
def guarded_kernel(a, b, out):
    t = arch.thread_idx()[0]
    i = arch.block_idx()[1] * TILE + t // TILE
    j = arch.block_idx()[0] * TILE + t % TILE
    if i < a.shape[0] and j < a.shape[1]:
        out[i, j] = a[i, j] * 2 + b[i, j]


@fe.jit
def guarded(a, b, out):
    tiles = ((a.shape[1] + TILE - 1) // TILE, (a.shape[0] + TILE - 1) // TILE)
    guarded_kernel(a, b, out).launch(grid=tiles, block=TILE * TILE)


def numba_guarded(a, b, out):
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            out[i, j] = a[i, j] * np.float32(2) + b[i, j]


# ---- random numbers, four for a thread ----


@fe.kernel
def philox_kernel(a, b, out):
    i = arch.block_idx()[0] * 256 + arch.thread_idx()[0]
    if i * 4 < out.shape[0]:
        x, y, z, w = fe.Uint32(i), fe.Uint32(0), fe.Uint32(0), fe.Uint32(0)
        k, m = fe.Uint32(7), fe.Uint32(0)
        for _ in range(10):
            p = fe.Uint64(MULTIPLIERS[0]) * fe.Uint64(x)
            q = fe.Uint64(MULTIPLIERS[1]) * fe.Uint64(z)
            x, y = fe.Uint32(q >> 32) ^ y ^ k, fe.Uint32(q)
            z, w = fe.Uint32(p >> 32) ^ w ^ m, fe.Uint32(p)
            k, m = k + fe.Uint32(STEPS[0]), m + fe.Uint32(STEPS[1])
        out[i * 4], out[i * 4 + 1], out[i * 4 + 2], out[i * 4 + 3] = x, y, z, w


@fe.jit
def philox(a, b, out):
    philox_kernel(a, b, out).launch(grid=(out.shape[0] // 4 + 255) // 256, block=256)


def numba_philox(a, b, out):
    low, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    for i in range(out.shape[0] // 4):
        x, y, z, w = np.uint64(i), np.uint64(0), np.uint64(0), np.uint64(0)
        k, m = np.uint64(7), np.uint64(0)
        for _ in range(10):
            p, q = np.uint64(MULTIPLIERS[0]) * x, np.uint64(MULTIPLIERS[1]) * z
            x, y = (q >> half) ^ y ^ k, q & low
            z, w = (p >> half) ^ w ^ m, p & low
            k, m = (k + np.uint64(STEPS[0])) & low, (m + np.uint64(STEPS[1])) & low
        out[4 * i], out[4 * i + 1] = np.uint32(x), np.uint32(y)
        out[4 * i + 2], out[4 * i + 3] = np.uint32(z), np.uint32(w)


CASES: Final = (
    ("product of matrices", product, numba_product),
    ("transposition", transposition, numba_transposition),
    ("expression with guards", guarded, numba_guarded),
    ("Philox, four numbers", philox, numba_philox),
)


def matrices() -> tuple[np.ndarray, ...]:
    """Small integers, whose sums are exact in any order; and room."""
    given = np.random.default_rng(0).integers(-4, 5, (2, SIZE, SIZE)).astype(np.float32)
    return (*given, np.zeros((SIZE, SIZE), np.float32))


def rows(effort: Effort) -> Iterator[Row]:
    """One for each kernel."""
    import numba

    for name, kernel, loops in CASES:
        *given, out = matrices()
        if kernel is philox:
            out = np.zeros(4 * SIZE * SIZE, np.uint32)
        examples: list[Any] = [
            fe.row_major(tuple(fe.sym_int() for _ in each.shape), each.dtype)
            for each in (*given, out)
        ]
        ours = fe.compile(kernel, *examples, options="--target cpu --no-cache")
        theirs, other = numba.njit(loops), np.zeros_like(out)
        ours(*given, out)
        theirs(*given, other)
        np.testing.assert_array_equal(out, other)
        sides = [call_side(OURS, ours, (*given, out), effort)]
        sides.append(call_side(NUMBA, theirs, (*given, other), effort))
        yield measure(name, sides, effort)


def run(effort: Effort) -> Result:
    """Measure all of it."""
    found = tuple(rows(effort))
    goals = [Goal(row.name, 1.1, row.ratio(OURS, NUMBA), "times Numba") for row in found]
    return Result((Table("Threads in rows", US, found, (OURS, NUMBA)),), tuple(goals))


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and show."""
    given = arguments("Kernels whose threads are in rows", argv)
    finish("thread_rows", run(QUICK if given.quick else FULL), given)


if __name__ == "__main__":
    main()
