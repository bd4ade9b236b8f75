"""The support code of an object: the functions that its wrappers need after a check has failed.

It is the same LLVM module for every object, which contains only the functions that its wrapper can
reach.  A call that succeeds does not use it.

* `void ferrule_raise(ptr table, i32 id, ptr args, i32 num_args, ptr values)`: set the error of a
  message of a table; a negative id means that the error is already set.
* `i32 ferrule_check(ptr table, ptr program, ptr args, i32 num_args, ptr values, ptr out)`: run a
  check program over the arguments; returns 0 with their leaves in `out`, or -1 with the error set.
  If `table` is null, no error is set, and a positive number counts the rows before the failure.
  `ferrule.compiler.checker` defines it.
* `i32 ferrule_say(ptr context, ptr message)`, internal: set the error of a message; returns -1.
"""

from __future__ import annotations

from typing import Final

from llvmlite import ir

from ferrule.compiler.messages.segments import WRITE, define_write
from ferrule.runtime.llvm.emitter import COLD, Emitter
from ferrule.runtime.llvm.layouts import BYTE_ARRAY, I8, I32, I64, PTR, VOID

RAISE: Final = ir.FunctionType(VOID, [PTR, I32, PTR, I32, PTR])
CHECK: Final = ir.FunctionType(I32, [PTR, PTR, PTR, I32, PTR, PTR])
SAY: Final = ir.FunctionType(I32, [PTR, PTR])
_TEXTS: Final = 3
"""The texts of a message: class, message, line of the backtrace."""


def define_support(emitter: Emitter) -> None:
    """All functions but the checker."""
    define_write(emitter)
    _define_say(emitter)
    _define_raise(emitter)


def _define_raise(emitter: Emitter) -> None:
    names = ("table", "id", "args", "num_args", "values")
    with emitter.define(
        "ferrule_raise", VOID, RAISE.args, names=names, attributes=COLD
    ) as function:
        table, number, _, _, values = function.args
        with emitter.if_then(emitter.icmp("slt", number, emitter.const_i32(0))):
            emitter.ret()
        place = emitter.index(table, I32, emitter.builder.zext(number, I64))
        offset = emitter.builder.zext(emitter.load(place, I32), I64)
        message = emitter.index(table, I8, offset)
        emitter.call(emitter.symbol("ferrule_say", SAY), [values, message])
        emitter.ret()


def _define_say(emitter: Emitter) -> None:
    """Write the texts, set an error with them, and free them."""
    with emitter.define(
        "ferrule_say", I32, SAY.args, names=("context", "message"), attributes=COLD
    ) as function:
        context, message = function.args
        arrays = emitter.alloca(BYTE_ARRAY, _TEXTS, name="texts")
        emitter.clear(arrays, _TEXTS * BYTE_ARRAY.size)
        made, place = emitter.block("made"), emitter.alloca(PTR, name="place")
        emitter.store(message, place)
        with emitter.loop(emitter.const_i64(_TEXTS)) as i:
            array = emitter.index(arrays, BYTE_ARRAY, i)
            _write(emitter, context, place, array)
            data = emitter.load_field(array, BYTE_ARRAY, "data")
            with emitter.if_then(emitter.is_null(data)):
                _give_up(emitter)
                emitter.branch(made)
        _set_raised(emitter, *(emitter.index(arrays, BYTE_ARRAY, i) for i in range(_TEXTS)))
        emitter.branch(made)
        emitter.at(made)
        with emitter.loop(emitter.const_i64(_TEXTS)) as i:
            array = emitter.index(arrays, BYTE_ARRAY, i)
            emitter.call("free", [emitter.load_field(array, BYTE_ARRAY, "data")])
        emitter.ret(emitter.const_i32(-1))


def _write(emitter: Emitter, context: ir.Value, place: ir.Value, array: ir.Value) -> None:
    """Measure the text at `place`, then write it into memory from malloc; `place` moves to the next
    text."""
    write, text = emitter.symbol("ferrule_write", WRITE), emitter.load(place, PTR)
    emitter.store(emitter.call(write, [context, text, array]), place)
    size = emitter.load_field(array, BYTE_ARRAY, "size")
    room = emitter.call("malloc", [emitter.builder.add(size, emitter.const_i64(1))], "text")
    emitter.store_field(array, BYTE_ARRAY, "data", room)
    with emitter.if_then(emitter.builder.not_(emitter.is_null(room))):
        emitter.store_field(array, BYTE_ARRAY, "size", emitter.const_i64(0))
        emitter.call(write, [context, text, array])


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
