"""The interpreter of check programs, as LLVM code: `ferrule_check`.

`i32 ferrule_check(ptr table, ptr program, ptr args, i32 num_args, ptr values, ptr out)` runs a
program over the arguments of a call and decodes everything itself.  It sets the error of the first
check that fails and returns -1; or it returns 0, the leaves of all parameters are in the first
slots of `out` (each an i64, floats by their bits), and behind them is the value of each symbol.
`table` has the messages of relations, `values` is room for 8 numbers that they show.

It is safe for any argument: nothing is read before the rows in front of it have made sure that it
is there.  What a row may rely on is documented in `format`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from llvmlite import ir

from ferrule.compiler.checker.flow import FLOW, define_release, release_held
from ferrule.compiler.checker.format import ROW, Op
from ferrule.compiler.checker.frame import HELD, MACHINE, Ends, Frame
from ferrule.compiler.checker.numbers import NUMBERS
from ferrule.compiler.checker.objects import OBJECTS, define_device
from ferrule.compiler.checker.reports import report_table
from ferrule.compiler.checker.scalars import SCALARS, define_narrow
from ferrule.compiler.checker.tensors import TENSORS
from ferrule.compiler.messages.context import MAX_LOOPS, PROGRAM
from ferrule.compiler.messages.support import CHECK, RAISE
from ferrule.runtime.llvm.emitter import COLD, Emitter
from ferrule.runtime.llvm.layouts import I8, I32, I64, PTR


def _handlers() -> dict[Op, Callable[[Frame], None]]:
    tables = (FLOW, TENSORS, NUMBERS, SCALARS, OBJECTS)
    found = [(op, handler) for table in tables for op, handler in table.items()]
    if sorted(op for op, _ in found) != list(Op):
        raise AssertionError("every operation has one handler")
    return dict(found)


HANDLERS: Final = _handlers()


def define_check(emitter: Emitter) -> None:
    """See the module; `define_support` comes before."""
    define_release(emitter)
    define_narrow(emitter)
    define_device(emitter)
    names = ("table", "program", "args", "num_args", "values", "out")
    with emitter.define("ferrule_check", I32, CHECK.args, names=names, attributes=COLD) as check:
        machine = emitter.alloca(MACHINE, name="machine")
        emitter.call("memset", [machine, emitter.const_i32(0), emitter.const_i64(MACHINE.size)])
        for name, value in zip(names, check.args, strict=True):
            path = "context.program" if name == "program" else name
            emitter.store_field(machine, MACHINE, path, value)
        _prepare(emitter, machine, check.args[1], check.args[5])
        result = _run(emitter, machine)
        first = emitter.field_ptr(machine, MACHINE, "held0")
        with emitter.loop(emitter.const_i64(MAX_LOOPS)) as level:
            release_held(emitter, emitter.index(first, HELD, level))
        emitter.ret(result)


def _header(emitter: Emitter, program: ir.Value, name: str) -> ir.Value:
    return emitter.builder.zext(emitter.load_field(program, PROGRAM, name), I64)


def _prepare(emitter: Emitter, machine: ir.Value, program: ir.Value, out: ir.Value) -> None:
    """Room for symbols and the stack; no symbol has a value, each reads as 1."""
    leaves, count = (_header(emitter, program, name) for name in ("leaves", "symbols"))
    symbols = emitter.index(out, I64, leaves)
    owners = _room(emitter, I32, count)
    stack = _room(emitter, I64, _header(emitter, program, "stack"))
    for name, place in (("symbols", symbols), ("owners", owners), ("stack", stack)):
        emitter.store_field(machine, MACHINE, name, place)
    with emitter.loop(count) as i:
        emitter.store(emitter.const_i64(1), emitter.index(symbols, I64, i))
        emitter.store(emitter.const_i32(0), emitter.index(owners, I32, i))


def _room(emitter: Emitter, kind: ir.Type, count: ir.Value) -> ir.Value:
    """Room on the stack for as many elements as the program needs."""
    room = emitter.builder.alloca(kind, size=count)
    room.type = PTR
    return room


def _run(emitter: Emitter, machine: ir.Value) -> ir.Value:
    """Run rows until one ends the program; the status of the call."""
    build, program = emitter.builder, emitter.load_field(machine, MACHINE, "context.program")
    code = emitter.index(program, I8, _header(emitter, program, "code"))
    head = emitter.block("next")
    emitter.branch(head)
    emitter.at(head)
    pc = emitter.load_field(machine, MACHINE, "pc")
    emitter.store_field(machine, MACHINE, "pc", build.add(pc, emitter.const_i32(1)))
    row = emitter.index(code, ROW, build.zext(pc, I64))
    blocks = {op: emitter.block(op.name.lower()) for op in Op}
    switch = build.switch(emitter.load_field(row, ROW, "op"), blocks[Op.END])
    ends = _ends(emitter, head)
    frame = Frame(emitter, machine, row, ends)
    for op, block in blocks.items():
        if op is not Op.END:
            switch.add_case(ir.Constant(I8, int(op)), block)
        emitter.at(block)
        HANDLERS[op](frame)
    emitter.at(ends.refused)
    _raise(frame)
    return _joined(emitter, ends)


def _ends(emitter: Emitter, head: ir.Block) -> Ends:
    done, failed, refused = (emitter.block(name) for name in ("done", "failed", "refused"))
    emitter.at(refused)
    return Ends(head, done, failed, refused, emitter.builder.phi(I32, name="said"))


def _raise(frame: Frame) -> None:
    """Set the error of a message of the checker."""
    emitter, ends = frame.emitter, frame.ends
    frame.set("context.expected", frame.operand32("a"))
    table = emitter.bytes_constant(report_table()[0], align=8)
    args, count = frame.get("args"), frame.get("num_args")
    arguments = [table, ends.said, args, count, frame.machine]
    emitter.call(emitter.symbol("ferrule_raise", RAISE), arguments)
    frame.fail()


def _joined(emitter: Emitter, ends: Ends) -> ir.Value:
    """The status, behind both ends of a program."""
    behind = emitter.block("behind")
    for end in (ends.done, ends.failed):
        emitter.at(end)
        emitter.branch(behind)
    emitter.at(behind)
    status = emitter.builder.phi(I32, name="status")
    status.add_incoming(emitter.const_i32(0), ends.done)
    status.add_incoming(emitter.const_i32(-1), ends.failed)
    return status
