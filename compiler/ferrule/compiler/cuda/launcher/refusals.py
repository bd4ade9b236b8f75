"""Launches that exceed a limit or fail: attributes to set, retries, and faults."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from llvmlite import ir

from ferrule.compiler.cuda.launcher.choice import ordinal
from ferrule.compiler.cuda.launcher.cold import (
    HINT_SLOT,
    attempt,
    call,
    cold,
    end,
    entry,
    failed,
    is_one_of,
    put,
    unless,
)
from ferrule.compiler.cuda.launcher.contexts import GONE
from ferrule.compiler.cuda.launcher.driver import Attribute, Result
from ferrule.compiler.cuda.launcher.entries import ALLOW, ALLOW_CLUSTERS, OPEN, PROTOTYPES, REFUSED
from ferrule.compiler.cuda.launcher.rows import (
    FIND_ROW,
    FIND_ROW_TYPE,
    HANDLE,
    HANDLE_TYPE,
    library_at,
)
from ferrule.compiler.cuda.launcher.state import (
    KERNEL,
    MAX_DEVICES,
    PROGRAM,
    ROW,
    STATE,
    Phase,
    Status,
    call_driver,
    status,
)
from ferrule.runtime.llvm.emitter import Emitter
from ferrule.runtime.llvm.launches import LAUNCH_CONFIG
from ferrule.runtime.llvm.layouts import I32, I64, PTR

SIZES: Final = (
    *(f"{size}Dim{axis}" for size in ("grid", "block") for axis in "XYZ"),
    "sharedMemBytes",
    "hStream",
)
"""The sizes of a launch in a message."""

_AS_IT_WAS: Final = Status.PUSHED
"""The result of `ferrule_cuda_renew` if there is nothing to renew."""

_RENEW: Final = ir.FunctionType(I32, [PTR, PTR, PTR, PTR, PTR])
_LIMITS: Final = ir.FunctionType(I32, [PTR, PTR, PTR, PTR])


def define_refusing(emitter: Emitter) -> None:
    """`ALLOW`, `ALLOW_CLUSTERS` and `REFUSED`, and their helpers."""
    _define_allow(emitter)
    _define_allow_clusters(emitter)
    _define_renew(emitter)
    _define_limits(emitter)
    _define_refused(emitter)


def _define_allow(emitter: Emitter) -> None:
    """Always allow the device's maximum, because other threads may launch the kernel at the same
    time."""
    with entry(emitter, ALLOW) as (state, kernel, device, smem, values):
        keep = _unless_kept(emitter, kernel, "allowed", device)
        handle = call(emitter, HANDLE, HANDLE_TYPE, state, kernel, device)
        with emitter.if_then(emitter.is_null(handle)):
            emitter.ret(status(Status.DONE))  # the launch reports the error
        place = emitter.alloca(I32, 2, name="asked")
        most = _attribute(emitter, state, place, _SHARED, device, values=values)
        static = _attribute(emitter, state, place, _STATIC, handle, device, values=values)
        rest = emitter.binary("sub", most, static)
        with emitter.if_then(emitter.icmp("sgt", smem, rest)):
            end(emitter, Status.TOO_MUCH_SHARED, values, smem, device, rest)
        kind = emitter.const_i32(Attribute.MAX_DYNAMIC_SHARED_SIZE_BYTES)
        attempt(emitter, state, values, "cuKernelSetAttribute", kind, rest, handle, device)
        keep()
        emitter.ret(status(Status.DONE))


def _unless_kept(
    emitter: Emitter, kernel: ir.Value, field: str, device: ir.Value
) -> Callable[[], None]:
    """Return from the function with DONE if a kernel has the device's bit; returns a function that
    sets the bit."""
    build = emitter.builder
    kept = emitter.icmp("ult", device, emitter.const_i32(MAX_DEVICES))
    wide = build.zext(device, I64)
    words = emitter.field_ptr(kernel, KERNEL, field)
    # 64 devices in each word: the upper bits are the word, the lowest 6 the bit in it.
    word = emitter.index(words, I64, build.lshr(wide, emitter.const_i64(6)))
    bit = build.shl(emitter.const_i64(1), build.and_(wide, emitter.const_i64(63)))
    with emitter.if_then(kept):
        known = build.and_(build.load_atomic(word, "acquire", 8, typ=I64), bit)
        with emitter.if_then(emitter.icmp("ne", known, emitter.const_i64(0))):
            emitter.ret(status(Status.DONE))

    def keep() -> None:
        with emitter.if_then(kept):
            build.atomic_rmw("or", word, bit, "release")

    return keep


def _define_allow_clusters(emitter: Emitter) -> None:
    with entry(emitter, ALLOW_CLUSTERS) as (state, kernel, values):
        place, one = emitter.alloca(I32, name="device"), emitter.const_i32(1)
        attempt(emitter, state, values, "cuCtxGetDevice", place)
        device = emitter.load(place, I32)
        keep = _unless_kept(emitter, kernel, "clustered", device)
        emitter.store_field(kernel, KERNEL, "has_large_clusters", one)
        handle = call(emitter, HANDLE, HANDLE_TYPE, state, kernel, device)
        with emitter.if_then(emitter.is_null(handle)):
            emitter.ret(status(Status.DONE))  # the launch reports the error
        name, kind = "cuKernelSetAttribute", Attribute.NON_PORTABLE_CLUSTER_SIZE_ALLOWED
        asked = [emitter.const_i32(kind), one, handle, device]
        result = call_driver(emitter, state, name, asked)
        with unless(emitter, result):
            _end_if_gone(emitter, result)
            emitter.ret(failed(emitter, state, result, emitter.cstring(name), values))
        keep()
        emitter.ret(status(Status.DONE))


def _end_if_gone(emitter: Emitter, result: ir.Value) -> None:
    """Return DONE if a kernel was destroyed with a context: its launch finds that out."""
    with emitter.if_then(is_one_of(emitter, result, (Result.INVALID_HANDLE,))):
        emitter.ret(status(Status.DONE))


_SHARED: Final = ("cuDeviceGetAttribute", Attribute.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)
_STATIC: Final = ("cuKernelGetAttribute", Attribute.SHARED_SIZE_BYTES)
_THREADS: Final = ("cuKernelGetAttribute", Attribute.MAX_THREADS_PER_BLOCK)


def _attribute(
    emitter: Emitter,
    state: ir.Value,
    place: ir.Value,
    asked: tuple[str, Attribute],
    *of: ir.Value,
    values: ir.Value,
) -> ir.Value:
    """An attribute of a device, or of a kernel on it; ends the function on failure."""
    name, attribute = asked
    result = call_driver(emitter, state, name, [place, emitter.const_i32(attribute), *of])
    with unless(emitter, result):
        _end_if_gone(emitter, result)
        emitter.ret(failed(emitter, state, result, emitter.cstring(name), values))
    return emitter.load(place, I32, name=attribute.name)


def _define_renew(emitter: Emitter) -> None:
    """`i32 ferrule_cuda_renew(ptr state, ptr program, ptr kernel, ptr used, ptr values)`: make sure
    that a kernel's handle is valid after a launch with `used` was refused."""
    with cold(emitter, "ferrule_cuda_renew", _RENEW) as (state, program, kernel, used, values):
        opening = [state, program, emitter.const_i32(-1), values]
        opened = call(emitter, OPEN, PROTOTYPES[OPEN], *opening)
        with unless(emitter, opened):
            emitter.ret(opened)
        handle = emitter.load_field(kernel, KERNEL, "handle")
        with emitter.if_then(emitter.icmp("ne", handle, used)):
            emitter.ret(status(Status.DONE))  # another thread was faster
        here = ordinal(emitter, state, emitter.const_i32(-1))
        row = call(emitter, FIND_ROW, FIND_ROW_TYPE, state, here)
        with emitter.if_then(emitter.is_null(row)):
            emitter.ret(status(_AS_IT_WAS))
        place, library = emitter.alloca(PTR), library_at(emitter, row)
        asked = [place, library, emitter.load_field(program, PROGRAM, "names")]
        result = call_driver(emitter, state, "cuLibraryGetKernel", asked)
        with emitter.if_then(is_one_of(emitter, result, (Result.SUCCESS,))):
            # In MIXED it is unknown which handle was refused: another thread may have renewed it.
            mixed = emitter.icmp("eq", used, kernel)
            ended = emitter.select(mixed, status(Status.DONE), status(_AS_IT_WAS))
            emitter.ret(ended)
        at = emitter.field_ptr(row, ROW, "library")
        emitter.builder.cmpxchg(at, library, emitter.null(), "acq_rel", "acquire")
        phase = emitter.field_ptr(state, STATE, "phase")
        phases = [ir.Constant(I32, int(each)) for each in (Phase.READY, Phase.UNLOADED)]
        emitter.builder.cmpxchg(phase, *phases, "acq_rel", "acquire")
        emitter.ret(call(emitter, OPEN, PROTOTYPES[OPEN], *opening))


def _define_limits(emitter: Emitter) -> None:
    """`i32 ferrule_cuda_limits(ptr state, ptr kernel, ptr config, ptr values)`: the limit of kernel
    or device that a launch exceeds; 0 if unknown."""
    with cold(emitter, "ferrule_cuda_limits", _LIMITS) as (state, kernel, config, values):
        place, at = emitter.alloca(I32, 2, name="asked"), emitter.alloca(I32, name="device")
        _ask(emitter, state, "cuCtxGetDevice", at)
        device = emitter.load(at, I32)
        handle = call(emitter, HANDLE, HANDLE_TYPE, state, kernel, device)
        found = []
        for (name, attribute), of in (
            (_THREADS, (handle, device)),
            (_SHARED, (device,)),
            (_STATIC, (handle, device)),
        ):
            number = emitter.const_i32(attribute)
            _ask(emitter, state, name, place, number, *of)
            found.append(emitter.load(place, I32, name=attribute.name))
        threads = emitter.const_i32(1)
        for size in SIZES[3:6]:
            threads = emitter.binary(
                "mul", threads, emitter.load_field(config, LAUNCH_CONFIG, size)
            )
        with emitter.if_then(emitter.icmp("sgt", threads, found[0])):
            end(emitter, Status.TOO_MANY_THREADS, values, threads, device, found[0])
        smem = emitter.load_field(config, LAUNCH_CONFIG, "sharedMemBytes")
        rest = emitter.binary("sub", found[1], found[2])
        with emitter.if_then(emitter.icmp("sgt", smem, rest)):
            end(emitter, Status.TOO_MUCH_SHARED, values, smem, device, rest)
        emitter.ret(status(Status.DONE))


def _ask(emitter: Emitter, state: ir.Value, name: str, *arguments: ir.Value) -> None:
    """Call the driver; return DONE if the call fails."""
    with unless(emitter, call_driver(emitter, state, name, list(arguments))):
        emitter.ret(status(Status.DONE))


def _allow_again(
    emitter: Emitter, state: ir.Value, kernel: ir.Value, config: ir.Value, values: ir.Value
) -> None:
    """Set the attributes again for a kernel that was loaded again."""
    smem = emitter.load_field(config, LAUNCH_CONFIG, "sharedMemBytes")
    with emitter.if_then(emitter.icmp("ne", smem, emitter.const_i32(0))):
        at = emitter.alloca(I32, name="device")
        attempt(emitter, state, values, "cuCtxGetDevice", at)
        device = emitter.load(at, I32)
        allowed = call(emitter, ALLOW, PROTOTYPES[ALLOW], state, kernel, device, smem, values)
        with unless(emitter, allowed):
            emitter.ret(allowed)
    large = emitter.load_field(kernel, KERNEL, "has_large_clusters")
    with emitter.if_then(emitter.icmp("ne", large, emitter.const_i32(0))):
        given = [state, kernel, values]
        allowed = call(emitter, ALLOW_CLUSTERS, PROTOTYPES[ALLOW_CLUSTERS], *given)
        with unless(emitter, allowed):
            emitter.ret(allowed)


def _define_refused(emitter: Emitter) -> None:
    """Repeat a launch whose kernel was destroyed with its context; otherwise find its fault."""
    with entry(emitter, REFUSED) as (
        state, program, kernel, used, config, pointers, first, values,
    ):  # fmt: skip
        result = emitter.alloca(I32, name="result")
        emitter.store(first, result)
        with emitter.if_then(is_one_of(emitter, first, (*GONE, Result.INVALID_HANDLE))):
            renewing = [state, program, kernel, used, values]
            renewed = call(emitter, "ferrule_cuda_renew", _RENEW, *renewing)
            with emitter.if_then(emitter.icmp("sgt", renewed, status(Status.DONE))):
                emitter.ret(renewed)
            with emitter.if_then(emitter.icmp("eq", renewed, status(Status.DONE))):
                _allow_again(emitter, state, kernel, config, values)
                handle = emitter.load_field(kernel, KERNEL, "handle")
                again = [config, handle, pointers, emitter.null()]
                second = call_driver(emitter, state, "cuLaunchKernelEx", again)
                emitter.store(second, result)
                with emitter.if_then(is_one_of(emitter, second, (Result.SUCCESS,))):
                    emitter.ret(status(Status.DONE))
        last = emitter.load(result, I32)
        beyond = (Result.INVALID_VALUE, Result.LAUNCH_OUT_OF_RESOURCES)
        with emitter.if_then(is_one_of(emitter, last, beyond)):
            limit = call(emitter, "ferrule_cuda_limits", _LIMITS, state, kernel, config, values)
            with unless(emitter, limit):
                emitter.ret(limit)
        failed(emitter, state, last, emitter.cstring("cuLaunchKernelEx"), values)
        hint = emitter.load(emitter.index(values, I64, HINT_SLOT), I64)
        for slot, size in enumerate(SIZES, HINT_SLOT):
            put(emitter, values, slot, emitter.load_field(config, LAUNCH_CONFIG, size))
        put(emitter, values, HINT_SLOT + len(SIZES), hint)
        emitter.ret(status(Status.LAUNCH_FAILED))
