"""Tensor maps: 128 bytes that the driver writes for a tensor and bulk tensor copies read.

The bytes are of a form of our own (a GPU's is not public), so a map of a real driver is refused
where it is used.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final

from ferrule.specs.deferred import dataclass

MAGIC: Final = 0x70614D7265527275
"""The 8 bytes behind the address. Programs of CUTLASS clear the bit 21 of these in the map of a
small tensor, for drivers up to 13.1: in a GPU's maps it is a mode, and here it is 0."""

PADDED: Final = 14
"""CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B: 16 elements of 4 bits, and in shared memory a gap of 8
bytes behind them. A map has two of them as one element of a byte."""

ELEMENT_BYTES: Final = {0: 1, 1: 2, 2: 4, 3: 4, 4: 8, 5: 8, 6: 2, 7: 4, 8: 8, 9: 2, PADDED: 1}
"""Bytes of an element by the number of CUtensorMapDataType, of those that are emulated."""
INTEGER_TYPES: Final = frozenset((*range(6), PADDED))

T_ADDRESS, T_MAGIC, T_RANK, T_TYPE, T_SWIZZLE, T_SIZE = 0, 8, 16, 20, 24, 32
T_FILL, T_IM2COL, T_PADDED = 28, 29, 30
T_DIMS, T_BOX, T_STEPS, T_STRIDES, T_LOWER, T_UPPER, T_BYTES = 36, 56, 76, 96, 116, 122, 128
"""Numbers of 32 bits but address (64), the fill and the two modes behind it (8), the corners of a
bounding box (3 of 16 bits each), and strides: 32 bits of each of 4 dims, then 8 of each. Of a map
for im2col the box is channels and pixels."""

_SPANS: Final = {0: 0, 1: 32, 2: 64, 3: 128}
_CORNERS: Final = {3: 1 << 15, 4: 1 << 7, 5: 1 << 4}
"""The offsets of a bounding box's corners are from -limit to limit - 1, by the rank."""


class TensorMapError(ValueError):
    """A tensor map that no GPU has; `emulated` is False for one that a GPU has and we do not."""

    def __init__(self, text: str, *, emulated: bool = True) -> None:
        super().__init__(text)
        self.emulated = emulated


@dataclass(frozen=True, slots=True)
class TensorMap:
    """The arguments of cuTensorMapEncodeTiled, dims from the innermost on; strides in bytes, of
    all dims but the innermost.

    `corners` makes it one of cuTensorMapEncodeIm2col: the lower and the upper one of the bounding
    box, offsets of the dims between the first and the last; `box` is channels and pixels."""

    dtype: int
    address: int
    dims: Sequence[int]
    strides: Sequence[int]
    box: Sequence[int]
    steps: Sequence[int]
    interleave: int = 0
    swizzle: int = 0
    fill: int = 0
    corners: tuple[Sequence[int], Sequence[int]] | None = None

    def encoded(self) -> bytes:
        """The 128 bytes.  TensorMapError where an argument is wrong or not emulated."""
        self._check_modes()
        self._check_sizes()
        size = ELEMENT_BYTES[self.dtype]
        rank, packed = len(self.dims), 2 if self.dtype == PADDED else 1
        modes = self.corners is not None, packed == 2
        head = struct.pack("<QQ3I", self.address, MAGIC, rank, self.dtype, self.swizzle)
        head += struct.pack("<4BI", self.fill, *modes, 0, size)
        whole = self.dims[0] // packed, *self.dims[1:], *[1] * (5 - rank)
        dims = [each - 1 for each in whole]
        box = [self.box[0] // packed, *self.box[1:], *[1] * (5 - len(self.box))]
        steps = [*self.steps, *[1] * (5 - rank)]
        # Strides are multiples of 16 less than 2**40: without their low 4 bits, 36 bits.
        units = [each // 16 for each in self.strides] + [0] * (5 - rank)
        low = struct.pack("<4I", *(each & 0xFFFFFFFF for each in units))
        high = struct.pack("<4B", *(each >> 32 for each in units))
        body = struct.pack("<15I", *dims, *box, *steps) + low + high
        spatial = [[*each, *[0] * (3 - len(each))] for each in self.corners or ((), ())]
        return head + body + struct.pack("<6h", *spatial[0], *spatial[1])

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
        if self.dtype == PADDED and self.swizzle not in (0, 3):
            known = self.swizzle == 4
            raise _missing(f"swizzle {self.swizzle} of padded 4-bit elements", known)
        inner = self.box[0] * ELEMENT_BYTES[self.dtype]
        span = _SPANS[self.swizzle]
        if span and inner > span:
            raise TensorMapError(f"{inner} bytes of a box's row do not fit a swizzle of {span}")
        if span and inner < span:
            raise _missing(f"a row of {inner} bytes of a box in a swizzle of {span}", True)

    def _check_sizes(self) -> None:
        rank, size = len(self.dims), ELEMENT_BYTES[self.dtype]
        boxed = rank if self.corners is None else 2
        if not (len(self.box) == boxed and len(self.steps) == rank == len(self.strides) + 1):
            raise TensorMapError(f"dims, box, element strides and strides are not of {rank} dims")
        unit = 32 if self.dtype == PADDED else 16
        if self.address % unit:
            raise TensorMapError(f"the address {self.address:#x} is no multiple of {unit}")
        if any(not 1 <= each <= 1 << 32 for each in self.dims):
            raise TensorMapError(f"dims must be from 1 to 2**32, but are {tuple(self.dims)}")
        if any(each % unit or not 0 <= each < 1 << 40 for each in self.strides):
            raise TensorMapError(
                f"strides must be multiples of {unit} less than 2**40, but are "
                f"{tuple(self.strides)}"
            )
        self._check_box()
        if self.corners is not None:
            self._check_corners(*self.corners)
        if any(not 1 <= each <= 8 for each in self.steps):
            raise TensorMapError(f"element strides are from 1 to 8, but got {tuple(self.steps)}")
        if self.box[0] * size % 16:
            raise TensorMapError(f"{self.box[0] * size} bytes of a box's row: no multiple of 16")
        if self.dtype == PADDED and (self.box[0] != 128 or self.dims[0] % 128):
            raise TensorMapError(
                f"of padded 4-bit elements a box's row has 128 and one of the tensor a multiple, "
                f"but got {self.box[0]} and {self.dims[0]}"
            )

    def _check_box(self) -> None:
        if self.corners is not None and not 1 <= self.box[1] <= 1024:
            raise TensorMapError(f"a column has from 1 to 1024 pixels, but got {self.box[1]}")
        tiled = self.box if self.corners is None else self.box[:1]
        if any(not 1 <= each <= 256 for each in tiled):
            raise TensorMapError(f"a box has from 1 to 256 elements, but got {tuple(self.box)}")

    def _check_corners(self, lower: Sequence[int], upper: Sequence[int]) -> None:
        rank = len(self.dims)
        if rank not in _CORNERS:
            raise TensorMapError(f"a tensor map for im2col has from 3 to 5 dims, not {rank}")
        limit = _CORNERS[rank]
        if not len(lower) == len(upper) == rank - 2:
            raise TensorMapError(f"the corners of a bounding box of {rank} dims have {rank - 2}")
        if any(not -limit <= each < limit for each in (*lower, *upper)):
            raise TensorMapError(
                f"the corners of a bounding box are from {-limit} to {limit - 1} with {rank} dims, "
                f"but got {tuple(lower)} and {tuple(upper)}"
            )
        pairs = zip(self.dims[1:-1], lower, upper, strict=True)
        if any(size - 1 + high < low for size, low, high in pairs):
            raise TensorMapError(
                f"the bounding box from {tuple(lower)} to {tuple(upper)} of {tuple(self.dims)} is "
                "empty"
            )


def _missing(what: str, known: bool) -> TensorMapError:
    return TensorMapError(f"{what} is not emulated in tensor maps", emulated=not known)
