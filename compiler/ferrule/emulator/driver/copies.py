"""The driver's functions that copy and fill memory.

An address of a device must be in memory that was given out, with all of its bytes; one of the host
may be any. Arrays of textures are not emulated.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from typing import Final

from ferrule.emulator.driver.library.exports import Exports, Needs
from ferrule.emulator.driver.nodes import NodeKind, Parameters
from ferrule.emulator.driver.places import copy, unpacked
from ferrule.emulator.driver.results import DriverError, Result
from ferrule.emulator.driver.state import Driver
from ferrule.emulator.driver.streams import submit
from ferrule.specs.deferred import dataclass

exports: Final = Exports()

_CHUNK: Final = 1 << 16
# `CUmemorytype` of cuda.h.
_HOST, _DEVICE, _ARRAY, _UNIFIED = 1, 2, 3, 4

Step = Callable[[], None]


# ---- from one address to another ----


def _written(driver: Driver, address: int, size: int) -> None:
    """Tell the machine that the host has written to memory, if it wants to know."""
    tell = driver.written
    if tell is not None:
        tell(address, size)


def _copy(driver: Driver, to: int, source: int, size: int, ends: str) -> Step:
    """A copy; `ends` says what the two are: h, d or u, for either."""
    for address, end, what in ((to, ends[0], "destination"), (source, ends[1], "source")):
        if not address and size:
            raise DriverError(Result.INVALID_VALUE, f"the {what} is null")
        is_memory = end == "d" or (end == "u" and driver.allocations.find(address) is not None)
        if is_memory and size:
            driver.allocations.check(address, size, what)

    def run() -> None:
        copy(to, source, size)
        if ends[0] != "h":
            _written(driver, to, size)

    return run


def _export_copy(symbol: str, ends: str) -> None:
    """A copy that waits, and one in a stream."""

    def at_once(driver: Driver, to: int, source: int, size: int) -> None:
        _copy(driver, to, source, size, ends)()

    def in_stream(driver: Driver, to: int, source: int, size: int, stream: int) -> None:
        submit(driver, stream, NodeKind.MEMCPY, _copy(driver, to, source, size, ends))

    suffix = "" if ends == "uu" else "_v2"
    exports(f"{symbol}{suffix}", "ppz", Needs.NO_CAPTURE)(at_once)
    exports(f"{symbol}Async{suffix}", "ppzp")(in_stream)


for _symbol, _ends in (
    ("cuMemcpyHtoD", "dh"),
    ("cuMemcpyDtoH", "hd"),
    ("cuMemcpyDtoD", "dd"),
    ("cuMemcpy", "uu"),
):
    _export_copy(_symbol, _ends)


@exports("cuMemcpyPeer", "ppppz", Needs.NO_CAPTURE)
def copy_peer(
    driver: Driver, to: int, to_context: int, source: int, source_context: int, size: int
) -> None:
    _copy(driver, to, source, size, "dd")()


@exports("cuMemcpyPeerAsync", "ppppzp")
def copy_peer_async(
    driver: Driver, to: int, to_context: int, source: int, source_context: int, size: int,
    stream: int,
) -> None:  # fmt: skip
    submit(driver, stream, NodeKind.MEMCPY, _copy(driver, to, source, size, "dd"))


# ---- rectangles and boxes ----


@dataclass(frozen=True, slots=True)
class _End:
    """One end of a copy: where its first byte is, and how far rows and planes are apart."""

    start: int
    row: int
    plane: int
    is_device: bool


# CUDA_MEMCPY2D and CUDA_MEMCPY3D of cuda.h; 4 bytes of padding follow the type of memory.
_RECTANGLE: Final = struct.Struct("<QQI4xQQQQQQI4xQQQQQQ")
BOX: Final = struct.Struct("<QQQQI4xQQQQQQQQQQI4xQQQQQQQQQ")


def _end(
    driver: Driver, kind: int, host: int, device: int, offset: int, steps: tuple[int, int]
) -> _End:
    if kind == _ARRAY:
        raise DriverError(Result.NOT_SUPPORTED, "arrays of textures")
    if kind not in (_HOST, _DEVICE, _UNIFIED):
        raise DriverError(Result.INVALID_VALUE, f"no type of memory {kind}")
    start = host if kind == _HOST else device
    known = kind == _DEVICE or (kind == _UNIFIED and driver.allocations.find(start) is not None)
    if not start:
        raise DriverError(Result.INVALID_VALUE, "an address is null")
    return _End(start + offset, *steps, known)


def _rectangle(driver: Driver, address: int) -> Step:
    """What a CUDA_MEMCPY2D asks for."""
    fields = unpacked(_RECTANGLE, address)
    width, height = fields[14:]
    source, to = (
        _end(driver, kind, host, device, y * (pitch or width) + x, (pitch or width, 0))
        for x, y, kind, host, device, _, pitch in (fields[:7], fields[7:14])
    )
    return _box(driver, to, source, (width, height, 1))


def box_at(driver: Driver, address: int) -> Step:
    """What a CUDA_MEMCPY3D asks for."""
    fields = unpacked(BOX, address)
    width, height, depth = fields[22:]
    ends = []
    for x, y, z, _, kind, host, device, _, _, pitch, rows in (fields[:11], fields[11:22]):
        row = pitch or width
        plane = row * (rows or height)
        ends.append(_end(driver, kind, host, device, z * plane + y * row + x, (row, plane)))
    return _box(driver, ends[1], ends[0], (width, height, depth))


def _box(driver: Driver, to: _End, source: _End, sizes: tuple[int, int, int]) -> Step:
    width, height, depth = sizes
    empty = not (width and height and depth)
    for end, what in ((to, "destination"), (source, "source")):
        if not empty and height > 1 and end.row < width:
            raise DriverError(
                Result.INVALID_VALUE, f"rows of {width} bytes, {end.row} apart in the {what}"
            )
        if end.is_device and not empty:
            last = (depth - 1) * end.plane + (height - 1) * end.row + width
            driver.allocations.check(end.start, last, what)

    def run() -> None:
        for plane in range(depth):
            for row in range(height):
                place = to.start + plane * to.plane + row * to.row
                copy(place, source.start + plane * source.plane + row * source.row, width)
                if to.is_device:
                    _written(driver, place, width)

    return (lambda: None) if empty else run


@exports("cuMemcpy2D_v2 cuMemcpy2DUnaligned_v2", "o", Needs.NO_CAPTURE)
def copy_rectangle(driver: Driver, parameters: int) -> None:
    _rectangle(driver, parameters)()


@exports("cuMemcpy2DAsync_v2", "op")
def copy_rectangle_async(driver: Driver, parameters: int, stream: int) -> None:
    submit(driver, stream, NodeKind.MEMCPY, _rectangle(driver, parameters))


@exports("cuMemcpy3D_v2", "o", Needs.NO_CAPTURE)
def copy_box(driver: Driver, parameters: int) -> None:
    box_at(driver, parameters)()


@exports("cuMemcpy3DAsync_v2", "op")
def copy_box_async(driver: Driver, parameters: int, stream: int) -> None:
    # A copy: the program's struct may be gone when somebody asks what the node does.
    given = ctypes.string_at(parameters, BOX.size)
    step = box_at(driver, parameters)
    submit(driver, stream, NodeKind.MEMCPY, step, Parameters(struct=given))


# ---- filling ----


def fill(
    driver: Driver, address: int, pitch: int, value: int, element: int, width: int, height: int
) -> Step:
    """Fill rows of `width` elements, `pitch` bytes apart, with an element of so many bytes."""
    row = width * element
    if address % element or (height > 1 and (pitch % element or pitch < row)):
        raise DriverError(
            Result.INVALID_VALUE, f"{address:#x} with rows {pitch} apart, elements of {element}"
        )
    if width and height:
        driver.allocations.check(address, (height - 1) * pitch + row, "memory")
    data = (value & (1 << 8 * element) - 1).to_bytes(element, "little")

    def run() -> None:
        for place in range(address, address + height * (pitch or row), pitch or row or 1):
            _fill_row(place, data, row)
            _written(driver, place, row)

    return run if row and height else lambda: None


def _fill_row(place: int, data: bytes, size: int) -> None:
    if len(set(data)) == 1:
        ctypes.memset(place, data[0], size)
        return
    chunk = data * (min(size, _CHUNK) // len(data))
    for at in range(0, size, len(chunk)):
        ctypes.memmove(place + at, chunk, min(len(chunk), size - at))


def _export_fill(element: int, kind: str) -> None:
    bits = 8 * element

    def row(driver: Driver, address: int, value: int, count: int) -> None:
        fill(driver, address, 0, value, element, count, 1)()

    def row_async(driver: Driver, address: int, value: int, count: int, stream: int) -> None:
        step = fill(driver, address, 0, value, element, count, 1)
        submit(driver, stream, NodeKind.MEMSET, step)

    def rows(driver: Driver, address: int, pitch: int, value: int, width: int, height: int) -> None:
        fill(driver, address, pitch, value, element, width, height)()

    def rows_async(
        driver: Driver, address: int, pitch: int, value: int, width: int, height: int, stream: int
    ) -> None:
        step = fill(driver, address, pitch, value, element, width, height)
        submit(driver, stream, NodeKind.MEMSET, step)

    exports(f"cuMemsetD{bits}_v2", f"p{kind}z", Needs.NO_CAPTURE)(row)
    exports(f"cuMemsetD{bits}Async", f"p{kind}zp")(row_async)
    exports(f"cuMemsetD2D{bits}_v2", f"pz{kind}zz", Needs.NO_CAPTURE)(rows)
    exports(f"cuMemsetD2D{bits}Async", f"pz{kind}zzp")(rows_async)


for _element, _kind in ((1, "b"), (2, "h"), (4, "u")):
    _export_fill(_element, _kind)
