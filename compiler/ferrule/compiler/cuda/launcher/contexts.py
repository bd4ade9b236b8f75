"""Contexts: a call makes the primary context of a device current, and restores the old one."""

from __future__ import annotations

from typing import Final

from llvmlite import ir

from ferrule.compiler.cuda.launcher.cold import (
    attempt,
    call,
    cold,
    end,
    entry,
    failed,
    is_one_of,
    unless,
)
from ferrule.compiler.cuda.launcher.driver import Result
from ferrule.compiler.cuda.launcher.entries import POP, PUSH
from ferrule.compiler.cuda.launcher.state import MAX_DEVICES, STATE, Status, call_driver, status
from ferrule.runtime.llvm.emitter import Emitter
from ferrule.runtime.llvm.layouts import I32, I64, PTR

GONE: Final = (Result.INVALID_CONTEXT, Result.CONTEXT_IS_DESTROYED)
"""The results of a call if there is no current context, or it was destroyed."""

_CONTEXT: Final = ir.FunctionType(I32, [PTR, I32, PTR, PTR])
_FORGET: Final = ir.FunctionType(I32, [PTR, I32, PTR])


def define_contexts(emitter: Emitter) -> None:
    """`PUSH` and `POP`, and their helpers."""
    _define_context(emitter)
    _define_forget(emitter)
    _define_push(emitter)
    _define_pop(emitter)


def _define_context(emitter: Emitter) -> None:
    """`i32 ferrule_cuda_context(ptr state, i32 device, ptr out, ptr values)`: the primary
    context."""
    with cold(emitter, "ferrule_cuda_context", _CONTEXT) as (state, device, out, values):
        build = emitter.builder
        kept, slot = _slot(emitter, state, device)
        with emitter.if_then(kept):
            known = build.load_atomic(slot, "acquire", 8, typ=PTR)
            with emitter.if_then(emitter.not_(emitter.is_null(known))):
                emitter.store(known, out)
                emitter.ret(status(Status.DONE))
        name = "cuDevicePrimaryCtxRetain"
        result = call_driver(emitter, state, name, [out, device])
        with unless(emitter, result):
            _end_without(emitter, state, device, result, values)
            emitter.ret(failed(emitter, state, result, emitter.cstring(name), values))
        with emitter.if_then(kept):
            mine = emitter.load(out, PTR)
            taken = build.cmpxchg(slot, emitter.null(), mine, "acq_rel", "acquire")
            # Another thread was faster: its reference counts for the same context.
            with emitter.if_then(emitter.not_(build.extract_value(taken, 1))):
                call_driver(emitter, state, "cuDevicePrimaryCtxRelease_v2", [device])
        emitter.ret(status(Status.DONE))


def _slot(emitter: Emitter, state: ir.Value, device: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Whether the context of a device is cached, and its place."""
    kept = emitter.icmp("ult", device, emitter.const_i32(MAX_DEVICES))
    contexts = emitter.field_ptr(state, STATE, "contexts")
    return kept, emitter.index(contexts, PTR, emitter.builder.zext(device, I64))


def _end_without(
    emitter: Emitter, state: ir.Value, device: ir.Value, result: ir.Value, values: ir.Value
) -> None:
    """End the function if the driver has no such device."""
    with emitter.if_then(is_one_of(emitter, result, (Result.INVALID_DEVICE,))):
        place = emitter.alloca(I32, name="count")
        counted = call_driver(emitter, state, "cuDeviceGetCount", [place])
        with emitter.if_then(is_one_of(emitter, counted, (Result.SUCCESS,))):
            end(emitter, Status.NO_DEVICE, values, device, emitter.load(place, I32))


def _define_forget(emitter: Emitter) -> None:
    """`i32 ferrule_cuda_forget(ptr state, i32 device, ptr context)`: forget a destroyed context."""
    with cold(emitter, "ferrule_cuda_forget", _FORGET) as (state, device, context):
        kept, slot = _slot(emitter, state, device)
        with emitter.if_then(kept):
            taken = emitter.builder.cmpxchg(slot, context, emitter.null(), "acq_rel", "acquire")
            # Only the thread that took it out gives the reference back.
            with emitter.if_then(emitter.builder.extract_value(taken, 1)):
                call_driver(emitter, state, "cuDevicePrimaryCtxRelease_v2", [device])
        emitter.ret(status(Status.DONE))


def _define_push(emitter: Emitter) -> None:
    """A context that was reset is retained again, once."""
    with entry(emitter, PUSH) as (state, device, result, values):
        with emitter.if_then(emitter.not_(is_one_of(emitter, result, (Result.SUCCESS, *GONE)))):
            what = emitter.cstring("cuCtxGetDevice")
            emitter.ret(failed(emitter, state, result, what, values))
        zero = emitter.const_i32(0)
        wanted = emitter.select(emitter.icmp("slt", device, zero), zero, device)
        place = emitter.alloca(PTR, name="context")
        context = _context(emitter, state, wanted, place, values)
        pushed = call_driver(emitter, state, "cuCtxPushCurrent_v2", [context])
        with emitter.if_then(emitter.icmp("eq", pushed, zero)):
            emitter.ret(status(Status.PUSHED))
        with emitter.if_then(emitter.not_(is_one_of(emitter, pushed, GONE))):
            what = emitter.cstring("cuCtxPushCurrent_v2")
            emitter.ret(failed(emitter, state, pushed, what, values))
        call(emitter, "ferrule_cuda_forget", _FORGET, state, wanted, context)
        context = _context(emitter, state, wanted, place, values)
        attempt(emitter, state, values, "cuCtxPushCurrent_v2", context)
        emitter.ret(status(Status.PUSHED))


def _context(
    emitter: Emitter, state: ir.Value, device: ir.Value, place: ir.Value, values: ir.Value
) -> ir.Value:
    """The primary context of a device; ends the function if there is none."""
    emitter.store(emitter.null(), place)
    found = call(emitter, "ferrule_cuda_context", _CONTEXT, state, device, place, values)
    with unless(emitter, found):
        emitter.ret(found)
    return emitter.load(place, PTR)


def _define_pop(emitter: Emitter) -> None:
    with entry(emitter, POP) as (state, values):
        popped = emitter.alloca(PTR, name="popped")
        attempt(emitter, state, values, "cuCtxPopCurrent_v2", popped)
        emitter.ret(status(Status.DONE))
