"""Estimates the cost of a region of the kernel IR, in operations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ferrule.language.ir import ops
from ferrule.language.ir.facts import all_ops
from ferrule.specs.deferred import dataclass

UNKNOWN: Final = 64
"""The assumed number of iterations of a loop without constant bounds."""

MOST: Final = 1 << 20
"""The largest cost: larger ones need no distinction."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Operations; `bounded`: it is at most that, otherwise some loop may have any number of
    iterations."""

    operations: int
    bounded: bool


def cost_of(body: ops.Region) -> Cost:
    """The cost of running a region once."""
    constants = {op.result: op.value for op in all_ops(body) if isinstance(op, ops.Constant)}
    operations, bounded = 0, True
    todo = [(body, 1)]
    while todo:
        region, times = todo.pop()
        for op in region.ops:
            operations = min(MOST, operations + times)
            trips: int | None = 1
            match op:
                case ops.For():
                    trips = _trips(op, constants)
                case ops.While():
                    trips = None
            bounded = bounded and trips is not None
            inner = min(MOST, times * (UNKNOWN if trips is None else trips))
            todo += [(each, inner) for each in op.regions]
    return Cost(max(1, operations), bounded)


def _trips(op: ops.For, constants: Mapping[ops.Value, bool | int | float]) -> int | None:
    """The iterations of a loop between constants."""
    bounds = [constants.get(value) for value in (op.start, op.stop, op.step)]
    match bounds:
        case [int(start), int(stop), int(step)] if step != 0:
            return len(range(start, stop, step))
    return None
