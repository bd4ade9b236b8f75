"""The compile-time part of a tensor map: its box and its modes.

Every list of dims begins with the innermost one, whose elements are contiguous in memory.  Numbers
and rules are those of `cuTensorMapEncodeTiled` and `cuTensorMapEncodeIm2col` in the reference of
the CUDA Driver API.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from enum import IntEnum
from math import prod
from types import MappingProxyType
from typing import Final, TypeVar

from ferrule.specs import (
    BFloat16,
    Dim,
    DType,
    Float16,
    Float32,
    Float64,
    Int32,
    Int64,
    TFloat32,
    Uint16,
    Uint32,
    Uint64,
)
from ferrule.specs.deferred import dataclass

# What cuTensorMapEncodeTiled and cuTensorMapEncodeIm2col of the CUDA driver accept.
MAX_RANK: Final = 5
MAX_BOX: Final = 256
MAX_ELEMENT_STRIDE: Final = 8
MAX_PIXELS: Final = 1024
MAX_SIZE: Final = 1 << 32
STRIDE_LIMIT: Final = 1 << 40


class DataType(IntEnum):
    """`CUtensorMapDataType`, those that are whole bytes in shared memory.

    FLOAT4_PADDED is CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B: 16 elements of 4 bits, 8 bytes of the
    tensor, are followed by a gap of 8 bytes in shared memory.
    """

    UINT8 = 0
    UINT16 = 1
    UINT32 = 2
    INT32 = 3
    UINT64 = 4
    INT64 = 5
    FLOAT16 = 6
    FLOAT32 = 7
    FLOAT64 = 8
    BFLOAT16 = 9
    FLOAT32_FTZ = 10
    TFLOAT32 = 11
    TFLOAT32_FTZ = 12
    FLOAT4_PADDED = 14

    @property
    def itemsize(self) -> int:
        """Bytes of an element in shared memory."""
        return _ITEMSIZES[self]

    @property
    def alignment(self) -> int:
        """The least alignment of the tensor's address and its strides, in bytes."""
        return 32 if self is DataType.FLOAT4_PADDED else 16

    @property
    def row(self) -> int:
        """What divides the size of the innermost dim."""
        return 128 if self is DataType.FLOAT4_PADDED else 1

    @property
    def is_float(self) -> bool:
        """Whether NaN can be the value outside of the tensor."""
        return DataType.FLOAT16 <= self <= DataType.TFLOAT32_FTZ


# By the number of the `DataType`. 13, the packed 4-bit type, is none of them, so it has no size.
_ITEMSIZES: Final = (1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4, 0, 1)


class Interleave(IntEnum):
    """`CUtensorMapInterleave`."""

    NONE = 0
    B16 = 1
    B32 = 2


class Swizzle(IntEnum):
    """`CUtensorMapSwizzle`: how 16-byte chunks of the box are permuted in shared memory."""

    NONE = 0
    B32 = 1
    B64 = 2
    B128 = 3
    B128_ATOM_32B = 4
    B128_ATOM_32B_FLIP_8B = 5
    B128_ATOM_64B = 6

    @property
    def span(self) -> int | None:
        """The largest size in bytes of a box's inner dim; None for no limit."""
        return _SPANS[self]


# By the number of the `Swizzle`.
_SPANS: Final = (None, 32, 64, 128, 128, 128, 128)
_PADDED_SWIZZLES: Final = (Swizzle.NONE, Swizzle.B128, Swizzle.B128_ATOM_32B)


class L2Promotion(IntEnum):
    """`CUtensorMapL2promotion`: how much a miss in L2 fetches."""

    NONE = 0
    B64 = 1
    B128 = 2
    B256 = 3


class OobFill(IntEnum):
    """`CUtensorMapFloatOOBfill`: the values of elements outside of the tensor."""

    ZERO = 0
    NAN = 1


_EXACT: Final[Mapping[DType, DataType]] = MappingProxyType(
    {
        Int32: DataType.INT32,
        Int64: DataType.INT64,
        Float16: DataType.FLOAT16,
        Float32: DataType.FLOAT32,
        Float64: DataType.FLOAT64,
        BFloat16: DataType.BFLOAT16,
        TFloat32: DataType.TFLOAT32,
        Uint16: DataType.UINT16,
        Uint32: DataType.UINT32,
        Uint64: DataType.UINT64,
    }
)
_BY_SIZE: Final = {1: DataType.UINT8, 2: DataType.UINT16, 4: DataType.UINT32, 8: DataType.UINT64}


def data_type(dtype: DType) -> DataType:
    """A map's data type for the elements of a dtype, by their size if there is no exact one.

    Raises ValueError for elements that are not 1, 2, 4 or 8 bytes.
    """
    found = _EXACT.get(dtype) or (_BY_SIZE.get(dtype.bits // 8) if dtype.bits % 8 == 0 else None)
    if found is None:
        raise ValueError(
            f"a tensor map has elements of 1, 2, 4 or 8 bytes, but {dtype.name} has "
            f"{dtype.bits} bits"
        )
    return found


@dataclass(frozen=True, slots=True)
class Tiling:
    """The compile-time part of a map; dims from the innermost on.

    `box`: the elements of one copy.  `element_strides`: the step between copied elements, () means
    (1, …).  Raises ValueError for values that the driver would refuse.
    """

    dtype: DataType
    box: tuple[int, ...]
    element_strides: tuple[int, ...] = ()
    interleave: Interleave = Interleave.NONE
    swizzle: Swizzle = Swizzle.NONE
    l2_promotion: L2Promotion = L2Promotion.NONE
    oob_fill: OobFill = OobFill.ZERO

    def __post_init__(self) -> None:
        _check_dims(self)
        _check_inner(self)
        _check_modes(self)

    @property
    def rank(self) -> int:
        """The number of dims, from 1 to 5."""
        return len(self.box)

    @property
    def corners(self) -> None:
        """A box has none; see `Columns`."""
        return None

    @property
    def steps(self) -> tuple[int, ...]:
        """The element strides of all dims."""
        return self.element_strides or (1,) * self.rank

    @property
    def bytes(self) -> int:
        """The bytes of a copy: the size of a box in shared memory."""
        first, *outer = zip(self.box, self.steps, strict=True)
        counts = (-(-size // step) for size, step in outer)
        return first[0] * prod(counts) * self.dtype.itemsize

    @property
    def alignment(self) -> int:
        """The required alignment of the address and the strides, in bytes."""
        return 32 if self.interleave is Interleave.B32 else self.dtype.alignment

    def __str__(self) -> str:
        """The text in a message."""
        return _text([f"box {self.box}"], self)


@dataclass(frozen=True, slots=True)
class Columns:
    """The compile-time part of a map for im2col: pixels of images, one after the other.

    The dims of the tensor are channels, width, height and depth (as many of them as the corners
    have), and images.  `lower` and `upper` are the corners of the bounding box of pixels, offsets
    from the first and from the last pixel of an image.  One copy has `channels` of each of
    `pixels`.  Raises ValueError for values that the driver would refuse.
    """

    dtype: DataType
    channels: int
    pixels: int
    lower: tuple[int, ...]
    upper: tuple[int, ...]
    element_strides: tuple[int, ...] = ()
    swizzle: Swizzle = Swizzle.NONE
    l2_promotion: L2Promotion = L2Promotion.NONE
    oob_fill: OobFill = OobFill.ZERO

    def __post_init__(self) -> None:
        _check_corners(self)
        if not 1 <= self.channels <= MAX_BOX or not 1 <= self.pixels <= MAX_PIXELS:
            raise ValueError(
                f"a column has from 1 to {MAX_PIXELS} pixels of 1 to {MAX_BOX} channels, but got "
                f"{self.pixels} of {self.channels}"
            )
        _check_steps(self)
        _check_inner(self)
        _check_modes(self)

    @property
    def rank(self) -> int:
        """The number of dims, from 3 to 5."""
        return len(self.lower) + 2

    @property
    def box(self) -> tuple[int, ...]:
        """What a copy has."""
        return self.channels, self.pixels

    @property
    def corners(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The lower and the upper one."""
        return self.lower, self.upper

    @property
    def interleave(self) -> Interleave:
        """There is none."""
        return Interleave.NONE

    @property
    def steps(self) -> tuple[int, ...]:
        """The element strides of all dims."""
        return self.element_strides or (1,) * self.rank

    @property
    def alignment(self) -> int:
        """The required alignment of the address and the strides, in bytes."""
        return self.dtype.alignment

    def __str__(self) -> str:
        """The text in a message."""
        corners = f"corners {self.lower} and {self.upper}"
        return _text([f"{self.pixels} pixels of {self.channels} channels", corners], self)


_CORNERS: Final = MappingProxyType({1: 1 << 15, 2: 1 << 7, 3: 1 << 4})
"""The limits of a corner's offsets, by their number: from -limit to limit - 1."""


def _text(parts: list[str], map: Tiling | Columns) -> str:
    parts += [f"element strides {map.steps}"] if any(s != 1 for s in map.steps) else []
    named = (("interleave", map.interleave), ("swizzle", map.swizzle))
    parts += [f"{name} {shown(kind)}" for name, kind in named if kind]
    return f"{', '.join(parts)} of {map.dtype.name.lower()}"


def _check_corners(columns: Columns) -> None:
    limit = _CORNERS.get(len(columns.lower))
    if limit is None or len(columns.upper) != len(columns.lower):
        raise ValueError(
            "a map for im2col has corners of 1 to 3 offsets, those of width, height and depth, but "
            f"got {columns.lower} and {columns.upper}"
        )
    if not all(-limit <= each < limit for each in (*columns.lower, *columns.upper)):
        raise ValueError(
            f"corners of {len(columns.lower)} offsets are from {-limit} to {limit - 1}, but got "
            f"{columns.lower} and {columns.upper}"
        )


def _check_modes(map: Tiling | Columns) -> None:
    if map.oob_fill is OobFill.NAN and not map.dtype.is_float:
        raise ValueError(
            f"NaN fills only maps of floats, but this one is of {map.dtype.name.lower()}"
        )
    if map.dtype is not DataType.FLOAT4_PADDED:
        return
    if map.swizzle not in _PADDED_SWIZZLES or map.interleave or map.box[0] != map.dtype.row:
        allowed = ", ".join(shown(each) for each in _PADDED_SWIZZLES)
        raise ValueError(
            f"a map of padded 4-bit elements has {map.dtype.row} of them in a box's row, a swizzle "
            f"of {allowed}, and no interleave, but got {map.box[0]}, {shown(map.swizzle)} and "
            f"{shown(map.interleave)}"
        )


def _check_dims(tiling: Tiling) -> None:
    box = tiling.box
    least = 1 if tiling.interleave is Interleave.NONE else 3
    if not least <= len(box) <= MAX_RANK:
        which = "" if least == 1 else " with an interleave"
        raise ValueError(
            f"a tensor map{which} has from {least} to {MAX_RANK} dims, but got {len(box)}"
        )
    if not all(1 <= size <= MAX_BOX for size in box):
        raise ValueError(f"each size of a box is from 1 to {MAX_BOX}, but the box is {box}")
    _check_steps(tiling)


def _check_steps(map: Tiling | Columns) -> None:
    steps, rank = map.steps, map.rank
    if len(steps) != rank or not all(1 <= step <= MAX_ELEMENT_STRIDE for step in steps):
        raise ValueError(
            f"wanted {rank} element strides, each from 1 to {MAX_ELEMENT_STRIDE}, but got {steps}"
        )


def _check_inner(tiling: Tiling | Columns) -> None:
    """The rules of the innermost dim, and those of the modes together."""
    inner, span = tiling.box[0] * tiling.dtype.itemsize, tiling.swizzle.span
    if tiling.interleave is Interleave.B32 and tiling.swizzle is not Swizzle.B32:
        raise ValueError("the interleave of 32 bytes goes with the swizzle of 32 bytes alone")
    if tiling.interleave is not Interleave.NONE:
        return
    if inner % 16:
        raise ValueError(
            f"the innermost dim of a box is a multiple of 16 bytes, but {tiling.box[0]} elements "
            f"of {tiling.dtype.itemsize} are {inner}"
        )
    if span is not None and inner > span:
        raise ValueError(
            f"the innermost dim of a box has at most {span} bytes with this swizzle, but "
            f"{tiling.box[0]} elements of {tiling.dtype.itemsize} are {inner}"
        )


_Mode = TypeVar("_Mode", bound=IntEnum)


def named(kind: type[_Mode], what: str, name: str) -> _Mode:
    """A mode by its public name: "none", "128B", "zero".

    Raises ValueError for another name.
    """
    known = {shown(each): each for each in kind}
    found = {text.upper(): each for text, each in known.items()}.get(str(name).upper())
    if found is None:
        raise ValueError(f"{what} is one of {', '.join(known)}, but got {name!r}")
    return found


def shown(mode: IntEnum) -> str:
    """The public name of a mode: B128 is "128B", NONE is "none"."""
    text = re.sub(r"^B(\d+)", r"\1B", mode.name)
    return text if text[0].isdigit() else text.lower()


def innermost_first(strides: Sequence[Dim]) -> tuple[int, ...]:
    """The driver's order for the dims of a tensor with these strides, in elements.

    First the last dim with stride 1, then the others from the last to the first.  Raises ValueError
    if no stride is known to be 1.
    """
    ones = [dim for dim, stride in enumerate(strides) if stride == 1]
    if not ones:
        raise ValueError("wanted a dim whose stride is known to be 1, the innermost one")
    others = (dim for dim in reversed(range(len(strides))) if dim != ones[-1])
    return ones[-1], *others
