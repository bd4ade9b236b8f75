"""Loops that threads end at different times, for a group of threads at once.

    for thread:                  for group of threads:
        a = start[thread]            for thread in group: values[thread] = start[thread]
        while test(a):               while a thread of the group goes on:
            a = step(a)                  for thread in group:
        out[thread] = a                      a = values[thread]
                                             if test(a): values[thread] = step(a)
                                     for thread in group: out[thread] = values[thread]

LLVM makes masks of the branch, and vectors of the innermost loop, whose values then stay in
registers.  A thread whose test has failed keeps its values, so that it fails again, and nothing
else is run for it: on the right no thread does what it does not do on the left.  Each thread does
the same operations in the same order.

The last group may have fewer threads.  The innermost loop goes through all places, so that their
number is a constant, and does nothing at those without a thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from llvmlite import ir

from ferrule.language.codegen.cpu import strips
from ferrule.language.codegen.cpu.divergent import Form, Stage
from ferrule.language.codegen.cpu.rooms import Rooms
from ferrule.language.codegen.facts.uniform import needs
from ferrule.language.codegen.functions import hints, loops
from ferrule.language.codegen.functions.dispatch import emit_region, emit_simple
from ferrule.language.codegen.functions.lowering import FunctionLowering
from ferrule.language.codegen.values.arithmetic import intrinsic
from ferrule.language.ir import ops
from ferrule.language.ir.walk import drive
from ferrule.runtime.llvm.layouts import I1, I32, I64, VOID

GROUP: Final = 32
"""The threads of a group: several vectors, which do not wait for each other's results."""

_SIZE: Final = ir.Constant(I64, GROUP)
_FALSE: Final = ir.Constant(I1, 0)
_TRUE: Final = ir.Constant(I1, 1)

At = Callable[[ir.Value], None]
"""Defines the coordinates of the thread with a number."""


def emit(lowering: FunctionLowering, form: Form, first: ir.Value, end: ir.Value, at: At) -> None:
    """The kernel for the threads first <= i < end."""
    e, done = lowering.emitter, lowering.emitter.block("threads.none")
    some = e.block("threads")
    e.cond_branch(lowering.b.icmp_signed("<", first, end), some, done)
    e.at(some)
    with lowering.scope():
        strips.begin(lowering, form.alike, form.known, done)
        with _groups(lowering, first, end) as (low, count):
            _Group(lowering, form, at, low, count).emit()
    e.branch(done)
    e.at(done)


@contextmanager
def _groups(
    lowering: FunctionLowering, first: ir.Value, end: ir.Value
) -> Iterator[tuple[ir.Value, ir.Value]]:
    """The loop over groups; yields the first thread of one, and their number."""
    b = lowering.b
    rounded = b.add(b.sub(end, first), ir.Constant(I64, GROUP - 1))
    groups = b.sdiv(rounded, _SIZE)
    with loops.counted(lowering.emitter, loops.ZERO, groups, "group") as number:
        low = b.add(first, b.mul(number, _SIZE))
        yield low, intrinsic(b, "llvm.smin", b.sub(end, low), _SIZE)


class _Group:
    """The code for the threads of one group."""

    def __init__(
        self, lowering: FunctionLowering, form: Form, at: At, low: ir.Value, count: ir.Value
    ) -> None:
        self.lowering, self.form, self.at = lowering, form, at
        self.low, self.count = low, count
        self.flow = form.flow()
        self.kept = Rooms(lowering, self.flow.kept, GROUP)
        self.threads = lowering.group

    def emit(self) -> None:
        """The parts, one after the other."""
        for stage in self.form.stages:
            initial = Rooms(self.lowering, stage.loop.carried, GROUP)
            self.before(stage, initial)
            self.loop(stage, initial)
        after = self.form.after
        with self.lanes(after, self.count, self.threads) as lane:
            self.provide(after, self.kept, lane)
            drive(emit_region(self.lowering, after))

    # ---- parts ----

    def before(self, stage: Stage, initial: Rooms) -> None:
        """The ops before a loop, and its initial values."""
        lowering, region, loop = self.lowering, stage.before, stage.loop
        with self.lanes(region, self.count) as lane:
            self.provide(region, self.kept, lane)
            drive(emit_region(lowering, region))
            made = (result for op in stage.own for result in op.defined)
            self.kept.keep({value: value for value in made}, lane)
            initial.keep(dict(zip(loop.carried, loop.initial, strict=True)), lane)

    def loop(self, stage: Stage, initial: Rooms) -> None:
        """The loop, on arrays that nothing else accesses, which LLVM keeps in registers."""
        e, loop = self.lowering.emitter, stage.loop
        given = tuple(self.flow.sources(stage.iteration))
        own = Rooms(self.lowering, (*loop.carried, *given), GROUP)
        self.copy([(initial, own, loop.carried, loop.carried), (self.kept, own, given, given)])
        head, end = e.block("masked.head"), e.block("masked.end")
        e.branch(head)
        e.at(head)
        # LLVM would join an empty block with the loop over the lanes, and could not unroll that any
        # more; it says so on standard error.
        e.builder.call(_NOTHING, [])
        e.cond_branch(self.step(stage, own), head, end)
        e.at(end)
        self.copy([(own, self.kept, loop.carried, loop.results)])

    def step(self, stage: Stage, own: Rooms) -> ir.Value:
        """An iteration of the threads whose tests hold; returns whether there is one."""
        lowering, region, loop = self.lowering, stage.iteration, stage.loop
        with lowering.inside(loop, "masks"), self.lanes(region, _SIZE) as lane:
            lowering.say(f"{GROUP} threads run it until the last of them has ended it")
            some = _carried_bit(lowering.b, lane)
            lowering.values.update((v, own.load(v, lane)) for v in loop.carried)
            runs = self.masked(loop, lane, lambda: self.provide(region, own, lane))
            own.keep({value: value for value in loop.carried}, lane)
            some.add_incoming(lowering.b.or_(some, runs), lowering.b.block)
        return some

    def masked(self, loop: ops.While, lane: ir.Value, provide: Callable[[], None]) -> ir.Value:
        """Changes the carried values if the place has a thread and its test holds; returns whether
        it does."""
        lowering, e = self.lowering, self.lowering.emitter
        test, body, end = (e.block(f"masked.{part}") for part in ("test", "body", "next"))
        # A place without a thread leaves as a thread does whose test has failed: it keeps its
        # values. Each way is noted before its branch, in the block that the branch leaves.
        incoming = [self.leaves(loop.carried, _FALSE)]
        e.cond_branch(self.is_there(lane), test, end)
        e.at(test)
        provide()
        drive(emit_region(lowering, loop.test))
        incoming.append(self.leaves(loop.carried, _FALSE))
        e.cond_branch(lowering.values[loop.test.yields[0]], body, end)
        e.at(body)
        drive(emit_region(lowering, loop.body))
        incoming.append(self.leaves(loop.body.yields, _TRUE))
        e.branch(end)
        e.at(end)
        *carried, runs = self.merged(incoming)
        lowering.values.update(zip(loop.carried, carried, strict=True))
        return runs

    def leaves(self, values: Sequence[ops.Value], runs: ir.Value) -> _Way:
        """A way from here to the end of an iteration."""
        numbers = (self.lowering.values[value] for value in values)
        return self.lowering.b.block, (*numbers, runs)

    def merged(self, ways: Sequence[_Way]) -> list[ir.Value]:
        """The values at the end of an iteration."""
        phis = [self.lowering.b.phi(value.type) for value in ways[0][1]]
        for block, values in ways:
            for phi, value in zip(phis, values, strict=True):
                phi.add_incoming(value, block)
        return phis

    def is_there(self, lane: ir.Value) -> ir.Value:
        """Whether a place has a thread; in 32 bits, as most masks are."""
        b = self.lowering.b
        return b.icmp_signed("<", b.trunc(lane, I32), b.trunc(self.count, I32))

    # ---- threads ----

    @contextmanager
    def lanes(
        self, region: ops.Region, count: ir.Value, group: hints.Group | None = None
    ) -> Iterator[ir.Value]:
        """A loop over the first places of the group, with this body; `group`: its accesses."""
        lowering, e = self.lowering, self.lowering.emitter
        group = group or hints.access_group(e, body=region)
        lowering.group = group
        with lowering.scope(), loops.counted(e, loops.ZERO, count, "lane", group) as lane:
            self.at(lowering.b.add(self.low, lane, flags=("nsw",)))
            yield lane
        lowering.group = self.threads

    def provide(self, region: ops.Region, rooms: Rooms, lane: ir.Value) -> None:
        """Defines what a region needs of earlier parts."""
        rooms.define(self.flow.sources(region), lane)
        for value in needs(region):
            self.make(value)

    def make(self, value: ops.Value) -> None:
        """Makes a value again, after its operands."""
        op = self.flow.makers.get(value)
        if op is not None and value not in self.lowering.values:
            for operand in op.operands:
                self.make(operand)
            emit_simple(self.lowering, op)

    def copy(self, copies: Iterable[_Copy]) -> None:
        """Copies values of all places, which need not have a thread."""
        with self.lanes(ops.Region(), _SIZE) as lane:
            for source, target, values, names in copies:
                for value, name in zip(values, names, strict=True):
                    if name in target:
                        target.store(name, lane, source.load(value, lane))


_NOTHING: Final = ir.InlineAsm(ir.FunctionType(VOID, []), "", "", side_effect=True)
"""An instruction that is none."""
_Way = tuple[ir.Block, tuple[ir.Value, ...]]
"""Where an iteration ends, with the carried values there and whether its body ran."""

_Copy = tuple[Rooms, Rooms, Sequence[ops.Value], Sequence[ops.Value]]
"""Arrays to copy from, those to copy to, and the values there and here."""


def _carried_bit(b: ir.IRBuilder, counter: ir.Value) -> ir.Value:
    """A value that a loop carries beside its counter: false at first."""
    # LLVM wants all phis of a block before its other instructions.
    with b.goto_block(counter.parent):
        b.position_after(counter)
        bit = b.phi(I1)
    bit.add_incoming(_FALSE, counter.incomings[0][1])
    return bit
