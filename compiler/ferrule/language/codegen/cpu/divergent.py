"""Finds loops that each thread of a kernel ends at another time.

    while steps < 64 and a * a + b * b < 4:
        a, b = a * a - b * b + x, 2 * a * b + y
        steps += 1

LLVM makes no vectors of them: whether a thread goes on is known only in the loop.  `masked` runs
such a loop for a group of threads, until the last of them has ended it.

`find` looks for kernels of this form: ops and guards without effect and such loops, in any order,
then anything.  The loops have no effect, and no loop inside; a thread does not go along a row of
its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Final

from ferrule.language.codegen.cpu import strips
from ferrule.language.codegen.cpu.counters import goes_along_rows
from ferrule.language.codegen.cpu.steady import Knowledge, without_effect
from ferrule.language.codegen.facts import guards
from ferrule.language.codegen.facts.uniform import needs
from ferrule.language.ir import ops
from ferrule.language.ir.facts import all_ops
from ferrule.specs import Boolean, DType
from ferrule.specs.deferred import dataclass

MOST_VALUES: Final = 12
"""The limit of values that a thread carries through its loop."""


@dataclass(frozen=True, slots=True)
class Stage:
    """A loop, and the ops before it that depend on the thread."""

    own: tuple[ops.Op, ...]
    loop: ops.While

    @property
    def before(self) -> ops.Region:
        """The ops, and the initial values of the loop."""
        return ops.Region(self.own, self.loop.initial)

    @property
    def iteration(self) -> ops.Region:
        """The ops of an iteration, with the test; its arguments are the carried values."""
        loop = self.loop
        yields = (*loop.test.yields, *loop.body.yields)
        return ops.Region((*loop.test.ops, *loop.body.ops), yields)


@dataclass(frozen=True, slots=True)
class Form:
    """The parts of a kernel: its loops, each after some ops, and what follows.

    `alike` are ops that are the same for all threads, with the guards between them, and `known` are
    conditions.
    """

    alike: tuple[ops.SimpleOp | strips.Guard, ...]
    known: Mapping[ops.Value, bool]
    stages: tuple[Stage, ...]
    after: ops.Region

    def flow(self) -> Flow:
        """The values that cross from one part into another."""
        flow = Flow()
        for stage in self.stages:
            flow.part(stage.before, stage.own)
            flow.part(stage.iteration, (stage.loop,), stage.loop.carried)
        flow.part(self.after, ())
        return flow


def find(
    kernel: ops.Function, plan: guards.AxisPlan, known: Mapping[ops.Value, bool]
) -> Form | None:
    """The parts of a kernel of this form.  `known`: conditions of the loops outside."""
    if not kernel.facts.has(ops.While):
        return None
    knowledge, degrees = Knowledge.of(plan, known), strips.Degrees.of_plan(plan)
    alike, own = list[ops.SimpleOp | strips.Guard](), list[ops.Op]()
    stages, rest = list[Stage](), list(reversed(kernel.body.ops))
    while rest:
        op = rest[-1]
        match op:
            case ops.If(results=()) if (
                len(rest) == 1 and (holds := strips.passes(op, knowledge)) is not None
            ):
                if op.condition not in knowledge.truths:
                    alike.append(strips.Guard(op.condition, holds))
                rest = list(reversed((op.then if holds else op.otherwise).ops))
                continue
            case ops.While() if is_maskable(op) and not goes_along_rows(op, degrees):
                stages.append(Stage(tuple(own), op))
                knowledge.varying.update(op.results)
                own = []
            case ops.If() if all(map(_is_pure, all_ops(ops.Region((op,))))):
                knowledge.varying.update(op.results)
                degrees.known.update(dict.fromkeys(op.results))
                own.append(op)
            # What stands here and behind it is run by one thread after the other.
            case _ if not without_effect(op):
                break
            case _:
                degrees.take(op, [])
                (alike if knowledge.note(op) else own).append(op)
        rest.pop()
    after = ops.Region((*own, *reversed(rest)))
    return Form(tuple(alike), knowledge.truths, tuple(stages), after) if stages else None


def is_maskable(loop: ops.While) -> bool:
    """Whether threads can run a loop together, each as long as its test holds, in vectors."""
    if not 0 < len(loop.carried) <= MOST_VALUES:
        return False
    every = [*all_ops(loop.test), *all_ops(loop.body)]
    numbers = all(isinstance(value.type, DType) for value in loop.carried)
    return numbers and all(map(_is_pure, every))


def _is_pure(op: ops.Op) -> bool:
    """Whether an op has no effect, and reads no memory of a thread alone."""
    if isinstance(op, ops.If):
        return all(isinstance(result.type, DType) for result in op.results)
    # Such memory is reserved once for a function. The threads of a group would overwrite it before
    # the next part reads it.
    own = isinstance(op, ops.Load | ops.View) and op.tensor.tensor.is_own
    return without_effect(op) and not own


@dataclass(slots=True)
class Flow:
    """The values that parts of a kernel need of earlier ones.

    `kept` must be stored for later parts; others are made again by the op in `makers`.
    """

    kept: dict[ops.Value, None] = field(default_factory=dict)
    makers: dict[ops.Value, ops.SimpleOp] = field(default_factory=dict)
    made: set[ops.Value] = field(default_factory=set)
    needed: set[ops.Value] = field(default_factory=set)

    def part(
        self,
        region: ops.Region,
        own: tuple[ops.Op, ...],
        arguments: tuple[ops.Value, ...] = (),
    ) -> None:
        """Adds a part, which computes a region with these arguments; `own` define values for later
        parts."""
        for value in needs(region):
            if value not in arguments:
                self.need(value)
        for op in own:
            self.made.update(op.defined)
            if isinstance(op, ops.SimpleOp) and _is_made_again(op):
                self.makers[op.result] = op

    def need(self, value: ops.Value) -> None:
        """A part needs a value."""
        if value in self.needed:
            return
        self.needed.add(value)
        if value in self.makers:
            for operand in self.makers[value].operands:
                self.need(operand)
        elif value in self.made:
            self.kept[value] = None

    def sources(self, region: ops.Region) -> Iterator[ops.Value]:
        """The kept values that a region needs, or that make again what it needs."""
        todo, seen = list(needs(region)), set[ops.Value]()
        while todo:
            value = todo.pop()
            if value in seen:
                continue
            seen.add(value)
            if value in self.kept:
                yield value
            elif value in self.makers:
                todo += self.makers[value].operands


def _is_made_again(op: ops.SimpleOp) -> bool:
    """Whether an op costs less than a load, or is no number: LLVM then sees that neighbours access
    neighbouring elements."""
    match op:
        case ops.Constant() | ops.Special() | ops.Size(fault=None) | ops.View():
            return True
        case ops.Cast() | ops.Binary(op="add" | "sub" | "mul"):
            types = [op.result.type, *(operand.type for operand in op.operands)]
            return all(
                isinstance(each, DType) and each.is_integer and each is not Boolean
                for each in types
            )
    return False
