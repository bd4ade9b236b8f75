"""Counters of loops, and loads that go through memory with them.

A *counter* is a carried value to which each iteration adds the same.  Where a loop begins alike for
all threads, those that have not ended it have the same counter.
"""

from __future__ import annotations

from collections.abc import Mapping

from ferrule.language.codegen.cpu.strips import Degrees
from ferrule.language.codegen.facts.spine import coefficient
from ferrule.language.codegen.values.scalars import dtype_of
from ferrule.language.ir import ops
from ferrule.language.ir.facts import all_ops


def counters(loop: ops.While) -> dict[ops.Value, ops.Value]:
    """The counters of a loop, and what an iteration adds to each: a value from outside, or of a
    constant in the body."""
    makers = {op.result: op for op in loop.body.ops if isinstance(op, ops.SimpleOp)}
    inside = {value for op in all_ops(loop.body) for value in op.defined} | {*loop.carried}
    found = {}
    for value, following in zip(loop.carried, loop.body.yields, strict=True):
        step = _step(value, makers.get(following))
        if step is not None and (step not in inside or isinstance(makers.get(step), ops.Constant)):
            found[value] = step
    return found


def _step(value: ops.Value, op: ops.SimpleOp | None) -> ops.Value | None:
    match op:
        case ops.Binary(_, "add", lhs, rhs) if value in (lhs, rhs) and lhs is not rhs:
            return rhs if lhs is value else lhs
    return None


def goes_along_rows(loop: ops.While, degrees: Degrees) -> bool:
    """Whether a thread reads one element after the other in a loop, and other threads read
    elsewhere, each in a row of its own.

    One thread is served by the first cache; the rows of many threads may evict each other.
    """
    own = dict.fromkeys(counters(loop), 1)
    initial = dict(zip(loop.carried, loop.initial, strict=True))
    alike = {value: 0 for value in own if degrees.of(initial[value]) == 0}
    degrees.known.update({**dict.fromkeys(loop.carried), **alike})
    degrees.known.update(dict.fromkeys(loop.results))
    steps: dict[ops.Value, int | None] = {**dict.fromkeys(loop.carried), **own}
    loads = (_follows(op, degrees, steps) for op in (*all_ops(loop.test), *all_ops(loop.body)))
    # A list: each op is recorded, also behind the first load along a row.
    return any([*loads])


def _follows(op: ops.Op, degrees: Degrees, steps: dict[ops.Value, int | None]) -> bool:
    """Records what the results of an op depend on; whether it is a load along a row."""
    if not isinstance(op, ops.SimpleOp):
        degrees.known.update(dict.fromkeys(op.defined))
        steps.update(dict.fromkeys(op.defined))
        return False
    orders = list[int | None]()
    degrees.take(op, orders)
    steps[op.result] = _step_of(op, steps)
    return None in orders and isinstance(op, ops.Load) and _is_next(op, steps)


def _step_of(op: ops.SimpleOp, steps: Mapping[ops.Value, int | None]) -> int | None:
    """1 if a result is a counter plus something that does not change in the loop, 0 if it does not
    change, None otherwise."""
    operands = [steps.get(value, 0) for value in op.operands]
    if isinstance(op, ops.Cast) and operands == [1] and dtype_of(op.result).is_integer:
        return 1
    return None if isinstance(op, ops.Load) and any(operands) else coefficient(op, 0, operands)


def _is_next(op: ops.Load, steps: Mapping[ops.Value, int | None]) -> bool:
    pairs = zip(op.indices, op.tensor.tensor.strides, strict=True)
    moving = [(steps.get(index, 0), stride) for index, stride in pairs if steps.get(index, 0) != 0]
    return moving == [(1, 1)]
