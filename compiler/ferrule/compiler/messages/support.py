"""The support code of an object: what its wrappers need once a check has failed.

The same LLVM module for every object; what differs is the table of messages that each wrapper
hands over.  Nothing here is on the way of a call that succeeds.

* `void ferrule_raise(ptr table, i32 id, ptr args, i32 num_args, ptr values)`: set the error; a
  negative id says that it is set already.
* `i32 ferrule_check(ptr table, ptr program, ptr args, i32 num_args, ptr values, ptr out)`: run a
  check program over the arguments; 0 and their leaves in `out`, or -1 and the error is set.  It is
  defined by `ferrule.compiler.checker`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from llvmlite import ir

from ferrule.compiler.messages.reader import HEADER_LAYOUT, ROW_LAYOUT, SCRATCH
from ferrule.compiler.messages.segments import define_part
from ferrule.runtime.llvm.emitter import COLD, Emitter
from ferrule.runtime.llvm.layouts import BYTE_ARRAY, I8, I32, I64, PTR, VOID

_Read: TypeAlias = "Callable[[ir.Value, ir.Value], ir.Value]"

RAISE = ir.FunctionType(VOID, [PTR, I32, PTR, I32, PTR])
CHECK = ir.FunctionType(I32, [PTR, PTR, PTR, I32, PTR, PTR])


def define_support(emitter: Emitter) -> None:
    """All but the checker."""
    _define_raise(emitter, define_part(emitter))


def _define_raise(emitter: Emitter, part: ir.Function) -> None:
    names = ("table", "id", "args", "num_args", "values")
    with emitter.define(
        "ferrule_raise", VOID, RAISE.args, names=names, attributes=COLD
    ) as function:
        table, number, *call = function.args
        with emitter.if_then(emitter.icmp("slt", number, emitter.const_i32(0))):
            emitter.ret()
        scratch = emitter.alloca(I8, SCRATCH, name="scratch")
        fields = _row(emitter, table, number)
        first, count = fields["first"], fields["count"]

        def read(segment: ir.Value, out: ir.Value) -> ir.Value:
            emitter.call(part, [table, segment, *call, scratch, out])
            return out

        message = _message(emitter, read, first, count)
        kind = read(fields["kind"], emitter.alloca(BYTE_ARRAY, name="kind"))
        trace = read(fields["trace"], emitter.alloca(BYTE_ARRAY, name="trace"))
        _set_raised(emitter, kind, message, trace)
        emitter.call("free", [emitter.load_field(message, BYTE_ARRAY, "data")])
        emitter.ret()


def _row(emitter: Emitter, table: ir.Value, number: ir.Value) -> dict[str, ir.Value]:
    rows = emitter.index(table, HEADER_LAYOUT, 1)
    row = emitter.index(rows, ROW_LAYOUT, emitter.builder.zext(number, I64))
    return {name: emitter.load_field(row, ROW_LAYOUT, name) for name in ROW_LAYOUT.names}


def _message(emitter: Emitter, read: _Read, first: ir.Value, count: ir.Value) -> ir.Value:
    """Measure all parts, then write them one behind the other into memory from malloc."""
    build = emitter.builder
    part = emitter.alloca(BYTE_ARRAY, name="part")
    message = emitter.alloca(BYTE_ARRAY, name="message")
    emitter.store_field(message, BYTE_ARRAY, "size", emitter.const_i64(0))
    with emitter.loop(count) as i:
        size = emitter.load_field(read(build.add(first, i), part), BYTE_ARRAY, "size")
        total = build.add(emitter.load_field(message, BYTE_ARRAY, "size"), size)
        emitter.store_field(message, BYTE_ARRAY, "size", total)
    room = build.add(emitter.load_field(message, BYTE_ARRAY, "size"), emitter.const_i64(1))
    text = emitter.call("malloc", [room], "text")
    emitter.store_field(message, BYTE_ARRAY, "data", text)
    with emitter.if_then(build.icmp_unsigned("==", text, emitter.null()), likely=False):
        _give_up(emitter)
        emitter.ret()
    place = emitter.alloca(PTR, name="place")
    emitter.store(text, place)
    with emitter.loop(count) as i:
        read(build.add(first, i), part)
        at, size = emitter.load(place, PTR), emitter.load_field(part, BYTE_ARRAY, "size")
        emitter.call("memcpy", [at, emitter.load_field(part, BYTE_ARRAY, "data"), size])
        emitter.store(emitter.index(at, I8, size), place)
    return message


def _set_raised(emitter: Emitter, kind: ir.Value, message: ir.Value, trace: ir.Value) -> None:
    handle = emitter.alloca(PTR, name="handle")
    status = emitter.call("TVMFFIErrorCreate", [kind, message, trace, handle])
    failed = emitter.builder.icmp_signed("!=", status, emitter.const_i32(0))
    with emitter.builder.if_else(failed, likely=False) as (then, otherwise):
        with then:
            _give_up(emitter)
        with otherwise:
            error = emitter.load(handle, PTR)
            emitter.call("TVMFFIErrorSetRaised", [error])
            emitter.call("TVMFFIObjectDecRef", [error])


def _give_up(emitter: Emitter) -> None:
    text = emitter.cstring("no memory for the message of an error")
    emitter.call("TVMFFIErrorSetRaisedFromCStr", [emitter.cstring("MemoryError"), text])
