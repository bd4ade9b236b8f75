"""Matrix products of a warp or a warpgroup, available in `arch`; see `base` for the meaning of a
face.

Every lane has some elements of a matrix in a vector, its *fragment*.  With w = 4 // itemsize, the
number of elements of A and B in 32 bits, g = lane_idx() // 4 and t = lane_idx() % 4 (PTX ISA,
"Warp-level matrix instructions"):

* A, with 16 rows: `a[r * w + j]` is A[g + 8 * (r % 2), 4 * w * (r // 2) + t * w + j];
* B, with 8 columns: `b[r * w + j]` is B[4 * w * r + t * w + j, g];
* C and the result: `c[i]` is C[g + 8 * (i // 2), 2 * t + i % 2].

A *warpgroup* is four warps, the first of which has a number that is a multiple of 4.  They multiply
matrices in shared memory in the background: PTX's `wgmma`, of sm_90a.
"""

from __future__ import annotations

from typing import Any, Final, Literal

from ferrule.language.faces.base import outside
from ferrule.specs import DType
from ferrule.specs.deferred import dataclass

Major = Literal["k", "mn"]
CORE_ROW: Final = 16
"""The bytes of a row of a core matrix, which has 8 rows."""
SPANS: Final = (0, 32, 64, 128)
"""The bytes over which a swizzle goes; 0 for none."""
# A descriptor has 14 bits for an offset in units of 16 bytes.
_MOST_OFFSET: Final = 1 << 18


@dataclass(frozen=True, slots=True)
class SharedMatrix:
    """How A or B lies in shared memory, from the address of its first element on.

    `major`: the mode whose neighbours are neighbours in memory: "k", along a row of A or a column
    of B, or, only for elements of 2 bytes, "mn", from row to row or from column to column.
    `swizzle`: the bytes, 32, 64 or 128, over which chunks of 16 bytes change places, or 0.
    `leading`, `stride`: offsets in bytes, multiples of 16 below 2**18 (PTX ISA, "Asynchronous
    warpgroup level matrix shared memory layout"):

    * "k" without a swizzle: `leading` between core matrices, of 8 rows of 16 bytes that follow each
      other, along k, and `stride` along rows or columns;
    * "k" with a swizzle: 8 rows of as many bytes follow each other; `stride` from these to the next
      8 rows; `leading` is not used;
    * "mn" without a swizzle: core matrices have 8 of k as rows; `leading` between them along k, and
      `stride` along rows or columns;
    * "mn" with a swizzle: 8 of k, each with so many bytes along rows or columns, follow each other;
      `stride` to the next 8 of k, and `leading` to the next bytes along rows or columns.
    """

    major: Major = "k"
    swizzle: int = 0
    leading: int = 0
    stride: int = 0

    def fault(self, dtype: DType) -> str | None:
        """What is wrong with this for elements of a dtype, as the end of a sentence."""
        if self.major not in ("k", "mn"):
            return f'the major mode {self.major!r}, not "k" or "mn"'
        if self.major == "mn" and dtype.bits != 16:
            return f'the major mode "mn", which is for elements of 2 bytes, not for {dtype.name}'
        if self.swizzle not in SPANS:
            return f"a swizzle over {self.swizzle} bytes, not 0, 32, 64 or 128"
        for name in ("leading", "stride"):
            offset = getattr(self, name)
            if offset % CORE_ROW or not 0 <= offset < _MOST_OFFSET:
                return f"{name}={offset}, not a multiple of 16 from 0 to {_MOST_OFFSET - CORE_ROW}"
        return None

    def offset(self, mn: int, k: int, itemsize: int) -> int:
        """The offset in bytes of an element of a row or column, before the swizzle."""
        span = self.swizzle or CORE_ROW
        outer, inner = (k, mn) if self.major == "mn" else (mn, k)
        byte = inner * itemsize
        groups, far = self.stride, self.leading
        if self.major == "mn" and not self.swizzle:
            groups, far = far, groups
        return outer // 8 * groups + outer % 8 * span + byte // span * far + byte % span

    @property
    def align(self) -> int:
        """The bytes after which the swizzle repeats: core rows lie in relation to these."""
        return 8 * self.swizzle if self.swizzle else CORE_ROW

    def __str__(self) -> str:
        swizzle = f" swizzle {self.swizzle}" if self.swizzle else ""
        return f"{self.major}{swizzle} leading {self.leading} stride {self.stride}"


def mma(a: Any, b: Any, c: Any) -> Any:
    """The fragment of `A @ B + C`, a vector of 4 elements of C's dtype.

    A is 16 x K, B is K x 8, C is 16 x 8; K comes from the sizes of the vectors: `a` has 2 or 4
    words of 32 bits, `b` half as many.  Float16 (K = 8, 16) gives Float32 or Float16, BFloat16 (8,
    16) and TFloat32 (4, 8) Float32, Float8E4M3FN and Float8E5M2 (16, 32), which mix, Float32 or
    Float16, Int8 and Uint8 (16, 32), which mix, Int32, which wraps.  The order of sums of floats is
    unspecified, and in those of floats of 8 bits GPUs may lose low bits.  All 32 lanes of the warp
    run it together.  From sm_80 on, of floats of 8 bits from sm_89 on.
    """
    outside("arch.mma")


def stmatrix(ptr: Any, matrices: Any, transpose: Any = False) -> None:
    """Stores 1, 2 or 4 matrices of 8 rows of 16 bytes to shared memory: the inverse of `ldmatrix`.

    `matrices` is a vector as `ldmatrix` returns it for these pointers, with one word of 32 bits for
    each matrix.  All 32 lanes of the warp run it together.  From sm_90 on.
    """
    outside("arch.stmatrix")


def ldmatrix(ptr: Any, num_matrices: Any = 4, transpose: Any = False) -> Any:
    """Loads 1, 2 or 4 matrices of 8 rows of 16 bytes from shared memory, as a vector.

    The pointer of lane i refers to row i % 8 of matrix i // 8, aligned to 16 bytes; the pointers of
    lanes from 8 * num_matrices on are ignored.  From each matrix a lane gets w = 4 // itemsize
    elements: t * w to t * w + w - 1 of its row g, or, transposed (of elements of 2 bytes), element
    g of its rows 2 * t and 2 * t + 1.  All 32 lanes of the warp run it together.  From sm_75 on.
    """
    outside("arch.ldmatrix")


def wgmma(acc: Any, a: Any, b: Any, of_b: Any, of_a: Any = None, *, accumulate: Any = True) -> None:
    """Begins `acc += A @ B`, or `acc = A @ B` if `accumulate` is false; PTX's `wgmma.mma_async`.

    A has 64 rows of K elements, 32 bytes; B has as many columns as `acc`, a fragment, has elements
    in the four warps: N from 8 to 256.  `a` and `b` are pointers to their first elements in shared
    memory, and the `SharedMatrix` `of_a` and `of_b` say how they lie there; without `of_a`, A is in
    registers, a fragment or a vector of K / 2 elements.  With w the number of the warp among the
    four, g = lane_idx() // 4, t = lane_idx() % 4 and e = 4 // itemsize:

    * `acc[4 * j + i]` is C[16 * w + g + 8 * (i // 2), 8 * j + 2 * t + i % 2];
    * `a[r * e + j]` is A[16 * w + g + 8 * (r % 2), 4 * e * (r // 2) + t * e + j].

    Float16 and floats of 8 bits (E4M3FN, E5M2, which mix) give Float32 or Float16, BFloat16 and
    TFloat32 Float32, Int8 and Uint8, which mix, Int32.  Nobody may use `acc`, or write to A and B,
    until `wgmma_wait_group`.  All threads of the warpgroup run it together.  Of sm_90a.
    """
    outside("arch.wgmma")


def wgmma_fence() -> None:
    """Orders the products that follow after what the threads did to their registers.

    Needed before the first of them, and where registers were changed since.  Of sm_90a.
    """
    outside("arch.wgmma_fence")


def wgmma_commit_group() -> None:
    """Makes a group of the warpgroup's products since the last group.  Of sm_90a."""
    outside("arch.wgmma_commit_group")


def wgmma_wait_group(n: Any) -> None:
    """Waits for all groups of products but the `n` newest; n is known at compile time.

    Of sm_90a.
    """
    outside("arch.wgmma_wait_group")
