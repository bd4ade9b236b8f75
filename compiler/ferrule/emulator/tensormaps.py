"""Tensor maps: 128 bytes that the driver writes for a tensor and bulk tensor copies read.

The bytes are of a form of our own (a GPU's is not public), so a map of a real driver is refused
where it is used.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final

from ferrule.specs.deferred import dataclass

MAGIC: Final = 0x70614D7265727275
"""The first 8 bytes."""

ELEMENT_BYTES: Final = {0: 1, 1: 2, 2: 4, 3: 4, 4: 8, 5: 8, 6: 2, 7: 4, 8: 8, 9: 2}
"""Bytes of an element by the number of CUtensorMapDataType, of those that are emulated."""
INTEGER_TYPES: Final = frozenset(range(6))

T_MAGIC, T_ADDRESS, T_RANK, T_TYPE, T_SWIZZLE, T_FILL, T_SIZE = 0, 8, 16, 20, 24, 28, 32
T_DIMS, T_BOX, T_STEPS, T_STRIDES, T_BYTES = 36, 56, 76, 96, 128
"""Numbers of 32 bits but address (64) and strides: those of 4 dims, in 16 bytes, 64 bits of which
the upper 24 are of the next; see `_FORMAT`."""

_SPANS: Final = {0: 0, 1: 32, 2: 64, 3: 128}


class TensorMapError(ValueError):
    """A tensor map that no GPU has; `emulated` is False for one that a GPU has and we do not."""

    def __init__(self, text: str, *, emulated: bool = True) -> None:
        super().__init__(text)
        self.emulated = emulated


@dataclass(frozen=True, slots=True)
class TensorMap:
    """The arguments of cuTensorMapEncodeTiled, dims from the innermost on; strides in bytes, of
    all dims but the innermost."""

    dtype: int
    address: int
    dims: Sequence[int]
    strides: Sequence[int]
    box: Sequence[int]
    steps: Sequence[int]
    interleave: int = 0
    swizzle: int = 0
    fill: int = 0

    def encoded(self) -> bytes:
        """The 128 bytes.  TensorMapError where an argument is wrong or not emulated."""
        self._check_modes()
        self._check_sizes()
        size = ELEMENT_BYTES[self.dtype]
        rank = len(self.dims)
        head = struct.pack(
            "<QQ5I", MAGIC, self.address, rank, self.dtype, self.swizzle, self.fill, size
        )
        dims = [each - 1 for each in self.dims] + [0] * (5 - rank)
        box, steps = (list(each) + [1] * (5 - rank) for each in (self.box, self.steps))
        # Strides are multiples of 16 less than 2**40: without their low 4 bits, 36 bits.
        units = [each // 16 for each in self.strides] + [0] * (5 - rank)
        low = struct.pack("<4I", *(each & 0xFFFFFFFF for each in units))
        high = struct.pack("<4B", *(each >> 32 for each in units))
        return (head + struct.pack("<15I", *dims, *box, *steps) + low + high).ljust(128, b"\0")

    def _check_modes(self) -> None:
        if not 1 <= len(self.dims) <= 5:
            raise TensorMapError(f"a tensor map has from 1 to 5 dims, not {len(self.dims)}")
        if self.dtype not in ELEMENT_BYTES:
            raise _missing(f"elements of CUtensorMapDataType {self.dtype}", self.dtype < 16)
        if self.interleave:
            raise _missing(f"interleave {self.interleave}", self.interleave < 3)
        if self.swizzle not in _SPANS:
            raise _missing(f"swizzle {self.swizzle}", self.swizzle < 7)
        if self.fill not in (0, 1) or (self.fill and self.dtype in INTEGER_TYPES):
            raise TensorMapError(f"out-of-bounds fill {self.fill} for elements of {self.dtype}")
        inner = self.box[0] * ELEMENT_BYTES[self.dtype]
        span = _SPANS[self.swizzle]
        if span and inner > span:
            raise TensorMapError(f"{inner} bytes of a box's row do not fit a swizzle of {span}")
        if span and inner < span:
            raise _missing(f"a row of {inner} bytes of a box in a swizzle of {span}", True)

    def _check_sizes(self) -> None:
        rank, size = len(self.dims), ELEMENT_BYTES[self.dtype]
        if not (len(self.box) == len(self.steps) == rank and len(self.strides) == rank - 1):
            raise TensorMapError(f"dims, box, element strides and strides are not of {rank} dims")
        if self.address % 16:
            raise TensorMapError(f"the address {self.address:#x} is no multiple of 16")
        if any(not 1 <= each <= 1 << 32 for each in self.dims):
            raise TensorMapError(f"dims must be from 1 to 2**32, but are {tuple(self.dims)}")
        if any(each % 16 or not 0 <= each < 1 << 40 for each in self.strides):
            raise TensorMapError(
                f"strides must be multiples of 16 less than 2**40, but are {tuple(self.strides)}"
            )
        if any(not 1 <= each <= 256 for each in self.box):
            raise TensorMapError(f"a box has from 1 to 256 elements, but got {tuple(self.box)}")
        if any(not 1 <= each <= 8 for each in self.steps):
            raise TensorMapError(f"element strides are from 1 to 8, but got {tuple(self.steps)}")
        if self.box[0] * size % 16:
            raise TensorMapError(f"{self.box[0] * size} bytes of a box's row: no multiple of 16")


def _missing(what: str, known: bool) -> TensorMapError:
    return TensorMapError(f"{what} is not emulated in tensor maps", emulated=not known)
