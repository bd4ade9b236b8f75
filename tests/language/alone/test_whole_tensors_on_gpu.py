"""Whole-tensor expressions of several axes on an emulated GPU: every shape of a block."""

from __future__ import annotations

import numpy as np
import pytest

import ferrule as fe

LENGTHS = (0, 1, 2, 3, 9, 127, 128, 129, 257)
"""Lengths of the innermost axis: where blocks become wider, and where a row has several."""


@fe.jit
def scaled(a: fe.Tensor, b: fe.Tensor, out: fe.Tensor):
    out[:] = a[:] * 2 + b[:]


def strided(rank: int) -> fe.Tensor:
    sizes = tuple(fe.sym_int(symbol=f"n{i}") for i in range(rank))
    return fe.make_fake_tensor(fe.Float32, sizes, stride=tuple(fe.sym_int64() for _ in sizes))


@pytest.mark.parametrize("rank", [2, 3, 4])
def test_every_width(rank: int) -> None:
    rng = np.random.default_rng(rank)
    with fe.emulated_gpu("sm_90a"):
        options = "--target cuda --gpu-arch sm_90a"
        compiled = fe.compile(scaled, *(strided(rank) for _ in range(3)), options=options)
        for length in LENGTHS:
            shape = (*rng.integers(1, 5, rank - 1), length)
            a, b = (rng.standard_normal(shape).astype(np.float32) for _ in range(2))
            given = [fe.cuda.array(each) for each in (a, b, np.zeros_like(a))]
            compiled(*given)
            np.testing.assert_array_equal(fe.cuda.to_numpy(given[2]), a * 2 + b)


def test_many_rows_of_one_element() -> None:
    """More rows than blocks can be counted along the other axes of a grid."""
    a = np.arange(70000, dtype=np.float32).reshape(-1, 1)
    with fe.emulated_gpu("sm_90a"):
        options = "--target cuda --gpu-arch sm_90a"
        compiled = fe.compile(scaled, *(strided(2) for _ in range(3)), options=options)
        given = [fe.cuda.array(each) for each in (a, a, np.zeros_like(a))]
        compiled(*given)
        np.testing.assert_array_equal(fe.cuda.to_numpy(given[2]), a * 3)
