"""Finds an OpenMP runtime and reads the number of threads, on first use.

The search has this order: a runtime that the process finds without a path; one that is loaded under
any name, as wheels include them; the names that the system's loader knows.

A forked process that has not started another program since gets no runtime that was loaded before:
its threads may belong to the parent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

from llvmlite import ir

from ferrule.compiler.threads.state import (
    ABSENT,
    BAD_SETTING,
    CALLS,
    EVERYWHERE,
    LIBC,
    MAX_THREADS,
    SETTING,
    STATE,
    call_found,
)
from ferrule.runtime.llvm.emitter import COLD, Emitter
from ferrule.runtime.llvm.layouts import I8, I32, I64, PTR, VOID, Field, Layout

INSTALLED: Final = ("libgomp.so.1", "libomp.so", "libomp.so.5", "libiomp5.so")
"""The names for the system's loader.

A loaded file is also a runtime if its name begins with one of these up to its dot, followed by a
dot or a dash.
"""

# Flags of glibc's dlopen: a runtime is only looked for, and not loaded by the search.
_RTLD_LAZY: Final = 1
_RTLD_NOLOAD: Final = 4
_READY: Final = 1
_PATH_SIZE: Final = 4096
# The flags stand far before: behind a number, a name of at most 64 bytes, and six short fields.
_STAT_SIZE: Final = 512
_FLAGS_FIELD: Final = 7
_FORKED: Final = 0x40
"""PF_FORKNOEXEC: the process was forked and has not started another program."""

_LIBRARY_INFO: Final = Layout("dl_phdr_info", [Field("address", I64), Field("name", PTR)])

_LOOK_UP: Final = ir.FunctionType(VOID, [PTR, PTR, PTR, I64])
_OPEN: Final = ir.FunctionType(PTR, [PTR, PTR, I32])
_FIND: Final = ir.FunctionType(I64, [PTR])
_LIBC: Final = ir.FunctionType(VOID, [PTR])
_NUMBER: Final = ir.FunctionType(I32, [PTR])
_SEE: Final = ir.FunctionType(I32, [PTR, I64, PTR])


def define_finding(emitter: Emitter) -> None:
    """The functions that `prepare` needs."""
    _define_look_up(emitter)
    _define_libc(emitter)
    _define_number(emitter)
    _define_see(emitter)
    _define_open(emitter)
    _define_find(emitter)


def _own(emitter: Emitter, name: str, kind: ir.FunctionType, *arguments: ir.Value) -> ir.Value:
    return emitter.call(emitter.symbol(f"ferrule_threads_{name}", kind), list(arguments))


def _byte(emitter: Emitter, text: ir.Value, index: ir.Value) -> ir.Value:
    return emitter.load(emitter.index(text, I8, index), I8)


def _is(emitter: Emitter, byte: ir.Value, character: str) -> ir.Value:
    return emitter.icmp("eq", byte, ir.Constant(I8, ord(character)))


def _joined(emitter: Emitter, names: Sequence[str]) -> ir.Value:
    """The address of consecutive names, each with its NUL."""
    return emitter.cstring("\0".join(names))


@contextmanager
def _each(
    emitter: Emitter, names: ir.Value, count: ir.Value
) -> Iterator[tuple[ir.Value, ir.Value, ir.Value]]:
    """Emit code that runs for each name; yields its number, the name, and its length."""
    e, place = emitter, emitter.alloca(PTR, name="name")
    e.store(names, place)
    with e.loop(count) as i:
        name = e.load(place, PTR)
        length = e.call("strlen", [name])
        behind = e.index(name, I8, e.builder.add(length, e.const_i64(1)))
        e.store(behind, place)
        yield i, name, length


def _define_look_up(emitter: Emitter) -> None:
    """`void ferrule_threads_look_up(ptr library, ptr names, ptr places, i64 count)`.

    Stores the addresses of functions, up to the first that is missing.
    """
    e, names = emitter, ("library", "names", "places", "count")
    with e.define(
        "ferrule_threads_look_up", VOID, _LOOK_UP.args, names=names, attributes=COLD
    ) as function:
        library, wanted, places, count = function.args
        with _each(e, wanted, count) as (i, name, _):
            address = e.call("dlsym", [library, name])
            with e.if_then(e.is_null(address)):
                e.ret()
            e.store(address, e.index(places, PTR, i))
        e.ret()


def _look_up(
    emitter: Emitter, library: ir.Value, state: ir.Value, functions: Mapping[str, ir.FunctionType]
) -> None:
    """Look up these functions and store them in the state."""
    e, names = emitter, list(functions)
    places, count = e.field_ptr(state, STATE, names[0]), e.const_i64(len(names))
    _own(e, "look_up", _LOOK_UP, library, _joined(e, names), places, count)


def look_up_libc(emitter: Emitter, state: ir.Value) -> None:
    """Look up the functions of the C library and store them in the state."""
    _own(emitter, "libc", _LIBC, state)


def _define_libc(emitter: Emitter) -> None:
    e = emitter
    with e.define(
        "ferrule_threads_libc", VOID, [PTR], names=("state",), attributes=COLD
    ) as function:
        _look_up(e, e.null(), function.args[0], LIBC)
        e.ret()


def _define_number(emitter: Emitter) -> None:
    """`i32 ferrule_threads_number(ptr text)`: a number from 1 to `MAX_THREADS`, else -1."""
    e, wrong = emitter, emitter.const_i32(-1)
    with e.define("ferrule_threads_number", I32, [PTR], names=["text"], attributes=COLD) as f:
        b, number, text = e.builder, e.alloca(I32, name="number"), e.alloca(PTR, name="at")
        e.store(e.const_i32(0), number)
        e.store(f.args[0], text)
        head = e.block("next")
        e.branch(head)
        e.at(head)
        at, before = e.load(text, PTR), e.load(number, I32)
        byte = b.zext(e.load(at, I8), I32)
        with e.if_then(e.icmp("eq", byte, e.const_i32(0))):
            e.ret(e.select(e.icmp("eq", before, e.const_i32(0)), wrong, before))
        digit = b.sub(byte, e.const_i32(ord("0")))
        with e.if_then(e.icmp("ugt", digit, e.const_i32(9))):
            e.ret(wrong)
        after = b.add(b.mul(before, e.const_i32(10)), digit)
        with e.if_then(e.icmp("sgt", after, e.const_i32(MAX_THREADS))):
            e.ret(wrong)
        e.store(after, number)
        e.store(e.index(at, I8, 1), text)
        e.branch(head)


def _define_see(emitter: Emitter) -> None:
    """`i32 ferrule_threads_see(ptr info, i64 size, ptr path)`: called for each library of the
    process.

    Copies the path of the first runtime, and ends the search.
    """
    e, names = emitter, ("info", "size", "path")
    with e.define(
        "ferrule_threads_see", I32, _SEE.args, names=names, linkage="internal", attributes=COLD
    ) as function:
        info, _, path = function.args
        name = e.load_field(info, _LIBRARY_INFO, "name")
        with e.if_then(e.is_null(name)):
            e.ret(e.const_i32(0))
        base, copied = e.alloca(PTR, name="base"), e.block("copied")
        e.store(path, base)
        with e.loop(e.const_i64(_PATH_SIZE)) as i:
            byte = _byte(e, name, i)
            e.store(byte, e.index(path, I8, i))
            with e.if_then(_is(e, byte, "\0")):
                e.branch(copied)
            with e.if_then(_is(e, byte, "/")):
                e.store(e.index(path, I8, e.builder.add(i, e.const_i64(1))), base)
        e.ret(e.const_i32(0))
        e.at(copied)
        with _each(e, _joined(e, INSTALLED), e.const_i64(len(INSTALLED))) as (_, known, length):
            with _matching(e, e.load(base, PTR), known, length):
                e.ret(e.const_i32(1))
        e.ret(e.const_i32(0))


@contextmanager
def _matching(
    emitter: Emitter, name: ir.Value, known: ir.Value, length: ir.Value
) -> Iterator[None]:
    """Emit code that runs if a file is a runtime by its name; `known` is the full name of one."""
    e, other = emitter, emitter.block("other")
    with e.loop(length, name="k") as k:
        byte, wanted = _byte(e, name, k), _byte(e, known, k)
        with e.if_then(_is(e, wanted, ".")):
            ends = e.binary("or", _is(e, byte, "."), _is(e, byte, "-"))
            with e.if_then(ends):
                yield
            e.branch(other)
        with e.if_then(e.icmp("ne", byte, wanted)):
            e.branch(other)
    e.branch(other)
    e.at(other)


def _forked(emitter: Emitter, state: ir.Value) -> ir.Value:
    """Not 0 if the process is a fork that still runs its parent's program.

    Linux shows this in the flags of /proc/self/stat, the seventh field after the name, which is in
    parentheses and may contain any characters. 0 if the file cannot be read.
    """
    e, no = emitter, emitter.const_i32(0)
    text, flags = e.alloca(I8, _STAT_SIZE, name="text"), e.alloca(I32, name="flags")
    e.store(no, flags)
    file = call_found(e, state, "open", [e.cstring("/proc/self/stat"), no])
    with e.if_then(e.icmp("sge", file, no)):
        size = call_found(e, state, "read", [file, text, e.const_i64(_STAT_SIZE)])
        call_found(e, state, "close", [file])
        _read_field(e, text, size, _FLAGS_FIELD, flags)
    return e.binary("and", e.load(flags, I32), e.const_i32(_FORKED))


def _read_field(
    emitter: Emitter, text: ir.Value, size: ir.Value, wanted: int, found: ir.Value
) -> None:
    """Store the number in the field with this position after the last closing parenthesis."""
    e, b, none = emitter, emitter.builder, emitter.const_i32(0)
    field, number = e.alloca(I32, name="field"), e.alloca(I32, name="value")
    e.store(none, field)
    e.store(none, number)
    with e.loop(size) as i:
        byte = b.zext(_byte(e, text, i), I32)
        # Garbage if the field has other characters than digits, which the wanted fields never have.
        before = e.load(number, I32)
        shifted = b.mul(before, e.const_i32(10))
        e.store(b.add(shifted, b.sub(byte, e.const_i32(ord("0")))), number)
        with e.if_then(e.icmp("eq", byte, e.const_i32(ord(")")))):
            e.store(none, field)
        with e.if_then(e.icmp("eq", byte, e.const_i32(ord(" ")))):
            ends = e.icmp("eq", e.load(field, I32), e.const_i32(wanted))
            with e.if_then(ends):
                e.store(before, found)
            e.store(b.add(e.load(field, I32), e.const_i32(1)), field)
            e.store(none, number)


def _define_open(emitter: Emitter) -> None:
    """`ptr ferrule_threads_open(ptr state, ptr path, i32 mode)`: a handle; null if it is not a
    runtime."""
    e, names = emitter, ("state", "path", "mode")
    with e.define(
        "ferrule_threads_open", PTR, _OPEN.args, names=names, attributes=COLD
    ) as function:
        state, path, mode = function.args
        handle = call_found(e, state, "dlopen", [path, mode])
        with e.if_then(e.is_null(handle)):
            e.ret(handle)
        e.ret(e.select(e.is_null(_runtime(e, handle)), e.null(), handle))


def _runtime(emitter: Emitter, library: ir.Value) -> ir.Value:
    """The function that identifies a library as a runtime; null in others."""
    *others, last = CALLS
    name = emitter.index(_joined(emitter, [*others, last]), I8, len("\0".join([*others, ""])))
    return emitter.call("dlsym", [library, name])


def _define_find(emitter: Emitter) -> None:
    """`i64 ferrule_threads_find(ptr state)`: the value of `library` in the state."""
    e, lazy = emitter, emitter.const_i32(_RTLD_LAZY)
    with e.define(
        "ferrule_threads_find", I64, [PTR], names=("state",), attributes=COLD
    ) as function:
        state, b = function.args[0], e.builder
        here, absent = e.const_i64(EVERYWHERE), e.const_i64(ABSENT)
        nothing, loaded = e.const_i64(0), e.alloca(I64, name="loaded")
        with b.if_else(e.is_null(_runtime(e, e.null()))) as (elsewhere, everywhere):
            with everywhere:
                e.store(here, loaded)
            with elsewhere:
                e.store(nothing, loaded)
                _see_loaded(e, state, loaded)
        found = e.load(loaded, I64)
        with e.if_then(e.icmp("ne", found, nothing)):
            forked = e.icmp("ne", _forked(e, state), e.const_i32(0))
            e.ret(e.select(forked, absent, found))
        with _each(e, _joined(e, INSTALLED), e.const_i64(len(INSTALLED))) as (_, file, _):
            handle = _own(e, "open", _OPEN, state, file, lazy)
            with e.if_then(e.not_(e.is_null(handle))):
                e.ret(e.builder.ptrtoint(handle, I64))
        e.ret(absent)


def _see_loaded(emitter: Emitter, state: ir.Value, loaded: ir.Value) -> None:
    """Store the handle of a loaded library that is a runtime under any name."""
    e = emitter
    with e.if_then(e.not_(e.is_null(e.load_field(state, STATE, "dl_iterate_phdr")))):
        path = e.alloca(I8, _PATH_SIZE, name="path")
        see = ir.FormattedConstant(PTR, e.symbol("ferrule_threads_see", _SEE).get_reference())
        seen = call_found(e, state, "dl_iterate_phdr", [see, path])
        with e.if_then(e.icmp("ne", seen, e.const_i32(0))):
            mode = e.const_i32(_RTLD_LAZY | _RTLD_NOLOAD)
            handle = _own(e, "open", _OPEN, state, path, mode)
            e.store(e.builder.ptrtoint(handle, I64), loaded)


def prepare(emitter: Emitter, state: ir.Value, values: ir.Value) -> None:
    """Fill in the state on first use; if the setting is wrong, the function ends with `BAD_SETTING`
    and the values of its fault."""
    e, b = emitter, emitter.builder
    phase = e.field_ptr(state, STATE, "phase")
    ready = e.icmp("eq", b.load_atomic(phase, "acquire", 4, typ=I32), e.const_i32(_READY))
    with e.if_then(e.not_(ready), likely=False):
        look_up_libc(e, state)
        with e.if_then(e.not_(e.is_null(e.load_field(state, STATE, "dlopen"))), likely=True):
            _prepare_with_libc(e, state, values)
        b.atomic_rmw("xchg", phase, e.const_i32(_READY), "release")


def _prepare_with_libc(emitter: Emitter, state: ir.Value, values: ir.Value) -> None:
    e, b = emitter, emitter.builder
    text = call_found(e, state, "getenv", [e.cstring(SETTING)])
    with e.if_then(e.not_(e.is_null(text))):
        number = _own(e, "number", _NUMBER, text)
        with e.if_then(e.icmp("slt", number, e.const_i32(0)), likely=False):
            e.store(b.ptrtoint(text, I64), values)
            e.ret(e.const_i32(BAD_SETTING))
        e.store_field(state, STATE, "wanted", number)
    e.store_field(state, STATE, "pid", call_found(e, state, "getpid", []))
    library = _agreed(e, state)
    with e.if_then(e.icmp("ne", library, e.const_i64(ABSENT))):
        everywhere = e.icmp("eq", library, e.const_i64(EVERYWHERE))
        handle = e.select(everywhere, e.null(), b.inttoptr(library, PTR))
        _look_up(e, handle, state, CALLS)


def _agreed(emitter: Emitter, state: ir.Value) -> ir.Value:
    """The library that the first thread found, which all threads then use."""
    e, b = emitter, emitter.builder
    found, nothing = _own(e, "find", _FIND, state), e.const_i64(0)
    place = e.field_ptr(state, STATE, "library")
    was = b.cmpxchg(place, nothing, found, "acq_rel", "acquire")
    return e.select(b.extract_value(was, 1), found, b.extract_value(was, 0))
