"""The cold half of launching: loading an image, changing the context, naming what failed.

* `i32 ferrule_cuda_open(ptr state, ptr image, ptr names, i64 count, ptr values)`: load the image
  and look up its kernels, whose names follow each other, each with its NUL; or wait for the thread
  that does.
* `i32 ferrule_cuda_push(ptr state, i32 device, i32 result, ptr values)`: make the primary context
  of a device current, of device 0 for -1; `result` is what cuCtxGetDevice gave.
* `i32 ferrule_cuda_pop(ptr state, ptr values)`: make current what was before.
* `i32 ferrule_cuda_failed(ptr state, i32 result, ptr call, ptr values)`: say which call failed.

Each returns a `Status` and leaves the values of its fault in `values`.  A load that failed leaves
the state and the driver as it found them, so that the next call tries again.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import MappingProxyType
from typing import Final

from llvmlite import ir

from ferrule.compiler.cuda.driver import CALLS, LIBRARY, Result
from ferrule.compiler.cuda.state import (
    FIRST_CALL,
    MAX_DEVICES,
    STATE,
    Phase,
    Status,
    call_driver,
    status,
)
from ferrule.runtime.llvm.emitter import COLD, Emitter
from ferrule.runtime.llvm.layouts import I8, I32, I64, PTR

OPEN: Final = "ferrule_cuda_open"
PUSH: Final = "ferrule_cuda_push"
POP: Final = "ferrule_cuda_pop"
FAILED: Final = "ferrule_cuda_failed"

PROTOTYPES: Final = MappingProxyType(
    {
        OPEN: ir.FunctionType(I32, [PTR, PTR, PTR, I64, PTR]),
        PUSH: ir.FunctionType(I32, [PTR, I32, I32, PTR]),
        POP: ir.FunctionType(I32, [PTR, PTR]),
        FAILED: ir.FunctionType(I32, [PTR, I32, PTR, PTR]),
    }
)
ENTRIES: Final = tuple(PROTOTYPES)

_RTLD_NOW: Final = 2
_WAIT: Final = 50
"""Microseconds between two looks at a load that another thread does, which takes milliseconds."""

_LOAD: Final = ir.FunctionType(I32, [PTR, PTR, PTR, I64, PTR])
_NO_NAME: Final = "an unknown error"
_NO_TEXT: Final = "the driver has no text for it"


def define_cuda(emitter: Emitter) -> None:
    """All functions of the module."""
    _define_failed(emitter)
    _define_find(emitter)
    _define_kernels(emitter)
    _define_load(emitter)
    _define_open(emitter)
    _define_context(emitter)
    _define_push(emitter)
    _define_pop(emitter)


@contextmanager
def _cold(emitter: Emitter, name: str, kind: ir.FunctionType) -> Iterator[list[ir.Value]]:
    """Emit a function; yields its arguments."""
    with emitter.define(name, kind.return_type, kind.args, attributes=COLD) as function:
        yield list(function.args)


def _call(emitter: Emitter, name: str, kind: ir.FunctionType, *arguments: ir.Value) -> ir.Value:
    """Call a function of this module, defined or not yet."""
    return emitter.call(emitter.symbol(name, kind), arguments)


def _put(emitter: Emitter, values: ir.Value, slot: int, value: ir.Value) -> None:
    """Set a value of the fault, an i64 or an address."""
    if value.type != I64:
        value = emitter.builder.ptrtoint(value, I64)
    emitter.store(value, emitter.index(values, I64, slot))


@contextmanager
def _unless(emitter: Emitter, result: ir.Value) -> Iterator[None]:
    """Emit code for a result or a status that is not 0."""
    with emitter.if_then(emitter.icmp("ne", result, ir.Constant(I32, 0)), likely=False):
        yield


def _try(
    emitter: Emitter, state: ir.Value, values: ir.Value, name: str, *arguments: ir.Value
) -> None:
    """Call the driver; end the function if that fails."""
    result = call_driver(emitter, state, name, list(arguments))
    with _unless(emitter, result):
        emitter.ret(_failed(emitter, state, result, emitter.cstring(name), values))


def _failed(
    emitter: Emitter, state: ir.Value, result: ir.Value, what: ir.Value, values: ir.Value
) -> ir.Value:
    return _call(emitter, FAILED, PROTOTYPES[FAILED], state, result, what, values)


def _define_failed(emitter: Emitter) -> None:
    """The values: what failed, the driver's name of the error, its number, the driver's text."""
    with _cold(emitter, FAILED, PROTOTYPES[FAILED]) as (state, result, what, values):
        _put(emitter, values, 0, what)
        _put(emitter, values, 2, emitter.builder.sext(result, I64))
        for slot, call, instead in (
            (1, "cuGetErrorName", _NO_NAME),
            (3, "cuGetErrorString", _NO_TEXT),
        ):
            place = emitter.alloca(PTR, name="text")
            emitter.store(emitter.null(), place)
            call_driver(emitter, state, call, [result, place])
            text = emitter.load(place, PTR)
            known = emitter.select(emitter.is_null(text), emitter.cstring(instead), text)
            _put(emitter, values, slot, known)
        emitter.ret(status(Status.CALL_FAILED))


_FIND: Final = ir.FunctionType(I32, [PTR, PTR])


def _define_find(emitter: Emitter) -> None:
    """`i32 ferrule_cuda_find(ptr state, ptr values)`: the addresses of the driver's functions."""
    names = emitter.bytes_constant(b"".join(name.encode() + b"\0" for name in CALLS))
    with _cold(emitter, "ferrule_cuda_find", _FIND) as (state, values):
        path, now = emitter.cstring(LIBRARY), emitter.const_i32(_RTLD_NOW)
        library = emitter.call("dlopen", [path, now], "library")
        with emitter.if_then(emitter.is_null(library), likely=False):
            _put(emitter, values, 0, emitter.call("dlerror", []))
            emitter.ret(status(Status.NO_LIBRARY))
        first = emitter.index(state, I8, FIRST_CALL)
        with _each_name(emitter, names, emitter.const_i64(len(CALLS))) as (i, name):
            address = emitter.call("dlsym", [library, name])
            with emitter.if_then(emitter.is_null(address), likely=False):
                _put(emitter, values, 0, name)
                emitter.ret(status(Status.NO_FUNCTION))
            emitter.store(address, emitter.index(first, PTR, i))
        emitter.ret(status(Status.DONE))


@contextmanager
def _each_name(
    emitter: Emitter, names: ir.Value, count: ir.Value
) -> Iterator[tuple[ir.Value, ir.Value]]:
    """Emit a loop over texts that follow each other; yields the index and the text."""
    place = emitter.alloca(PTR, name="next")
    emitter.store(names, place)
    with emitter.loop(count) as i:
        name = emitter.load(place, PTR, name="name")
        yield i, name
        behind = emitter.binary("add", emitter.call("strlen", [name]), emitter.const_i64(1))
        emitter.store(emitter.index(name, I8, behind), place)


_KERNELS: Final = ir.FunctionType(I32, [PTR, PTR, I64, PTR])


def _define_kernels(emitter: Emitter) -> None:
    """`i32 ferrule_cuda_kernels(ptr state, ptr names, i64 count, ptr values)`: look them up."""
    with _cold(emitter, "ferrule_cuda_kernels", _KERNELS) as (state, names, count, values):
        kernels = emitter.index(state, I8, STATE.size)
        library = emitter.load_field(state, STATE, "library")
        with _each_name(emitter, names, count) as (i, name):
            place = emitter.index(kernels, PTR, i)
            result = call_driver(emitter, state, "cuLibraryGetKernel", [place, library, name])
            with _unless(emitter, result):
                _failed(emitter, state, result, name, values)
                emitter.ret(status(Status.NO_KERNEL))
        emitter.ret(status(Status.DONE))


def _define_load(emitter: Emitter) -> None:
    """`i32 ferrule_cuda_load(…)`, as `ferrule_cuda_open`, for the one thread that does it."""
    none, zero = emitter.null(), emitter.const_i32(0)
    with _cold(emitter, "ferrule_cuda_load", _LOAD) as (state, image, names, count, values):
        found = _call(emitter, "ferrule_cuda_find", _FIND, state, values)
        with _unless(emitter, found):
            emitter.ret(found)
        _try(emitter, state, values, "cuInit", zero)
        library = emitter.field_ptr(state, STATE, "library")
        options = [none, none, zero, none, none, zero]
        _try(emitter, state, values, "cuLibraryLoadData", library, image, *options)
        looked_up = _call(emitter, "ferrule_cuda_kernels", _KERNELS, state, names, count, values)
        with _unless(emitter, looked_up):
            loaded = emitter.load_field(state, STATE, "library")
            call_driver(emitter, state, "cuLibraryUnload", [loaded])
        emitter.ret(looked_up)


def _define_open(emitter: Emitter) -> None:
    unloaded, loading, ready = (ir.Constant(I32, int(phase)) for phase in Phase)
    with _cold(emitter, OPEN, PROTOTYPES[OPEN]) as arguments:
        build, phase = emitter.builder, emitter.field_ptr(arguments[0], STATE, "phase")
        look, load, other, wait = map(emitter.block, ("look", "load", "other", "wait"))
        emitter.branch(look)
        emitter.at(look)
        taken = build.cmpxchg(phase, unloaded, loading, "acquire", "acquire")
        emitter.cond_branch(build.extract_value(taken, 1), load, other)
        emitter.at(other)
        is_ready = emitter.icmp("eq", build.extract_value(taken, 0), ready)
        done = emitter.block("done")
        emitter.cond_branch(is_ready, done, wait)
        emitter.at(wait)
        emitter.call("usleep", [emitter.const_i32(_WAIT)])
        emitter.branch(look)
        emitter.at(load)
        loaded = _call(emitter, "ferrule_cuda_load", _LOAD, *arguments)
        went_well = emitter.icmp("eq", loaded, status(Status.DONE))
        build.atomic_rmw("xchg", phase, emitter.select(went_well, ready, unloaded), "release")
        emitter.ret(loaded)
        emitter.at(done)
        emitter.ret(status(Status.DONE))


_CONTEXT: Final = ir.FunctionType(I32, [PTR, I32, PTR, PTR])


def _define_context(emitter: Emitter) -> None:
    """`i32 ferrule_cuda_context(ptr state, i32 device, ptr out, ptr values)`: the primary one."""
    with _cold(emitter, "ferrule_cuda_context", _CONTEXT) as (state, device, out, values):
        build = emitter.builder
        kept = emitter.icmp("ult", device, emitter.const_i32(MAX_DEVICES))
        contexts = emitter.field_ptr(state, STATE, "contexts")
        slot = emitter.index(contexts, PTR, build.zext(device, I64))
        with emitter.if_then(kept):
            known = build.load_atomic(slot, "acquire", 8, typ=PTR)
            with emitter.if_then(emitter.not_(emitter.is_null(known))):
                emitter.store(known, out)
                emitter.ret(status(Status.DONE))
        _try(emitter, state, values, "cuDevicePrimaryCtxRetain", out, device)
        with emitter.if_then(kept):
            mine = emitter.load(out, PTR)
            taken = build.cmpxchg(slot, emitter.null(), mine, "acq_rel", "acquire")
            # Another thread was faster: its count holds the same context.
            with emitter.if_then(emitter.not_(build.extract_value(taken, 1))):
                call_driver(emitter, state, "cuDevicePrimaryCtxRelease_v2", [device])
        emitter.ret(status(Status.DONE))


def _define_push(emitter: Emitter) -> None:
    with _cold(emitter, PUSH, PROTOTYPES[PUSH]) as (state, device, result, values):
        expected = emitter.icmp("eq", result, emitter.const_i32(Result.INVALID_CONTEXT))
        went_well = emitter.icmp("eq", result, emitter.const_i32(Result.SUCCESS))
        with emitter.if_then(emitter.not_(emitter.binary("or", expected, went_well))):
            what = emitter.cstring("cuCtxGetDevice")
            emitter.ret(_failed(emitter, state, result, what, values))
        zero = emitter.const_i32(0)
        wanted = emitter.select(emitter.icmp("slt", device, zero), zero, device)
        place = emitter.alloca(PTR, name="context")
        emitter.store(emitter.null(), place)
        found = _call(emitter, "ferrule_cuda_context", _CONTEXT, state, wanted, place, values)
        with _unless(emitter, found):
            emitter.ret(found)
        _try(emitter, state, values, "cuCtxPushCurrent_v2", emitter.load(place, PTR))
        emitter.ret(status(Status.PUSHED))


def _define_pop(emitter: Emitter) -> None:
    with _cold(emitter, POP, PROTOTYPES[POP]) as (state, values):
        popped = emitter.alloca(PTR, name="popped")
        _try(emitter, state, values, "cuCtxPopCurrent_v2", popped)
        emitter.ret(status(Status.DONE))
