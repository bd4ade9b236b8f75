"""The operations of a warpgroup, `wgmma`, and how tiles lie in shared memory for them.

A matrix in shared memory belongs to all 128 threads alike: each of them has all of its values.
"""

from __future__ import annotations

from enum import Enum
from functools import cache
from typing import Any, ClassVar, Final

from ferrule.language.atoms.bulk import places_of
from ferrule.language.faces.tensor_cores import CORE_ROW, SPANS, SharedMatrix
from ferrule.language.layouts import ComposedLayout, Layout, Swizzle, make_layout
from ferrule.language.layouts.errors import refuse
from ferrule.specs import (
    BFloat16,
    DType,
    Float8E4M3FN,
    Float8E5M2,
    Float16,
    Float32,
    Int8,
    Int32,
    TFloat32,
    Uint8,
)
from ferrule.specs.deferred import dataclass

_ROWS: Final = 64
_DEPTH_BITS: Final = 256
"""The bits of a row of A, and of a column of B."""


class OperandSource(Enum):
    """Where A is: in registers, or in shared memory, where B always is."""

    RMEM = "registers"
    SMEM = "shared memory"


class OperandMajorMode(Enum):
    """The mode of a matrix whose neighbours are neighbours in shared memory."""

    K = "k"
    MN = "mn"


class Field(Enum):
    """What `tiled_mma.set` sets: whether a product adds to what the accumulators hold."""

    ACCUMULATE = "accumulate"


class SmemLayoutAtomKind(Enum):
    """How a tile of shared memory is arranged: the major mode, and the bytes of its swizzle."""

    K_INTER = ("k", 0)
    K_SW32 = ("k", 32)
    K_SW64 = ("k", 64)
    K_SW128 = ("k", 128)
    MN_INTER = ("mn", 0)
    MN_SW32 = ("mn", 32)
    MN_SW64 = ("mn", 64)
    MN_SW128 = ("mn", 128)


def make_smem_layout_atom(kind: SmemLayoutAtomKind, element_type: DType) -> ComposedLayout:
    """The layout of the smallest tile of a kind: 8 rows of as many bytes as the swizzle has, 16
    without one.

    The swizzle is of addresses in bytes: `get_tensor(layout.outer, swizzle=layout.inner)`.
    """
    major, span = kind.value
    count = (span or CORE_ROW) * 8 // element_type.bits
    inner = Swizzle(SPANS.index(span), 4, 3)
    outer = Layout((8, count), (count, 1)) if major == "k" else Layout((count, 8), (1, count))
    return ComposedLayout(inner, 0, outer)


@dataclass(frozen=True, slots=True)
class _Warpgroup:
    """`wgmma` of 64 rows of A.

    With w the number of the warp, g the lane divided by 4 and t the rest, value 4 * j + i of C is
    C[16 * w + g + 8 * (i // 2), 8 * j + 2 * t + i % 2].  A in registers is as for `mma.sync`.
    """

    collective: ClassVar[bool] = True
    warpgroup: ClassVar[bool] = True

    @property
    def shape_mnk(self: Any) -> tuple[int, int, int]:
        """The sizes of one operation; K is what 32 bytes have where it was left out."""
        given = tuple(self.instruction_shape)
        depth = _DEPTH_BITS // int(self.dtypes[0].bits)
        return (*given, depth) if len(given) == 2 else given

    @property
    def threads(self) -> Layout:
        """The threads that run it together."""
        return Layout(128, 1)

    def values(self: Any, matrix: str) -> Layout:
        """From (thread, value) to the element of a matrix."""
        _, columns, depth = self.shape_mnk
        if matrix == "C":
            # PTX ISA, fragments of wgmma: those of mma.m16n8, for each of the four warps 16 rows
            # further, and for each 8 columns.
            shape = ((4, 8, 4), (2, 2, columns // 8))
            return make_layout(shape, stride=((128, 1, 16), (64, 8, 512)))
        if matrix == "A" and self.a_src is OperandSource.RMEM:
            w = 32 // self.dtypes[0].bits
            if w == 1:
                return make_layout(((4, 8, 4), (2, 2)), stride=((64, 1, 16), (8, 256)))
            stride = ((64 * w, 1, 16), (64, 8, 256 * w))
            return make_layout(((4, 8, 4), (w, 2, 2)), stride=stride)
        rows = _ROWS if matrix == "A" else columns
        return make_layout((128, (rows, depth)), stride=(0, (1, rows)))


def _require(op: Any, known: dict[Any, tuple[DType, ...]], step: int) -> None:
    """Refuses dtypes, shapes and sources that there is no instruction for."""
    name = type(op).__name__
    a, b, c = op.dtypes
    if (a, b) not in known or c not in known[a, b]:
        rows = (f"{x.name}, {y.name} and {z.name}" for (x, y), cs in known.items() for z in cs)
        refuse(name, f"the dtypes are {a}, {b} and {c}", "give " + " or ".join(rows))
    depth = _DEPTH_BITS // a.bits
    shape = tuple(op.shape_mnk)
    if len(shape) != 3 or shape[0] != _ROWS or shape[2] != depth or not _has(shape[1], step, c):
        refuse(
            name,
            f"the shape is {shape}",
            f"give (64, N, {depth}) with N a multiple of {step} from 8 to 256",
        )
    if not isinstance(op.a_src, OperandSource):
        refuse(name, f"A comes from {op.a_src!r}", "give OperandSource.SMEM or RMEM")
    for mode in (op.a_major_mode, op.b_major_mode):
        if not isinstance(mode, OperandMajorMode) or (mode.value == "mn" and a.bits != 16):
            refuse(name, f"the major mode is {mode}", "give OperandMajorMode.K, or MN of 2 bytes")


def _has(columns: Any, step: int, c: DType) -> bool:
    whole = isinstance(columns, int) and 8 <= columns <= 256 and columns % step == 0
    return whole and (c is not Int32 or columns <= 24 or columns % 16 == 0)


_HALVES: Final[dict[Any, tuple[DType, ...]]] = {
    (Float16, Float16): (Float32, Float16),
    (BFloat16, BFloat16): (Float32,),
}
_TF32: Final[dict[Any, tuple[DType, ...]]] = {(TFloat32, TFloat32): (Float32,)}
_EIGHTS: Final = (Float8E4M3FN, Float8E5M2)
_FP8: Final[dict[Any, tuple[DType, ...]]] = {
    (a, b): (Float32, Float16) for a in _EIGHTS for b in _EIGHTS
}
_INT8: Final[dict[Any, tuple[DType, ...]]] = {
    (a, b): (Int32,) for a in (Int8, Uint8) for b in (Int8, Uint8)
}


@dataclass(frozen=True, slots=True)
class MmaF16BF16Op(_Warpgroup):
    """`wgmma` of Float16 or BFloat16.  Of sm_90a."""

    ab_dtype: Any
    acc_dtype: Any
    instruction_shape: Any
    a_src: Any
    a_major_mode: Any
    b_major_mode: Any

    def __post_init__(self) -> None:
        _require(self, _HALVES, 8)

    @property
    def dtypes(self) -> tuple[DType, DType, DType]:
        """The dtypes of A, B and C."""
        return self.ab_dtype, self.ab_dtype, self.acc_dtype


@dataclass(frozen=True, slots=True)
class MmaTF32Op(_Warpgroup):
    """`wgmma` of TFloat32, with sums in Float32.  Of sm_90a."""

    instruction_shape: Any
    a_src: Any
    a_major_mode: Any = OperandMajorMode.K
    b_major_mode: Any = OperandMajorMode.K

    def __post_init__(self) -> None:
        _require(self, _TF32, 8)

    @property
    def dtypes(self) -> tuple[DType, DType, DType]:
        """The dtypes of A, B and C."""
        return TFloat32, TFloat32, Float32


@dataclass(frozen=True, slots=True)
class _Bytes(_Warpgroup):
    """`wgmma` of two dtypes of 8 bits; `known` has those of C for each pair."""

    known: ClassVar[dict[Any, tuple[DType, ...]]]

    a_dtype: Any
    b_dtype: Any
    acc_dtype: Any
    instruction_shape: Any
    a_src: Any
    a_major_mode: Any = OperandMajorMode.K
    b_major_mode: Any = OperandMajorMode.K

    def __post_init__(self) -> None:
        _require(self, self.known, 8)

    @property
    def dtypes(self) -> tuple[DType, DType, DType]:
        """The dtypes of A, B and C."""
        return self.a_dtype, self.b_dtype, self.acc_dtype


@dataclass(frozen=True, slots=True)
class MmaF8Op(_Bytes):
    """`wgmma` of floats of 8 bits, E4M3FN and E5M2, which mix.  Of sm_90a."""

    known: ClassVar = _FP8


@dataclass(frozen=True, slots=True)
class MmaI8Op(_Bytes):
    """`wgmma` of Int8 and Uint8, which mix, with sums in Int32, which wrap.  Of sm_90a."""

    known: ClassVar = _INT8


@cache
def matrix_of(layout: Layout, span: int, itemsize: int, major: str) -> SharedMatrix | None:
    """How a matrix ((rows or columns, k)) of this layout lies, as the hardware has it; None if it
    is no such form.

    `span`: the bytes of its swizzle.  Every element is compared.
    """
    # A layout adds what its modes give, and so does the hardware.
    of_rows, of_depth = ([each * itemsize for each in places_of(layout, m)] for m in (0, 1))
    inner = (span or CORE_ROW) // itemsize
    if major == "k":
        stride, leading = _at(of_rows, 8), _at(of_depth, inner)
    elif span:
        stride, leading = _at(of_depth, 8), _at(of_rows, inner)
    else:
        stride, leading = _at(of_rows, inner), _at(of_depth, 8)
    found = SharedMatrix(major, span, leading, stride)  # type: ignore[arg-type]
    rows = [found.offset(mn, 0, itemsize) for mn in range(len(of_rows))]
    depth = [found.offset(0, k, itemsize) for k in range(len(of_depth))]
    return found if (rows, depth) == (of_rows, of_depth) else None


def _at(places: list[int], index: int) -> int:
    """The place at an index; 0 where there is none, so that nothing depends on it."""
    return places[index] if index < len(places) else 0
