"""Whole tensors and elements over layouts: ranks, orders, padding, signs and sizes of strides."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import ferrule as fe

CPU = "--target cpu"
DTYPES = ["float16", "float32", "float64", "int8", "uint8", "int16", "uint32", "int64"]


def combine(c, a, b):
    c[:] = a[:] * 2 + b[:] - c[:]


def fake(dtype: str, rank: int, kind: str, sizes: list[fe.specs.Sym]) -> Any:
    """A fake tensor of these sizes: in rows, in columns, or of any strides."""
    if kind == "any":
        return fe.make_fake_tensor(dtype, sizes, tuple(fe.sym_int64() for _ in sizes))
    order = range(rank) if kind == "columns" else reversed(range(rank))
    return fe.make_fake_compact_tensor(dtype, sizes, stride_order=tuple(order))


def data(rank: int, dtype: str, seed: int) -> Any:
    shape = (3, 2, 4, 5)[:rank]
    return np.array(np.random.default_rng(seed).integers(0, 40, shape), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_whole_tensors_of_every_rank(dtype: str) -> None:
    for rank in range(5) if dtype == "float32" else (0, 2):
        sizes = [fe.sym_int() for _ in range(rank)]
        compiled = fe.compile(combine, *[fake(dtype, rank, "rows", sizes)] * 3, options=CPU)
        c, a, b = (data(rank, dtype, seed) for seed in range(3))
        with np.errstate(over="ignore"):
            wanted = np.array(a * np.array(2, dtype) + b - c)
        compiled(c, a, b)
        np.testing.assert_array_equal(c, wanted)


@pytest.mark.parametrize("rank", [1, 2, 3, 4])
def test_layouts_can_differ(rank: int) -> None:
    sizes = [fe.sym_int() for _ in range(rank)]
    kinds = ("columns", "rows", "any")
    examples = [fake("float32", rank, kind, sizes) for kind in kinds]
    compiled = fe.compile(combine, *examples, options=CPU)
    c, a, b = (data(rank, "float32", seed) for seed in range(3))
    reversed_b = b[(slice(None, None, -1),) * rank]
    wanted = a * 2 + reversed_b - c
    c = np.array(c, order="F")
    compiled(c, a, reversed_b)
    np.testing.assert_array_equal(c, wanted)


def test_a_stride_of_zero_repeats() -> None:
    m, n = fe.sym_int(), fe.sym_int()
    repeated = fe.make_fake_tensor(fe.Float32, (m, n), (0, 1))
    compiled = fe.compile(combine, *[fake("float32", 2, "rows", [m, n])] * 2, repeated, options=CPU)
    a, row = data(2, "float32", 0), np.arange(2, dtype=np.float32)
    c = np.zeros_like(a)
    compiled(c, a, np.lib.stride_tricks.as_strided(row, a.shape, (0, 4)))
    np.testing.assert_array_equal(c, a * 2 + row)


def read_strided(out, a):
    for i in range(a.shape[0]):
        out[i] = a[i, a.shape[1] - 1]
    out[0] += a.stride[0]


def test_padded_rows_and_wide_sizes() -> None:
    m, n, ld = fe.sym_int64(), fe.sym_int64(), fe.sym_int64()
    out = fe.make_fake_compact_tensor(fe.Float64, (m,))
    compiled = fe.compile(
        read_strided, out, fe.make_fake_tensor(fe.Float64, (m, n), (ld, 1)), options=CPU
    )
    a = np.zeros((3, 100_000))[:, :7]
    a[:, 6] = [1, 2, 3]
    out = np.zeros(3)
    compiled(out, a)
    np.testing.assert_array_equal(out, [100_001, 2, 3])


def test_static_sizes_and_negative_strides() -> None:
    def copy(c, a):
        for i in range(len(a)):
            c[i] = a[i]

    backwards = fe.make_fake_tensor(fe.Float32, (5,), (-1,))
    compiled = fe.compile(
        copy, fe.make_fake_compact_tensor(fe.Float32, (5,)), backwards, options=CPU
    )
    a, c = np.arange(5, dtype=np.float32), np.zeros(5, np.float32)
    compiled(c, a[::-1])
    np.testing.assert_array_equal(c, a[::-1])


def test_masks() -> None:
    def between(mask, a, low: fe.Float32):
        mask[:] = (a[:] > low) & ~(a[:] >= 5) | mask[:]

    n = fe.sym_int()
    mask = fe.make_fake_compact_tensor(fe.Boolean, (n,))
    a = fe.make_fake_compact_tensor(fe.Float32, (n,))
    compiled = fe.compile(between, mask, a, 1.0, options=CPU)
    values, found = np.arange(8, dtype=np.float32), np.zeros(8, bool)
    found[7] = True
    compiled(found, values, 1.0)
    np.testing.assert_array_equal(found, [False, False, True, True, True, False, False, True])


def test_one_array_as_source_and_target() -> None:
    n = fe.sym_int()
    compiled = fe.compile(combine, *[fake("float32", 1, "rows", [n])] * 3, options=CPU)
    a = np.arange(100, dtype=np.float32)
    compiled(a, a, a)
    np.testing.assert_array_equal(a, np.arange(100) * 2)

    def prefix(c, a):
        for i in range(1, a.shape[0]):
            c[i] = a[i - 1] + 1

    compiled = fe.compile(prefix, *[fake("float32", 1, "rows", [n])] * 2, options=CPU)
    a = np.zeros(100, np.float32)
    compiled(a, a)
    np.testing.assert_array_equal(a, np.arange(100))


@pytest.mark.needs_torch
def test_bfloat16() -> None:
    import torch

    n = fe.sym_int()
    compiled = fe.compile(combine, *[fake("bfloat16", 1, "rows", [n])] * 3, options=CPU)
    c, a, b = (torch.linspace(-x, x * math.pi, 500).bfloat16() for x in (1, 2, 3))
    wanted = a * 2 + b - c
    compiled(c, a, b)
    assert torch.equal(c, wanted)
