"""Sums over floats, in order and with fast-math flags, beside the same loops of Numba.

    python benchmarks/fast_math.py [--quick] [--json FILE]

One thread; float32. Numba compiles the loops with `fastmath=True` where ferrule has flags, and
without it where ferrule has none.  The results are compared first.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, Final

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
N: Final = 100_000


@fe.jit
def dot(a, b, o):
    s = fe.Float32(0)
    for i in range(a.shape[0]):
        s += a[i] * b[i]
    o[0] = s


@fe.jit
def dot_in_any_order(a, b, o):
    s = fe.Float32(0)
    for i in fe.range(a.shape[0], reassociate=True):
        s += a[i] * b[i]
    o[0] = s


dot_fast = fe.jit(fast_math=True)(dot.function)


@fe.jit
def roots(a, b, o):
    s = fe.Float32(0)
    for i in range(a.shape[0]):
        s += fe.math.rsqrt(a[i] + b[i], fast=True)
    o[0] = s


def numba_dot(a, b, o):
    s = np.float32(0)
    for i in range(a.shape[0]):
        s += a[i] * b[i]
    o[0] = s


def numba_roots(a, b, o):
    s, one = np.float32(0), np.float32(1)
    for i in range(a.shape[0]):
        s += one / np.float32(math.sqrt(a[i] + b[i]))
    o[0] = s


def summing(function: Any, ours: Any) -> tuple[Any, Any]:
    """Sums of a function of Python's `math`, for ferrule and for Numba."""

    def sum_of(a, b, o):
        s = fe.Float32(0)
        for i in range(a.shape[0]):
            s += ours(a[i] + b[i])
        o[0] = s

    def numba_sum(a, b, o):
        s = np.float32(0)
        for i in range(a.shape[0]):
            s += function(a[i] + b[i])
        o[0] = s

    return fe.jit(sum_of), numba_sum


def chained(function: Any, ours: Any, offset: float) -> tuple[Any, Any]:
    """The same functions where each call waits for the one before, so that nothing is a vector."""
    quarter, more = np.float32(0.25), np.float32(offset)

    def chain(a, b, o):
        x = a[0]
        for _ in range(b.shape[0]):
            x = ours(x) * 0.25 + offset
        o[0] = x

    def numba_chain(a, b, o):
        x = a[0]
        for _ in range(b.shape[0]):
            x = np.float32(function(x)) * quarter + more
        o[0] = x

    return fe.jit(chain), numba_chain


FUNCTIONS: Final = {name: summing(getattr(math, name), getattr(fe.math, name))
                    for name in ("exp", "log", "sin", "tanh")}  # fmt: skip
OFFSETS: Final = {"exp": 0.0, "log": 2.0, "sin": 1.0, "cos": 1.0, "tanh": 1.0}
"""With these the numbers stay where the functions have no short cuts."""
CHAINS: Final = {name: chained(getattr(math, name), getattr(fe.math, name), offset)
                 for name, offset in OFFSETS.items()}  # fmt: skip
CASES: Final = (
    ("dot product in order", dot, numba_dot, False),
    ("dot product, reassociate=True", dot_in_any_order, numba_dot, True),
    ("dot product, fast_math=True", dot_fast, numba_dot, True),
    ("sum of rsqrt(x, fast=True), in order", roots, numba_roots, False),
    *((f"sum of {name}, in order", *sides, False) for name, sides in FUNCTIONS.items()),
    *((f"a chain of {name}", *sides, False) for name, sides in CHAINS.items()),
)


def compiled(function: Any) -> fe.Function:
    """For two vectors and a result."""
    vector = fe.make_fake_compact_tensor("float32", (fe.sym_int(),))
    one = fe.make_fake_compact_tensor("float32", (1,))
    return fe.compile(function, vector, vector, one, options="--target cpu --no-cache")


def rows(effort: Effort) -> Iterator[Row]:
    import numba

    rng = np.random.default_rng(0)
    a, b = rng.random((2, N), np.float32)
    for name, function, loops, fast in CASES:
        ours, theirs = compiled(function), numba.njit(fastmath=fast)(loops)
        results = np.zeros((2, 1), np.float32)
        ours(a, b, results[0])
        theirs(a, b, results[1])
        np.testing.assert_allclose(results[0], results[1], rtol=1e-3)
        out = np.zeros(1, np.float32)
        sides = [
            call_side(OURS, ours, (a, b, out), effort),
            call_side(NUMBA, theirs, (a, b, out), effort),
        ]
        yield measure(name, sides, effort)


def run(effort: Effort) -> Result:
    """Measure all of it."""
    found = tuple(rows(effort))
    goals = [Goal(row.name, 1.2, row.ratio(OURS, NUMBA), "times Numba") for row in found[1:]]
    table = Table(f"Loops over {N} floats", US, found, (OURS, NUMBA))
    return Result((table,), tuple(goals))


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and show."""
    given = arguments("Loops over floats with fast-math flags", argv)
    finish("fast_math", run(QUICK if given.quick else FULL), given)


if __name__ == "__main__":
    main()
