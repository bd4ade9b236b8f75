"""Tensor maps: what a bulk tensor copy knows of a tensor, as the driver encodes it on the call.

    tiling = Tiling(data_type(Float16), box=(64, 128), swizzle=Swizzle.B128)
    place = launcher.tensor_map()
    encoded = launcher.encode_tensor_map(tiling, place, address, sizes, strides, values)

Every list of dims begins with the innermost one, whose elements follow each other in memory.
Functions, numbers and rules are those of `cuTensorMapEncodeTiled` in the reference of the CUDA
Driver API.  The function is looked up when the first map is encoded, so that objects without maps
run with drivers that lack it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from types import MappingProxyType
from typing import Final, TypeVar

from llvmlite import ir

from ferrule.compiler.artefacts import Fault, Location, literal
from ferrule.compiler.cuda.driver import LIBRARY
from ferrule.runtime.llvm.layouts import I32, I64, PTR, Field, Layout
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

FUNCTION: Final = "cuTensorMapEncodeTiled"
FUNCTION_TYPE: Final = ir.FunctionType(
    I32, [PTR, I32, I32, PTR, PTR, PTR, PTR, PTR, I32, I32, I32, I32]
)
SINCE: Final = "12.0"
"""The first version of CUDA whose driver has the function."""
BYTES: Final = 128
"""The size of a `CUtensorMap`."""
ALIGN: Final = 64
MAX_RANK: Final = 5
MAX_BOX: Final = 256
MAX_ELEMENT_STRIDE: Final = 8
MAX_SIZE: Final = 1 << 32
STRIDE_LIMIT: Final = 1 << 40


class DataType(IntEnum):
    """`CUtensorMapDataType`, those of whole bytes."""

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

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return _ITEMSIZES[self]

    @property
    def is_float(self) -> bool:
        """Whether NaN can fill what is outside."""
        return self >= DataType.FLOAT16


_ITEMSIZES: Final = (1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4)


class Interleave(IntEnum):
    """`CUtensorMapInterleave`."""

    NONE = 0
    B16 = 1
    B32 = 2


class Swizzle(IntEnum):
    """`CUtensorMapSwizzle`: how 16-byte chunks of the box change places in shared memory."""

    NONE = 0
    B32 = 1
    B64 = 2
    B128 = 3
    B128_ATOM_32B = 4
    B128_ATOM_32B_FLIP_8B = 5
    B128_ATOM_64B = 6

    @property
    def span(self) -> int | None:
        """The bytes that the inner dim of a box may have; None for any number."""
        return _SPANS[self]


_SPANS: Final = (None, 32, 64, 128, 128, 128, 128)


class L2Promotion(IntEnum):
    """`CUtensorMapL2promotion`: how much a miss in L2 fetches."""

    NONE = 0
    B64 = 1
    B128 = 2
    B256 = 3


class OobFill(IntEnum):
    """`CUtensorMapFloatOOBfill`: what elements outside of the tensor read as."""

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
    """What a map calls the elements of a dtype: where it has no name for them, their bytes.

    Raises ValueError for elements that are no whole bytes, or more than 8.
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
    """What of a map is known at compile time; dims from the innermost on.

    `box`: the elements that one copy is of.  `element_strides`: it takes every so-manieth element,
    (1, …) for ().  Raises ValueError for what the driver would refuse.
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
        if self.oob_fill is OobFill.NAN and not self.dtype.is_float:
            raise ValueError(
                f"NaN fills only maps of floats, but this one is of {self.dtype.name.lower()}"
            )

    @property
    def rank(self) -> int:
        """How many dims there are, from 1 to 5."""
        return len(self.box)

    @property
    def steps(self) -> tuple[int, ...]:
        """The element strides of all dims."""
        return self.element_strides or (1,) * self.rank

    @property
    def alignment(self) -> int:
        """What the address and the strides are multiples of, in bytes."""
        return 32 if self.interleave is Interleave.B32 else 16

    def __str__(self) -> str:
        """What a message shows."""
        parts = [f"box {self.box}"]
        parts += [f"element strides {self.steps}"] if any(s != 1 for s in self.steps) else []
        named = (("interleave", self.interleave), ("swizzle", self.swizzle))
        parts += [f"{name} {shown(kind)}" for name, kind in named if kind]
        return f"{', '.join(parts)} of {self.dtype.name.lower()}"


def _check_dims(tiling: Tiling) -> None:
    box, steps = tiling.box, tiling.steps
    least = 1 if tiling.interleave is Interleave.NONE else 3
    if not least <= len(box) <= MAX_RANK:
        raise ValueError(f"a tensor map has from {least} to {MAX_RANK} dims, but got {len(box)}")
    if not all(1 <= size <= MAX_BOX for size in box):
        raise ValueError(f"each size of a box is from 1 to {MAX_BOX}, but the box is {box}")
    if len(steps) != len(box) or not all(1 <= step <= MAX_ELEMENT_STRIDE for step in steps):
        raise ValueError(
            f"wanted {len(box)} element strides, each from 1 to {MAX_ELEMENT_STRIDE}, but got "
            f"{steps}"
        )


def _check_inner(tiling: Tiling) -> None:
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
    """A mode by the name that users give it: "none", "128B", "zero".

    Raises ValueError for another.
    """
    known = {shown(each): each for each in kind}
    found = {text.upper(): each for text, each in known.items()}.get(str(name).upper())
    if found is None:
        raise ValueError(f"{what} is one of {', '.join(known)}, but got {name!r}")
    return found


def shown(mode: IntEnum) -> str:
    """What users call a mode: B128 is "128B", NONE is "none"."""
    text = re.sub(r"^B(\d+)", r"\1B", mode.name)
    return text if text[0].isdigit() else text.lower()


def innermost_first(strides: Sequence[Dim]) -> tuple[int, ...]:
    """The order in which the driver takes the dims of a tensor with these strides, in elements.

    First the last one with stride 1, then the others from the last to the first.  Raises ValueError
    where no stride is known to be 1.
    """
    ones = [dim for dim, stride in enumerate(strides) if stride == 1]
    if not ones:
        raise ValueError("wanted a dim whose stride is known to be 1, the innermost one")
    others = (dim for dim in reversed(range(len(strides))) if dim != ones[-1])
    return ones[-1], *others


# ---- what generated code has of it ----

TILING: Final = Layout(
    "CudaTiling",
    [
        *(Field(name, I32) for name in ("dtype", "rank", "interleave", "swizzle")),
        *(Field(name, I32) for name in ("l2_promotion", "oob_fill")),
        Field("alignment", I64),
        Field("box", ir.ArrayType(I32, MAX_RANK)),
        Field("steps", ir.ArrayType(I32, MAX_RANK)),
    ],
)
"""A constant."""


def tiling_constant(tiling: Tiling) -> ir.Constant:
    """The value of a `TILING`."""
    modes = (tiling.interleave, tiling.swizzle, tiling.l2_promotion, tiling.oob_fill)
    fields = [ir.Constant(I32, int(n)) for n in (tiling.dtype, tiling.rank, *modes)]
    fields.append(ir.Constant(I64, tiling.alignment))
    kind = ir.ArrayType(I32, MAX_RANK)
    for numbers in (tiling.box, tiling.steps):
        fields.append(ir.Constant(kind, [*numbers, *[0] * (MAX_RANK - tiling.rank)]))
    return ir.Constant.literal_struct(fields)


class Encoded(IntEnum):
    """How an encoding ended: from 1 on the number of its fault."""

    DONE = 0
    CALL_FAILED = 1
    NO_FUNCTION = 2
    MISPLACED = 3
    ODD_STRIDE = 4
    ODD_SIZE = 5


def encoding_faults(
    tiling: Tiling, of: str, doing: str, location: Location | None
) -> tuple[Fault, ...]:
    """The faults behind the statuses 1, 2, …; `of` is the tensor's name, `doing` where it is."""
    name, where, shown = literal(of), literal(doing), literal(str(tiling))
    sizes = ", ".join(["{}"] * tiling.rank)
    strides = ", ".join(["{}"] * (tiling.rank - 1))
    given = f"address {{unsigned}}, sizes ({sizes}), strides ({strides}) bytes, {shown}"
    multiple = tiling.alignment
    messages = {
        Encoded.CALL_FAILED: "{text} failed with {text} ({}: {text}) for the tensor map of "
        f"{name} {where}: {given}, dims from the innermost on{{text}}",
        Encoded.NO_FUNCTION: f"the CUDA driver has no {{text}}, which the tensor map of {name} "
        f"needs {where}: wanted the driver of CUDA {SINCE} or later, but this is that of CUDA "
        f"{{}}.{{}}; update the NVIDIA driver ({LIBRARY})",
        Encoded.MISPLACED: f"{name} is at the address {{unsigned}} {where}, but a tensor map needs "
        f"a multiple of {multiple}",
        Encoded.ODD_STRIDE: f"{name} has a stride of {{}} bytes {where}, in dim {{}} from the "
        f"innermost on, but a tensor map needs multiples of {multiple} less than 2**40",
        Encoded.ODD_SIZE: f"{name} has a size of {{}} {where}, in dim {{}} from the innermost on, "
        "but a tensor map has at most 2**32 elements along a dim",
    }
    kinds = {Encoded.CALL_FAILED: "CudaError", Encoded.NO_FUNCTION: "CudaError"}
    return tuple(
        Fault(kinds.get(each, "ValueError"), messages[each], location)
        for each in Encoded
        if each is not Encoded.DONE
    )
