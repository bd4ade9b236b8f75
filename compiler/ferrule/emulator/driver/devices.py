"""The driver's functions about itself, its errors and its devices."""

from __future__ import annotations

import uuid
from typing import Final

from ferrule.emulator.driver.library.exports import Exports, Needs
from ferrule.emulator.driver.places import (
    get_text,
    put_bytes,
    put_int,
    put_word,
)
from ferrule.emulator.driver.properties import compute_capability
from ferrule.emulator.driver.results import DriverError, Result
from ferrule.emulator.driver.state import Driver

exports: Final = Exports()

VERSION: Final = 13000
"""The version of CUDA whose functions these are."""

_ALLOWED_FLAGS: Final = 0
_ATTRIBUTES: Final = 147
"""The last `CUdevice_attribute` of that version."""


@exports("cuInit", "u", Needs.NOTHING)
def init(driver: Driver, flags: int) -> None:
    if flags != _ALLOWED_FLAGS:
        raise DriverError(Result.INVALID_VALUE, f"the flags must be 0, but are {flags}")
    if driver.forked:
        driver.check_initialised()
    if not driver.devices:
        raise DriverError(Result.NO_DEVICE)
    driver.initialised = True


@exports("cuDriverGetVersion", "o", Needs.NOTHING)
def driver_version(driver: Driver, out: int) -> None:
    put_int(out, VERSION)


@exports("cuGetErrorName", "io", Needs.NOTHING)
def error_name(driver: Driver, result: int, out: int) -> None:
    _tell(out, driver.named(result))


@exports("cuGetErrorString", "io", Needs.NOTHING)
def error_string(driver: Driver, result: int, out: int) -> None:
    _tell(out, driver.said(result))


def _tell(out: int, text: int) -> None:
    put_word(out, text)
    if not text:
        raise DriverError(Result.INVALID_VALUE, "no such result")


@exports("cuDeviceGetCount", "o", Needs.INIT)
def count(driver: Driver, out: int) -> None:
    put_int(out, len(driver.devices))


@exports("cuDeviceGet", "oi", Needs.INIT)
def device(driver: Driver, out: int, ordinal: int) -> None:
    put_int(out, driver.device(ordinal).ordinal)


@exports("cuDeviceGetName", "oii", Needs.INIT)
def device_name(driver: Driver, out: int, size: int, ordinal: int) -> None:
    name = driver.device(ordinal).name.encode()
    if size < 1:
        raise DriverError(Result.INVALID_VALUE, f"the place has {size} bytes")
    put_bytes(out, name[: size - 1] + b"\0")


@exports("cuDeviceGetUuid cuDeviceGetUuid_v2", "oi", Needs.INIT)
def device_uuid(driver: Driver, out: int, ordinal: int) -> None:
    found = driver.device(ordinal)
    name = f"{found.arch}:{found.ordinal}"
    put_bytes(out, uuid.uuid5(uuid.NAMESPACE_OID, f"ferrule emulated {name}").bytes)


@exports("cuDeviceTotalMem_v2", "oi", Needs.INIT)
def total_memory(driver: Driver, out: int, ordinal: int) -> None:
    put_word(out, driver.device(ordinal).total_memory)


@exports("cuDeviceGetAttribute", "oii", Needs.INIT)
def attribute(driver: Driver, out: int, wanted: int, ordinal: int) -> None:
    found = driver.device(ordinal).attributes.get(wanted)
    if found is None:
        known = f"CUDA {VERSION // 1000} has those from 1 to {_ATTRIBUTES}"
        raise DriverError(Result.INVALID_VALUE, f"no device attribute {wanted}: {known}")
    put_int(out, found)


@exports("cuDeviceComputeCapability", "ooi", Needs.INIT)
def capability(driver: Driver, major: int, minor: int, ordinal: int) -> None:
    for place, value in zip(
        (major, minor), compute_capability(driver.device(ordinal).arch), strict=True
    ):
        put_int(place, value)


@exports("cuDeviceGetPCIBusId", "oii", Needs.INIT)
def bus_id(driver: Driver, out: int, size: int, ordinal: int) -> None:
    text = f"0000:{driver.device(ordinal).ordinal + 1:02X}:00.0".encode() + b"\0"
    if size < len(text):
        raise DriverError(Result.INVALID_VALUE, f"the place has {size} bytes of {len(text)}")
    put_bytes(out, text)


@exports("cuDeviceGetByPCIBusId", "op", Needs.INIT)
def by_bus_id(driver: Driver, out: int, text: int) -> None:
    wanted = get_text(text).upper() if text else ""
    for each in driver.devices:
        if wanted in (f"0000:{each.ordinal + 1:02X}:00.0", f"{each.ordinal + 1:02X}:00.0"):
            put_int(out, each.ordinal)
            return
    raise DriverError(Result.INVALID_DEVICE, f"no device at {wanted!r}")


@exports("cuDeviceCanAccessPeer", "oii", Needs.INIT)
def can_access_peer(driver: Driver, out: int, ordinal: int, peer: int) -> None:
    one, other = driver.device(ordinal), driver.device(peer)
    put_int(out, int(one is not other))


@exports("cuDeviceGetP2PAttribute", "oiii", Needs.INIT)
def peer_attribute(driver: Driver, out: int, wanted: int, ordinal: int, peer: int) -> None:
    one, other = driver.device(ordinal), driver.device(peer)
    if one is other or not 1 <= wanted <= 4:
        raise DriverError(Result.INVALID_VALUE, f"attribute {wanted} of {ordinal} and {peer}")
    put_int(out, int(wanted != 1))  # 1 is a rank of performance, the others are abilities


@exports("cuDeviceGetDefaultMemPool cuDeviceGetMemPool", "oi", Needs.INIT)
def default_pool(driver: Driver, out: int, ordinal: int) -> None:
    from ferrule.emulator.driver.pools import pool_of

    put_word(out, pool_of(driver, driver.device(ordinal)).handle)


@exports("cuProfilerStart cuProfilerStop", "", Needs.CONTEXT)
def profiler(driver: Driver) -> None:
    """There is no profiler to start or stop, as where none is attached to a real driver."""


@exports("cuGetExportTable", "op", Needs.NOTHING)
def export_table(driver: Driver, out: int, identity: int) -> None:
    """Tables of NVIDIA's own tools: there are none."""
    put_word(out, 0)
    raise DriverError(Result.NOT_FOUND, "the emulated GPU has no tables of NVIDIA's own libraries")
