"""Support code of overloads: the one error of a call that no candidate takes.

* `void ferrule_refuse(ptr checks, i64 count, ptr head, ptr args, i32 num_args, ptr out)`: a
  TypeError with the text `head` and one line for each candidate with its reason.
* `void ferrule_refuse_one(…)`, with the same parameters: the error of the candidate whose checks
  came farthest, the first of several such candidates.

`checks` has the message table and the check program of each candidate, `out` is a buffer for the
values of any of them.
"""

from __future__ import annotations

from typing import Final

from llvmlite import ir

from ferrule.compiler.support.entries import REFUSE, REFUSE_ONE
from ferrule.runtime.llvm.emitter import COLD, Emitter
from ferrule.runtime.llvm.layouts import (
    BYTE_ARRAY,
    ERROR_CELL,
    I8,
    I32,
    I64,
    OBJECT,
    PTR,
    VOID,
    Field,
    Layout,
)

CHECKS: Final = Layout("Checks", [Field("table", PTR), Field("program", PTR)])

_VALUES: Final = 8
_NAMES: Final = ("checks", "count", "head", "args", "num_args", "out")
_TYPES: Final = (PTR, I64, PTR, PTR, I32, PTR)
_LINE: Final = "\n  "


def define_refusals(emitter: Emitter) -> None:
    """All functions of the module."""
    _define_refuse(emitter)
    _define_refuse_one(emitter)


def _checked(
    e: Emitter, function: ir.Function, i: ir.Value, table: ir.Value | None = None
) -> ir.Value:
    """The result of the checks of a candidate; without its `table` no error is set."""
    checks, _, _, args, count, out = function.args
    each = e.index(checks, CHECKS, i)
    values = e.alloca(I64, _VALUES, name="values")
    program = e.load_field(each, CHECKS, "program")
    known = e.load_field(each, CHECKS, "table") if table is None else table
    from ferrule.compiler.messages.support import CHECK

    check = e.symbol("ferrule_check", CHECK)
    return e.call(check, [known, program, args, count, values, out])


def _define_refuse_one(e: Emitter) -> None:
    with e.define(REFUSE_ONE, VOID, _TYPES, names=_NAMES, attributes=COLD) as function:
        best, chosen = e.alloca(I32, name="best"), e.alloca(I64, name="chosen")
        e.store(e.const_i32(-1), best)
        e.store(e.const_i64(0), chosen)
        with e.loop(function.args[1]) as i:
            reached = _checked(e, function, i, e.null())
            with e.if_then(e.icmp("sgt", reached, e.load(best, I32))):
                e.store(reached, best)
                e.store(i, chosen)
        status = _checked(e, function, e.load(chosen, I64))
        with e.if_then(e.icmp("eq", status, e.const_i32(0)), likely=False):
            _changed_meanwhile(e)
        e.ret()


def _changed_meanwhile(e: Emitter) -> None:
    """Set the error for arguments that another thread made valid during the checks."""
    text = e.cstring("the arguments changed while they were checked")
    e.call("TVMFFIErrorSetRaisedFromCStr", [e.cstring("RuntimeError"), text])


def _define_refuse(e: Emitter) -> None:
    """Loop over all candidates twice: first to measure the text, then to write it."""
    with e.define(REFUSE, VOID, _TYPES, names=_NAMES, attributes=COLD) as function:
        head = function.args[2]
        length = e.call("strlen", [head])
        place, size = e.alloca(PTR, name="place"), e.alloca(I64, name="size")
        e.store(length, size)
        with e.loop(function.args[1]) as i:
            error = _error_of(e, function, i)
            more = e.binary("add", _message(e, error)[1], e.const_i64(len(_LINE)))
            e.store(e.binary("add", e.load(size, I64), more), size)
            _drop(e, error)
        total = e.load(size, I64)
        text = e.call("malloc", [total], "text")
        with e.if_then(e.is_null(text), likely=False):
            why = e.cstring("no memory for the message of an error")
            e.call("TVMFFIErrorSetRaisedFromCStr", [e.cstring("MemoryError"), why])
            e.ret()
        e.store(text, place)
        end = e.index(text, I8, total)
        _append(e, place, end, head, length)
        with e.loop(function.args[1]) as i:
            error = _error_of(e, function, i)
            _append(e, place, end, e.cstring(_LINE), e.const_i64(len(_LINE)))
            _append(e, place, end, *_message(e, error))
            _drop(e, error)
        _raise(e, text, e.binary("sub", _address(e, e.load(place, PTR)), _address(e, text)))
        e.call("free", [text])
        e.ret()


def _address(e: Emitter, pointer: ir.Value) -> ir.Value:
    return e.builder.ptrtoint(pointer, I64)


def _error_of(e: Emitter, function: ir.Function, i: ir.Value) -> ir.Value:
    """The error of a candidate, moved out of tvm-ffi; null if there is none."""
    place = e.alloca(PTR, name="error")
    e.store(e.null(), place)
    status = _checked(e, function, i)
    with e.if_then(e.icmp("ne", status, e.const_i32(0))):
        e.call("TVMFFIErrorMoveFromRaised", [place])
    return e.load(place, PTR)


def _drop(e: Emitter, error: ir.Value) -> None:
    with e.if_then(e.not_(e.is_null(error))):
        e.call("TVMFFIObjectDecRef", [error])


def _message(e: Emitter, error: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Address and length of an error's message; without an error, a text that explains this."""
    other = e.cstring("it would take them now: they changed meanwhile")
    place = e.alloca(BYTE_ARRAY, name="message")
    e.store_field(place, BYTE_ARRAY, "data", other)
    e.store_field(place, BYTE_ARRAY, "size", e.call("strlen", [other]))
    with e.if_then(e.not_(e.is_null(error))):
        cell = e.index(error, I8, OBJECT.size)
        for name in ("data", "size"):
            found = e.load_field(cell, ERROR_CELL, f"message.{name}")
            e.store_field(place, BYTE_ARRAY, name, found)
    return e.load_field(place, BYTE_ARRAY, "data"), e.load_field(place, BYTE_ARRAY, "size")


def _append(e: Emitter, place: ir.Value, end: ir.Value, data: ir.Value, size: ir.Value) -> None:
    """Append a text, as far as there is space."""
    at = e.load(place, PTR)
    room = e.binary("sub", _address(e, end), _address(e, at))
    fits = e.builder.select(e.icmp("ult", size, room), size, room)
    e.call("memcpy", [at, data, fits])
    e.store(e.index(at, I8, fits), place)


def _raise(e: Emitter, text: ir.Value, size: ir.Value) -> None:
    arrays = []
    kind = e.cstring("TypeError")
    for data, length in ((kind, e.const_i64(9)), (text, size), (kind, e.const_i64(0))):
        array = e.alloca(BYTE_ARRAY, name="part")
        e.store_field(array, BYTE_ARRAY, "data", data)
        e.store_field(array, BYTE_ARRAY, "size", length)
        arrays.append(array)
    handle = e.alloca(PTR, name="handle")
    e.store(e.null(), handle)
    e.call("TVMFFIErrorCreate", [*arrays, handle])
    error = e.load(handle, PTR)
    e.call("TVMFFIErrorSetRaised", [error])
    _drop(e, error)
