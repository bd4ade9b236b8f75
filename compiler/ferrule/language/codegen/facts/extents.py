"""Intervals of the integers that a kernel computes from its coordinates.

Facts about the launches, such as constant block sizes, often show that an index cannot wrap; then a
loop over threads needs no check for it.
"""

from __future__ import annotations

from collections.abc import Iterable

from ferrule.compiler.cuda.limits import MAX_THREADS
from ferrule.language.codegen.facts.launched import Launched
from ferrule.language.ir import ops
from ferrule.specs import DType
from ferrule.specs.intervals import Interval


def extents(found: Iterable[ops.SimpleOp], launched: Launched) -> dict[ops.Value, Interval]:
    """The intervals of the results of ops, in order; results that could wrap have none."""
    known: dict[ops.Value, Interval] = {}
    for op in found:
        interval = _extent(op, known, launched)
        dtype = op.result.type
        if interval is None or not isinstance(dtype, DType) or not dtype.is_integer:
            continue
        if dtype.range[0] <= interval[0] and interval[1] <= dtype.range[1]:
            known[op.result] = interval
    return known


def _extent(
    op: ops.SimpleOp, known: dict[ops.Value, Interval], launched: Launched
) -> Interval | None:
    match op:
        case ops.Constant(_, int(value)):
            return value, value
        case ops.Special(_, "thread_idx", axis):
            return 0, min(launched.block[axis][1], MAX_THREADS) - 1
        case ops.Special(_, "block_dim", axis):
            return 1, min(launched.block[axis][1], MAX_THREADS)
        case ops.Cast(_, operand):
            return known.get(operand)
        case ops.Binary(_, "add" | "mul" as name, lhs, rhs) if lhs in known and rhs in known:
            return _combined(name, known[lhs], known[rhs])
    return None


def _combined(name: str, lhs: Interval, rhs: Interval) -> Interval:
    if name == "add":
        return lhs[0] + rhs[0], lhs[1] + rhs[1]
    products = [x * y for x in lhs for y in rhs]
    return min(products), max(products)
