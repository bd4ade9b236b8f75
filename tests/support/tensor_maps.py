"""What the stand-in of libcuda writes into a tensor map, read from a launch's parameter."""

from __future__ import annotations

import struct
from dataclasses import dataclass

_MAP = struct.Struct("<I6B5BBQ5Q4Q5H6h")
_MAGIC = 0x50414D54


@dataclass(frozen=True, slots=True)
class Map:
    """The arguments of an encode, dims from the innermost on."""

    dtype: int
    address: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    steps: tuple[int, ...]
    interleave: int = 0
    swizzle: int = 0
    promotion: int = 0
    fill: int = 0
    corners: tuple[tuple[int, ...], tuple[int, ...]] | None = None


def decoded(data: bytes) -> Map:
    """The map in the 128 bytes of a parameter."""
    assert len(data) == 128
    magic, dtype, rank, interleave, swizzle, promotion, fill, *rest = _MAP.unpack_from(data)
    assert magic == _MAGIC, "no tensor map"
    steps, is_im2col, address, sizes, strides = rest[:5], rest[5], rest[6], rest[7:12], rest[12:16]
    box, lower, upper = rest[16 : 18 if is_im2col else 21], rest[21:24], rest[24:]
    dims = (tuple(each[:rank]) for each in (sizes, strides[: rank - 1], box, steps))
    corners = tuple(lower[: rank - 2]), tuple(upper[: rank - 2])
    modes = interleave, swizzle, promotion, fill
    return Map(dtype, address, *dims, *modes, corners if is_im2col else None)
