"""Small matrix products of a warp, available in `arch`; see `base` for the meaning of a face.

Every lane has some elements of a matrix in a vector, its *fragment*.  With w = 4 // itemsize, the
number of elements of A and B in 32 bits, g = lane_idx() // 4 and t = lane_idx() % 4 (PTX ISA,
"Warp-level matrix instructions"):

* A, with 16 rows: `a[r * w + j]` is A[g + 8 * (r % 2), 4 * w * (r // 2) + t * w + j];
* B, with 8 columns: `b[r * w + j]` is B[4 * w * r + t * w + j, g];
* C and the result: `c[i]` is C[g + 8 * (i // 2), 2 * t + i % 2].
"""

from __future__ import annotations

from typing import Any

from ferrule.language.faces.base import outside


def mma(a: Any, b: Any, c: Any) -> Any:
    """The fragment of `A @ B + C`, a vector of 4 elements of C's dtype.

    A is 16 x K, B is K x 8, C is 16 x 8; K comes from the sizes of the vectors: `a` has 2 or 4
    words of 32 bits, `b` half as many.  Float16 (K = 8, 16) gives Float32 or Float16, BFloat16 (8,
    16) and TFloat32 (4, 8) Float32, Int8 and Uint8 (16, 32), which mix, Int32, which wraps.  The
    order of sums of floats is unspecified.  All 32 lanes of the warp run it together.  From sm_80
    on.
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
