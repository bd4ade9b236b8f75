"""Kernels that people write first, beside Numba's loops and C's, with the same flags.

    python benchmarks/newcomers.py [--quick] [--only FAMILY] [--json FILE]

One thread.  C is compiled by gcc (or CC) with `-O3 -march=native`; where sums may be made in any
order, all three may.  Four kernels stand beside PyTorch's own, where it is installed.  The results
are compared first.  A second table has the time per element at half, once and twice the size: a
factor of more than two between neighbours is a cliff.  A third one has the time to compile, a
fourth one what it matters for kernels near the limit where their arrays begin in cache lines.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

os.environ.setdefault("FERRULE_NUM_THREADS", "1")

import numpy as np
from harness import (
    FULL,
    MS,
    QUICK,
    US,
    Effort,
    Goal,
    Result,
    Row,
    Side,
    Skipped,
    Table,
    arguments,
    call_side,
    finish,
    measure,
)
from newcomer_kernels.cases import Case
from newcomer_kernels.in_torch import PEERS
from newcomer_kernels.points import POINTS
from newcomer_kernels.products import PRODUCTS
from newcomer_kernels.rows import ROWS
from newcomer_kernels.sequences import SEQUENCES

OURS: Final = "ferrule"
NUMBA: Final = "Numba"
C: Final = "C"
TORCH: Final = "PyTorch"
LINE: Final = 64
OFFSETS: Final = (0, 16, 32, 48)
NEAR: Final = (
    "rope, interleaved",
    "separable filter",
    "3-D stencil",
    "attention of one token, window",
)
"""Kernels near the limit, which all wait for memory."""
FAMILIES: Final = {
    "rows": ROWS,
    "products": PRODUCTS,
    "sequences": SEQUENCES,
    "points": POINTS,
}


def row(case: Case, effort: Effort) -> Row:
    """The sides of a kernel."""
    values = case.arguments(case.size)
    functions = {OURS: case.compiled(values), NUMBA: case.numba()}
    calls = {name: (lambda f=f: f(*values)) for name, f in functions.items()}
    calls[C] = case.native(values)
    if case.name in PEERS and has_torch():
        calls[TORCH] = PEERS[case.name].call(values)
    results = {name: outputs(case, values, call) for name, call in calls.items()}
    for name in calls.keys() - {OURS}:
        for ours, theirs in zip(results[OURS], results[name], strict=True):
            tolerance = case.tolerance
            np.testing.assert_allclose(ours, theirs, tolerance, tolerance, err_msg=case.name)
    sides = [call_side(name, call, (), effort) for name, call in calls.items()]
    return measure(case.name, sides, effort)


def outputs(case: Case, values: Sequence[Any], call: Any) -> list[np.ndarray]:
    """What a call writes."""
    arrays = [value for value in values if isinstance(value, np.ndarray)][-case.outputs :]
    for array in arrays:
        array[...] = 0
    call()
    return [array.copy() for array in arrays]


def cliffs(case: Case, effort: Effort) -> Row:
    """The time per element at three sizes."""
    sides = []
    for name, factor in (("half", 0.5), ("once", 1.0), ("twice", 2.0)):
        values = case.arguments(int(case.size * factor))
        function = case.compiled(values)
        call = call_side(name, function, values, effort)
        sides.append(
            type(call)(name, lambda call=call, factor=factor**case.power: call.sample() / factor)
        )
    return measure(case.name, sides, effort)


def places(case: Case, effort: Effort) -> Row:
    """A kernel and C's on arrays that begin so many bytes after a cache line."""
    sides = []
    for offset in OFFSETS:
        values = [placed(value, offset) for value in case.arguments(case.size)]
        function = case.compiled(values)
        sides.append(call_side(f"{OURS}, {offset}", function, values, effort))
        sides.append(call_side(f"{C}, {offset}", case.native(values), (), effort))
    return measure(case.name, sides, effort)


def placed(value: Any, offset: int) -> Any:
    """An array at another place; other values stay."""
    if not isinstance(value, np.ndarray):
        return value
    room = np.empty(value.nbytes + 2 * LINE, np.uint8)
    start = -room.ctypes.data % LINE + offset
    there = room[start : start + value.nbytes].view(value.dtype).reshape(value.shape)
    there[...] = value
    return there


def compilation(case: Case, effort: Effort) -> Row:
    """How long a kernel takes to compile: for any sizes, and from Numba's first call."""
    values = case.arguments(case.size)

    def numba() -> None:
        case.numba()(*values)

    sides = (timed(OURS, lambda: case.compiled(values)), timed(NUMBA, numba))
    return measure(case.name, sides, effort)


def timed(name: str, work: Callable[[], object]) -> Side:
    """A side that is measured once a sample."""

    def sample() -> float:
        start = time.perf_counter()
        work()
        return time.perf_counter() - start

    return Side(name, sample)


def has_torch() -> bool:
    """Whether PyTorch is installed; its calls then take one thread."""
    try:
        import torch
    except ImportError:
        return False
    torch.set_num_threads(1)
    return True


def run(effort: Effort, families: Sequence[str]) -> Result:
    """Measure all of it."""
    cases = [case for family in families for case in FAMILIES[family]]
    rows = tuple(row(case, effort) for case in cases)
    steps = tuple(cliffs(case, effort.fewer(4)) for case in cases)
    compilations = tuple(compilation(case, effort.fewer(12)) for case in cases)
    near = tuple(places(case, effort.fewer(4)) for case in cases if case.name in NEAR)
    tables = (
        Table("Kernels", US, rows, (OURS, C)),
        Table("Per element of the middle size", US, steps, ("twice", "once")),
        Table("Compilation", MS, compilations, (OURS, NUMBA)),
        Table("Where arrays begin", US, near),
    )
    goals = [Goal(r.name, 1.1, r.ratio(OURS, best_of(r)), f"times {best_of(r)}") for r in rows]
    goals += [
        Goal(r.name, PEERS[r.name].limit, r.ratio(OURS, TORCH), f"times {TORCH}")
        for r in rows
        if r.name in PEERS
    ]
    goals += [
        Goal(f"{r.name}, compiled", 0.5, r.ratio(OURS, NUMBA), f"times {NUMBA}")
        for r in compilations
    ]
    missing = () if has_torch() else (Skipped(TORCH, "it is not installed"),)
    return Result(tables, tuple(goals), missing)


def best_of(row: Row) -> str:
    """The faster one of the two others."""
    return min((NUMBA, C), key=lambda name: row.ratio(name, OURS))


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and show."""
    given = arguments("Kernels that people write first", argv, tuple(FAMILIES))
    families = (given.only,) if given.only else tuple(FAMILIES)
    finish("newcomers", run(QUICK if given.quick else FULL, families), given)


if __name__ == "__main__":
    main()
