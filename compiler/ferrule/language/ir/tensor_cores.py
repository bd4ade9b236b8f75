"""Ops of the kernel IR in which the lanes of a warp, or four warps, multiply matrices together.

A matrix is distributed over a warp: each lane has some of its elements in a *fragment*, a compact
tensor in registers.  Four consecutive lanes share a row of A, C and D, or a column of B.  With `w`
the number of elements of A and B in 32 bits (1, 2 or 4), g the lane's number divided by 4 and t the
remainder (PTX ISA, "Matrix Fragments for mma.m16n8k16" and its neighbours):

* element r * w + j of A's fragment is A[g + 8 * (r % 2), 4 * w * (r // 2) + t * w + j];
* element r * w + j of B's fragment is B[4 * w * r + t * w + j, g];
* element i of the fragments of C and D is C[g + 8 * (i // 2), 2 * t + i % 2].

All lanes of the warp take part: the mask names all 32, and the block has whole warps.

A warpgroup is four consecutive warps, the first of which has a number that is a multiple of 4.  It
multiplies A of 64 rows by B of 8 to 256 columns; a row of A and a column of B have 32 bytes.  Warp
w of the four has the rows from 16 * w on of A, if that is in registers, and of D.  In these rows
the fragments are those above (PTX ISA, "Register Fragments for
wgmma.mma_async.m64nNk16"): element 4 * j + i of D is
D[16 * w + g + 8 * (i // 2), 8 * j + 2 * t + i % 2].
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ferrule.compiler.artefacts import Location
from ferrule.language.faces.tensor_cores import SharedMatrix
from ferrule.language.ir.operation import Operation, Synchronising
from ferrule.language.ir.values import Value
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

__all__ = [  # names of `ops`
    "LoadMatrix",
    "MatrixOp",
    "Mma",
    "StoreMatrix",
    "WarpgroupMma",
]

MMA_DTYPES: Final[dict[DType, tuple[DType, ...]]] = {
    Float16: (Float32, Float16),
    BFloat16: (Float32,),
    TFloat32: (Float32,),
    Float8E4M3FN: (Float32, Float16),
    Float8E5M2: (Float32, Float16),
    Int8: (Int32,),
    Uint8: (Int32,),
}
"""The dtypes of C and D for each dtype of A; B has A's dtype, except that types of 8 bits may be
mixed with those of their kind."""
ROWS: Final = 16
COLUMNS: Final = 8
ROW_BYTES: Final = 16
"""The bytes of a row of a matrix in shared memory, which has 8 rows."""
NARROW_MMA: Final = "mma of floats of 8 bits"
"""The name of the younger products in messages."""
MATRIX_COUNTS: Final = (1, 2, 4)
"""The possible numbers of matrices for one op."""


@dataclass(frozen=True, slots=True, eq=False)
class Mma(
    Synchronising,
    Operation,
    text="mma {d}, {a}, {b}, {c}{mask:word}",
    effects=("reads", "writes", "waits"),
    writes=("d",),
    place="kernel",
):
    """`d = a @ b + c` of a matrix A of 16 rows, B of 8 columns, C and D: PTX's `mma.sync`.

    The operands are fragments: 4 elements of C and D; A has 2 or 4 words of 32 bits, B half as
    many.  Floats: the products are exact, and the sums at least as precise as in the dtype of D, in
    any order; in those of floats of 8 bits a GPU may lose low bits of Float32.  Integers wrap.
    GPUs have it from sm_80 on, that of floats of 8 bits from sm_89 on.
    """

    d: Value
    a: Value
    b: Value
    c: Value
    mask: Value
    location: Location | None = None

    @property
    def since(self) -> tuple[str, int]:
        """Those of floats of 8 bits are younger."""
        return (NARROW_MMA, 89) if is_narrow(self.a.tensor.dtype) else ("mma", 80)

    @property
    def called(self) -> str:
        """The name in the language."""
        return "mma()"


@dataclass(frozen=True, slots=True, eq=False)
class LoadMatrix(
    Synchronising,
    Operation,
    text="load_matrix{transposed:flag} {target}, {source}{mask:word}",
    effects=("reads", "writes", "waits"),
    writes=("target",),
    place="kernel",
    since=("ldmatrix", 75),
):
    """Loads 1, 2 or 4 matrices of 8 rows of 16 bytes from shared memory: PTX's `ldmatrix`.

    `source` of lane i is row i % 8 of matrix i // 8, as a tensor of one dim whose address is a
    multiple of 16; the operands of the lanes from 8 times the count on are ignored.  Word m of the
    fragment `target` is from matrix m: the elements t * w + j of row g.  `transposed`, for elements
    of 2 bytes: those of the transposed matrix, element g of the rows 2 * t and 2 * t + 1.
    """

    target: Value
    source: Value
    transposed: bool
    mask: Value
    location: Location | None = None

    @property
    def count(self) -> int:
        """The number of matrices."""
        return fragment_size(self.target) // words(self.target)

    @property
    def called(self) -> str:
        """The name in the language."""
        return "ldmatrix()"


@dataclass(frozen=True, slots=True, eq=False)
class StoreMatrix(
    Synchronising,
    Operation,
    text="store_matrix{transposed:flag} {target}, {source}{mask:word}",
    effects=("reads", "writes", "waits"),
    writes=("target",),
    place="kernel",
    since=("stmatrix", 90),
):
    """Stores 1, 2 or 4 matrices of 8 rows of 16 bytes to shared memory: PTX's `stmatrix`.

    It is the inverse of `LoadMatrix`, which would load the fragment `source` from `target`.
    """

    target: Value
    source: Value
    transposed: bool
    mask: Value
    location: Location | None = None

    @property
    def count(self) -> int:
        """The number of matrices."""
        return fragment_size(self.source) // words(self.source)

    @property
    def called(self) -> str:
        """The name in the language."""
        return "stmatrix()"


def fragment_size(fragment: Value) -> int:
    """The elements of a fragment, a compact tensor of one dim."""
    (size,) = fragment.tensor.shape
    assert isinstance(size, int)
    return size


def words(fragment: Value) -> int:
    """The number of elements of a fragment in 32 bits."""
    return 4 // fragment.tensor.dtype.itemsize


def depth(op: Mma) -> int:
    """The number of columns of A and rows of B."""
    return 4 * fragment_size(op.b)


def is_narrow(dtype: DType) -> bool:
    """Whether it is a float of 8 bits."""
    return dtype.kind == "float" and dtype.bits == 8


def are_factors(a: DType, b: DType, known: Mapping[DType, tuple[DType, ...]]) -> bool:
    """Whether matrices of these dtypes are multiplied, if the dtypes of A are these."""
    if a not in known or b not in known:
        return False
    return a is b or (a.bits == b.bits == 8 and (a.kind == "float") == (b.kind == "float"))


# ---- warpgroups ----

WGMMA_ROWS: Final = 64
"""The rows of A and D."""
DEPTH_BYTES: Final = 32
"""The bytes of a row of A, and of a column of B."""
WGMMA_DTYPES: Final[dict[DType, tuple[DType, ...]]] = {
    Float16: (Float32, Float16),
    BFloat16: (Float32,),
    TFloat32: (Float32,),
    Float8E4M3FN: (Float32, Float16),
    Float8E5M2: (Float32, Float16),
    Int8: (Int32,),
    Uint8: (Int32,),
}
"""The dtypes of D for each dtype of A; B has A's dtype, except that types of 8 bits may be mixed
with those of their kind."""


def has_columns(count: int, d: DType) -> bool:
    """Whether D of this dtype can have so many columns (PTX ISA, "Matrix shape")."""
    step = 16 if d is Int32 and count > 24 else 8
    return 8 <= count <= 256 and count % step == 0


@dataclass(frozen=True, slots=True, eq=False)
class WarpgroupMma(
    Synchronising,
    Operation,
    text="warpgroup_mma {d}, {a}{of_a:word}, {b}{of_b:word}{accumulate:word}",
    effects=("reads", "writes", "waits"),
    writes=("d",),
    place="kernel",
    since=("wgmma", 90),
):
    """`d = a @ b`, or `d += a @ b` if `accumulate`, a Boolean: PTX's `wgmma.mma_async`.

    D is a fragment of half as many elements as B has columns.  A is a fragment, of half as many
    elements as a row has, or the first element of a matrix in shared memory, as B is; `of_a` and
    `of_b` say how that lies there.  All threads of the warpgroup run it together.

    It runs in the background: between it and a `Control` of `wgmma_wait_group` that includes it,
    nobody may use D, or write to A and B.  A `wgmma_fence` orders it after what the threads did to
    their fragments before.  Floats: exact products; the order and the precision of sums are the
    machine's, at least those of `Mma`.  Integers wrap.
    """

    d: Value
    a: Value
    b: Value
    accumulate: Value
    of_a: SharedMatrix | None
    of_b: SharedMatrix
    location: Location | None = None

    @property
    def columns(self) -> int:
        """The columns of B and D."""
        (count,) = self.d.tensor.shape
        assert isinstance(count, int)
        return 2 * count

    @property
    def depth(self) -> int:
        """The columns of A and rows of B."""
        return DEPTH_BYTES // self.b.tensor.dtype.itemsize

    @property
    def called(self) -> str:
        """The name in the language."""
        return "wgmma()"


MatrixOp = Mma | LoadMatrix
"""Ops of the lanes of one warp that every target can run."""

TensorCoreOp = MatrixOp | StoreMatrix | WarpgroupMma
"""The ops of this module; they have no result."""
