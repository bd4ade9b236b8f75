"""What the stand-in of libcuda writes into a tensor map, read from a launch's parameter."""

from __future__ import annotations

import struct
from dataclasses import dataclass

_MAP = struct.Struct("<I6B5BxQ5Q4Q5H")
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


def decoded(data: bytes) -> Map:
    """The map in the 128 bytes of a parameter."""
    assert len(data) == 128
    magic, dtype, rank, interleave, swizzle, promotion, fill, *rest = _MAP.unpack_from(data)
    assert magic == _MAGIC, "no tensor map"
    steps, address, sizes, strides, box = rest[:5], rest[5], rest[6:11], rest[11:15], rest[15:]
    dims = (tuple(each[:rank]) for each in (sizes, strides[: rank - 1], box, steps))
    return Map(dtype, address, *dims, interleave, swizzle, promotion, fill)
