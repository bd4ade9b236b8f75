"""Static facts about the sizes of a kernel's launches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Final

from ferrule.compiler.cuda.limits import MAX_THREADS
from ferrule.language.ir import ops
from ferrule.specs import Int64
from ferrule.specs.deferred import dataclass
from ferrule.specs.expr import INT64_MAX
from ferrule.specs.intervals import Interval, interval

AXIS_COUNT: Final = len(ops.AXES)


@dataclass(frozen=True, slots=True)
class Launched:
    """The facts about all launches of a kernel: the intervals of their sizes, for x, y, z.

    `max_threads` is the largest possible block, `min_blocks` the number of blocks that must fit on
    an SM, 0 if unspecified.
    """

    grid: tuple[Interval, ...] = ((0, INT64_MAX),) * AXIS_COUNT
    block: tuple[Interval, ...] = ((0, INT64_MAX),) * AXIS_COUNT
    max_threads: tuple[int, ...] = (0, 0, 0)
    min_blocks: int = 0

    @property
    def blocks(self) -> tuple[int | None, ...]:
        """The sizes of a block that are one constant, else None."""
        return tuple(low if low == high else None for low, high in self.block)

    @property
    def most_threads(self) -> int:
        """The limit of threads in a block."""
        return min(prod(high for _, high in self.block), MAX_THREADS)


def launched(program: ops.Program) -> dict[str, Launched]:
    """The common facts of the launches of each kernel."""
    known: dict[ops.Value, Interval] = {}
    found: dict[str, list[ops.Launch]] = {}
    for op in program.host.facts.ops:
        match op:
            case ops.Constant(result, int(value)):
                known[result] = (value, value)
            case ops.Size(result, dim):
                known[result] = interval(dim)
            case ops.Launch(kernel):
                found.setdefault(kernel, []).append(op)
    return {
        kernel: Launched(
            _hull(known, [launch.grid for launch in launches]),
            _hull(known, [launch.block for launch in launches]),
            _largest([launch.options.max_threads for launch in launches]),
            min(launch.options.min_blocks for launch in launches),
        )
        for kernel, launches in found.items()
    }


def _largest(launches: Sequence[tuple[int, int, int]]) -> tuple[int, ...]:
    """The largest specified block of the launches, for each axis; 0 if one does not specify it."""
    if not all(any(sizes) for sizes in launches):
        return (0, 0, 0)
    return tuple(max(max(sizes), 1) for sizes in zip(*launches, strict=True))


def _hull(
    known: Mapping[ops.Value, Interval], launches: Sequence[tuple[ops.Value, ...]]
) -> tuple[Interval, ...]:
    """For each axis, the interval that contains the sizes of all launches."""
    axes = []
    for sizes in zip(*launches, strict=True):
        lows, highs = zip(*(known.get(size, Int64.range) for size in sizes), strict=True)
        axes.append((min(lows), max(highs)))
    return tuple(axes)
