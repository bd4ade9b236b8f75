"""Finds an OpenMP runtime and reads the number of threads, on first use.

Looked for, in this order: a runtime that the process finds without a path; one that is loaded under
any name, as wheels carry them; the names by which the loader of the system knows them.

A process that was forked, and did not start another program since, gets no runtime that was loaded
before: its threads may be those of the parent.
"""

from __future__ import annotations

from typing import Final

from llvmlite import ir

from ferrule.compiler.threads.state import (
    ABSENT,
    BAD_SETTING,
    CALLS,
    DONE,
    EVERYWHERE,
    MAX_THREADS,
    SETTING,
    STATE,
)
from ferrule.runtime.llvm.emitter import COLD, Emitter
from ferrule.runtime.llvm.layouts import I8, I32, I64, PTR, Field, Layout

LOADED: Final = ("libgomp", "libomp", "libiomp5")
"""How the names of files begin that are a runtime, before a dot or a dash."""

INSTALLED: Final = ("libgomp.so.1", "libomp.so", "libomp.so.5", "libiomp5.so")
"""What the loader of the system is asked for."""

_RTLD_LAZY: Final = 1
_RTLD_NOLOAD: Final = 4
_READY: Final = 1
_PATH_SIZE: Final = 4096
_STAT_SIZE: Final = 512
_FLAGS_FIELD: Final = 7
_FORKED: Final = 0x40
"""PF_FORKNOEXEC: the process was forked and has not started another program."""

_LIBRARY_INFO: Final = Layout("dl_phdr_info", [Field("address", I64), Field("name", PTR)])

_PREPARE: Final = ir.FunctionType(I32, [PTR, PTR])
_FIND: Final = ir.FunctionType(I64, [])
_NUMBER: Final = ir.FunctionType(I32, [PTR])
_SEE: Final = ir.FunctionType(I32, [PTR, I64, PTR])
_EACH: Final = ir.FunctionType(I32, [PTR, PTR])
_FORKED_TYPE: Final = ir.FunctionType(I32, [])


def prepare(emitter: Emitter, state: ir.Value, values: ir.Value) -> ir.Value:
    """Fill in the state, if it is not; `DONE` or `BAD_SETTING` with the values of its fault."""
    return _own(emitter, "prepare", _PREPARE, state, values)


def define_finding(emitter: Emitter) -> None:
    """The functions that `prepare` needs."""
    _define_number(emitter)
    _define_see(emitter)
    _define_forked(emitter)
    _define_find(emitter)
    _define_prepare(emitter)


def _own(emitter: Emitter, name: str, kind: ir.FunctionType, *arguments: ir.Value) -> ir.Value:
    return emitter.call(emitter.symbol(f"ferrule_threads_{name}", kind), list(arguments))


def _address(emitter: Emitter, library: ir.Value, name: str) -> ir.Value:
    return emitter.call("dlsym", [library, emitter.cstring(name)])


def _byte(emitter: Emitter, text: ir.Value, index: ir.Value) -> ir.Value:
    return emitter.load(emitter.index(text, I8, index), I8)


def _is(emitter: Emitter, byte: ir.Value, character: str) -> ir.Value:
    return emitter.icmp("eq", byte, ir.Constant(I8, ord(character)))


def _define_number(emitter: Emitter) -> None:
    """`i32 ferrule_threads_number(ptr text)`: a number from 1 to `MAX_THREADS`, else -1."""
    e, wrong = emitter, emitter.const_i32(-1)
    with e.define("ferrule_threads_number", I32, [PTR], names=["text"], attributes=COLD) as f:
        b, place = e.builder, e.alloca(I32, name="number")
        e.store(e.const_i32(0), place)
        with e.loop(e.call("strlen", [f.args[0]])) as i:
            digit = b.sub(b.zext(_byte(e, f.args[0], i), I32), e.const_i32(ord("0")))
            with e.if_then(e.icmp("ugt", digit, e.const_i32(9))):
                e.ret(wrong)
            number = b.add(b.mul(e.load(place, I32), e.const_i32(10)), digit)
            with e.if_then(e.icmp("sgt", number, e.const_i32(MAX_THREADS))):
                e.ret(wrong)
            e.store(number, place)
        found = e.load(place, I32)
        e.ret(e.select(e.icmp("eq", found, e.const_i32(0)), wrong, found))


def _define_see(emitter: Emitter) -> None:
    """`i32 ferrule_threads_see(ptr info, i64 size, ptr path)`: for each library of the process.

    Copies the path of one that is a runtime, and ends the search.
    """
    e, names = emitter, ("info", "size", "path")
    with e.define(
        "ferrule_threads_see", I32, _SEE.args, names=names, linkage="internal", attributes=COLD
    ) as function:
        info, _, path = function.args
        name = e.load_field(info, _LIBRARY_INFO, "name")
        with e.if_then(e.is_null(name)):
            e.ret(e.const_i32(0))
        length, one = e.call("strlen", [name]), e.const_i64(1)
        with e.if_then(e.icmp("sge", length, e.const_i64(_PATH_SIZE))):
            e.ret(e.const_i32(0))
        base = _file_name(e, name, length)
        for begin in LOADED:
            text = e.cstring(begin)
            with e.if_then(_begins(e, base, text, len(begin))):
                e.call("memcpy", [path, name, e.builder.add(length, one)])
                e.ret(e.const_i32(1))
        e.ret(e.const_i32(0))


def _file_name(emitter: Emitter, path: ir.Value, length: ir.Value) -> ir.Value:
    """What follows the last slash."""
    e, place = emitter, emitter.alloca(PTR, name="base")
    e.store(path, place)
    with e.loop(length) as i:
        with e.if_then(_is(e, _byte(e, path, i), "/")):
            behind = e.builder.add(i, e.const_i64(1))
            e.store(e.index(path, I8, behind), place)
    return e.load(place, PTR)


def _begins(emitter: Emitter, name: ir.Value, begin: ir.Value, size: int) -> ir.Value:
    """Whether a name begins so, and a dot or a dash follows."""
    e, found = emitter, emitter.alloca(I32, name="found")
    e.store(e.const_i32(0), found)
    long = e.icmp("sgt", e.call("strlen", [name]), e.const_i64(size))
    with e.if_then(long):
        same = e.icmp("eq", e.call("memcmp", [name, begin, e.const_i64(size)]), e.const_i32(0))
        behind = _byte(e, name, e.const_i64(size))
        ends = e.binary("or", _is(e, behind, "."), _is(e, behind, "-"))
        e.store(e.builder.zext(e.binary("and", same, ends), I32), found)
    return e.icmp("ne", e.load(found, I32), e.const_i32(0))


def _define_forked(emitter: Emitter) -> None:
    """`i32 ferrule_threads_forked()`: whether the process still runs what its parent ran.

    Linux says so in the flags of /proc/self/stat, the seventh field behind the name, which is in
    parentheses and may hold any.  0 where it cannot be read.
    """
    e, no = emitter, emitter.const_i32(0)
    kinds = {
        "open": ir.FunctionType(I32, [PTR, I32], var_arg=True),
        "read": ir.FunctionType(I64, [I32, PTR, I64]),
        "close": ir.FunctionType(I32, [I32]),
    }
    with e.define("ferrule_threads_forked", I32, [], attributes=COLD):
        found = {name: _address(e, e.null(), name) for name in kinds}
        for address in found.values():
            with e.if_then(e.is_null(address)):
                e.ret(no)

        def call(name: str, *arguments: ir.Value) -> ir.Value:
            return e.call_pointer(found[name], kinds[name], arguments)

        text = e.alloca(I8, _STAT_SIZE, name="text")
        file = call("open", e.cstring("/proc/self/stat"), no)
        with e.if_then(e.icmp("slt", file, no)):
            e.ret(no)
        size = call("read", file, text, e.const_i64(_STAT_SIZE))
        call("close", file)
        flags = _field(e, text, size, _FLAGS_FIELD)
        e.ret(e.binary("and", flags, e.const_i32(_FORKED)))


def _field(emitter: Emitter, text: ir.Value, size: ir.Value, wanted: int) -> ir.Value:
    """The number that is the field with this number behind the last closing parenthesis."""
    e, b = emitter, emitter.builder
    field, number = e.alloca(I32, name="field"), e.alloca(I32, name="value")
    e.store(e.const_i32(0), field)
    e.store(e.const_i32(0), number)
    with e.loop(size) as i:
        byte = _byte(e, text, i)
        with e.if_then(_is(e, byte, ")")):
            e.store(e.const_i32(0), field)
            e.store(e.const_i32(0), number)
        with e.if_then(_is(e, byte, " ")):
            e.store(b.add(e.load(field, I32), e.const_i32(1)), field)
        here = e.icmp("eq", e.load(field, I32), e.const_i32(wanted))
        digit = b.sub(b.zext(byte, I32), e.const_i32(ord("0")))
        with e.if_then(e.binary("and", here, e.icmp("ult", digit, e.const_i32(10)))):
            shifted = b.mul(e.load(number, I32), e.const_i32(10))
            e.store(b.add(shifted, digit), number)
    return e.load(number, I32)


def _define_find(emitter: Emitter) -> None:
    """`i64 ferrule_threads_find()`: the library, as the state keeps it."""
    e, name = emitter, next(iter(CALLS))
    with e.define("ferrule_threads_find", I64, [], attributes=COLD):
        forked = e.icmp("ne", _own(e, "forked", _FORKED_TYPE), e.const_i32(0))
        here, absent = e.const_i64(EVERYWHERE), e.const_i64(ABSENT)
        with e.if_then(e.not_(e.is_null(_address(e, e.null(), name)))):
            e.ret(e.select(forked, absent, here))
        path, each = e.alloca(I8, _PATH_SIZE, name="path"), _address(e, e.null(), "dl_iterate_phdr")
        with e.if_then(e.not_(e.is_null(each))):
            see = ir.FormattedConstant(PTR, e.symbol("ferrule_threads_see", _SEE).get_reference())
            seen = e.call_pointer(each, _EACH, [see, path])
            with e.if_then(e.icmp("ne", seen, e.const_i32(0))):
                _try(e, path, _RTLD_LAZY | _RTLD_NOLOAD, forked)
        for file in INSTALLED:
            _try(e, e.cstring(file), _RTLD_LAZY, e.const_i1(False))
        e.ret(absent)


def _try(emitter: Emitter, path: ir.Value, mode: int, forked: ir.Value) -> None:
    """End the function with a library, if it opens and is a runtime."""
    e = emitter
    handle = e.call("dlopen", [path, e.const_i32(mode)])
    with e.if_then(e.not_(e.is_null(handle))):
        with e.if_then(e.not_(e.is_null(_address(e, handle, next(iter(CALLS)))))):
            e.ret(e.select(forked, e.const_i64(ABSENT), e.builder.ptrtoint(handle, I64)))


def _define_prepare(emitter: Emitter) -> None:
    e, names = emitter, ("state", "values")
    with e.define("ferrule_threads_prepare", I32, [PTR, PTR], names=names) as function:
        (state, values), b = function.args, e.builder
        phase = e.field_ptr(state, STATE, "phase")
        ready = e.icmp("eq", b.load_atomic(phase, "acquire", 4, typ=I32), e.const_i32(_READY))
        with e.if_then(ready, likely=True):
            e.ret(e.const_i32(DONE))
        text = e.call("getenv", [e.cstring(SETTING)])
        with e.if_then(e.not_(e.is_null(text))):
            number = _own(e, "number", _NUMBER, text)
            with e.if_then(e.icmp("slt", number, e.const_i32(0)), likely=False):
                e.store(b.ptrtoint(text, I64), values)
                e.ret(e.const_i32(BAD_SETTING))
            e.store_field(state, STATE, "wanted", number)
        e.store_field(state, STATE, "pid", e.call("getpid", []))
        e.store_field(state, STATE, "gettid", _address(e, e.null(), "gettid"))
        library = _agreed(e, e.field_ptr(state, STATE, "library"))
        with e.if_then(e.icmp("ne", library, e.const_i64(ABSENT))):
            everywhere = e.icmp("eq", library, e.const_i64(EVERYWHERE))
            handle = e.select(everywhere, e.null(), b.inttoptr(library, PTR))
            _look_up(e, state, handle)
        b.atomic_rmw("xchg", phase, e.const_i32(_READY), "release")
        e.ret(e.const_i32(DONE))


def _look_up(emitter: Emitter, state: ir.Value, library: ir.Value) -> None:
    """The functions of a runtime; none of one that lacks any."""
    e, first = emitter, next(iter(CALLS))
    found = {name: _address(e, library, name) for name in CALLS}
    missing = e.const_i1(False)
    for name, address in found.items():
        missing = e.binary("or", missing, e.is_null(address))
        if name != first:
            e.store_field(state, STATE, name, address)
    e.store_field(state, STATE, first, e.select(missing, e.null(), found[first]))


def _agreed(emitter: Emitter, place: ir.Value) -> ir.Value:
    """The library that the first thread found, which all then use."""
    e, b = emitter, emitter.builder
    found, nothing = _own(e, "find", _FIND), e.const_i64(0)
    was = b.cmpxchg(place, nothing, found, "acq_rel", "acquire")
    return e.select(b.extract_value(was, 1), found, b.extract_value(was, 0))
