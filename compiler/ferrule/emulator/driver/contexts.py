"""The driver's functions about contexts: those of devices, those of programs, and each thread's."""

from __future__ import annotations

from typing import Final

from ferrule.emulator.driver.library.exports import Exports, Needs
from ferrule.emulator.driver.places import put_int, put_word
from ferrule.emulator.driver.results import DriverError, Result
from ferrule.emulator.driver.state import LIMITS, STACK_SIZE, Context, Driver

exports: Final = Exports()

_FLAGS: Final = 0xFF
_MOST_LOCAL: Final = 512 << 10
"""Bytes of memory of a thread's own."""
_CACHES: Final = range(4)
_VERSION: Final = 3020  # what cuCtxGetApiVersion says of a context since CUDA 3.2


# ---- primary contexts ----


@exports("cuDevicePrimaryCtxRetain", "oi", Needs.INIT)
def retain(driver: Driver, out: int, ordinal: int) -> None:
    device = driver.device(ordinal)
    context = driver.primary(device)
    device.retained += 1
    put_word(out, context.handle)


@exports("cuDevicePrimaryCtxRelease cuDevicePrimaryCtxRelease_v2", "i", Needs.INIT)
def release(driver: Driver, ordinal: int) -> None:
    device = driver.device(ordinal)
    if not device.retained:
        raise DriverError(Result.INVALID_CONTEXT, "the primary context is not retained")
    device.retained -= 1
    if not device.retained:
        _end_primary(driver, ordinal)


@exports("cuDevicePrimaryCtxReset cuDevicePrimaryCtxReset_v2", "i", Needs.INIT)
def reset(driver: Driver, ordinal: int) -> None:
    driver.device(ordinal)
    _end_primary(driver, ordinal)


def _end_primary(driver: Driver, ordinal: int) -> None:
    device = driver.device(ordinal)
    context, device.primary = device.primary, None
    if context is not None:
        driver.destroy(context)


@exports("cuDevicePrimaryCtxGetState", "ioo", Needs.INIT)
def state(driver: Driver, ordinal: int, flags: int, active: int) -> None:
    device = driver.device(ordinal)
    put_int(flags, device.flags)
    put_int(active, int(device.primary is not None))


@exports("cuDevicePrimaryCtxSetFlags cuDevicePrimaryCtxSetFlags_v2", "iu", Needs.INIT)
def set_primary_flags(driver: Driver, ordinal: int, flags: int) -> None:
    device = driver.device(ordinal)
    device.flags = _checked(flags)
    if device.primary is not None:
        device.primary.flags = flags


def _checked(flags: int) -> int:
    # CU_CTX_SCHED_MASK: one way to wait, or none.
    if flags & ~_FLAGS or (flags & 7) not in (0, 1, 2, 4):
        raise DriverError(Result.INVALID_VALUE, f"no context has the flags {flags:#x}")
    return flags


# ---- a thread's contexts ----


def _given(driver: Driver, handle: int) -> Context:
    """The context of a handle; one that was destroyed is refused as such."""
    try:
        return driver.find(handle, Context, "context")
    except DriverError as error:
        if error.result is Result.CONTEXT_IS_DESTROYED:
            raise
        raise DriverError(Result.INVALID_CONTEXT, error.sentence) from None


@exports("cuCtxCreate_v2", "oui", Needs.INIT)
def create(driver: Driver, out: int, flags: int, ordinal: int) -> None:
    device = driver.device(ordinal)
    context = driver.new_context(device, primary=False, flags=_checked(flags))
    driver.thread.contexts.append(context)
    put_word(out, context.handle)


@exports("cuCtxCreate_v3", "opiui", Needs.INIT)
def create_with_affinity(
    driver: Driver, out: int, affinities: int, count: int, flags: int, ordinal: int
) -> None:
    if count:
        raise DriverError(Result.UNSUPPORTED_EXEC_AFFINITY, "the emulated GPU has no affinities")
    create(driver, out, flags, ordinal)


@exports("cuCtxCreate_v4", "opui", Needs.INIT)
def create_with(driver: Driver, out: int, parameters: int, flags: int, ordinal: int) -> None:
    if parameters:
        raise DriverError(Result.NOT_SUPPORTED, "the emulated GPU has no parameters of contexts")
    create(driver, out, flags, ordinal)


@exports("cuCtxDestroy_v2 cuCtxDestroy", "p", Needs.INIT)
def destroy(driver: Driver, handle: int) -> None:
    context = _given(driver, handle)
    if context.primary:
        raise DriverError(Result.INVALID_CONTEXT, "a primary context is released, not destroyed")
    stack = driver.thread.contexts
    if stack and stack[-1] is context:
        stack.pop()
    driver.destroy(context)


@exports("cuCtxPushCurrent_v2", "p", Needs.INIT)
def push(driver: Driver, handle: int) -> None:
    driver.thread.contexts.append(_given(driver, handle))


@exports("cuCtxPopCurrent_v2", "p", Needs.INIT)
def pop(driver: Driver, out: int) -> None:
    stack = driver.thread.contexts
    if not stack:
        raise DriverError(Result.INVALID_CONTEXT, "no context is current on this thread")
    found = stack.pop()
    if out:
        put_word(out, found.handle if found else 0)


@exports("cuCtxSetCurrent", "p", Needs.INIT)
def set_current(driver: Driver, handle: int) -> None:
    stack = driver.thread.contexts
    context = _given(driver, handle) if handle else None
    if stack:
        stack.pop()
    if context is not None:
        stack.append(context)


@exports("cuCtxGetCurrent", "o", Needs.INIT)
def get_current(driver: Driver, out: int) -> None:
    stack = driver.thread.contexts
    put_word(out, stack[-1].handle if stack else 0)


@exports("cuCtxGetDevice", "o", Needs.ITSELF)
def get_device(driver: Driver, out: int) -> None:
    put_int(out, driver.current().device.ordinal)


@exports("cuCtxGetDevice_v2", "op", Needs.INIT)
def get_device_of(driver: Driver, out: int, handle: int) -> None:
    put_int(out, _or_current(driver, handle).device.ordinal)


def _or_current(driver: Driver, handle: int) -> Context:
    return _given(driver, handle) if handle else driver.current()


@exports("cuCtxGetFlags", "o")
def get_flags(driver: Driver, out: int) -> None:
    put_int(out, driver.current().flags)


@exports("cuCtxSetFlags", "u")
def set_flags(driver: Driver, flags: int) -> None:
    driver.current().flags = _checked(flags)


@exports("cuCtxGetId", "po", Needs.INIT)
def get_id(driver: Driver, handle: int, out: int) -> None:
    put_word(out, _or_current(driver, handle).handle)


@exports("cuCtxGetApiVersion", "po", Needs.INIT)
def api_version(driver: Driver, handle: int, out: int) -> None:
    _or_current(driver, handle)
    put_int(out, _VERSION)


@exports("cuCtxSynchronize", "", Needs.NO_CAPTURE)
def synchronize(driver: Driver) -> None:
    """Everything was done before its call returned."""


@exports("cuCtxSynchronize_v2", "p", Needs.INIT)
def synchronize_with(driver: Driver, handle: int) -> None:
    _or_current(driver, handle)
    if driver.captures and driver.thread.capture_mode != 2:
        driver.disturb()


@exports("cuCtxGetLimit", "oi")
def get_limit(driver: Driver, out: int, limit: int) -> None:
    _check_limit(limit)
    put_word(out, driver.current().limits.get(limit, LIMITS[limit]))


@exports("cuCtxSetLimit", "iz")
def set_limit(driver: Driver, limit: int, value: int) -> None:
    _check_limit(limit)
    if limit == STACK_SIZE and value > _MOST_LOCAL:
        raise DriverError(
            Result.INVALID_VALUE, f"a stack of {value} bytes; a thread has at most {_MOST_LOCAL}"
        )
    driver.current().limits[limit] = value


def _check_limit(limit: int) -> None:
    if limit not in LIMITS:
        raise DriverError(Result.UNSUPPORTED_LIMIT, f"no limit {limit}")


@exports("cuCtxGetCacheConfig", "o")
def get_cache(driver: Driver, out: int) -> None:
    put_int(out, driver.current().cache)


@exports("cuCtxSetCacheConfig", "i")
def set_cache(driver: Driver, cache: int) -> None:
    if cache not in _CACHES:
        raise DriverError(Result.INVALID_VALUE, f"no preference {cache}")
    driver.current().cache = cache


@exports("cuCtxGetSharedMemConfig", "o")
def get_banks(driver: Driver, out: int) -> None:
    put_int(out, 1)  # four bytes, as every GPU since sm_50 has it


@exports("cuCtxSetSharedMemConfig", "i")
def set_banks(driver: Driver, config: int) -> None:
    if not 0 <= config <= 2:
        raise DriverError(Result.INVALID_VALUE, f"no bank size {config}")


@exports("cuCtxGetStreamPriorityRange", "pp")
def priorities(driver: Driver, least: int, greatest: int) -> None:
    for place, value in ((least, 0), (greatest, -5)):
        if place:
            put_int(place, value)


@exports("cuCtxResetPersistingL2Cache")
def reset_l2(driver: Driver) -> None:
    """Nothing is cached."""


# ---- other devices' memory ----


@exports("cuCtxEnablePeerAccess", "pu")
def enable_peer(driver: Driver, handle: int, flags: int) -> None:
    context, peer = driver.current(), _given(driver, handle)
    if flags:
        raise DriverError(Result.INVALID_VALUE, f"the flags must be 0, but are {flags}")
    if peer.device is context.device:
        raise DriverError(Result.INVALID_DEVICE, "the context is of the same device")
    if peer.handle in context.peers:
        raise DriverError(Result.PEER_ACCESS_ALREADY_ENABLED)
    context.peers.add(peer.handle)


@exports("cuCtxDisablePeerAccess", "p")
def disable_peer(driver: Driver, handle: int) -> None:
    context, peer = driver.current(), _given(driver, handle)
    if peer.handle not in context.peers:
        raise DriverError(Result.PEER_ACCESS_NOT_ENABLED)
    context.peers.remove(peer.handle)
