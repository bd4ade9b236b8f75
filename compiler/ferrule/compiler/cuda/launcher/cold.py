"""Common parts of the cold functions: names and types, calls, and faults.

Each function returns a `Status` and stores the values of its fault in `values`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Final

from llvmlite import ir

from ferrule.compiler.cuda.launcher.driver import Capture
from ferrule.compiler.cuda.launcher.entries import PROTOTYPES
from ferrule.compiler.cuda.launcher.state import Status, call_driver, status
from ferrule.runtime.llvm.emitter import COLD, Emitter
from ferrule.runtime.llvm.layouts import I32, I64, PTR

_FAILED: Final = "ferrule_cuda_failed"
_FAILED_TYPE: Final = ir.FunctionType(I32, [PTR, I32, PTR, PTR])

_FORKED: Final = (
    "; CUDA cannot be used in a process that was forked after CUDA was initialised: start it with "
    "multiprocessing.get_context('spawn')"
)
_CAPTURE: Final = (
    "; a stream is being captured, which what this call does would end: call the function once "
    "before the capture"
)
_LOST: Final = (
    "; an earlier kernel failed, and the context of its device is lost: start the process again, "
    "with CUDA_LAUNCH_BLOCKING=1 to find which"
)
_ASSERTED: Final = (
    "; an assertion failed in an earlier kernel, and the context of its device is lost: its "
    "message is in the process's output; start the process again"
)
_CLUSTER: Final = (
    "; not every GPU has clusters of more than 8 blocks, and all blocks of one need room at the "
    "same time: make the cluster, the block or its shared memory smaller"
)
_OLD: Final = "; the PTX is newer than the driver: update the NVIDIA driver"

HINTS: Final[Mapping[int, str]] = MappingProxyType(
    {
        3: _FORKED,
        222: _OLD,
        710: _ASSERTED,
        912: _CLUSTER,
        **dict.fromkeys((900, 901, 906), _CAPTURE),
        **dict.fromkeys((700, 714, 715, 716, 717, 718, 719), _LOST),
    }
)
"""The hint for an error, by its number in `CUresult`."""

_NO_NAME: Final = "an unknown error"
_NO_TEXT: Final = "the driver has no text for it"
CODE_SLOT: Final = 2
HINT_SLOT: Final = 4
"""The slots of a failed call's values: the number of its error, its hint."""


@contextmanager
def cold(emitter: Emitter, name: str, kind: ir.FunctionType) -> Iterator[list[ir.Value]]:
    """Emit a function; yields its arguments."""
    with emitter.define(name, kind.return_type, kind.args, attributes=COLD) as function:
        yield list(function.args)


@contextmanager
def entry(emitter: Emitter, name: str) -> Iterator[list[ir.Value]]:
    """Emit one of `PROTOTYPES`; yields its arguments."""
    with cold(emitter, name, PROTOTYPES[name]) as arguments:
        yield arguments


def call(emitter: Emitter, name: str, kind: ir.FunctionType, *arguments: ir.Value) -> ir.Value:
    """Call a function of this module, defined or not yet."""
    return emitter.call(emitter.symbol(name, kind), arguments)


def put(emitter: Emitter, values: ir.Value, slot: int, value: ir.Value) -> None:
    """Set a value of the fault, an i32, an i64 or an address."""
    if value.type == PTR:
        value = emitter.builder.ptrtoint(value, I64)
    elif value.type == I32:
        value = emitter.builder.sext(value, I64)
    emitter.store(value, emitter.index(values, I64, slot))


def end(emitter: Emitter, fault: Status, values: ir.Value, *shown: ir.Value) -> None:
    """End the function with a fault that shows these values."""
    for slot, value in enumerate(shown):
        put(emitter, values, slot, value)
    emitter.ret(status(fault))


def is_one_of(emitter: Emitter, result: ir.Value, wanted: Sequence[int]) -> ir.Value:
    """Whether a CUresult is one of these."""
    flags = [emitter.icmp("eq", result, emitter.const_i32(each)) for each in wanted]
    found = flags[0]
    for flag in flags[1:]:
        found = emitter.binary("or", found, flag)
    return found


@contextmanager
def during_captures(emitter: Emitter, state: ir.Value) -> Iterator[None]:
    """Emit calls of the driver that streams may be captured during, by this or other threads."""
    mode = emitter.alloca(I32, name="mode")
    emitter.store(ir.Constant(I32, int(Capture.MODE_RELAXED)), mode)
    call_driver(emitter, state, "cuThreadExchangeStreamCaptureMode", [mode])
    yield
    call_driver(emitter, state, "cuThreadExchangeStreamCaptureMode", [mode])


@contextmanager
def unless(emitter: Emitter, result: ir.Value) -> Iterator[None]:
    """Emit code that runs if a result or a status is not 0."""
    with emitter.if_then(emitter.icmp("ne", result, ir.Constant(I32, 0)), likely=False):
        yield


def attempt(
    emitter: Emitter, state: ir.Value, values: ir.Value, name: str, *arguments: ir.Value
) -> None:
    """Call the driver; end the function if the call fails."""
    result = call_driver(emitter, state, name, list(arguments))
    with unless(emitter, result):
        emitter.ret(failed(emitter, state, result, emitter.cstring(name), values))


def failed(
    emitter: Emitter, state: ir.Value, result: ir.Value, what: ir.Value, values: ir.Value
) -> ir.Value:
    """The status of a failed call: CALL_FAILED."""
    return call(emitter, _FAILED, _FAILED_TYPE, state, result, what, values)


def define_failed(emitter: Emitter) -> None:
    """Store the values: the failed call, the driver's name of the error, its number, its text, a
    hint."""
    with cold(emitter, _FAILED, _FAILED_TYPE) as (state, result, what, values):
        put(emitter, values, 0, what)
        put(emitter, values, CODE_SLOT, result)
        for slot, name, instead in (
            (1, "cuGetErrorName", _NO_NAME),
            (3, "cuGetErrorString", _NO_TEXT),
        ):
            place = emitter.alloca(PTR, name="text")
            emitter.store(emitter.null(), place)
            call_driver(emitter, state, name, [result, place])
            text = emitter.load(place, PTR)
            known = emitter.select(emitter.is_null(text), emitter.cstring(instead), text)
            put(emitter, values, slot, known)
        put(emitter, values, HINT_SLOT, _hint(emitter, result))
        emitter.ret(status(Status.CALL_FAILED))


def _hint(emitter: Emitter, result: ir.Value) -> ir.Value:
    hint: ir.Value = emitter.null()
    for text in dict.fromkeys(HINTS.values()):
        numbers = [number for number, each in HINTS.items() if each is text]
        meant = is_one_of(emitter, result, numbers)
        hint = emitter.select(meant, emitter.cstring(text), hint)
    return hint
