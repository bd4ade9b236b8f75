"""The driver's functions about memory: allocated, freed, in pools, of the host, and what it is.

All of it is memory of the machine, so that kernels can use it; that of the host and managed memory
too. Addresses are those of the process, so the host could read a device's memory: on a real GPU it
cannot.
"""

from __future__ import annotations

from typing import Final

from ferrule.emulator.driver.allocations import Allocation, Kind
from ferrule.emulator.driver.library.exports import Exports, Needs
from ferrule.emulator.driver.nodes import NodeKind, Parameters
from ferrule.emulator.driver.places import get_int, put_int, put_word
from ferrule.emulator.driver.results import DriverError, Result
from ferrule.emulator.driver.state import Driver
from ferrule.emulator.driver.streams import capture_of, submit

exports: Final = Exports()

_PITCH: Final = 512
# CU_MEMHOSTALLOC_PORTABLE, DEVICEMAP and WRITECOMBINED of cuda.h: 1, 2 and 4.
_HOST_FLAGS: Final = 7
_DEVICE_MAP: Final = 2


def _check_size(size: int) -> None:
    if not size:
        raise DriverError(Result.INVALID_VALUE, "no memory has 0 bytes")


@exports("cuMemAlloc_v2", "oz", Needs.NO_CAPTURE)
def allocate(driver: Driver, out: int, size: int) -> None:
    _check_size(size)
    put_word(out, driver.allocate(size, Kind.DEVICE, driver.current()))


@exports("cuMemAllocPitch_v2", "oozzu", Needs.NO_CAPTURE)
def allocate_pitch(
    driver: Driver, out: int, pitch: int, width: int, height: int, element: int
) -> None:
    if element not in (4, 8, 16):
        raise DriverError(Result.INVALID_VALUE, f"elements of {element} bytes; 4, 8 or 16")
    _check_size(width * height)
    row = -(-width // _PITCH) * _PITCH
    put_word(out, driver.allocate(row * height, Kind.DEVICE, driver.current()))
    put_word(pitch, row)


@exports("cuMemAllocManaged", "ozu", Needs.NO_CAPTURE)
def allocate_managed(driver: Driver, out: int, size: int, flags: int) -> None:
    _check_size(size)
    # CU_MEM_ATTACH_GLOBAL and CU_MEM_ATTACH_HOST of cuda.h.
    if flags not in (1, 2):
        raise DriverError(Result.INVALID_VALUE, f"no managed memory has the flags {flags}")
    put_word(out, driver.allocate(size, Kind.MANAGED, driver.current(), flags))


@exports("cuMemFree_v2", "p", Needs.NO_CAPTURE)
def free(driver: Driver, address: int) -> None:
    if address:
        _free(driver, address, (Kind.DEVICE, Kind.MANAGED, Kind.POOL))


def _free(driver: Driver, address: int, kinds: tuple[Kind, ...]) -> None:
    found = driver.allocations.at_start(address)
    if found is None:
        inside = driver.allocations.find(address)
        where = (
            driver.allocations.unknown(address)
            if inside is None
            else f"{address:#x} is inside of the {inside.size} bytes at {inside.address:#x}"
        )
        raise DriverError(Result.INVALID_VALUE, f"{where}: it was freed before, or never given out")
    if found.kind not in kinds:
        raise DriverError(Result.INVALID_VALUE, f"{address:#x} is {found.kind.name.lower()} memory")
    driver.release(address)


@exports("cuMemGetInfo_v2", "oo")
def information(driver: Driver, free_out: int, total_out: int) -> None:
    total = driver.current().device.total_memory
    put_word(free_out, total - driver.used)
    put_word(total_out, total)


@exports("cuMemGetAddressRange_v2", "ppp")
def address_range(driver: Driver, base: int, size: int, address: int) -> None:
    found = driver.allocations.find(address)
    if found is None:
        raise DriverError(Result.NOT_FOUND, driver.allocations.unknown(address))
    for place, value in ((base, found.address), (size, found.size)):
        if place:
            put_word(place, value)


# ---- of the host ----


@exports("cuMemAllocHost_v2", "oz", Needs.NO_CAPTURE)
def allocate_host(driver: Driver, out: int, size: int) -> None:
    allocate_host_with(driver, out, size, 0)


@exports("cuMemHostAlloc", "ozu", Needs.NO_CAPTURE)
def allocate_host_with(driver: Driver, out: int, size: int, flags: int) -> None:
    _check_size(size)
    if flags & ~_HOST_FLAGS:
        raise DriverError(Result.INVALID_VALUE, f"no memory of the host has the flags {flags:#x}")
    kind, context = Kind.HOST, driver.current()
    # With one address space for all, memory of the host is always mapped.
    put_word(out, driver.allocate(size, kind, context, flags | _DEVICE_MAP))


@exports("cuMemFreeHost", "p", Needs.NO_CAPTURE)
def free_host(driver: Driver, address: int) -> None:
    _free(driver, address, (Kind.HOST,))


def _host(driver: Driver, address: int) -> Allocation:
    found = driver.allocations.find(address)
    if found is None or found.kind is not Kind.HOST:
        raise DriverError(Result.INVALID_VALUE, f"{address:#x} is not of cuMemHostAlloc")
    return found


@exports("cuMemHostGetDevicePointer_v2", "opu")
def host_pointer(driver: Driver, out: int, address: int, flags: int) -> None:
    _host(driver, address)
    put_word(out, address)


@exports("cuMemHostGetFlags", "op")
def host_flags(driver: Driver, out: int, address: int) -> None:
    put_int(out, _host(driver, address).flags)


# ---- in the order of a stream ----


@exports("cuMemAllocAsync", "ozp")
def allocate_async(driver: Driver, out: int, size: int, stream: int) -> None:
    from ferrule.emulator.driver.pools import pool_of

    context = driver.current()
    _allocate_async(driver, out, size, stream, pool_of(driver, context.device))


@exports("cuMemAllocFromPoolAsync", "ozpp")
def allocate_from_pool(driver: Driver, out: int, size: int, pool: int, stream: int) -> None:
    from ferrule.emulator.driver.pools import Pool

    _allocate_async(driver, out, size, stream, driver.find(pool, Pool, "memory pool"))


def _allocate_async(driver: Driver, out: int, size: int, stream: int, pool: object) -> None:
    _check_size(size)
    address = driver.allocate(size, Kind.POOL, driver.current(), pool=pool)
    put_word(out, address)
    if capture_of(driver, stream) is not None:
        submit(driver, stream, NodeKind.MEM_ALLOC, lambda: None, Parameters())


@exports("cuMemFreeAsync", "pp")
def free_async(driver: Driver, address: int, stream: int) -> None:
    if capture_of(driver, stream) is not None:
        # What a graph allocates stays as long as the process: a graph may be launched again.
        submit(driver, stream, NodeKind.MEM_FREE, lambda: None, Parameters())
        return
    if address:
        _free(driver, address, (Kind.DEVICE, Kind.MANAGED, Kind.POOL))


# ---- hints ----


@exports("cuMemPrefetchAsync", "pzip")
def prefetch(driver: Driver, address: int, size: int, device: int, stream: int) -> None:
    _check_managed(driver, address, size)


@exports("cuMemPrefetchAsync_v2", "pzqup")
def prefetch_to(
    driver: Driver, address: int, size: int, location: int, flags: int, stream: int
) -> None:
    _check_managed(driver, address, size)


@exports("cuMemAdvise", "pzii")
def advise(driver: Driver, address: int, size: int, advice: int, device: int) -> None:
    _check_managed(driver, address, size)


@exports("cuMemAdvise_v2", "pziq")
def advise_at(driver: Driver, address: int, size: int, advice: int, location: int) -> None:
    _check_managed(driver, address, size)


def _check_managed(driver: Driver, address: int, size: int) -> None:
    found = driver.allocations.check(address, size, "managed memory")
    if found.kind is not Kind.MANAGED:
        raise DriverError(Result.INVALID_VALUE, f"{address:#x} is not managed memory")


# ---- what an address is ----


def _attribute(driver: Driver, found: Allocation, address: int, wanted: int) -> tuple[int, int]:
    """An attribute of an address: its value and how many bytes it has."""
    device = found.context.device.ordinal
    managed, pool = found.kind is Kind.MANAGED, getattr(found.pool, "handle", 0)
    # By the numbers of `CUpointer_attribute` (cuda.h). An attribute's value has the size that its C
    # type has: 8 bytes, an int, or a byte for a truth value.
    words = {
        1: found.context.handle,
        3: address,
        4: address if found.kind in (Kind.HOST, Kind.MANAGED) else 0,
        7: found.number,
        11: found.address,
        12: found.size,
        14: 0,
        16: 3,
        17: pool,
        18: found.size,
        19: found.address,
    }
    if wanted in words:
        return words[wanted], 8
    ints = {2: 1 if found.kind is Kind.HOST else 2, 9: device, 13: 1, 6: 0}
    if wanted in ints:
        return ints[wanted], 4
    flags = {8: managed, 10: False, 15: False, 21: False}
    if wanted in flags:
        return int(flags[wanted]), 1
    raise DriverError(Result.INVALID_VALUE, f"no pointer attribute {wanted}")


def _put(place: int, value: int, size: int) -> None:
    put = {8: put_word, 4: put_int}.get(size)
    if put is not None:
        put(place, value)
        return
    from ferrule.emulator.driver.places import put_bytes

    put_bytes(place, bytes((value,)))


@exports("cuPointerGetAttribute", "oip", Needs.INIT)
def pointer_attribute(driver: Driver, out: int, wanted: int, address: int) -> None:
    found = driver.allocations.find(address)
    if found is None:
        raise DriverError(Result.INVALID_VALUE, driver.allocations.unknown(address))
    value, size = _attribute(driver, found, address, wanted)
    if wanted == 4 and not value:
        raise DriverError(Result.INVALID_VALUE, f"{address:#x} is memory of a device alone")
    _put(out, value, size)


_UNKNOWN: Final = {
    1: 8, 2: 4, 3: 8, 4: 8, 6: 4, 7: 8, 8: 1, 9: 4, 10: 1, 11: 8, 12: 8, 13: 4, 14: 8, 15: 1,
    16: 8, 17: 8, 18: 8, 19: 8, 21: 1,
}  # fmt: skip
"""Bytes of each attribute; of an address that is not the GPU's it is 0, the device -1 or -2."""
_NO_DEVICE: Final = -2


@exports("cuPointerGetAttributes", "uppp", Needs.INIT)
def pointer_attributes(
    driver: Driver, count: int, attributes: int, places: int, address: int
) -> None:
    found = driver.allocations.find(address)
    from ferrule.emulator.driver.places import get_words

    if count and not (attributes and places):
        raise DriverError(Result.INVALID_VALUE, "there is no place of the attributes")
    for i, place in enumerate(get_words(places, count)):
        wanted = get_int(attributes + 4 * i)
        if wanted not in _UNKNOWN:
            raise DriverError(Result.INVALID_VALUE, f"no pointer attribute {wanted}")
        if found is None:
            _put(place, _NO_DEVICE if wanted == 9 else 0, _UNKNOWN[wanted])
        else:
            _put(place, *_attribute(driver, found, address, wanted))


@exports("cuPointerSetAttribute", "oip", Needs.INIT)
def set_pointer_attribute(driver: Driver, value: int, wanted: int, address: int) -> None:
    if wanted != 6:  # whether calls on it wait, which all do
        raise DriverError(Result.INVALID_VALUE, f"the pointer attribute {wanted} cannot be set")
    driver.allocations.check(address, 1, "memory")
