"""The operations of matrix multiplications, with the values that each thread has of A, B and C."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from ferrule.language.layouts import Layout, make_layout
from ferrule.language.layouts.errors import refuse
from ferrule.specs import (
    BFloat16,
    DType,
    Float8E4M3FN,
    Float8E5M2,
    Float16,
    Float32,
    Float64,
    Int8,
    Int32,
    TFloat32,
    Uint8,
)
from ferrule.specs.deferred import dataclass

_UNIVERSAL: Final = (Float16, BFloat16, Float32, Float64, Int32)


@dataclass(frozen=True, slots=True)
class MmaUniversalOp:
    """One multiplication and addition by one thread."""

    abacc_dtype: Any
    collective: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.abacc_dtype not in _UNIVERSAL:
            names = ", ".join(each.name for each in _UNIVERSAL)
            refuse("MmaUniversalOp", f"the dtype is {self.abacc_dtype!r}", f"give one of {names}")

    @property
    def shape_mnk(self) -> tuple[int, int, int]:
        """The sizes of one operation."""
        return 1, 1, 1

    @property
    def threads(self) -> Layout:
        """The threads that run it together."""
        return Layout(1, 0)

    @property
    def dtypes(self) -> tuple[DType, DType, DType]:
        """The dtypes of A, B and C."""
        return self.abacc_dtype, self.abacc_dtype, self.abacc_dtype

    def values(self, matrix: str) -> Layout:
        """From (thread, value) to the element of a matrix."""
        return Layout((1, 1), (0, 0))


@dataclass(frozen=True, slots=True)
class _Warp:
    """`mma.sync` of 16 rows of A and 8 columns of B.

    With w elements of A in 32 bits, g the lane divided by 4 and t the rest, value r * w + j of A is
    A[g + 8 * (r % 2), 4 * w * (r // 2) + w * t + j], and that of B is B[g, 4 * w * r + w * t + j].
    """

    collective: ClassVar[bool] = True

    @property
    def threads(self) -> Layout:
        """The threads that run it together."""
        return Layout(32, 1)

    def values(self: Any, matrix: str) -> Layout:
        """From (thread, value) to the element of a matrix."""
        if matrix == "C":
            # PTX ISA, fragments of mma.m16n8: lane / 4 is the row, and lane % 4 the pair of
            # columns; the other two values are 8 rows further. The elements are numbered down the
            # columns.
            return make_layout(((4, 8), (2, 2)), stride=((32, 1), (16, 8)))
        w = 32 // self.dtypes[0].bits
        words = self.shape_mnk[2] // (4 * w)
        rows = 16 if matrix == "A" else 8
        modes = [(w, rows)] if w > 1 else []
        modes += [(2, 8)] if matrix == "A" else []
        modes += [(words, 4 * w * rows)] if words > 1 else []
        shape: Any = tuple(s for s, _ in modes)
        stride: Any = tuple(d for _, d in modes)
        if len(modes) < 2:
            shape, stride = (shape[0], stride[0]) if modes else (1, 0)
        return make_layout(((4, 8), shape), stride=((w * rows, 1), stride))


def _require(op: Any, given: tuple[Any, ...], known: dict[Any, Any]) -> None:
    """Makes the shape a tuple, and refuses dtypes and shapes that there is no instruction for."""
    shape = tuple(op.shape_mnk)
    object.__setattr__(op, "shape_mnk", shape)
    if given not in known:
        texts = (", ".join(getattr(each, "name", str(each)) for each in row) for row in known)
        named = ", ".join(getattr(each, "name", repr(each)) for each in given)
        refuse(type(op).__name__, f"the dtypes are {named}", "give " + " or ".join(texts))
    if shape not in [(16, 8, depth) for depth in known[given]]:
        shapes = " or ".join(f"(16,8,{depth})" for depth in known[given])
        refuse(type(op).__name__, f"the shape is {shape}", f"give {shapes}")


_HALVES: Final[dict[Any, Any]] = {
    (Float16, Float32): (8, 16),
    (Float16, Float16): (8, 16),
    (BFloat16, Float32): (8, 16),
}
_TF32: Final[dict[Any, Any]] = {(TFloat32, Float32): (4, 8)}
_NARROW: Final = (Float8E4M3FN, Float8E5M2)
_FP8: Final[dict[Any, Any]] = {
    (a, b, c): (16, 32) for a in _NARROW for b in _NARROW for c in (Float32, Float16)
}
_BYTES: Final[dict[Any, Any]] = {
    (a, b, Int32): (16, 32) for a in (Int8, Uint8) for b in (Int8, Uint8)
}


@dataclass(frozen=True, slots=True)
class MmaF16BF16Op(_Warp):
    """`mma.sync` of Float16 or BFloat16.  From sm_80 on."""

    ab_dtype: Any
    acc_dtype: Any
    shape_mnk: Any

    def __post_init__(self) -> None:
        _require(self, (self.ab_dtype, self.acc_dtype), _HALVES)

    @property
    def dtypes(self) -> tuple[DType, DType, DType]:
        """The dtypes of A, B and C."""
        return self.ab_dtype, self.ab_dtype, self.acc_dtype


@dataclass(frozen=True, slots=True)
class MmaTF32Op(_Warp):
    """`mma.sync` of TFloat32, with sums in Float32.  From sm_80 on."""

    shape_mnk: Any = (16, 8, 8)

    def __post_init__(self) -> None:
        _require(self, (TFloat32, Float32), _TF32)

    @property
    def dtypes(self) -> tuple[DType, DType, DType]:
        """The dtypes of A, B and C."""
        return TFloat32, TFloat32, Float32


@dataclass(frozen=True, slots=True)
class MmaFP8Op(_Warp):
    """`mma.sync` of Float8E4M3FN and Float8E5M2, with sums in Float32 or Float16.  From sm_89 on.

    `b_dtype`, where B has another dtype than A, is ferrule's own.
    """

    ab_dtype: Any
    acc_dtype: Any
    shape_mnk: Any
    b_dtype: Any = None

    def __post_init__(self) -> None:
        _require(self, self.dtypes, _FP8)

    @property
    def dtypes(self) -> tuple[DType, DType, DType]:
        """The dtypes of A, B and C."""
        b = self.ab_dtype if self.b_dtype is None else self.b_dtype
        return self.ab_dtype, b, self.acc_dtype


@dataclass(frozen=True, slots=True)
class MmaI8Op(_Warp):
    """`mma.sync` of Int8 and Uint8, which mix, with sums in Int32, which wrap.  From sm_80 on."""

    a_dtype: Any = Int8
    b_dtype: Any = Int8
    shape_mnk: Any = (16, 8, 32)

    def __post_init__(self) -> None:
        _require(self, (self.a_dtype, self.b_dtype, Int32), _BYTES)

    @property
    def dtypes(self) -> tuple[DType, DType, DType]:
        """The dtypes of A, B and C."""
        return self.a_dtype, self.b_dtype, Int32
