"""The support code of an object: what its wrappers need once a check has failed.

The same LLVM module for every object; what differs is the table of messages that each wrapper
hands over.  Nothing here is on the way of a call that succeeds.

* `i1 ferrule_moot(ptr shape, i32 ndim, i32 axis)`: whether the stride of this dim means nothing,
  because its size is 0 or 1 or another size is 0; axis -1 asks whether there are no elements.
* `void ferrule_compact(ptr shape, i32 ndim, ptr strides)`: row-major strides.
* `void ferrule_raise(ptr table, i32 id, ptr args, i32 num_args, ptr values)`: set the error.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TypeAlias

from llvmlite import ir

from ferrule.compiler.messages.segments import HEADER_LAYOUT, ROW_LAYOUT, SCRATCH, define_part
from ferrule.runtime.llvm.emitter import COLD, Emitter
from ferrule.runtime.llvm.layouts import BYTE_ARRAY, I1, I8, I32, I64, PTR, VOID

_Read: TypeAlias = "Callable[[ir.Value, ir.Value], ir.Value]"

MOOT = ir.FunctionType(I1, [PTR, I32, I32])
COMPACT = ir.FunctionType(VOID, [PTR, I32, PTR])
RAISE = ir.FunctionType(VOID, [PTR, I32, PTR, I32, PTR])


GENTLE = "preserve_mostcc"
"""The calling convention of functions that return to the hot way: they keep its registers."""


def cold_function(emitter: Emitter, name: str, kind: ir.FunctionType) -> ir.Function:
    """A function of the support code, declared so that LLVM moves its callers out of the way."""
    function = emitter.symbol(name, kind)
    function.attributes.add("cold")
    return function


def cold_helper(emitter: Emitter, name: str, kind: ir.FunctionType) -> ir.Function:
    """The same for one that a cold block calls before it returns to the hot way."""
    function = cold_function(emitter, name, kind)
    function.calling_convention = GENTLE
    return function


@cache
def support_text() -> str:
    """The module as LLVM assembly.  Pure: it depends on nothing."""
    emitter = Emitter("ferrule.support")
    _define_moot(emitter)
    _define_compact(emitter)
    _define_raise(emitter, define_part(emitter))
    return emitter.text()


def _define_moot(emitter: Emitter) -> None:
    names = ("shape", "ndim", "axis")
    with emitter.define("ferrule_moot", I1, MOOT.args, names=names, attributes=COLD) as function:
        function.calling_convention = GENTLE
        shape, ndim, axis = function.args
        build = emitter.builder
        with emitter.loop(ndim) as i:
            size = emitter.load(emitter.index(shape, I64, build.sext(i, I64)), I64)
            shift = build.zext(build.icmp_signed("==", i, axis), I64)
            none = build.icmp_signed("==", build.ashr(size, shift), emitter.const_i64(0))
            with emitter.if_then(none):
                emitter.ret(ir.Constant(I1, 1))
        emitter.ret(ir.Constant(I1, 0))


def _define_compact(emitter: Emitter) -> None:
    names = ("shape", "ndim", "strides")
    with emitter.define(
        "ferrule_compact", VOID, COMPACT.args, names=names, attributes=COLD
    ) as function:
        function.calling_convention = GENTLE
        shape, ndim, strides = function.args
        build = emitter.builder
        running = emitter.alloca(I64, name="running")
        emitter.store(emitter.const_i64(1), running)
        with emitter.loop(ndim) as i:
            back = build.sext(build.sub(build.sub(ndim, i), emitter.const_i32(1)), I64)
            stride = emitter.load(running, I64)
            emitter.store(stride, emitter.index(strides, I64, back))
            size = emitter.load(emitter.index(shape, I64, back), I64)
            emitter.store(build.mul(stride, size), running)
        emitter.ret()


def _define_raise(emitter: Emitter, part: ir.Function) -> None:
    names = ("table", "id", "args", "num_args", "values")
    with emitter.define(
        "ferrule_raise", VOID, RAISE.args, names=names, attributes=COLD
    ) as function:
        table, number, *call = function.args
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
