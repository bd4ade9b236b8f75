"""The driver's functions about pools of memory: one of each device, and those of programs."""

from __future__ import annotations

import struct
from dataclasses import field
from typing import Final

from ferrule.emulator.driver.library.exports import Exports, Needs
from ferrule.emulator.driver.places import get_int, get_word, put_int, put_word, unpacked
from ferrule.emulator.driver.results import DriverError, Result
from ferrule.emulator.driver.state import Device, Driver
from ferrule.specs.deferred import dataclass

exports: Final = Exports()

_FLAGS: Final = (1, 2, 3)
"""Attributes that are an int, about what memory may be used again: true at first."""
# `CUmemPool_attribute` of cuda.h.
_THRESHOLD: Final = 4
_RESERVED, _RESERVED_HIGH, _USED, _USED_HIGH = 5, 6, 7, 8
_PROPERTIES: Final = struct.Struct("<iiii")
# CU_MEM_ALLOCATION_TYPE_PINNED and CU_MEM_LOCATION_TYPE_DEVICE of cuda.h.
_PINNED, _ON_DEVICE = 1, 1


@dataclass(eq=False, slots=True)
class Pool:
    """A pool: memory comes from the device whenever it is asked for."""

    device: Device
    handle: int = 0
    default: bool = False
    flags: dict[int, int] = field(default_factory=dict)
    threshold: int = 0
    used: int = 0
    high: int = 0


def pool_of(driver: Driver, device: Device) -> Pool:
    """The pool that is a device's current one."""
    found = device.pools.get("current") or device.pools.get("default")
    if found is None:
        found = device.pools["default"] = Pool(device, default=True)
        found.handle = driver.new(found)
    return found


def _pool(driver: Driver, handle: int) -> Pool:
    return driver.find(handle, Pool, "memory pool")


@exports("cuDeviceSetMemPool", "ip", Needs.INIT)
def set_pool(driver: Driver, ordinal: int, handle: int) -> None:
    pool, device = _pool(driver, handle), driver.device(ordinal)
    if pool.device is not device:
        raise DriverError(Result.INVALID_VALUE, f"the pool is of device {pool.device.ordinal}")
    pool_of(driver, device)
    device.pools["current"] = pool


@exports("cuMemPoolCreate", "oo", Needs.INIT)
def create(driver: Driver, out: int, properties: int) -> None:
    kind, handles, place, ordinal = unpacked(_PROPERTIES, properties)
    if kind != _PINNED or handles != 0 or place != _ON_DEVICE:
        raise DriverError(
            Result.NOT_SUPPORTED, "pools of pinned memory of a device alone, not to be shared"
        )
    pool = Pool(driver.device(ordinal))
    pool.handle = driver.new(pool)
    put_word(out, pool.handle)


@exports("cuMemPoolDestroy", "p", Needs.INIT)
def destroy(driver: Driver, handle: int) -> None:
    pool = _pool(driver, handle)
    if pool.default:
        raise DriverError(Result.NOT_PERMITTED, "a device's default pool cannot be destroyed")
    if pool.device.pools.get("current") is pool:
        del pool.device.pools["current"]
    driver.forget(handle)


@exports("cuMemPoolGetAttribute", "pio", Needs.INIT)
def get_attribute(driver: Driver, handle: int, wanted: int, out: int) -> None:
    pool = _pool(driver, handle)
    if wanted in _FLAGS:
        put_int(out, pool.flags.get(wanted, 1))
    elif wanted == _THRESHOLD:
        put_word(out, pool.threshold)
    elif wanted in (_RESERVED, _USED):
        put_word(out, pool.used)
    elif wanted in (_RESERVED_HIGH, _USED_HIGH):
        put_word(out, pool.high)
    else:
        raise DriverError(Result.INVALID_VALUE, f"no pool attribute {wanted}")


@exports("cuMemPoolSetAttribute", "pio", Needs.INIT)
def set_attribute(driver: Driver, handle: int, wanted: int, value: int) -> None:
    pool = _pool(driver, handle)
    if wanted in _FLAGS:
        pool.flags[wanted] = get_int(value)
    elif wanted == _THRESHOLD:
        pool.threshold = get_word(value)
    elif wanted in (_RESERVED_HIGH, _USED_HIGH) and not get_word(value):
        pool.high = pool.used
    else:
        raise DriverError(Result.INVALID_VALUE, f"the pool attribute {wanted} cannot be set")


@exports("cuMemPoolTrimTo", "pz", Needs.INIT)
def trim(driver: Driver, handle: int, keep: int) -> None:
    """Nothing is kept that is not in use."""
    _pool(driver, handle)


@exports("cuMemPoolSetAccess", "poz", Needs.INIT)
def set_access(driver: Driver, handle: int, access: int, count: int) -> None:
    """Every device can use every memory."""
    _pool(driver, handle)


@exports("cuMemPoolGetAccess", "opo", Needs.INIT)
def get_access(driver: Driver, out: int, handle: int, location: int) -> None:
    _pool(driver, handle)
    put_int(out, 3)  # reading and writing
