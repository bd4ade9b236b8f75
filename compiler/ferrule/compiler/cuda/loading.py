"""Loading: libcuda is found, the image loaded and its kernels looked up, by one thread of many."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from llvmlite import ir

from ferrule.compiler.cuda.cold import (
    HINT_SLOT,
    OPEN,
    PROTOTYPES,
    attempt,
    call,
    cold,
    end,
    entry,
    failed,
    put,
    unless,
)
from ferrule.compiler.cuda.driver import CALLS, LIBRARY, VERSION, Capture, Result
from ferrule.compiler.cuda.images import CHOOSE, CHOOSE_TYPE, IMAGE, define_choosing
from ferrule.compiler.cuda.state import (
    FIRST_CALL,
    KERNEL,
    PROGRAM,
    STATE,
    Phase,
    Status,
    call_driver,
    status,
)
from ferrule.runtime.abi import DeviceType
from ferrule.runtime.llvm.emitter import Emitter
from ferrule.runtime.llvm.layouts import I8, I32, PTR

RTLD_NOW: Final = 2
_WAIT: Final = 50
"""Microseconds between two looks at a load that another thread does, which takes milliseconds."""

_OPTIONS: Final = ("options", "option_values")
_FIND: Final = ir.FunctionType(I32, [PTR, PTR])
_KERNELS: Final = ir.FunctionType(I32, [PTR, PTR, PTR])
_CAPTURED: Final = ir.FunctionType(I32, [PTR, I32, PTR])


def define_loading(emitter: Emitter) -> None:
    """`OPEN` and what it calls."""
    _define_find(emitter)
    _define_captured(emitter)
    _define_kernels(emitter)
    define_choosing(emitter)
    _define_load(emitter)
    _define_open(emitter)


def _define_find(emitter: Emitter) -> None:
    """`i32 ferrule_cuda_find(ptr state, ptr values)`: the addresses of the driver's functions."""
    names = emitter.bytes_constant(b"".join(name.encode() + b"\0" for name in CALLS))
    with cold(emitter, "ferrule_cuda_find", _FIND) as (state, values):
        path, now = emitter.cstring(LIBRARY), emitter.const_i32(RTLD_NOW)
        library = emitter.call("dlopen", [path, now], "library")
        with emitter.if_then(emitter.is_null(library), likely=False):
            end(emitter, Status.NO_LIBRARY, values, emitter.call("dlerror", []))
        first = emitter.index(state, I8, FIRST_CALL)
        with _each_name(emitter, names, emitter.const_i64(len(CALLS))) as (i, name):
            address = emitter.call("dlsym", [library, name])
            with emitter.if_then(emitter.is_null(address), likely=False):
                end(emitter, Status.NO_FUNCTION, values, name, *driver_version(emitter, library))
            emitter.store(address, emitter.index(first, PTR, i))
        emitter.ret(status(Status.DONE))


def driver_version(emitter: Emitter, library: ir.Value) -> tuple[ir.Value, ir.Value]:
    """The two parts of the driver's version, 0 where it does not say."""
    place = emitter.alloca(I32, name="version")
    emitter.store(emitter.const_i32(0), place)
    function = emitter.call("dlsym", [library, emitter.cstring(VERSION)])
    with emitter.if_then(emitter.not_(emitter.is_null(function))):
        emitter.call_pointer(function, CALLS[VERSION], [place])
    build, version = emitter.builder, emitter.load(place, I32)
    rest = build.urem(version, emitter.const_i32(1000))
    return build.udiv(version, emitter.const_i32(1000)), build.udiv(rest, emitter.const_i32(10))


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


def _define_captured(emitter: Emitter) -> None:
    """`i32 ferrule_cuda_captured(ptr state, i32 device, ptr stream)`: whether it is, for null
    the caller's current one."""
    with cold(emitter, "ferrule_cuda_captured", _CAPTURED) as (state, device, named):
        place = emitter.alloca(I32, name="captured")
        emitter.store(device, place)
        with emitter.if_then(emitter.icmp("slt", device, emitter.const_i32(0))):
            emitter.store(emitter.const_i32(0), place)
            call_driver(emitter, state, "cuCtxGetDevice", [place])
        kind, index = emitter.const_i32(DeviceType.CUDA), emitter.load(place, I32)
        current = emitter.call("TVMFFIEnvGetStream", [kind, index], "current")
        stream = emitter.select(emitter.is_null(named), current, named)
        with emitter.if_then(emitter.is_null(stream)):
            emitter.ret(emitter.const_i32(0))
        emitter.store(emitter.const_i32(0), place)
        call_driver(emitter, state, "cuStreamIsCapturing", [stream, place])
        found = emitter.icmp(
            "eq", emitter.load(place, I32), ir.Constant(I32, int(Capture.STATUS_ACTIVE))
        )
        emitter.ret(emitter.builder.zext(found, I32))


def _define_kernels(emitter: Emitter) -> None:
    """`i32 ferrule_cuda_kernels(ptr state, ptr program, ptr values)`: look them up."""
    with cold(emitter, "ferrule_cuda_kernels", _KERNELS) as (state, program, values):
        first = emitter.index(state, I8, STATE.size)
        library = emitter.load_field(state, STATE, "library")
        names = emitter.load_field(program, PROGRAM, "names")
        count = emitter.load_field(program, PROGRAM, "count")
        with _each_name(emitter, names, count) as (i, name):
            at = emitter.binary("mul", i, emitter.const_i64(KERNEL.size))
            kernel = emitter.index(first, I8, at)
            size = emitter.const_i64(KERNEL.size)
            emitter.call("memset", [kernel, emitter.const_i32(0), size])
            place = emitter.field_ptr(kernel, KERNEL, "handle")
            result = call_driver(emitter, state, "cuLibraryGetKernel", [place, library, name])
            with unless(emitter, result):
                failed(emitter, state, result, name, values)
                emitter.ret(status(Status.NO_KERNEL))
        emitter.ret(status(Status.DONE))


def _define_load(emitter: Emitter) -> None:
    """`i32 ferrule_cuda_load(…)`, as `ferrule_cuda_open`, for the one thread that does it."""
    none, zero = emitter.null(), emitter.const_i32(0)
    with cold(emitter, "ferrule_cuda_load", PROTOTYPES[OPEN]) as arguments:
        state, program, device, stream, values = arguments
        found = call(emitter, "ferrule_cuda_find", _FIND, state, values)
        with unless(emitter, found):
            emitter.ret(found)
        attempt(emitter, state, values, "cuInit", zero)
        asked = [state, device, stream]
        with unless(emitter, call(emitter, "ferrule_cuda_captured", _CAPTURED, *asked)):
            emitter.ret(status(Status.CAPTURING))
        library = emitter.field_ptr(state, STATE, "library")
        place = emitter.alloca(PTR, name="image")
        choosing = [state, program, device, place, values]
        chosen = call(emitter, CHOOSE, CHOOSE_TYPE, *choosing)
        with unless(emitter, chosen):
            emitter.ret(chosen)
        image = emitter.load(place, PTR)
        jit = [emitter.load_field(program, PROGRAM, name) for name in _OPTIONS]
        count = emitter.builder.trunc(emitter.load_field(program, PROGRAM, "option_count"), I32)
        options = [*jit, count, none, none, zero]
        _load_image(emitter, state, library, image, options, values)
        looked_up = call(emitter, "ferrule_cuda_kernels", _KERNELS, state, program, values)
        with unless(emitter, looked_up):
            loaded = emitter.load_field(state, STATE, "library")
            call_driver(emitter, state, "cuLibraryUnload", [loaded])
        emitter.ret(looked_up)


def _load_image(
    emitter: Emitter,
    state: ir.Value,
    library: ir.Value,
    image: ir.Value,
    options: list[ir.Value],
    values: ir.Value,
) -> None:
    """Load the image of a row; end the function if that fails, for PTX with its version."""
    data, name = emitter.load_field(image, IMAGE, "data"), "cuLibraryLoadData"
    result = call_driver(emitter, state, name, [library, data, *options])
    with unless(emitter, result):
        ended = failed(emitter, state, result, emitter.cstring(name), values)
        newer = emitter.load_field(image, IMAGE, "newer")
        is_newer = emitter.icmp("eq", result, emitter.const_i32(Result.UNSUPPORTED_PTX_VERSION))
        is_known = emitter.not_(emitter.is_null(newer))
        with emitter.if_then(emitter.binary("and", is_newer, is_known)):
            put(emitter, values, HINT_SLOT, newer)
        emitter.ret(ended)


def _define_open(emitter: Emitter) -> None:
    """One thread takes the phase from UNLOADED to -pid, and back, or on to READY."""
    unloaded, ready, closed = (ir.Constant(I32, int(phase)) for phase in Phase)
    with entry(emitter, OPEN) as arguments:
        state, build = arguments[0], emitter.builder
        phase = emitter.field_ptr(state, STATE, "phase")
        pid = emitter.call("getpid", [], "pid")
        loading = build.neg(pid)
        look, other, wait = map(emitter.block, ("look", "other", "wait"))
        emitter.branch(look)
        emitter.at(look)
        taken = build.cmpxchg(phase, unloaded, loading, "acquire", "acquire")
        before = build.extract_value(taken, 0)
        with emitter.if_then(build.extract_value(taken, 1)):
            emitter.store_field(state, STATE, "pid", pid)
            loaded = call(emitter, "ferrule_cuda_load", PROTOTYPES[OPEN], *arguments)
            went_well = emitter.icmp("eq", loaded, status(Status.DONE))
            build.atomic_rmw("xchg", phase, emitter.select(went_well, ready, unloaded), "release")
            emitter.ret(loaded)
        for found, ended in ((ready, Status.DONE), (closed, Status.CLOSED)):
            with emitter.if_then(emitter.icmp("eq", before, found)):
                emitter.ret(status(ended))
        emitter.branch(other)
        emitter.at(other)
        # A child of a fork never sees the end of its parent's load.
        with emitter.if_then(emitter.icmp("ne", before, loading), likely=False):
            emitter.ret(status(Status.FORKED))
        emitter.branch(wait)
        emitter.at(wait)
        emitter.call("usleep", [emitter.const_i32(_WAIT)])
        emitter.branch(look)
