"""Writes of a module's variables: `i32 ferrule_cuda_write(ptr state, ptr name, ptr source, i64
size, ptr stream, ptr values)`, after `open` and on the current device.

Each write looks up the driver's functions for it, so that launches without variables do not need a
driver that has them.
"""

from __future__ import annotations

from typing import Final

from llvmlite import ir

from ferrule.compiler.cuda.launcher.cold import attempt, call, end, entry, failed, unless
from ferrule.compiler.cuda.launcher.driver import LIBRARY, Result
from ferrule.compiler.cuda.launcher.entries import WRITE
from ferrule.compiler.cuda.launcher.libcuda import RTLD_NOW, driver_version
from ferrule.compiler.cuda.launcher.rows import FIND_ROW, FIND_ROW_TYPE, library_at
from ferrule.compiler.cuda.launcher.state import Status, status
from ferrule.runtime.llvm.emitter import Emitter
from ferrule.runtime.llvm.layouts import I8, I32, I64, PTR

_GET: Final = "cuLibraryGetGlobal"
_COPY: Final = "cuMemcpyAsync"
_ZERO: Final = "cuMemsetD8Async"
_TYPES: Final = {
    _GET: ir.FunctionType(I32, [PTR, PTR, PTR, PTR]),
    _COPY: ir.FunctionType(I32, [I64, I64, I64, PTR]),
    _ZERO: ir.FunctionType(I32, [I64, I8, I64, PTR]),
}
"""From the reference of the CUDA Driver API."""


def define_writing(emitter: Emitter) -> None:
    """See the description of this module; a null source means zeros."""
    e = emitter
    with entry(e, WRITE) as (state, name, source, size, stream, values):
        place, room = e.alloca(I32, name="device"), e.alloca(I64, 2, name="variable")
        attempt(e, state, values, "cuCtxGetDevice", place)
        row = call(e, FIND_ROW, FIND_ROW_TYPE, state, e.load(place, I32))
        with e.if_then(e.is_null(row), likely=False):
            gone = e.const_i32(Result.INVALID_HANDLE)
            e.ret(failed(e, state, gone, e.cstring(_GET), values))
        libcuda = e.call("dlopen", [e.cstring(LIBRARY), e.const_i32(RTLD_NOW)], "libcuda")
        asked = [room, e.index(room, I64, 1), library_at(e, row), name]
        _call(e, state, values, libcuda, _GET, asked)
        address = e.load(room, I64)
        with e.if_then(e.is_null(source)):
            zero = ir.Constant(I8, 0)
            _call(e, state, values, libcuda, _ZERO, [address, zero, size, stream])
            e.ret(status(Status.DONE))
        given = e.builder.ptrtoint(source, I64)
        _call(e, state, values, libcuda, _COPY, [address, given, size, stream])
        e.ret(status(Status.DONE))


def _call(
    e: Emitter,
    state: ir.Value,
    values: ir.Value,
    libcuda: ir.Value,
    name: str,
    arguments: list[ir.Value],
) -> None:
    """Call the driver; end the function if the driver lacks the function, or if the call fails."""
    function = e.call("dlsym", [libcuda, e.cstring(name)])
    with e.if_then(e.is_null(function), likely=False):
        end(e, Status.NO_FUNCTION, values, e.cstring(name), *driver_version(e, libcuda))
    result = e.call_pointer(function, _TYPES[name], arguments)
    with unless(e, result):
        e.ret(failed(e, state, result, e.cstring(name), values))
