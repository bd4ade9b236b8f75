"""Kernels on the CPU whose threads may wait at different places: each thread is a coroutine.

    ptr @thread_of_<kernel>(frame, values, <parameters>, <shared tensors>, <symbols>,
                            <grid>, <block>, records, number, <block's place>, <thread's place>)

is called by `codegen.cpu.cooperate.coroutines`, which runs the threads of a block and decides which
thread goes on.  A thread that waits leaves its region early, as for a fault, with a status of its
own; after it is resumed it goes on at the same place.  Versions of MLIR spell LLVM's tokens
differently, so the text calls placeholder functions, which `completed` replaces by the coroutine
intrinsics.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence, Set
from dataclasses import field
from typing import Final

from ferrule.compiler.artefacts import Fault
from ferrule.language.codegen.cpu.cooperate import intrinsics, matrices, warps
from ferrule.language.codegen.cpu.cooperate.waiting import BARRIERS, RECORD, State
from ferrule.language.codegen.facts.uniform import Divergent, Uniform
from ferrule.language.codegen.functions.lowering import Faults
from ferrule.language.ir import ops, shared
from ferrule.language.ir.builder import Builder
from ferrule.language.ir.shared import cooperates
from ferrule.language.mlir import cooperative, kernels, memory, output
from ferrule.language.mlir.functions import FunctionText
from ferrule.language.mlir.text import Text
from ferrule.language.mlir.types import Spaces
from ferrule.specs import Int32, Int64
from ferrule.specs.deferred import dataclass

_BEGIN: Final = "ferrule.coroutine.begin"
_SIZE: Final = "ferrule.coroutine.size"
_SUSPEND: Final = "ferrule.coroutine.suspend"
_END: Final = "ferrule.coroutine.end"
_WAITS: Final = -1
"""The status of a thread that waits; the statuses of faults are positive."""
_DECLARED: Final = {
    _BEGIN: "(!llvm.ptr) -> !llvm.ptr",
    _SIZE: "() -> i64",
    _SUSPEND: "(i1) -> i8",
    _END: "(!llvm.ptr)",
}
_DECLARATION: Final = re.compile(r"^declare .*@ferrule\.coroutine\..*\n", re.M)
_BEGINNING: Final = re.compile(rf"^( *)(%\S+ = call ptr )@{_BEGIN}\((ptr %\S+)\)", re.M)
_HEADER: Final = re.compile(r'^(define ptr @"?thread_of_.*\)) \{$', re.M)
_ENDING: Final = re.compile(rf"call void @{_END}\((ptr %\S+)\)")


def waits_apart(kernel: ops.Function) -> bool:
    """Whether the threads of a kernel may wait at different places, so that it has no phases."""
    if not cooperates(kernel):
        return False
    try:
        Uniform.of(kernel)
    except Divergent:
        return True
    return False


def symbol(kernel: ops.Function) -> str:
    """The symbol of the function that starts a thread."""
    return f"thread_of_{kernel.name}"


def completed(text: str) -> str:
    """The LLVM IR with the coroutine intrinsics, in the form that the LLVM of llvmlite expects."""
    result = intrinsics.end_type()
    name = "" if str(result) == "void" else "%coroutine.ended = "
    kinds = "i32, ptr, ptr, ptr"
    identity = "call token @llvm.coro.id(i32 0, ptr null, ptr null, ptr null)"
    begin = rf"\1%coroutine = {identity}\n\1\2@llvm.coro.begin(token %coroutine, \3)"
    text = _BEGINNING.sub(begin, _DECLARATION.sub("", text))
    text = _HEADER.sub(r"\1 presplitcoroutine nounwind {", text)
    text = text.replace(f"@{_SIZE}()", "@llvm.coro.size.i64()")
    text = text.replace(f"@{_SUSPEND}(", "@llvm.coro.suspend(token none, ")
    end = rf"{name}call {result} @llvm.coro.end(\1, i1 false, token none)"
    return (
        f"{_ENDING.sub(end, text)}\n"
        f"declare token @llvm.coro.id({kinds})\n"
        "declare ptr @llvm.coro.begin(token, ptr)\n"
        "declare i64 @llvm.coro.size.i64()\n"
        "declare i8 @llvm.coro.suspend(token, i1)\n"
        f"declare {result} @llvm.coro.end(ptr, i1, token)\n"
    )


def emit_thread(t: Text, program: ops.Program, kernel: ops.Function, faults: Faults) -> None:
    """Emits the function that starts a thread of a kernel; see `completed`."""
    for name, kind in _DECLARED.items():
        t.declare(f"@{name}", f"  func.func private @{name}{kind}")
    places = tuple(shared.places(kernel)[0])
    given = [t.known(t.name(n), type_) for n, type_ in _parameters(program, kernel, len(places))]
    thread = _Thread.of(t, program, kernel, faults, given, places)
    listed = ", ".join(f"{name}: {t.types[name]}" for name in given)
    header = f'func.func @"{symbol(kernel)}"({listed}) -> !llvm.ptr'
    before, t.lines, t.prologue = t.lines, [], []
    with t.indented():
        thread.emit(given[0])
    t.lines = [*before, f"  {header} {{", *t.prologue, *t.lines, "  }"]


def _parameters(program: ops.Program, kernel: ops.Function, count: int) -> list[tuple[str, str]]:
    """Names and types of the function's parameters, in order."""
    own = [(f"parameter{i}", kernels.interface_type(p.type)) for i, p in enumerate(kernel.params)]
    sizes = [f"{of}.{axis}" for of in ("grid", "block") for axis in ops.AXES]
    places = [f"{of}.{axis}" for of in ("block_idx", "thread_idx") for axis in ops.AXES]
    return [
        *((name, "!llvm.ptr") for name in ("frame", "values")),
        *own,
        *((f"shared{i}", "!llvm.ptr") for i in range(count)),
        *((f"symbol{i}", "i64") for i, _ in enumerate(program.symbols)),
        *((name, "i64") for name in sizes),
        ("records", "!llvm.ptr"),
        *((name, "i64") for name in ("number", *places)),
    ]


@dataclass(slots=True)
class _Thread:
    """A thread under construction: the surroundings of the kernel's body."""

    kernel: ops.Function
    values: str
    sites: tuple[ops.Op, ...]
    records: str
    number: str
    f: FunctionText = field(init=False)
    handle: str = field(init=False)
    record: str = field(init=False)
    threads: str = field(init=False)
    warp: tuple[ops.Value, ops.Value, ops.Value] = field(init=False)
    """The thread's number, the number of threads, and a tensor of the values that all threads
    gave."""
    spaces: Spaces = field(default_factory=Spaces)
    unwritten: Set[ops.Value] = frozenset()
    approximates: bool = False
    native: bool = False
    unchecked: bool = False

    @classmethod
    def of(
        cls,
        t: Text,
        program: ops.Program,
        kernel: ops.Function,
        faults: Faults,
        given: Sequence[str],
        places: Sequence[ops.Value],
    ) -> _Thread:
        """Sorts the function's arguments by their role."""
        _, values, *rest = given
        records, number, *own = rest[-8:]
        sites = tuple(op for op in kernel.facts.ops if isinstance(op, ops.Synchronising))
        thread = cls(kernel, values, sites, records, number)
        thread.f = f = FunctionText(t, thread, faults=faults)
        receivers = [*kernel.params, *places]
        for value, argument in zip(receivers, rest, strict=False):
            f.values[value] = argument
        first = len(receivers)
        f.symbols = dict(zip(program.symbols, rest[first:], strict=False))
        sizes = rest[first + len(program.symbols) : -8]
        registers: tuple[ops.Register, ...] = ("grid_dim", "block_dim", "block_idx", "thread_idx")
        for position, size in enumerate((*sizes, *own)):
            f.coordinates[registers[position // 3], position % 3] = size
        return thread

    # ---- the function ----

    def emit(self, frame: str) -> None:
        """Emits the whole coroutine; called without a frame, it returns the size of the frame."""
        f, t = self.f, self.f.t
        tell, start, exit_, final, away = map(t.label, ("tell", "start", "exit", "final", "away"))
        null = t.op("llvm.mlir.zero : !llvm.ptr", "!llvm.ptr")
        there = t.op(f'llvm.icmp "ne" {frame}, {null} : !llvm.ptr', "i1")
        t.line(f"cf.cond_br {there}, {start}, {tell}")
        t.block(tell)
        size = t.op(f"func.call @{_SIZE}() : () -> i64", "i64")
        shown = t.op(f"llvm.inttoptr {size} : i64 to !llvm.ptr", "!llvm.ptr")
        t.line(f"return {shown} : !llvm.ptr")
        t.block(start)
        call = f"func.call @{_BEGIN}({frame}) : (!llvm.ptr) -> !llvm.ptr"
        self.handle = t.op(call, "!llvm.ptr", "handle")
        f.exits.append(exit_)
        self.body()
        self.state(State.DONE)
        t.line(f"cf.br {final}")
        self.leave(exit_, final, away)
        t.block(final)
        self.suspend(last=True)
        t.line(f"cf.br {away}")
        t.block(away)
        t.line(f"func.call @{_END}({self.handle}) : (!llvm.ptr) -> ()")
        t.line(f"return {self.handle} : !llvm.ptr")

    def leave(self, exit_: str, final: str, away: str) -> None:
        """Emits the block to which a region goes that ended early: the thread waits, or it
        failed."""
        t, failed = self.f.t, self.f.t.label("failed")
        status = t.known(t.name("status"), "i32")
        t.block(exit_, f"({status}: i32)")
        waits = t.icmp("eq", status, t.integer(_WAITS, "i32"))
        t.line(f"cf.cond_br {waits}, {away}, {failed}")
        t.block(failed)
        self.state(State.FAILED, site=status)
        t.line(f"cf.br {final}")

    def body(self) -> None:
        """Emits the values of the function's arguments and the ops of the kernel."""
        f, t = self.f, self.f.t
        offset = t.binary("mul", self.number, t.const_i64(RECORD.size))
        self.record = self.at(self.records, offset)
        self.threads = cooperative.thread_count(f)
        for value, argument in list(f.values.items()):
            f.receive(value, argument)
        thread, count = ops.Value(Int32, "number"), ops.Value(Int32, "threads")
        f.integer(thread, self.number)
        f.integer(count, self.threads)
        given = ops.Value(warps.given_type(Int64, RECORD.size // 8), "given")
        place = self.at(self.records, t.const_i64(RECORD.offset("given")))
        f.values[given] = memory.at_pointer(f, given.tensor, place)
        self.warp = thread, count, given
        f.region(self.kernel.body)

    def at(self, pointer: str, offset: str) -> str:
        """The address `offset` bytes (i64) behind the pointer."""
        text = f"llvm.getelementptr {pointer}[{offset}] : (!llvm.ptr, i64) -> !llvm.ptr, i8"
        return self.f.t.op(text, "!llvm.ptr")

    def state(self, state: State, **fields: str) -> None:
        """Writes to the thread's record what the thread does."""
        t = self.f.t
        for name, value in {"state": t.integer(state, "i32"), **fields}.items():
            place = self.at(self.record, t.const_i64(RECORD.offset(name)))
            t.line(f"llvm.store {value}, {place} : {t.types[value]}, !llvm.ptr")

    def suspend(self, *, last: bool = False) -> str:
        """Suspends the coroutine; the result is 0 when the thread is resumed."""
        t = self.f.t
        return t.op(f"func.call @{_SUSPEND}({t.const_i1(last)}) : (i1) -> i8", "i8")

    def wait(self, op: ops.Op, state: State, **fields: str) -> None:
        """Suspends the thread until it may go on."""
        t, resumed = self.f.t, self.f.t.label("resumed")
        site = t.integer(self.sites.index(op), "i32")
        self.state(state, site=site, **fields)
        goes_on = t.icmp("eq", self.suspend(), t.integer(0, "i8"))
        waits = t.integer(_WAITS, "i32")
        t.line(f"cf.cond_br {goes_on}, {resumed}, {self.f.exit()}({waits} : i32)")
        t.block(resumed)

    # ---- as `Surroundings` ----

    def fails(self, op: ops.Op) -> bool:
        return isinstance(op, ops.Synchronising) or kernels.can_fail(op)

    def check(self, f: FunctionText, ok: str, fault: Fault, values: Sequence[str]) -> None:
        output.check(f, self.values, ok, fault, values)

    def print_(self, f: FunctionText, op: ops.Print) -> None:
        output.print_(f, op)

    def other(self, f: FunctionText, op: ops.Op) -> None:
        match op:
            case ops.Barrier():
                self.barrier(op)
            case ops.WarpBarrier(mask):
                self.wait(op, State.IN_WARP, mask=f.values[mask])
            case _ if isinstance(op, ops.Exchange):
                self.warp_op(op)
            case _ if isinstance(op, ops.MatrixOp):
                self.matrix_op(op)
            case ops.MBarrierWait(barrier, phase):
                place = memory.address(f, barrier)
                self.wait(op, State.AT_MBARRIER, value=place, id=f.values[phase])
            case _:
                kernels.alone(f, op, self.kernel)

    def barrier(self, op: ops.Barrier) -> None:
        """Waits at a barrier; no thread ever passes a barrier whose number does not exist."""
        t, values, zero = self.f.t, self.f.values, self.f.t.integer(0, "i32")
        number = zero if op.id is None else values[op.id]
        count = t.cast("trunci", self.threads, "i32") if op.count is None else values[op.count]
        exists = t.icmp("ult", number, t.integer(BARRIERS, "i32"))
        number, count = t.select(exists, number, zero), t.select(exists, count, zero)
        self.wait(op, State.AT_BARRIER, id=number, count=count)

    def warp_op(self, op: ops.Exchange) -> None:
        """Hands over this thread's value, waits, and computes the result from the values of the
        others."""
        values = self.f.values
        bits = self.simple(lambda b: warps.as_bits(b, warps.given_by(op)))
        self.wait(op, State.IN_WARP, mask=values[op.mask], value=values[bits])
        values[op.result] = values[self.simple(lambda b: warps.of_bits(b, op, *self.warp))]

    def matrix_op(self, op: ops.MatrixOp) -> None:
        """Writes the thread's operands behind the records, waits, computes its part of the result,
        and waits again: then no thread reads that memory any more."""
        t, (thread, count, _) = self.f.t, self.warp
        given = ops.Value(matrices.given_type(op), "matrices")
        size = t.binary("mul", self.threads, t.const_i64(RECORD.size))
        place = self.at(self.records, size)
        self.f.values[given] = memory.at_pointer(self.f, given.tensor, place)
        for each in (matrices.give, matrices.take):
            b = Builder()
            with b.region() as region:
                each(b, op, warps.Warp.of(b, thread, count), given)
            self.f.region(region.freeze())
            self.wait(op, State.IN_WARP, mask=self.f.values[op.mask])

    def simple(self, make: Callable[[Builder], ops.Value]) -> ops.Value:
        """Builds ops of the kernel IR and emits them."""
        b = Builder()
        with b.region() as region:
            made = make(b)
        self.f.region(region.freeze())
        return made
