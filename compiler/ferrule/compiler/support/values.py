"""Support code that makes and releases tvm-ffi values, for functions with a result.

* `i32 ferrule_construct(ptr known, ptr name, ptr items, i32 count, ptr out)`: call the registered
  function of this name; `known` caches its handle from the first call on.
* `i32 ferrule_unsigned(i64 value, ptr out, ptr what)`: the BigInt of an unsigned number; `what` is
  its name in messages.
* `i32 ferrule_own(ptr value, ptr out)`: an owned copy of a borrowed value.
* `void ferrule_release_values(ptr values, i64 count)`: release every object of an array of values.

The first three return 0, or -1 with the error set.
"""

from __future__ import annotations

from typing import Final

from llvmlite import ir

from ferrule.compiler.support.entries import CONSTRUCT, OWN, RELEASE, UNSIGNED
from ferrule.runtime.abi import TypeIndex
from ferrule.runtime.llvm.emitter import COLD, Emitter
from ferrule.runtime.llvm.layouts import ANY, BYTE_ARRAY, I8, I32, I64, PTR, VOID

_MAKE_BIG: Final = ir.FunctionType(I32, [PTR, PTR])
_ROOM: Final = 32
"""The size of a buffer for the digits of any 64-bit number."""


def define_values(emitter: Emitter) -> None:
    """All functions of the module."""
    _define_construct(emitter)
    _define_unsigned(emitter)
    _define_own(emitter)
    _define_release(emitter)


def _define_construct(emitter: Emitter) -> None:
    names = ("known", "name", "items", "count", "out")
    types = [PTR, PTR, PTR, I32, PTR]
    with emitter.define(CONSTRUCT, I32, types, names=names) as function:
        known, name, items, count, out = function.args
        place = emitter.alloca(PTR, name="function")
        emitter.store(emitter.builder.load_atomic(known, "acquire", 8, typ=PTR), place)
        with emitter.if_then(emitter.is_null(emitter.load(place, PTR)), likely=False):
            _look_up(emitter, known, name, place)
        arguments = [emitter.load(place, PTR), items, count, out]
        emitter.ret(emitter.call("TVMFFIFunctionCall", arguments))


def _look_up(emitter: Emitter, known: ir.Value, name: ir.Value, place: ir.Value) -> None:
    """Look up a registered function and cache it; end the function if there is none."""
    bytes_ = emitter.alloca(BYTE_ARRAY, name="name")
    emitter.store_field(bytes_, BYTE_ARRAY, "data", name)
    emitter.store_field(bytes_, BYTE_ARRAY, "size", emitter.call("strlen", [name]))
    status = emitter.call("TVMFFIFunctionGetGlobal", [bytes_, place])
    with emitter.if_then(emitter.icmp("ne", status, emitter.const_i32(0)), likely=False):
        emitter.ret(emitter.const_i32(-1))
    found = emitter.load(place, PTR)
    with emitter.if_then(emitter.is_null(found), likely=False):
        kind, before, behind = map(
            emitter.cstring,
            ("RuntimeError", "tvm-ffi has no function ", ", which makes what this call returns"),
        )
        _raise(emitter, kind, before, name, behind)
    taken = emitter.builder.cmpxchg(known, emitter.null(), found, "acq_rel", "acquire")
    # Another thread was faster; its reference to the same function is used instead.
    with emitter.if_then(emitter.not_(emitter.builder.extract_value(taken, 1)), likely=False):
        emitter.call("TVMFFIObjectDecRef", [found])
        emitter.store(emitter.builder.extract_value(taken, 0), place)


def _raise(emitter: Emitter, kind: ir.Value, *parts: ir.Value) -> None:
    """Set an error with these texts and end the function."""
    texts = emitter.alloca(PTR, len(parts), name="texts")
    for position, part in enumerate(parts):
        emitter.store(part, emitter.index(texts, PTR, position))
    count = emitter.const_i32(len(parts))
    emitter.call("TVMFFIErrorSetRaisedFromCStrParts", [kind, texts, count])
    emitter.ret(emitter.const_i32(-1))


def _define_unsigned(emitter: Emitter) -> None:
    """The constructor was added in apache-tvm-ffi 0.1.14, so it is looked up."""
    names = ("value", "out", "what")
    with emitter.define(UNSIGNED, I32, [I64, PTR, PTR], names=names, attributes=COLD) as function:
        value, out, what = function.args
        emitter.store_field(out, ANY, "head", emitter.const_i64(TypeIndex.NONE))
        emitter.store_field(out, ANY, "v_int64", emitter.const_i64(0))
        name = emitter.cstring("TVMFFIBigIntFromByteArray")
        make = emitter.call("dlsym", [emitter.null(), name], "make")
        with emitter.if_then(emitter.is_null(make), likely=False):
            digits = emitter.alloca(I8, _ROOM, name="digits")
            size, format_ = emitter.const_i64(_ROOM), emitter.cstring("%llu")
            emitter.call("snprintf", [digits, size, format_, value])
            _raise(
                emitter,
                emitter.cstring("OverflowError"),
                emitter.cstring("Out of bound "),
                what,
                emitter.cstring(": expected at most 9223372036854775807, but got "),
                digits,
                emitter.cstring("; larger ones need apache-tvm-ffi 0.1.14 or later"),
            )
        words = emitter.alloca(I64, 2, name="words")
        emitter.store(value, words)
        emitter.store(emitter.const_i64(0), emitter.index(words, I64, 1))
        bytes_ = emitter.alloca(BYTE_ARRAY, name="bytes")
        emitter.store_field(bytes_, BYTE_ARRAY, "data", words)
        emitter.store_field(bytes_, BYTE_ARRAY, "size", emitter.const_i64(16))
        emitter.ret(emitter.call_pointer(make, _MAKE_BIG, [bytes_, out]))


def _define_own(emitter: Emitter) -> None:
    """A DLTensor belongs to the caller, and is valid only during the call."""
    with emitter.define(OWN, I32, [PTR, PTR], names=("value", "out")) as function:
        value, out = function.args
        index = emitter.load_field(value, ANY, "type_index")
        lent = emitter.icmp("eq", index, emitter.const_i32(TypeIndex.DLTENSOR_PTR))
        with emitter.if_then(lent, likely=False):
            kind = emitter.cstring("TypeError")
            text = "a tensor that the caller lends for a call, a DLTensor*, cannot be returned"
            _raise(emitter, kind, emitter.cstring(text))
        emitter.ret(emitter.call("TVMFFIAnyViewToOwnedAny", [value, out]))


def _define_release(emitter: Emitter) -> None:
    with emitter.define(RELEASE, VOID, [PTR, I64], names=("values", "count")) as function:
        values, count = function.args
        with emitter.loop(count) as i:
            value = emitter.index(values, ANY, i)
            index = emitter.load_field(value, ANY, "type_index")
            is_object = emitter.icmp("sge", index, emitter.const_i32(TypeIndex.OBJECT))
            with emitter.if_then(is_object):
                emitter.call("TVMFFIObjectDecRef", [emitter.load_field(value, ANY, "v_obj")])
        emitter.ret()
