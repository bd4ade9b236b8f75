"""Waiting of the threads of a block: a record for each thread, and the scheduler.

`settle(records, count)` is called when no thread of a block can run: it releases the threads whose
condition is fulfilled, and returns whether there are any.  If there are none and not all threads
have returned, `blame(records, count, values, …)` finds the reason: the threads diverged.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from typing import Final

from llvmlite import ir

from ferrule.language.codegen.functions.loops import ZERO, counted
from ferrule.language.codegen.values.arithmetic import intrinsic
from ferrule.language.ir import ops
from ferrule.runtime.llvm.emitter import Emitter
from ferrule.runtime.llvm.layouts import I1, I32, I64, PTR, Field, Layout

RECORD: Final = Layout(
    "wait",
    [
        Field("handle", PTR),
        Field("value", I64),  # the thread's operand, or the address of its mbarrier
        Field("given", I64),  # its operand, for the threads that are released with it
        Field("state", I32),
        Field("site", I32),  # the number of the op at which it waits; if it failed, its fault
        Field("mask", I32),  # of a warp op
        Field("id", I32),  # of a barrier; for an mbarrier, the phase
        Field("count", I32),  # of a barrier; 0 where it is none
    ],
)


class State(IntEnum):
    """The state of a thread."""

    READY = 0
    DONE = 1
    FAILED = 2
    AT_BARRIER = 3
    IN_WARP = 4
    AT_MBARRIER = 5


class Outcome(IntEnum):
    """The result of `settle`."""

    FINISHED = 0
    GOES_ON = 1
    STUCK = 2


SETTLE: Final = "ferrule_settle"
BLAME: Final = "ferrule_blame"
# PTX has sixteen named barriers in a block.
BARRIERS: Final = 16


def settle(e: Emitter) -> ir.Function:
    """`i32 ferrule_settle(records, i64 count)`, made at its first use."""
    known = e.module.globals.get(SETTLE)
    if known is not None:
        return known
    names, attributes = ["records", "count"], ("nounwind",)
    with e.define(
        SETTLE, I32, [PTR, I64], names=names, linkage="internal", attributes=attributes
    ) as function:
        _Settle(e, *function.args).emit()
    return function


class _Settle:
    """`settle` under construction."""

    def __init__(self, e: Emitter, records: ir.Value, count: ir.Value) -> None:
        self.e, self.b, self.records, self.count = e, e.builder, records, count
        self.arrived = _zeros(e, "arrived")
        self.wanted = _zeros(e, "wanted")
        self.taken = _zeros(e, "taken")
        self.outcome = e.alloca(I32, name="outcome")

    def emit(self) -> None:
        e = self.e
        e.store(e.const_i32(Outcome.FINISHED), self.outcome)
        with threads(e, self.records, self.count, "arrived") as (_, record):
            state = e.load_field(record, RECORD, "state")
            with e.if_then(e.icmp("ne", state, e.const_i32(State.DONE))):
                self.at_least(Outcome.STUCK)
            with e.if_then(e.icmp("eq", state, e.const_i32(State.AT_BARRIER))):
                self.arrive(record)
        # All have been counted by now: a thread that is let go no longer counts as arrived.
        with threads(e, self.records, self.count, "waiting") as (thread, record):
            state = e.load_field(record, RECORD, "state")
            with e.if_then(e.icmp("eq", state, e.const_i32(State.AT_BARRIER))):
                self.pass_barrier(record)
            with e.if_then(e.icmp("eq", state, e.const_i32(State.IN_WARP))):
                self.pass_warp(thread, record)
            with e.if_then(e.icmp("eq", state, e.const_i32(State.AT_MBARRIER))):
                self.pass_mbarrier(record)
        e.ret(e.load(self.outcome, I32))

    def at_least(self, outcome: Outcome) -> None:
        """Records a result; `GOES_ON` has priority over the others."""
        e, known = self.e, self.e.load(self.outcome, I32)
        goes_on = e.icmp("eq", known, e.const_i32(Outcome.GOES_ON))
        e.store(e.select(goes_on, known, e.const_i32(outcome)), self.outcome)

    def slot(self, array: ir.Value, record: ir.Value) -> ir.Value:
        """The element of an array for the barrier of a thread."""
        number = self.b.zext(self.e.load_field(record, RECORD, "id"), I64)
        return self.e.index(array, I32, number)

    def arrive(self, record: ir.Value) -> None:
        """Counts a thread at its barrier; all threads there must have the same count."""
        e, b = self.e, self.b
        arrived, wanted = self.slot(self.arrived, record), self.slot(self.wanted, record)
        before, count = e.load(arrived, I32), e.load_field(record, RECORD, "count")
        agreed = e.icmp("eq", e.load(wanted, I32), count)
        # Threads that disagree set the count to 0, which `pass_barrier` takes for one that is never
        # reached.
        alike = b.select(agreed, count, e.const_i32(0))
        first = e.icmp("eq", before, e.const_i32(0))
        e.store(b.select(first, count, alike), wanted)
        e.store(b.add(before, e.const_i32(1)), arrived)

    def pass_barrier(self, record: ir.Value) -> None:
        """Releases a thread if enough have arrived, and no more threads than the barrier's
        count."""
        e, b = self.e, self.b
        arrived = e.load(self.slot(self.arrived, record), I32)
        wanted = e.load(self.slot(self.wanted, record), I32)
        taken_at = self.slot(self.taken, record)
        taken = e.load(taken_at, I32)
        enough = b.and_(e.icmp("sgt", wanted, e.const_i32(0)), e.icmp("sge", arrived, wanted))
        with e.if_then(b.and_(enough, e.icmp("slt", taken, wanted))):
            e.store(b.add(taken, e.const_i32(1)), taken_at)
            self.let_go(record)

    def pass_warp(self, thread: ir.Value, record: ir.Value) -> None:
        """Releases the lanes of a mask if all have arrived."""
        e, b = self.e, self.b
        absent = e.alloca(I32, name="absent")
        own = own_bit(e, thread, record)
        e.store(b.select(own, e.const_i32(0), e.const_i32(1)), absent)
        with lanes(e, self.records, self.count, thread, record) as (_, other):
            here = same_warp_op(e, record, other)
            known = e.load(absent, I32)
            e.store(b.select(here, known, e.const_i32(1)), absent)
        with e.if_then(e.icmp("eq", e.load(absent, I32), e.const_i32(0))):
            with lanes(e, self.records, self.count, thread, record) as (_, other):
                self.let_go(other)

    def pass_mbarrier(self, record: ir.Value) -> None:
        """Releases a thread if its phase has ended: then the barrier has the other phase in its
        lowest bit."""
        e, b = self.e, self.b
        place = b.inttoptr(e.load_field(record, RECORD, "value"), PTR)
        known = b.trunc(e.load(place, I64), I1)
        phase = b.trunc(e.load_field(record, RECORD, "id"), I1)
        with e.if_then(b.xor(known, phase)):
            self.let_go(record)

    def let_go(self, record: ir.Value) -> None:
        e = self.e
        # A copy: the first lane that goes on may come to its next op, and store its next `value`,
        # before the others have read this one.
        e.store_field(record, RECORD, "given", e.load_field(record, RECORD, "value"))
        e.store_field(record, RECORD, "state", e.const_i32(State.READY))
        self.at_least(Outcome.GOES_ON)


# ---- iterating over threads ----


@contextmanager
def threads(
    e: Emitter, records: ir.Value, count: ir.Value, name: str
) -> Iterator[tuple[ir.Value, ir.Value]]:
    """A loop over the threads of a block: number and record."""
    with counted(e, ZERO, count, name) as thread:
        yield thread, e.index(records, RECORD, thread)


@contextmanager
def lanes(
    e: Emitter, records: ir.Value, count: ir.Value, thread: ir.Value, record: ir.Value
) -> Iterator[tuple[ir.Value, ir.Value]]:
    """A loop over the threads in the mask of a thread's warp op."""
    mask = e.load_field(record, RECORD, "mask")
    first = e.builder.and_(thread, e.const_i64(-ops.WARP_SIZE))
    with counted(e, ZERO, e.const_i64(ops.WARP_SIZE), "lane") as lane:
        other = e.builder.add(first, lane)
        named = e.builder.trunc(e.builder.lshr(mask, e.builder.trunc(lane, I32)), I1)
        with e.if_then(e.builder.and_(named, e.icmp("slt", other, count))):
            yield other, e.index(records, RECORD, other)


def own_bit(e: Emitter, thread: ir.Value, record: ir.Value) -> ir.Value:
    """Whether the mask of a thread's warp op includes its own lane."""
    b, mask = e.builder, e.load_field(record, RECORD, "mask")
    lane = b.and_(b.trunc(thread, I32), e.const_i32(ops.WARP_SIZE - 1))
    return b.trunc(b.lshr(mask, lane), I1)


def same_warp_op(e: Emitter, record: ir.Value, other: ir.Value) -> ir.Value:
    """Whether another thread is in the same warp op with the same mask."""
    return _alike(e, record, other, State.IN_WARP, ("site", "mask"))


def same_barrier(e: Emitter, record: ir.Value, other: ir.Value) -> ir.Value:
    """Whether another thread waits at the same barrier."""
    return _alike(e, record, other, State.AT_BARRIER, ("id",))


def _alike(
    e: Emitter, record: ir.Value, other: ir.Value, state: State, fields: tuple[str, ...]
) -> ir.Value:
    alike = e.icmp("eq", e.load_field(other, RECORD, "state"), e.const_i32(state))
    for name in fields:
        values = (e.load_field(each, RECORD, name) for each in (record, other))
        alike = e.builder.and_(alike, e.icmp("eq", *values))
    return alike


def _zeros(e: Emitter, name: str) -> ir.Value:
    """A number for each barrier, 0 at first."""
    array = e.alloca(I32, BARRIERS, name=name)
    for position in range(BARRIERS):
        e.store(e.const_i32(0), e.index(array, I32, position))
    return array


# ---- missing threads ----


def blame(e: Emitter) -> ir.Function:
    """`i32 ferrule_blame(records, count, values, i64 block x y z, block size x y)`.

    Finds the first thread that waits, stores the values of its fault and returns twice the number
    of its op, plus 1 if the op's mask does not include the thread.
    """
    known = e.module.globals.get(BLAME)
    if known is not None:
        return known
    names = ["records", "count", "values", "x", "y", "z", "width", "height"]
    attributes = ("nounwind", "cold", "minsize", "optsize", "noinline")
    with e.define(
        BLAME,
        I32,
        [PTR, I64, PTR] + [I64] * 5,
        names=names,
        linkage="internal",
        attributes=attributes,
    ) as function:
        _Blame(e, *function.args).emit()
    return function


class _Blame:
    """`blame` under construction."""

    def __init__(
        self, e: Emitter, records: ir.Value, count: ir.Value, values: ir.Value, *sizes: ir.Value
    ) -> None:
        self.e, self.b, self.records, self.count, self.values = e, e.builder, records, count, values
        self.block, (self.width, self.height) = sizes[:3], sizes[3:]
        self.there, self.named, self.missing = (
            e.alloca(I64, name=name) for name in ("there", "named", "missing")
        )

    def emit(self) -> None:
        e, b = self.e, self.b
        for place, value in ((self.there, 0), (self.named, 0), (self.missing, -1)):
            e.store(e.const_i64(value), place)
        with threads(e, self.records, self.count, "thread") as (thread, record):
            state = e.load_field(record, RECORD, "state")
            with e.if_then(e.icmp("ne", state, e.const_i32(State.DONE))):
                site = b.shl(e.load_field(record, RECORD, "site"), e.const_i32(1))
                self.mbarrier(thread, record, state, site)
                with b.if_else(e.icmp("eq", state, e.const_i32(State.AT_BARRIER))) as (then, other):
                    with then:
                        self.barrier(record)
                    with other:
                        self.excluded(thread, record, site)
                        self.warp(thread, record)
                self.finish(site)
        e.ret(e.const_i32(0))

    def barrier(self, record: ir.Value) -> None:
        """Counts the threads at the barrier of a thread, and finds the missing ones."""
        e = self.e
        e.store(self.b.sext(e.load_field(record, RECORD, "count"), I64), self.named)
        with threads(e, self.records, self.count, "other") as (number, other):
            self.note(number, same_barrier(e, record, other))

    def mbarrier(self, thread: ir.Value, record: ir.Value, state: ir.Value, site: ir.Value) -> None:
        """Ends the function if a thread waits at a barrier in shared memory."""
        e = self.e
        with e.if_then(e.icmp("eq", state, e.const_i32(State.AT_MBARRIER))):
            with threads(e, self.records, self.count, "other") as (number, other):
                self.note(number, _alike(e, record, other, State.AT_MBARRIER, ("site",)))
            e.store(self.count, self.named)
            e.store(thread, self.missing)
            self.finish(site)

    def warp(self, thread: ir.Value, record: ir.Value) -> None:
        """Counts the threads in the warp op of a thread."""
        e = self.e
        with lanes(e, self.records, self.count, thread, record) as (number, other):
            e.store(self.b.add(e.load(self.named, I64), e.const_i64(1)), self.named)
            self.note(number, same_warp_op(e, record, other))

    def note(self, number: ir.Value, here: ir.Value) -> None:
        """Counts a present thread, or records the first missing one."""
        e, b = self.e, self.b
        there, missing = e.load(self.there, I64), e.load(self.missing, I64)
        e.store(b.add(there, b.zext(here, I64)), self.there)
        first = b.and_(b.not_(here), e.icmp("slt", missing, e.const_i64(0)))
        e.store(b.select(first, number, missing), self.missing)

    def excluded(self, thread: ir.Value, record: ir.Value, site: ir.Value) -> None:
        """Ends the function if a mask does not include its own thread."""
        e, b = self.e, self.b
        with e.if_then(b.not_(own_bit(e, thread, record))):
            mask = b.zext(e.load_field(record, RECORD, "mask"), I64)
            self.write(mask, *self.block, *self.coordinates(thread))
            e.ret(b.or_(site, e.const_i32(1)))

    def finish(self, site: ir.Value) -> None:
        e, b = self.e, self.b
        there, named, missing = (
            e.load(place, I64) for place in (self.there, self.named, self.missing)
        )
        # If more threads came than a barrier's count, none is missing.
        first = intrinsic(b, "llvm.smax", missing, ZERO)
        self.write(there, named, *self.block, *self.coordinates(first))
        e.ret(site)

    def coordinates(self, thread: ir.Value) -> tuple[ir.Value, ...]:
        """x, y and z of the thread with this number."""
        b, rows = self.b, self.b.udiv(thread, self.width)
        x, y = b.urem(thread, self.width), b.urem(rows, self.height)
        return x, y, b.udiv(rows, self.height)

    def write(self, *values: ir.Value) -> None:
        for position, value in enumerate(values):
            self.e.store(value, self.e.index(self.values, I64, position))
