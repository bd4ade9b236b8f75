"""Work that several CPU threads may share: a function that runs a part of it, and its call.

    i32 @blocks_<kernel>(ptr frame, ptr values, i64 first, i64 last)

runs the parts first <= i < last, for a kernel its blocks, in order.  It returns 0, or the number of
the first fault, whose values it stores in `values`.  `frame` has the values that the parts share, 8
bytes for each: see `Frame`.  Any number of threads call the function at the same time with one
frame, so it must not write to it, and its other memory is on its own stack.

A small amount of work is done with one call.  Otherwise `ferrule.compiler.threads` distributes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from llvmlite import ir

from ferrule.compiler.host.flow import failed
from ferrule.compiler.threads.state import (
    BAD_SETTING,
    CODE,
    RUN,
    RUN_TYPE,
    STATE,
    bad_setting,
)
from ferrule.language.codegen.functions import hints
from ferrule.language.codegen.functions.loops import ONE, ZERO
from ferrule.language.codegen.functions.lowering import FunctionLowering
from ferrule.runtime.llvm.emitter import Emitter
from ferrule.runtime.llvm.layouts import I32, I64, PTR
from ferrule.specs.deferred import dataclass

LITTLE: Final = 1 << 13
"""The operations of one thread that cost less than finding out the number of threads.

Some microseconds as scalars, less as vectors.
"""

_STATE: Final = "ferrule.threads"


@dataclass(frozen=True, slots=True)
class Frame:
    """The values that the parts of some work share: types and names, in order."""

    types: tuple[ir.Type, ...]
    names: tuple[str, ...]

    def store(self, emitter: Emitter, values: Sequence[ir.Value]) -> ir.Value:
        """The address of a frame on the stack that holds these values."""
        place = emitter.alloca(I64, max(1, len(self.types)), name="frame")
        for position, value in enumerate(values):
            emitter.store(value, emitter.index(place, I64, position))
        return place

    def load(self, emitter: Emitter, place: ir.Value) -> tuple[ir.Value, ...]:
        """The values of a frame."""
        return tuple(
            emitter.load(emitter.index(place, I64, position), kind, name=name)
            for position, (kind, name) in enumerate(zip(self.types, self.names, strict=True))
        )


@dataclass(frozen=True, slots=True)
class Work:
    """The amount of work: i64 values.

    `count` parts of about `cost` operations each; `bounded`: no part takes much longer than that.
    Threads take a multiple of `grain` parts at once.
    """

    count: ir.Value
    cost: ir.Value
    bounded: bool
    grain: ir.Value = ONE


@dataclass(frozen=True, slots=True)
class Part:
    """A function that runs parts of some work, under construction."""

    function: ir.Function
    frame: tuple[ir.Value, ...]
    values: ir.Value
    first: ir.Value
    last: ir.Value


@contextmanager
def part(emitter: Emitter, name: str, frame: Frame) -> Iterator[Part]:
    """Emit the function that runs parts; its end is emitted here."""
    names, attributes = ("frame", "values", "first", "last"), ("nounwind", "noinline")
    with emitter.define(
        name, I32, CODE.args, names=names, linkage="internal", attributes=attributes
    ) as function:
        hints.prefer_wide_vectors(function)
        place, values, first, last = function.args
        yield Part(function, frame.load(emitter, place), values, first, last)
        emitter.ret(ir.Constant(I32, 0))


def emit_work(
    lowering: FunctionLowering, function: ir.Function, frame: ir.Value, work: Work
) -> None:
    """Emit the call that runs all parts; if one failed, the host function ends with its status."""
    e, b, values = lowering.emitter, lowering.b, lowering.fault_values
    few = _divided(b, LITTLE, work.cost)
    little = work.bounded and _is_at_most(work.count, few)

    def alone() -> ir.Value:
        return e.call(function, [frame, values, ZERO, work.count], "status")

    def shared() -> ir.Value:
        # If blocks may take seconds, only the first one runs before the clock is read.
        piece = _multiple(b, few, work.grain)
        piece = piece if work.bounded else b.neg(piece)
        arguments = [threads_state(e), function, frame, values, work.count, piece, work.grain]
        status = e.call(e.symbol(RUN, RUN_TYPE), arguments, "status")
        is_setting = b.icmp_signed("==", status, ir.Constant(I32, BAD_SETTING))
        fault = ir.Constant(I32, lowering.faults.number(bad_setting()))
        return e.select(is_setting, fault, status)

    lowering.say(_spread(work, little=little))
    if little:
        status = alone()
    elif not work.bounded:
        status = shared()
    else:
        ways = []
        with b.if_else(b.icmp_signed("<=", work.count, few)) as (then, otherwise):
            for way, done in ((then, alone), (otherwise, shared)):
                with way:
                    ways.append((done(), b.block))
        status = b.phi(I32, name="status")
        for value, block in ways:
            status.add_incoming(value, block)
    with failed(e, status, "on"):
        e.ret(status)


def _spread(work: Work, *, little: bool) -> str:
    """Which threads of the machine do the work, for remarks."""
    if isinstance(work.count, ir.Constant) and work.count.constant <= 1:
        return "one thread of the machine runs it: it is one piece"
    if little:
        return "one thread of the machine runs it: it is too little work to share"
    return "the threads of the machine share it, above some 40 µs of work"


def product(b: ir.IRBuilder, factors: Sequence[ir.Value]) -> ir.Value:
    """The product of i64 values, which does not overflow; a constant if all are."""
    known, others = 1, []
    for factor in factors:
        if isinstance(factor, ir.Constant):
            known *= factor.constant
        else:
            others.append(factor)
    result = ir.Constant(I64, known)
    for factor in others:
        is_one = isinstance(result, ir.Constant) and result.constant == 1
        result = factor if is_one else b.mul(factor, result, flags=("nsw",))
    return result


def rounded_up(b: ir.IRBuilder, number: int, by: ir.Value) -> ir.Value:
    """A number divided by a value, rounded up; a value below 1 counts as 1."""
    if isinstance(by, ir.Constant):
        return ir.Constant(I64, -(-number // max(1, by.constant)))
    divisor = _at_least_1(b, by)
    return b.udiv(b.add(ir.Constant(I64, number - 1), divisor), divisor)


def _divided(b: ir.IRBuilder, number: int, by: ir.Value) -> ir.Value:
    if isinstance(by, ir.Constant):
        return ir.Constant(I64, number // max(1, by.constant))
    return b.udiv(ir.Constant(I64, number), _at_least_1(b, by))


def _at_least_1(b: ir.IRBuilder, value: ir.Value) -> ir.Value:
    return b.select(b.icmp_signed(">", value, ONE), value, ONE)


def _is_at_most(x: ir.Value, y: ir.Value) -> bool:
    """Whether x <= y is known."""
    known = isinstance(x, ir.Constant) and isinstance(y, ir.Constant)
    return known and x.constant <= y.constant


def _multiple(b: ir.IRBuilder, count: ir.Value, of: ir.Value) -> ir.Value:
    """The smallest positive multiple that is at least the count."""
    if isinstance(count, ir.Constant) and isinstance(of, ir.Constant):
        return ir.Constant(I64, -(-max(1, count.constant) // of.constant) * of.constant)
    multiple = b.mul(b.udiv(b.add(count, b.sub(of, ONE)), of), of)
    return b.select(b.icmp_signed(">", multiple, of), multiple, of)


def threads_state(emitter: Emitter) -> ir.Value:
    """The variable with the object's state about the OpenMP runtime."""
    known = emitter.module.globals.get(_STATE)
    if known is None:
        kind = ir.ArrayType(I64, STATE.size // 8)
        known = ir.GlobalVariable(emitter.module, kind, _STATE)
        known.linkage, known.initializer = "private", ir.Constant(kind, None)
        known.align = 8
        # llvmlite gives a global a typed pointer, which LLVM no longer accepts.
        known.type = PTR
    return known
