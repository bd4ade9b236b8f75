"""The step before a load: find libcuda."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from llvmlite import ir

from ferrule.compiler.cuda.launcher.cold import cold, end
from ferrule.compiler.cuda.launcher.driver import CALLS, LIBRARY, VERSION
from ferrule.compiler.cuda.launcher.state import FIRST_CALL, Status, status
from ferrule.runtime.llvm.emitter import Emitter
from ferrule.runtime.llvm.layouts import I8, I32, PTR

RTLD_NOW: Final = 2
FIND: Final = "ferrule_cuda_find"
FIND_TYPE: Final = ir.FunctionType(I32, [PTR, PTR])


def define_finding(emitter: Emitter) -> None:
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
    # cuDriverGetVersion gives 1000 * major + 10 * minor.
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
