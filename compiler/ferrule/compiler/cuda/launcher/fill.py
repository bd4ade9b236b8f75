"""The cold function that fills memory of a GPU with zeros, and its call."""

from __future__ import annotations

from typing import Final

from llvmlite import ir

from ferrule.compiler.cuda.launcher.cold import end, entry, failed, unless
from ferrule.compiler.cuda.launcher.driver import LIBRARY
from ferrule.compiler.cuda.launcher.entries import CLEAR, PROTOTYPES
from ferrule.compiler.cuda.launcher.libcuda import RTLD_NOW, driver_version
from ferrule.compiler.cuda.launcher.state import Status, status
from ferrule.runtime.llvm.emitter import Emitter
from ferrule.runtime.llvm.layouts import I8, I32, I64, PTR

FUNCTION: Final = "cuMemsetD8Async"
_TYPE: Final = ir.FunctionType(I32, [PTR, I8, I64, PTR])


def clear(
    emitter: Emitter,
    state: ir.Value,
    address: ir.Value,
    count: ir.Value,
    stream: ir.Value,
    values: ir.Value,
) -> ir.Value:
    """Fill this number of bytes with zeros, in the order of a stream, after `Launcher.enter`;
    returns a status, see `faults.failures`."""
    function = emitter.symbol(CLEAR, PROTOTYPES[CLEAR])
    return emitter.call(function, [state, address, count, stream, values], "cleared")


def define_clearing(emitter: Emitter) -> None:
    """`CLEAR`: it looks up the driver's function at each call, because few functions need it."""
    with entry(emitter, CLEAR) as (state, address, count, stream, values):
        with emitter.if_then(emitter.icmp("eq", count, emitter.const_i64(0)), likely=False):
            emitter.ret(status(Status.DONE))
        library = emitter.call("dlopen", [emitter.cstring(LIBRARY), emitter.const_i32(RTLD_NOW)])
        name = emitter.cstring(FUNCTION)
        function = emitter.call("dlsym", [library, name])
        with emitter.if_then(emitter.is_null(function), likely=False):
            end(emitter, Status.NO_FUNCTION, values, name, *driver_version(emitter, library))
        zero = ir.Constant(I8, 0)
        result = emitter.call_pointer(function, _TYPE, [address, zero, count, stream])
        with unless(emitter, result):
            emitter.ret(failed(emitter, state, result, name, values))
        emitter.ret(status(Status.DONE))
