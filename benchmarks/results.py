"""What it costs to get something back.

    python benchmarks/results.py [--quick] [--json FILE]

A function that returns one new torch tensor stands beside `torch.empty` of the same size, and one
that makes a tensor for itself beside both: all ask torch's allocator.  The other rows are results
beside a function of the same parameter that returns nothing.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Sequence
from typing import Any, Final

import subjects
from harness import (
    FULL,
    NS,
    QUICK,
    Effort,
    Goal,
    Result,
    Row,
    Skipped,
    Table,
    arguments,
    call_side,
    finish,
    measure,
)

import ferrule as fe

RETURNED: Final = "returned"
SCRATCH: Final = "for itself"
TORCH: Final = "torch.empty"
FERRULE: Final = "ferrule"
NOTHING: Final = "returns nothing"
SIZES: Final = (1 << 10, 1 << 16)


@fe.jit
def like(a: fe.Tensor):
    return fe.empty_like(a)


@fe.jit
def scratch(a: fe.Tensor):
    b = fe.empty_like(a)
    a[0] = b[0]


@fe.jit
def number(i: fe.Int64):
    return i


@fe.jit
def pair(i: fe.Int64):
    return i, i


@fe.jit
def text(i: fe.Int64):
    return "a string on the heap"


def tensor_rows(effort: Effort) -> Iterator[Row]:
    """New torch tensors."""
    import torch

    returned, own = (
        fe.compile(function, subjects.vector(), options=subjects.OPTIONS)
        for function in (like, scratch)
    )
    for size in SIZES:
        tensor = torch.zeros(size)
        sides = [
            call_side(RETURNED, returned, (tensor,), effort),
            call_side(SCRATCH, own, (tensor,), effort),
            call_side(TORCH, torch.empty, (size,), effort),
        ]
        yield measure(f"{size} float32", sides, effort)


def value_rows(effort: Effort) -> Iterator[Row]:
    """Other results."""
    kinds: dict[str, Any] = {"an int": number, "a tuple of two ints": pair, "a string": text}
    base = fe.compile(subjects.one_int, fe.Int64, options=subjects.OPTIONS)
    for name, function in kinds.items():
        made = fe.compile(function, fe.Int64, options=subjects.OPTIONS)
        sides = [
            call_side(FERRULE, made, (7,), effort),
            call_side(NOTHING, base, (7,), effort),
        ]
        yield measure(name, sides, effort)


def run(effort: Effort) -> Result:
    """Measure all of it."""
    values = Table("Results", NS, tuple(value_rows(effort)), (FERRULE, NOTHING))
    if importlib.util.find_spec("torch") is None:
        return Result((values,), (), (Skipped("torch tensors", "PyTorch is not installed"),))
    rows = tuple(tensor_rows(effort))
    goals = [
        Goal(f"a new tensor of {row.name}, over torch.empty", 1.3, row.ratio(RETURNED, TORCH), "×")
        for row in rows
    ]
    tensors = Table("One new torch tensor", NS, rows, (RETURNED, TORCH))
    return Result((tensors, values), tuple(goals))


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and show."""
    given = arguments("What results cost", argv)
    finish("results", run(QUICK if given.quick else FULL), given)


if __name__ == "__main__":
    main()
