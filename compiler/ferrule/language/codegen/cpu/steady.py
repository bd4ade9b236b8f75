"""Hoists loads that are invariant in a loop over threads.

A kernel reads `page = table[block]` and then `a[page, i]`.  LLVM does not hoist the first load out
of the loop over threads, because a store of the loop may alias it, and then cannot see that the
second one is sequential.  But threads run in any order.  So memory that a thread reads before it
has any effect is not written by other threads of the launch; the thread itself may write it, but
later.

`find` collects the start of a kernel: ops without effect that do not depend on the thread, and, if
an `if` with an invariant condition comes next, those of both sides.  A load is executed only if a
thread executes it: if the loop has a thread, and on the taken side.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from typing import Final, TypeGuard

from llvmlite import ir

from ferrule.language.codegen.facts.guards import AxisPlan
from ferrule.language.codegen.functions.dispatch import emit_simple
from ferrule.language.codegen.functions.lowering import FunctionLowering
from ferrule.language.codegen.values.scalars import dtype_of, value_type
from ferrule.language.ir import ops
from ferrule.language.ir.operation import Effects
from ferrule.language.ir.walk import is_plain
from ferrule.runtime.llvm.layouts import I1
from ferrule.specs import Boolean
from ferrule.specs.deferred import dataclass

MAX_BRANCHES: Final = 8
"""The nesting depth up to which branches with unknown conditions are followed."""


@dataclass(frozen=True, slots=True)
class Steady:
    """The start of a region: the ops that are invariant in a loop over threads, in order.

    `known` are conditions that are the same for all threads.  If a branch on `condition`, which is
    invariant too, ends the prefix, `sides` are the starts of its sides: for true and for false.
    """

    prefix: tuple[ops.SimpleOp, ...] = ()
    known: Mapping[ops.Value, bool] = field(default_factory=dict)
    condition: ops.Value | None = None
    sides: tuple[Steady, ...] = ()

    def loads(self) -> tuple[ops.Value, ...]:
        """The results of the loads."""
        own = (op.result for op in self.prefix if isinstance(op, ops.Load))
        return (*own, *(load for side in self.sides for load in side.loads()))


def find(kernel: ops.Function, plan: AxisPlan, known: Mapping[ops.Value, bool]) -> Steady:
    """The invariant start of the innermost loop, which is planned by `plan`.

    `known`: conditions of the loops outside.
    """
    return _find(kernel.body, Knowledge.of(plan, known), MAX_BRANCHES)


@dataclass(slots=True)
class Knowledge:
    """The values that depend on the thread, and the conditions that are known in the loop."""

    plan: AxisPlan
    varying: set[ops.Value]
    truths: dict[ops.Value, bool]

    @classmethod
    def of(cls, plan: AxisPlan, known: Mapping[ops.Value, bool]) -> Knowledge:
        """The knowledge at the start of a kernel."""
        truths = {**known, **{bound.result: bound.holds for bound in plan.bounds}}
        return cls(plan, set(plan.fused), truths)

    def copy(self) -> Knowledge:
        """A copy for one side of a branch."""
        return Knowledge(self.plan, set(self.varying), dict(self.truths))

    def note(self, op: ops.SimpleOp) -> bool:
        """Records facts about a result; returns whether it must be computed and is invariant."""
        truth = self.truths.get(op.result, self.truth(op))
        if truth is not None:
            self.truths[op.result] = truth
        elif self.varies(op):
            self.varying.add(op.result)
        else:
            return True
        return False

    def truth(self, op: ops.SimpleOp) -> bool | None:
        """The truth of a condition derived from its operands, or None."""
        match op:
            case ops.Binary(_, "and", lhs, rhs):
                known = (self.truths.get(lhs), self.truths.get(rhs))
                return False if False in known else None if None in known else True
            case ops.Binary(_, "or", lhs, rhs):
                known = (self.truths.get(lhs), self.truths.get(rhs))
                return True if True in known else None if None in known else False
            case ops.Unary(_, "not", operand) if operand in self.truths:
                return not self.truths[operand]
        return None

    def varies(self, op: ops.SimpleOp) -> bool:
        """Whether the result of an op depends on the thread."""
        match op:
            case ops.Special(_, register, axis) if axis == self.plan.axis:
                # A fused loop goes over the threads of all blocks, so the block changes in it, too.
                fused = bool(self.plan.fused) and register == "block_idx"
                return fused or register == "thread_idx"
        return op.result in self.varying or not self.varying.isdisjoint(op.operands)


def _find(region: ops.Region, known: Knowledge, depth: int) -> Steady:
    found: list[ops.SimpleOp] = []
    rest = list(reversed(region.ops))
    while rest:
        op = rest.pop()
        match op:
            case ops.If():
                truth = known.truths.get(op.condition)
                if truth is not None:
                    rest = list(reversed((op.then if truth else op.otherwise).ops))
                elif not depth or op.condition in known.varying:
                    break
                else:
                    sides = (op.then, op.otherwise)
                    inside = tuple(_find(side, known.copy(), depth - 1) for side in sides)
                    return Steady(tuple(found), known.truths, op.condition, inside)
            # No other thread sees this, so it is no effect. What is read there is not hoisted: the
            # fragment varies.
            case ops.Store(tensor) if tensor.tensor.is_own:
                pass
            case ops.Fragment(result):
                known.varying.add(result)
            case _ if not without_effect(op):
                break
            case _ if known.note(op):
                found.append(op)
    return Steady(tuple(found), known.truths)


def without_effect(op: ops.Op) -> TypeGuard[ops.SimpleOp]:
    """Whether an op may run again, or earlier, without visible effect."""
    return is_plain(op) or (isinstance(op, ops.SimpleOp) and op.effects <= _REPEATABLE)


_REPEATABLE: Final[Effects] = frozenset(("reads",))


@contextmanager
def before_loop(
    lowering: FunctionLowering,
    kernel: ops.Function,
    plan: AxisPlan,
    first: ir.Value,
    end: ir.Value,
) -> Iterator[None]:
    """Emits the invariant ops before a loop over first <= i < end, which is emitted inside.

    If there is no such load, it emits nothing.
    """
    found = find(kernel, plan, conditions(lowering))
    if not found.loads():
        yield
        return
    e = lowering.emitter
    some, none = e.block("threads"), e.block("threads.none")
    e.cond_branch(lowering.b.icmp_signed("<", first, end), some, none)
    e.at(some)
    with lowering.scope():
        group, lowering.group = lowering.group, None
        _emit(lowering, found)
        lowering.group = group
        yield
    e.branch(none)
    e.at(none)


def conditions(lowering: FunctionLowering) -> dict[ops.Value, bool]:
    """The conditions that the loops outside made constant."""
    # By the op's type first: a kernel of many phases has thousands of values, for each of them.
    found = ((value, c) for value, c in lowering.values.items() if value.type is Boolean)
    return {value: bool(c.constant) for value, c in found if isinstance(c, ir.Constant)}


def define(lowering: FunctionLowering, known: Mapping[ops.Value, bool]) -> None:
    """Defines the known conditions as constants."""
    for condition, truth in known.items():
        lowering.values.setdefault(condition, ir.Constant(I1, int(truth)))


def _emit(lowering: FunctionLowering, found: Steady) -> None:
    """Defines the values of these ops; of ops in a branch, only those of its loads."""
    define(lowering, found.known)
    for op in found.prefix:
        emit_simple(lowering, op)
    if found.condition is None or not any(side.loads() for side in found.sides):
        return
    e, blocks = lowering.emitter, [lowering.emitter.block(name) for name in ("then", "else")]
    end = e.block("endif")
    e.cond_branch(lowering.values[found.condition], *blocks)
    incoming = []
    for block, side in zip(blocks, found.sides, strict=True):
        e.at(block)
        with lowering.scope():
            _emit(lowering, side)
            made = {load: lowering.values[load] for load in side.loads()}
        incoming.append((lowering.b.block, made))
        e.branch(end)
    e.at(end)
    for side in found.sides:
        _merge(lowering, side.loads(), incoming)


def _merge(
    lowering: FunctionLowering,
    loads: Sequence[ops.Value],
    incoming: Sequence[tuple[ir.Block, dict[ops.Value, ir.Value]]],
) -> None:
    """Phis for the loads of one side; nothing reads the zeros of the other."""
    for load in loads:
        kind = value_type(dtype_of(load))
        phi = lowering.b.phi(kind, name=load.hint)
        for block, made in incoming:
            phi.add_incoming(made.get(load, ir.Constant(kind, 0)), block)
        lowering.values[load] = phi
