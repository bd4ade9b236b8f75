"""What `--enable-checks` costs: the kernels of the examples with and without, on one thread.

    python benchmarks/checked.py [--quick] [--json FILE]

Both sides read the same arrays, and their results are compared bit for bit before anything is
timed.  The goal is at most five times the time without checks.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, Final

# Read at a function's first launch.
os.environ.setdefault("FERRULE_NUM_THREADS", "1")

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
from kernel_works import EXAMPLES

PLAIN: Final = "without checks"
CHECKED: Final = "with checks"
MOST: Final = 5.0
"""Times as long as without checks."""


@dataclass(frozen=True, slots=True)
class Case:
    """An example: what compiles it for options, its arguments, and what it writes."""

    name: str
    compiled: Callable[[str], Any]
    args: tuple[Any, ...]
    out: Any


def cases(size: int) -> Iterator[Case]:
    """The examples, on arrays of about `size` elements."""
    rng = np.random.default_rng(0)
    side = max(32, int(size**0.5) // 32 * 32)
    rows, columns = max(1, size // 1024), 1024

    def floats(*shape: int) -> Any:
        return rng.random(shape, np.float32)

    def case(name: str, args: tuple[Any, ...], out: Any, **given: Any) -> Case:
        module = subjects.load(EXAMPLES / f"{name}.py")
        return Case(name.replace("_", " "), partial(module.compiled, **given), args, out)

    x, y = floats(size), floats(size)
    yield case("saxpy", (2.0, x, y), y)
    x, y = floats(rows, columns), floats(rows, columns)
    yield case("softmax", (x, y), y)
    yield case("block_softmax", (x, y), y)
    weight = floats(columns)
    yield case("layer_norm", (x, weight, weight, y, 1e-5), y)
    yield case("block_layer_norm", (x, weight, weight, y, 1e-5), y)
    x, y = floats(side, side), floats(side, side)
    yield case("transpose", (x, y), y)
    small = max(32, side // 4 // 32 * 32)
    a, b, c = floats(small, small), floats(small, small), floats(small, small)
    yield case("matmul", (a, b, c), c)
    yield case("tiled_matmul", (a, b, c), c)
    q, out = floats(2, max(16, size // 4096), 64), floats(2, max(16, size // 4096), 64)
    yield case("attention", (q, q, q, out), out)
    codes = rng.integers(0, 256, size, np.uint8)
    counts = np.zeros(256, np.int64)
    yield case("histogram", (codes, counts), counts)
    ints = rng.integers(0, 100, size, np.int32)
    sums = np.zeros(size, np.int64)
    yield case("prefix_sum", (ints, sums), sums)
    keys = rng.integers(0, 1 << 32, size, np.uint32)
    ordered = np.zeros_like(keys)
    yield case("radix_sort", (keys, ordered), ordered)
    x = floats(rows, columns)
    values, places = np.zeros((rows, 8), np.float32), np.zeros((rows, 8), np.int32)
    yield case("top_k", (x, values, places), places)
    total, largest = np.zeros(1, np.float32), np.zeros(1, np.float32)
    yield case("reduction", (floats(size), total, largest), largest)


def run_case(case: Case, effort: Effort) -> Row:
    """Compares the results, then the times."""
    always = "--target cpu --opt-level 0" if effort is QUICK else "--target cpu"
    options = {PLAIN: always, CHECKED: f"{always} --enable-checks"}
    calls = {name: partial(case.compiled(given), *case.args) for name, given in options.items()}
    before, results = case.out.copy(), []
    for call in calls.values():
        case.out[...] = before
        call()
        results.append(case.out.copy())
    np.testing.assert_array_equal(*results)
    return measure(case.name, [block_side(name, call) for name, call in calls.items()], effort)


def run(size: int, effort: Effort) -> Result:
    """Measures all of it."""
    few = 3 if effort is QUICK else None
    rows = tuple(run_case(case, effort) for case in islice(cases(size), few))
    goals = tuple(
        Goal(f"{row.name}, with checks over without", MOST, row.ratio(CHECKED, PLAIN), "times")
        for row in rows
    )
    return Result((Table("A call, on one thread", MS, rows, (CHECKED, PLAIN)),), goals)


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and show."""
    given = arguments("The examples with and without --enable-checks", argv)
    size, effort = (1 << 10, QUICK) if given.quick else (1 << 20, FULL.fewer(6))
    finish("checked", run(size, effort), given)


if __name__ == "__main__":
    main()
