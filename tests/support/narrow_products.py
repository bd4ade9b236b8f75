"""Products of matrices of floats of 8 bits by one `mma`: a kernel, matrices, and exact sums."""

from __future__ import annotations

import math
from functools import cache
from typing import Any, Final

import ml_dtypes
import numpy as np

import ferrule as fe

arch = fe.arch
Array = np.ndarray[Any, np.dtype[Any]]
E4M3, E5M2 = fe.Float8E4M3FN, fe.Float8E5M2
NUMPY: Final[dict[Any, Any]] = {
    E4M3: ml_dtypes.float8_e4m3fn,
    E5M2: ml_dtypes.float8_e5m2,
    fe.Float32: np.float32,
    fe.Float16: np.float16,
}
FORMS: Final = [
    (one, two, total, depth)
    for one in (E4M3, E5M2)
    for two in (E4M3, E5M2)
    for total in (fe.Float32, fe.Float16)
    for depth in (16, 32)
]
"""The dtypes of A, B and the sums, and K."""


@fe.kernel
def product_kernel(
    a: fe.Tensor, b: fe.Tensor, c: fe.Tensor, d: fe.Tensor, form: fe.Constexpr
) -> None:
    """D = A B + C, from bytes of A and B, each element where the PTX ISA has it."""
    one, two, total, depth = form
    lane = arch.lane_idx()
    g, t = lane // 4, lane % 4
    of_a, of_b = fe.make_fragment(depth // 2, fe.Uint8), fe.make_fragment(depth // 4, fe.Uint8)
    for i in fe.range_constexpr(depth // 2):
        r, j = i // 4, i % 4
        of_a[i] = a[g + 8 * (r % 2), 16 * (r // 2) + 4 * t + j]
    for i in fe.range_constexpr(depth // 4):
        of_b[i] = b[16 * (i // 4) + 4 * t + i % 4, g]
    left = fe.make_tensor(fe.recast_ptr(of_a.iterator, dtype=one), depth // 2).load()
    right = fe.make_tensor(fe.recast_ptr(of_b.iterator, dtype=two), depth // 4).load()
    before, after = fe.make_fragment(4, total), fe.make_fragment(4, total)
    for i in fe.range_constexpr(4):
        before[i] = c[g + 8 * (i // 2), 2 * t + i % 2]
    after.store(arch.mma(left, right, before.load()))
    for i in fe.range_constexpr(4):
        d[g + 8 * (i // 2), 2 * t + i % 2] = after[i]


@cache
def host(form: Any) -> Any:
    """A host function that launches one warp of it."""

    def product(a: fe.Tensor, b: fe.Tensor, c: fe.Tensor, d: fe.Tensor) -> None:
        product_kernel(a, b, c, d, form).launch(grid=1, block=32)

    return product


def finite(rng: np.random.Generator, dtype: Any, shape: tuple[int, ...]) -> Array:
    """Finite numbers of all sizes, subnormal ones too."""
    kind = NUMPY[dtype]
    every = np.arange(256, dtype=np.uint8).view(kind)
    every = every[np.isfinite(every.astype(np.float32))]
    return rng.choice(every, shape)


def small(rng: np.random.Generator, dtype: Any, shape: tuple[int, ...]) -> Array:
    """Multiples of a quarter, whose sums of products floats of 16 bits have, too."""
    return (rng.integers(-4, 5, shape) / 4).astype(NUMPY[dtype])


def exact(a: Array, b: Array, c: Array) -> tuple[Array, Array]:
    """A B + C of finite numbers, rounded once to a double, and the sums of the terms' sizes."""
    sums, sizes = np.zeros(c.shape), np.zeros(c.shape)
    for row, column in np.ndindex(c.shape):
        terms = a[row].astype(np.float64) * b[:, column].astype(np.float64)
        terms = np.append(terms, float(c[row, column]))
        sums[row, column], sizes[row, column] = math.fsum(terms), math.fsum(abs(terms))
    return sums, sizes


def check_close(found: Array, a: Array, b: Array, c: Array) -> None:
    """Rounded to Float32 after each term at most, and once to the dtype of the sums."""
    sums, sizes = exact(a, b, c)
    bound = sizes * (len(b) + 2) * 2.0**-24
    if found.dtype == np.float16:
        bound += np.maximum(abs(sums) * 2.0**-11, 2.0**-25)
        most = 65504.0
        beyond, inside = abs(sums) - bound > 65520, abs(sums) + bound < most
        assert np.isinf(found[beyond]).all() and np.isfinite(found[inside]).all()
        found, sums, bound = (each[inside] for each in (found.astype(np.float64), sums, bound))
    assert (abs(found.astype(np.float64) - sums) <= bound).all()


def special(one: Any, two: Any, depth: int) -> tuple[Array, Array, Array, Array]:
    """A, B, C and the result where there are NaNs, infinities, subnormals and zeros."""
    left, right = NUMPY[one], NUMPY[two]
    a, b = np.zeros((16, depth), left), np.zeros((depth, 8), right)
    c, d = np.zeros((16, 8), np.float32), np.zeros((16, 8), np.float32)
    b[:, 0] = 1
    a[0, 1], d[0, :] = np.nan, np.nan
    least = [float(ml_dtypes.finfo(kind).smallest_subnormal) for kind in (left, right)]
    most = [float(ml_dtypes.finfo(kind).max) for kind in (left, right)]
    a[1, depth - 1], d[1, 0] = least[0], least[0]
    a[2, 2], b[2, 1] = least[0], least[1]
    d[2, :2] = least[0], least[0] * least[1]
    a[3, 3], b[3, 1], d[3, :2] = most[0], most[1], (most[0], most[0] * most[1])
    c[4, 1], d[4, 1] = np.inf, np.inf
    if one is E5M2:
        a[5, 4], c[5, 2] = np.inf, -np.inf
        # An infinity times zero is a NaN, so all but the first column are.
        d[5] = [np.inf, *[np.nan] * 7]
    if two is E5M2:
        b[5, 3] = -np.inf
        d[:, 3] = np.nan
        a[6, 5], d[6, 0], d[6, 3] = 2, 2, -np.inf
    return a, b, c, d
