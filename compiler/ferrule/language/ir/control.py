"""Ops of the kernel IR that own regions: branches and loops."""

from __future__ import annotations

from typing import Literal

from ferrule.compiler.artefacts import Location
from ferrule.language.ir.operation import Argument, Operation, Result
from ferrule.language.ir.values import Region, Value
from ferrule.specs.deferred import dataclass

__all__ = [  # names of `ops`
    "For",
    "If",
    "LoopHints",
    "Parallel",
    "RegionOp",
    "While",
]


@dataclass(frozen=True, slots=True, eq=False)
class If(Operation, effects=(), uniform=True):
    """Runs one of two regions; its results are the yields of that region.

    `rare`: a branch for a condition that hardly ever holds, even if both sides could be run.
    """

    results: tuple[Result, ...]
    condition: Value
    then: Region
    otherwise: Region
    rare: bool = False


@dataclass(frozen=True, slots=True)
class LoopHints:
    """Hints for the compilation of a loop; they do not change its meaning.

    `unroll`: the number of iterations to unroll, 1 for none, or "full".  `vectorize`: whether to
    use vectors, or of how many elements.
    """

    unroll: int | Literal["full"] | None = None
    vectorize: bool | int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class For(Operation, effects=("blocks",), uniform=True):
    """A counted loop like Python's `range`; with a step of 0 it has no iterations.

    `carried` are the loop-carried values in an iteration, `initial` those of the first one; the
    body yields those of the next.  The results are the values after the last iteration.
    """

    results: tuple[Result, ...]
    index: Argument
    start: Value
    stop: Value
    step: Value
    initial: tuple[Value, ...]
    carried: tuple[Argument, ...]
    body: Region
    hints: LoopHints | None = None


@dataclass(frozen=True, slots=True, eq=False)
class While(Operation, effects=("blocks",), uniform=True):
    """A loop: `test` yields a Boolean from the carried values; the body yields the next ones."""

    results: tuple[Result, ...]
    initial: tuple[Value, ...]
    carried: tuple[Argument, ...]
    test: Region
    body: Region


@dataclass(frozen=True, slots=True, eq=False)
class Parallel(Operation, effects=("blocks", "calls"), place="host"):
    """Runs the body for every coordinate below the extents (Int64), in any order (host only).

    Its index values are Int64.  A whole-tensor assignment becomes a Parallel; on a GPU it becomes a
    kernel.
    """

    indices: tuple[Argument, ...]
    extents: tuple[Value, ...]
    body: Region
    location: Location | None = None


RegionOp = If | For | While | Parallel
"""Ops with regions."""
