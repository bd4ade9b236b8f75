"""The driver's functions that encode tensor maps, in the form that bulk tensor copies read."""

from __future__ import annotations

import ctypes
import struct
from typing import Final

from ferrule.emulator.driver.library.exports import Exports, Needs
from ferrule.emulator.driver.places import get_words, put_bytes
from ferrule.emulator.driver.results import DriverError, Result
from ferrule.emulator.driver.state import Driver
from ferrule.emulator.tensormaps import MAGIC, T_ADDRESS, T_MAGIC, TensorMap, TensorMapError

exports: Final = Exports()

_ALIGN: Final = 64  # alignas of CUtensorMap in cuda.h


def _numbers(address: int, count: int) -> tuple[int, ...]:
    """So many unsigned ints."""
    return struct.unpack(f"<{count}I", ctypes.string_at(address, 4 * count))


@exports("cuTensorMapEncodeTiled", "oiupppppiiii", Needs.NOTHING)
def encode_tiled(
    driver: Driver,
    out: int,
    dtype: int,
    rank: int,
    address: int,
    dims: int,
    strides: int,
    box: int,
    steps: int,
    interleave: int,
    swizzle: int,
    promotion: int,
    fill: int,
) -> None:
    if not 1 <= rank <= 5:
        raise DriverError(Result.INVALID_VALUE, f"a tensor map has from 1 to 5 dims, not {rank}")
    if not (address and dims and box and steps and (strides or rank == 1)) or out % _ALIGN:
        raise DriverError(
            Result.INVALID_VALUE, f"an address is null, or the map's no multiple of {_ALIGN}"
        )
    tensor = TensorMap(
        dtype,
        address,
        get_words(dims, rank),
        get_words(strides, rank - 1) if rank > 1 else (),
        _numbers(box, rank),
        _numbers(steps, rank),
        interleave,
        swizzle,
        fill,
    )
    put_bytes(out, _encoded(tensor))


@exports("cuTensorMapEncodeIm2col", "oiupppppuupiiii", Needs.NOTHING)
def encode_im2col(
    driver: Driver,
    out: int,
    dtype: int,
    rank: int,
    address: int,
    dims: int,
    strides: int,
    lower: int,
    upper: int,
    channels: int,
    pixels: int,
    steps: int,
    interleave: int,
    swizzle: int,
    promotion: int,
    fill: int,
) -> None:
    if not 3 <= rank <= 5:
        raise DriverError(
            Result.INVALID_VALUE, f"a tensor map for im2col has from 3 to 5 dims, not {rank}"
        )
    if not (address and dims and strides and lower and upper and steps) or out % _ALIGN:
        raise DriverError(
            Result.INVALID_VALUE, f"an address is null, or the map's no multiple of {_ALIGN}"
        )
    tensor = TensorMap(
        dtype,
        address,
        get_words(dims, rank),
        get_words(strides, rank - 1),
        (channels, pixels),
        _numbers(steps, rank),
        interleave,
        swizzle,
        fill,
        (_signed(lower, rank - 2), _signed(upper, rank - 2)),
    )
    put_bytes(out, _encoded(tensor))


def _signed(address: int, count: int) -> tuple[int, ...]:
    """So many ints."""
    return struct.unpack(f"<{count}i", ctypes.string_at(address, 4 * count))


def _encoded(tensor: TensorMap) -> bytes:
    try:
        return tensor.encoded()
    except TensorMapError as error:
        result = Result.INVALID_VALUE if error.emulated else Result.NOT_SUPPORTED
        raise DriverError(result, str(error)) from None


@exports("cuTensorMapReplaceAddress", "op", Needs.NOTHING)
def replace_address(driver: Driver, out: int, address: int) -> None:
    if ctypes.c_uint64.from_address(out + T_MAGIC).value != MAGIC or not address or address % 16:
        raise DriverError(
            Result.INVALID_VALUE, f"no tensor map, or {address:#x} is no multiple of 16"
        )
    put_bytes(out + T_ADDRESS, struct.pack("<Q", address))
