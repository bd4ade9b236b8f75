"""The support code of an object: what its wrappers need once a check has failed.

The same LLVM module for every object, which carries of it what its wrapper can reach.  Nothing
here is on the way of a call that succeeds.

* `void ferrule_raise(ptr table, i32 id, ptr args, i32 num_args, ptr values)`: set the error of a
  message of a table; a negative id says that it is set already.
* `i32 ferrule_check(ptr table, ptr program, ptr args, i32 num_args, ptr values, ptr out)`: run a
  check program over the arguments; 0 and their leaves in `out`, or -1 and the error is set; with a
  null `table` no error is set, and a positive number says how far it came.  It is
  defined by `ferrule.compiler.checker`.
* `i32 ferrule_say(ptr context, ptr message)`, inside: set the error of a message; -1.
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
"""Texts of a message: class, what it says, line of the backtrace."""


def define_support(emitter: Emitter) -> None:
    """All but the checker."""
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
    """Write the texts, make the error of them, and free them."""
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
    """Measure the text at `place`, then write it into memory from malloc; the next one follows."""
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
