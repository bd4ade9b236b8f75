"""Kernels whose threads may wait at different places: each thread is a coroutine.

`ptr @thread_<kernel>(frame, values of the kernel, values of the block, values of the thread)`
starts a thread, which runs until it waits or ends, and returns its handle; without a frame it only
returns the size of one, as a pointer.  The threads of a block run in the order of their numbers
until all wait; then those whose condition is fulfilled continue (see `waiting`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Final

from llvmlite import ir

from ferrule.language.codegen.cpu.cooperate import atomics, intrinsics, matrices, waiting, warps
from ferrule.language.codegen.cpu.cooperate.team import Team
from ferrule.language.codegen.cpu.cooperate.waiting import RECORD, Outcome, State
from ferrule.language.codegen.functions.dispatch import emit_region
from ferrule.language.codegen.functions.loops import ZERO, counted
from ferrule.language.codegen.functions.lowering import FunctionLowering, ThreadOp
from ferrule.language.ir import ops
from ferrule.language.ir.builder import Builder
from ferrule.language.ir.rules import divergence
from ferrule.language.ir.walk import drive
from ferrule.runtime.llvm.emitter import UNLIKELY, Emitter
from ferrule.runtime.llvm.layouts import I8, I32, I64, PTR
from ferrule.specs import Int32, Int64
from ferrule.specs.deferred import dataclass

Leave = Callable[[ir.Value], None]
"""Ends the blocks with a status, an i32."""

_FRAME_ALIGN: Final = 128
_REGISTERS: Final[tuple[ops.Register, ...]] = ("grid_dim", "block_dim", "block_idx", "thread_idx")
"""The order of the thread's parameters, three for each."""


@dataclass(frozen=True, slots=True)
class Coroutines:
    """The threads of a kernel as coroutines."""

    team: Team
    thread: ir.Function
    sites: tuple[ops.Synchronising, ...]
    frame_size: ir.Value
    """The size in bytes of a thread's frame, i64."""

    @classmethod
    def of(cls, team: Team, thread_elsewhere: str | None = None) -> Coroutines:
        """Defines the function of the kernel's thread, or declares one of another module."""
        sites = tuple(op for op in team.kernel.facts.ops if isinstance(op, ops.Synchronising))
        e = team.lowering.emitter
        if thread_elsewhere is None:
            thread = _define_thread(team, sites)
        else:
            kind = ir.FunctionType(PTR, _thread_types(team))
            thread = e.symbol(thread_elsewhere, kind)
        nothing = [ir.Constant(argument.type, None) for argument in thread.args]
        size = e.builder.ptrtoint(e.call(thread, nothing), I64)
        more = e.builder.add(size, e.const_i64(_FRAME_ALIGN - 1))
        return cls(team, thread, sites, e.builder.and_(more, e.const_i64(-_FRAME_ALIGN)))

    def room(self) -> ir.Value:
        """The size in bytes of all threads of a block."""
        b, own = self.team.lowering.b, RECORD.size + matrices.room(self.sites)
        return b.mul(self.team.threads, b.add(self.frame_size, ir.Constant(I64, own)))

    def run(self, memory: ir.Value) -> None:
        """Runs the block at the current coordinates, in memory that is aligned for frames."""
        lowering, e, b = self.team.lowering, self.team.lowering.emitter, self.team.lowering.b
        threads = self.team.threads
        records = e.index(memory, I8, b.mul(threads, self.frame_size))
        self.begin(memory, records)
        settle, again, stuck, done = (e.block(n) for n in ("settle", "again", "stuck", "finished"))
        e.branch(settle)
        e.at(settle)
        outcome = e.call(waiting.settle(e), [records, threads], "outcome")
        choice = b.switch(outcome, stuck)
        choice.add_case(ir.Constant(I32, int(Outcome.FINISHED)), done)
        choice.add_case(ir.Constant(I32, int(Outcome.GOES_ON)), again)
        e.at(again)
        with waiting.threads(e, records, threads, "resumed") as (_, record):
            ready = e.icmp("eq", e.load_field(record, RECORD, "state"), e.const_i32(State.READY))
            with e.if_then(ready):
                intrinsics.resume(e, e.load_field(record, RECORD, "handle"))
                self.leave_if_failed(record)
        e.branch(settle)
        e.at(stuck)
        self.diverged(lowering, records)
        e.at(done)

    def begin(self, memory: ir.Value, records: ir.Value) -> None:
        """Runs every thread until it waits."""
        lowering, e, b = self.team.lowering, self.team.lowering.emitter, self.team.lowering.b
        width, height, depth = self.team.shape.block
        place = lowering.coordinates
        block = [place["block_idx", axis] for axis in range(3)]
        with (
            counted(e, ZERO, depth, "thread.z") as z,
            counted(e, ZERO, height, "thread.y") as y,
            counted(e, ZERO, width, "thread.x") as x,
        ):
            number = b.add(b.mul(b.add(b.mul(z, height), y), width), x)
            frame = e.index(memory, I8, b.mul(number, self.frame_size))
            record = e.index(records, RECORD, number)
            e.store_field(record, RECORD, "state", e.const_i32(State.READY))
            own = [records, number, *block, x, y, z]
            handle = e.call(self.thread, [frame, *_handed(self.team), *own], "handle")
            e.store_field(record, RECORD, "handle", handle)
            self.leave_if_failed(record)

    def leave_if_failed(self, record: ir.Value) -> None:
        """Ends the blocks if a check of the thread failed."""
        e, lowering = self.team.lowering.emitter, self.team.lowering
        state = e.load_field(record, RECORD, "state")
        failed, passed = e.block("failed"), e.block("passed")
        e.cond_branch(e.icmp("eq", state, e.const_i32(State.FAILED)), failed, passed, UNLIKELY)
        e.at(failed)
        lowering.end(e.load_field(record, RECORD, "site"))
        e.at(passed)

    def diverged(self, lowering: FunctionLowering, records: ir.Value) -> None:
        """Ends the blocks with the fault of the first thread that waits in vain."""
        e, (width, height, _) = lowering.emitter, self.team.shape.block
        block = [lowering.coordinates["block_idx", axis] for axis in range(3)]
        arguments = [records, self.team.threads, lowering.fault_values, *block, width, height]
        which = e.call(waiting.blame(e), arguments, "which")
        words = (divergence.absent, divergence.excluded)
        name = self.team.kernel.name
        faults = [word(name, op) for op in self.sites for word in words]
        numbers = [ir.Constant(I32, lowering.faults.number(fault)) for fault in faults]
        constant = ir.Constant(ir.ArrayType(I32, len(numbers)), numbers)
        table = e.global_constant(f"faults_{name}", constant)
        at = e.index(table, I32, lowering.b.zext(which, I64))
        lowering.end(e.load(at, I32))


def _handed(team: Team) -> list[ir.Value]:
    """The arguments of a thread's function that are the same for all threads of the kernel."""
    lowering, shape = team.lowering, team.shape
    params = [lowering.values[param] for param in team.kernel.params]
    # At the declaration, where only types matter, shared memory has no address yet.
    null = lowering.emitter.null()
    shared = [lowering.values.get(tensor, null) for tensor in team.shared]
    symbols = list(lowering.symbols.values())
    return [lowering.fault_values, *params, *shared, *symbols, *shape.grid, *shape.block]


def _thread_types(team: Team) -> list[ir.Type]:
    """The parameter types of a thread's function."""
    return [PTR, *(value.type for value in _handed(team)), PTR] + [I64] * 7


def _define_thread(team: Team, sites: Sequence[ops.Synchronising]) -> ir.Function:
    """The function that starts a thread."""
    e, types = team.lowering.emitter, _thread_types(team)
    places = [f"{of}.{axis}" for of in ("block", "thread") for axis in ops.AXES]
    unnamed = [f"given.{position}" for position in range(len(types) - 9)]
    names = ["frame", *unnamed, "records", "number", *places]
    with e.define(
        f"thread_{team.kernel.name}",
        PTR,
        types,
        names=names,
        linkage="internal",
        attributes=("nounwind",),
    ) as function:
        intrinsics.mark(function)
        _Thread.of(team, sites, function).emit()
    return function


@dataclass(slots=True)
class _Thread:
    """A thread of a kernel under construction."""

    e: Emitter
    kernel: ops.Function
    lowering: FunctionLowering
    frame: ir.Value
    records: ir.Value
    number: ir.Value
    threads: ir.Value
    sites: Sequence[ops.Synchronising]
    record: ir.Value = field(init=False)
    handle: ir.Value = field(init=False)
    final: ir.Block = field(init=False)
    away: ir.Block = field(init=False)
    warp: tuple[ops.Value, ops.Value, ops.Value] = field(init=False)
    """The thread's number, the number of threads, and a tensor of the values of all threads."""

    @classmethod
    def of(cls, team: Team, sites: Sequence[ops.Synchronising], function: ir.Function) -> _Thread:
        """The arguments of the function, by name."""
        outer, rest = team.lowering, iter(function.args)
        frame = next(rest)
        lowering = FunctionLowering(outer.emitter, outer.faults, lines=outer.lines)
        lowering.fault_values = next(rest)
        lowering.values = {param: next(rest) for param in team.kernel.params}
        lowering.values |= {tensor: next(rest) for tensor in team.shared}
        lowering.symbols = {symbol: next(rest) for symbol in outer.symbols}
        sizes = (*team.shape.grid, *team.shape.block)
        given = [(size, next(rest)) for size in sizes]
        known = [size if isinstance(size, ir.Constant) else value for size, value in given]
        records, number, *places = rest
        for position, value in enumerate((*known, *places)):
            lowering.coordinates[_REGISTERS[position // 3], position % 3] = value
        threads = lowering.b.mul(lowering.b.mul(known[3], known[4]), known[5])
        thread = cls(outer.emitter, team.kernel, lowering, frame, records, number, threads, sites)
        lowering.thread_op, lowering.leave = thread.op, thread.fail
        return thread

    def emit(self) -> None:
        """The coroutine from its beginning to its end."""
        e, b = self.e, self.e.builder
        tell, start = e.block("tell"), e.block("start")
        self.final, self.away = e.block("final"), e.block("away")
        token = intrinsics.identity(e)
        size = intrinsics.frame_size(e)
        # Only LLVM knows how large the frame is, and says so only inside of the coroutine. So a
        # call without a frame asks for it.
        e.cond_branch(e.is_null(self.frame), tell, start)
        e.at(tell)
        e.ret(b.inttoptr(size, PTR))
        e.at(start)
        self.handle = intrinsics.begin(e, token, self.frame)
        self.record = e.index(self.records, RECORD, self.number)
        self.warp = self.define_warp()
        with self.lowering.inside(self.kernel.body, "threads", self.kernel.name):
            drive(emit_region(self.lowering, self.kernel.body))
        self.state(State.DONE)
        e.branch(self.final)
        self.close()

    def close(self) -> None:
        """The last suspend point, and the exits."""
        e = self.e
        e.at(self.final)
        never = e.block("never")
        last = e.builder.switch(intrinsics.suspend(e, last=True), self.away)
        last.add_case(ir.Constant(I8, 0), never)
        e.at(never)
        # LLVM does not allow that a coroutine goes on behind its final suspend point.
        e.builder.unreachable()
        e.at(self.away)
        intrinsics.end(e, self.handle)
        e.ret(self.handle)

    def define_warp(self) -> tuple[ops.Value, ops.Value, ops.Value]:
        """Values of the IR that warp ops need."""
        thread, count = ops.Value(Int32, "number"), ops.Value(Int32, "threads")
        self.lowering.define_integer(thread, self.number)
        self.lowering.define_integer(count, self.threads)
        given = ops.Value(warps.given_type(Int64, RECORD.size // 8), "given")
        self.lowering.values[given] = self.e.field_ptr(self.records, RECORD, "given")
        return thread, count, given

    def state(self, state: State, **fields: ir.Value) -> None:
        """Stores the thread's state in its record."""
        self.e.store_field(self.record, RECORD, "state", self.e.const_i32(state))
        for name, value in fields.items():
            self.e.store_field(self.record, RECORD, name, value)

    def fail(self, status: ir.Value) -> None:
        """Ends the thread with a fault."""
        self.state(State.FAILED, site=status)
        self.e.branch(self.final)

    def op(self, _: FunctionLowering, op: ThreadOp) -> None:
        """Emits an op of cooperating threads."""
        match op:
            case ops.Barrier():
                self.barrier(op)
            case ops.WarpBarrier(mask):
                self.wait(op, State.IN_WARP, mask=self.lowering.values[mask])
            case _ if isinstance(op, ops.Exchange):
                self.warp_op(op)
            case _ if isinstance(op, ops.MatrixOp):
                self.matrix_op(op)
            case ops.MBarrierWait(barrier, phase):
                place = self.e.builder.ptrtoint(self.lowering.values[barrier], I64)
                number = self.lowering.values[phase]
                self.wait(op, State.AT_MBARRIER, value=place, id=number)
            case _:
                atomics.alone(self.lowering, op)

    def barrier(self, op: ops.Barrier) -> None:
        """Waits at a barrier; no thread ever passes one that does not exist."""
        b, values = self.e.builder, self.lowering.values
        number = ir.Constant(I32, 0) if op.id is None else values[op.id]
        count = b.trunc(self.threads, I32) if op.count is None else values[op.count]
        exists = b.icmp_unsigned("<", number, ir.Constant(I32, waiting.BARRIERS))
        zero = ir.Constant(I32, 0)
        # `settle` has an array of the barriers: number 0 stays inside of it, and a count of 0 is
        # never reached.
        number, count = b.select(exists, number, zero), b.select(exists, count, zero)
        self.wait(op, State.AT_BARRIER, id=number, count=count)

    def warp_op(self, op: ops.Exchange) -> None:
        """Publishes a value, waits, and computes the result from the others' values."""
        lowering = self.lowering
        bits = self.simple(lambda b: warps.as_bits(b, warps.given_by(op)))
        self.wait(op, State.IN_WARP, mask=lowering.values[op.mask], value=lowering.values[bits])
        result = self.simple(lambda b: warps.of_bits(b, op, *self.warp))
        lowering.values[op.result] = lowering.values[result]

    def matrix_op(self, op: ops.MatrixOp) -> None:
        """Stores the thread's part after the records, waits, computes its part of the result, and
        waits again: then no thread needs the stored parts."""
        thread, count, _ = self.warp
        given = ops.Value(matrices.given_type(op), "matrices")
        self.lowering.values[given] = self.e.index(self.records, RECORD, self.threads)
        mask = self.lowering.values[op.mask]
        for each in (matrices.give, matrices.take):
            b = Builder()
            with b.region() as region:
                each(b, op, warps.Warp.of(b, thread, count), given)
            drive(emit_region(self.lowering, region.freeze()))
            self.wait(op, State.IN_WARP, mask=mask)

    def simple(self, make: Callable[[Builder], ops.Value]) -> ops.Value:
        """Emits ops of the IR."""
        b = Builder()
        with b.region() as region:
            made = make(b)
        drive(emit_region(self.lowering, region.freeze()))
        return made

    def wait(self, op: ops.Synchronising, state: State, **fields: ir.Value) -> None:
        """Suspends the thread until it may continue."""
        e = self.e
        self.state(state, site=e.const_i32(self.sites.index(op)), **fields)
        resumed = e.block("resumed")
        choice = e.builder.switch(intrinsics.suspend(e), self.away)
        choice.add_case(ir.Constant(I8, 0), resumed)
        e.at(resumed)
