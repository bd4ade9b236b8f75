"""Accesses with one guard each: threads read a row in parts, and the row may end in any of them.

    for thread:                              for thread below min(T, n): total[thread] += a[thread]
        if thread < n: total += a[thread]    for thread below min(T, n - T):
        if T + thread < n:                       total[thread] += a[T + thread]
            total += a[T + thread]

On the left a vector of threads reads by a mask wherever the row could end, on the right each loop
ends with the row, and nothing is masked.  So each guard becomes a phase.  Each thread does the same
operations in the same order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final

from ferrule.language.codegen.facts.uniform import Uniform, needs
from ferrule.language.ir import ops
from ferrule.language.ir.walk import is_plain
from ferrule.specs import DType, Int32, Int64

FEWEST: Final = 64
"""The number of threads below which loops of their own take longer than masks."""

_ORDERS: Final = ("lt", "le", "gt", "ge")

Pieces = dict[ops.Op, tuple[bool, ...]]
"""The guards.  For each result of one: whether it can share the slot of the value that a thread
keeps where the guard fails.  It can if an earlier guard gave that value, and nothing else reads
it."""


def find(region: ops.Region, uniform: Uniform, makers: Mapping[ops.Value, ops.Op]) -> Pieces:
    """The guards of a region that become phases: none if it has one alone."""
    branches = (op for op in region.ops if isinstance(op, ops.If))
    guards = [op for op in branches if _is_guard(op, uniform, makers)]
    # What a thread has read of its parts of a row outlives these phases, so it is in memory.
    kept = {tensor for op in guards if any(map(_accesses, op.then.ops)) for tensor in _own(op)}
    found = [op for op in guards if any(map(_accesses, op.then.ops)) or kept & _own(op)]
    # One guard alone costs a masked vector; as a phase, what else stands there would go through
    # slots.
    if len(found) < 2:
        return {}
    readers = Counter(value for op in region.ops for value in _read(op))
    readers.update(region.yields)
    given = {result for op in found for result in op.results}
    return {
        op: tuple(value in given and readers[value] == 1 for value in op.otherwise.yields)
        for op in found
    }


def _is_guard(op: ops.If, uniform: Uniform, makers: Mapping[ops.Value, ops.Op]) -> bool:
    """Whether a branch guards accesses and arithmetic, and neighbouring threads pass it."""
    if uniform.in_frame(op):
        return False
    # Results go through slots, which have numbers. The other side is computed for all threads
    # (`phases.piece`), so it must not access memory.
    kept = all(isinstance(result.type, DType) for result in op.results)
    if not kept or not all(map(is_plain, op.otherwise.ops)) or not _is_end(op, uniform, makers):
        return False
    return all(is_plain(each) or isinstance(each, (ops.Load, ops.Store)) for each in op.then.ops)


def _is_end(op: ops.If, uniform: Uniform, makers: Mapping[ops.Value, ops.Op]) -> bool:
    """Whether a condition compares a place that grows with the thread with one that all share."""
    condition = makers.get(op.condition)
    if not isinstance(condition, ops.Compare) or condition.op not in _ORDERS:
        return False
    pairs = (condition.lhs, condition.rhs), (condition.rhs, condition.lhs)
    return any(end in uniform and _grows(place, uniform, makers) for place, end in pairs)


def _grows(value: ops.Value, uniform: Uniform, makers: Mapping[ops.Value, ops.Op]) -> bool:
    """Whether a value is the thread's x plus what is the same for all threads."""
    match makers.get(value):
        case ops.Special(_, "thread_idx", 0):
            return True
        case ops.Cast(result, inner) if result.type in (Int32, Int64):
            return _grows(inner, uniform, makers)
        case ops.Binary(_, "add", lhs, rhs):
            pairs = ((lhs, rhs), (rhs, lhs))
            return any(other in uniform and _grows(x, uniform, makers) for x, other in pairs)
    return False


def _accesses(op: ops.Op) -> bool:
    """Whether an op reads or writes memory that is not the thread's own."""
    return isinstance(op, (ops.Load, ops.Store)) and not op.tensor.tensor.is_own


def _own(op: ops.If) -> set[ops.Value]:
    """The thread's own tensors that a guard accesses."""
    accesses = (each for each in op.then.ops if isinstance(each, (ops.Load, ops.Store)))
    return {each.tensor for each in accesses if each.tensor.tensor.is_own}


def _read(op: ops.Op) -> set[ops.Value]:
    """The values that an op reads, also inside of it."""
    return set(needs(ops.Region((op,))))
