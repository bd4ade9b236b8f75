"""The steps before a load: find libcuda, and test whether the call's stream is captured."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from llvmlite import ir

from ferrule.compiler.cuda.launcher.cold import cold, end
from ferrule.compiler.cuda.launcher.driver import CALLS, LIBRARY, VERSION, Capture
from ferrule.compiler.cuda.launcher.state import FIRST_CALL, Status, call_driver, status
from ferrule.runtime.abi import DeviceType
from ferrule.runtime.llvm.emitter import Emitter
from ferrule.runtime.llvm.layouts import I8, I32, PTR

RTLD_NOW: Final = 2
FIND: Final = "ferrule_cuda_find"
FIND_TYPE: Final = ir.FunctionType(I32, [PTR, PTR])
CAPTURED: Final = "ferrule_cuda_captured"
CAPTURED_TYPE: Final = ir.FunctionType(I32, [PTR, I32, PTR])


def define_finding(emitter: Emitter) -> None:
    """`FIND` and `CAPTURED`."""
    _define_find(emitter)
    _define_captured(emitter)


def _define_find(emitter: Emitter) -> None:
    """`i32 ferrule_cuda_find(ptr state, ptr values)`: the addresses of the driver's functions."""
    names = emitter.bytes_constant(b"".join(name.encode() + b"\0" for name in CALLS))
    with cold(emitter, FIND, FIND_TYPE) as (state, values):
        path, now = emitter.cstring(LIBRARY), emitter.const_i32(RTLD_NOW)
        library = emitter.call("dlopen", [path, now], "library")
        with emitter.if_then(emitter.is_null(library), likely=False):
            end(emitter, Status.NO_LIBRARY, values, emitter.call("dlerror", []))
        first = emitter.index(state, I8, FIRST_CALL)
        with each_name(emitter, names, emitter.const_i64(len(CALLS))) as (i, name):
            address = emitter.call("dlsym", [library, name])
            with emitter.if_then(emitter.is_null(address), likely=False):
                end(emitter, Status.NO_FUNCTION, values, name, *driver_version(emitter, library))
            emitter.store(address, emitter.index(first, PTR, i))
        emitter.ret(status(Status.DONE))


def driver_version(emitter: Emitter, library: ir.Value) -> tuple[ir.Value, ir.Value]:
    """The two parts of the driver's version, 0 if it is unknown."""
    place = emitter.alloca(I32, name="version")
    emitter.store(emitter.const_i32(0), place)
    function = emitter.call("dlsym", [library, emitter.cstring(VERSION)])
    with emitter.if_then(emitter.not_(emitter.is_null(function))):
        emitter.call_pointer(function, CALLS[VERSION], [place])
    build, version = emitter.builder, emitter.load(place, I32)
    rest = build.urem(version, emitter.const_i32(1000))
    return build.udiv(version, emitter.const_i32(1000)), build.udiv(rest, emitter.const_i32(10))


@contextmanager
def each_name(
    emitter: Emitter, names: ir.Value, count: ir.Value
) -> Iterator[tuple[ir.Value, ir.Value]]:
    """Emit a loop over consecutive texts; yields the index and the text."""
    place = emitter.alloca(PTR, name="next")
    emitter.store(names, place)
    with emitter.loop(count) as i:
        name = emitter.load(place, PTR, name="name")
        yield i, name
        behind = emitter.binary("add", emitter.call("strlen", [name]), emitter.const_i64(1))
        emitter.store(emitter.index(name, I8, behind), place)


def _define_captured(emitter: Emitter) -> None:
    """`i32 ferrule_cuda_captured(ptr state, i32 device, ptr stream)`: whether the stream is
    captured; null means the caller's current stream."""
    with cold(emitter, CAPTURED, CAPTURED_TYPE) as (state, device, named):
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
