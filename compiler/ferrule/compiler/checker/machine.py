"""The interpreter of check programs, as LLVM code: `ferrule_check`.

`i32 ferrule_check(ptr table, ptr program, ptr args, i32 num_args, ptr values, ptr out)` runs a
program over the arguments of a call and decodes all of them itself.  It sets the error of the first
check that fails and returns -1; or it returns 0, with the leaves of all parameters in the first
slots of `out` (each an i64, floats by their bits), followed by the value of each symbol.  If
`table` is null, it sets no error and returns the number of rows that it ran, a positive number.
`table` has the messages of relations; `values` is not used.

It is safe for any argument: rows read memory only after earlier rows have checked that it exists.
`format` documents the assumptions of each row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from llvmlite import ir

from ferrule.compiler.checker.flow import FLOW, RELEASE, define_release
from ferrule.compiler.checker.format import FORM_BITS, RARE, ROW, TABLE, Op
from ferrule.compiler.checker.frame import END, HANDLER, MACHINE, REFUSE, Frame, Status
from ferrule.compiler.checker.numbers import NUMBERS
from ferrule.compiler.checker.objects import OBJECTS, define_device
from ferrule.compiler.checker.scalars import SCALARS, define_big_float, define_narrow
from ferrule.compiler.checker.tensors import TENSORS
from ferrule.compiler.messages.context import PROGRAM
from ferrule.compiler.messages.support import CHECK, SAY
from ferrule.compiler.support.dispatch import define_table, handler_of, op_symbol
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
    """Define `ferrule_check`, see the module; without the handlers of `RARE` and the table of all
    handlers."""
    _define_refuse(emitter)
    _define_handlers(emitter, (op for op in Op if op not in RARE))
    _define_check(emitter)


def define_rare_rows(emitter: Emitter) -> None:
    """The handlers of `RARE`, and their helpers."""
    define_release(emitter)
    define_narrow(emitter)
    define_big_float(emitter)
    define_device(emitter)
    _define_handlers(emitter, RARE)


def define_row_table(emitter: Emitter) -> None:
    """The table of all handlers."""
    define_table(emitter, TABLE, HANDLER, [op_symbol(op) for op in Op])


def _define_handlers(emitter: Emitter, ops: Iterable[Op]) -> None:
    for op in ops:
        with emitter.define(
            op_symbol(op), I32, HANDLER.args, linkage="internal", attributes=COLD
        ) as handler:
            HANDLERS[op](Frame(emitter, *handler.args))


def _define_refuse(emitter: Emitter) -> None:
    """`i32 ferrule_end(ptr machine, ptr row, ptr message)`: end a handler with a message."""
    names = ("machine", "row", "message")
    with emitter.define(
        END, I32, REFUSE.args, names=names, linkage="internal", attributes=COLD
    ) as function:
        machine, row, message = function.args
        frame = Frame(emitter, machine, row)
        with emitter.if_then(emitter.is_null(frame.get("table"))):
            frame.fail()
        frame.set("context.expected", frame.operand32("a"))
        say = emitter.symbol("ferrule_say", SAY)
        emitter.ret(emitter.tail_call(say, [machine, message]))


def _define_check(emitter: Emitter) -> None:
    names = ("table", "program", "args", "num_args", "values", "out")
    paths = {"program": "context.program", "num_args": "context.num_args"}
    with emitter.define("ferrule_check", I32, CHECK.args, names=names, attributes=COLD) as check:
        machine = emitter.alloca(MACHINE, name="machine")
        emitter.clear(machine, MACHINE.size)
        for name, value in zip(names, check.args, strict=True):
            if name != "values":
                emitter.store_field(machine, MACHINE, paths.get(name, name), value)
        indices = emitter.field_ptr(machine, MACHINE, "index0")
        emitter.store_field(machine, MACHINE, "context.indices", indices)
        _prepare(emitter, machine, check.args[1], check.args[5])
        status = _run(emitter, machine)
        release = emitter.load_field(machine, MACHINE, "release")
        with emitter.if_then(emitter.builder.not_(emitter.is_null(release))):
            emitter.call_pointer(release, RELEASE, [machine])
        _answer(emitter, machine, status)


def _answer(emitter: Emitter, machine: ir.Value, status: ir.Value) -> None:
    """Return the result that the module documents, from the status of the last row."""
    with emitter.if_then(emitter.icmp("eq", status, emitter.const_i32(Status.DONE))):
        emitter.ret(emitter.const_i32(0))
    quiet = emitter.is_null(emitter.load_field(machine, MACHINE, "table"))
    reached = emitter.load_field(machine, MACHINE, "reached")
    emitter.ret(emitter.select(quiet, reached, emitter.const_i32(-1)))


def _header(emitter: Emitter, program: ir.Value, name: str) -> ir.Value:
    return emitter.builder.zext(emitter.load_field(program, PROGRAM, name), I64)


def _prepare(emitter: Emitter, machine: ir.Value, program: ir.Value, out: ir.Value) -> None:
    """Allocate symbols and the stack; symbols are unbound and read as 1."""
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
    """Allocate as many elements on the stack as the program needs."""
    room = emitter.builder.alloca(kind, size=count)
    room.type = PTR
    return room


def _run(emitter: Emitter, machine: ir.Value) -> ir.Value:
    """Run rows until one ends the program; its status."""
    build, program = emitter.builder, emitter.load_field(machine, MACHINE, "context.program")
    code = emitter.index(program, I8, _header(emitter, program, "code"))
    head, behind = emitter.block("next"), emitter.block("behind")
    emitter.branch(head)
    emitter.at(head)
    row, op = _next_row(emitter, machine, code)
    handler = handler_of(emitter, TABLE, op)
    status = emitter.call_pointer(handler, HANDLER, [machine, row])
    more = build.icmp_signed("==", status, emitter.const_i32(Status.NEXT))
    emitter.cond_branch(more, head, behind)
    emitter.at(behind)
    return status


def _next_row(emitter: Emitter, machine: ir.Value, code: ir.Value) -> tuple[ir.Value, ir.Value]:
    """The address of the row at `pc` and its operation; `pc` and `b` are set."""
    build = emitter.builder
    reached = emitter.load_field(machine, MACHINE, "reached")
    emitter.store_field(machine, MACHINE, "reached", build.add(reached, emitter.const_i32(1)))
    pc = emitter.load_field(machine, MACHINE, "pc")
    row = emitter.index(code, I8, build.zext(pc, I64))
    first = build.zext(emitter.load_field(row, ROW, "op"), I32)
    form = build.lshr(first, emitter.const_i32(FORM_BITS))
    size = build.add(build.shl(form, emitter.const_i32(2)), emitter.const_i32(ROW.size))
    emitter.store_field(machine, MACHINE, "pc", build.add(pc, size))
    emitter.store_field(machine, MACHINE, "b", _number_behind(emitter, row, form))
    op = build.and_(first, emitter.const_i32((1 << FORM_BITS) - 1))
    return row, build.zext(op, I64)


def _number_behind(emitter: Emitter, row: ir.Value, form: ir.Value) -> ir.Value:
    """The number of 0, 4 or 8 bytes after a row."""
    build, place = emitter.builder, emitter.index(row, I8, ROW.size)
    whole = build.load(place, align=4, typ=I64)
    half = build.sext(build.trunc(whole, I32), I64)
    some = build.select(emitter.icmp("eq", form, emitter.const_i32(1)), half, whole)
    none = emitter.icmp("eq", form, emitter.const_i32(0))
    return build.select(none, emitter.const_i64(0), some)
