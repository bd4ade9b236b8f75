"""Which element of a matrix is in which register of which thread, by the tables of the manual."""

from __future__ import annotations

import re

import numpy as np
from ptx_programs import Array
from ptx_tensors import DTYPES


def sizes(shape: str) -> tuple[int, int, int]:
    m, n, k = map(int, re.findall(r"\d+", shape))
    return m, n, k


def places(rows: int, depth: int, each: int, count: int) -> tuple[Array, Array]:
    """Row and column of element [register, lane, e] of A, as the manual's tables have them."""
    register, lane, e = np.indices((count, 32, each))
    row = lane // 4 + (8 * (register % 2) if rows == 16 else 0)
    chunk = register // 2 if rows == 16 else register
    column = chunk * 4 * each + lane % 4 * each + e
    assert column.max() == depth - 1 and row.max() == rows - 1
    return row, column


def packed(values: Array, bits: int) -> Array:
    """[register, lane, e] to words of 32 bits, the first element lowest."""
    whole = np.zeros(values.shape[:2], np.uint64)
    for e in range(values.shape[2]):
        part = values[..., e].astype(np.int64).astype(np.uint64) & np.uint64((1 << bits) - 1)
        whole |= part << np.uint64(bits * e)
    return whole.astype(np.uint32)


def bits_of(values: Array) -> Array:
    return values.view({1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}[values.itemsize])


def held(matrix: Array, bits: int, rows: int) -> Array:
    """A (or B turned) as registers; `matrix` has the bits of elements, [rows, depth]."""
    each = max(1, 32 // bits)
    depth = matrix.shape[1]
    count = depth // each // 4 * (rows // 8)
    row, column = places(rows, depth, each, count)
    values = matrix[row, column]
    return values[..., 0] if bits == 64 else packed(values, bits)


def result_places(rows: int) -> tuple[Array, Array]:
    """Row and column of element [i, lane] of C and D."""
    i, lane = np.indices((rows // 4, 32))
    return lane // 4 + 8 * (i // 2), lane % 4 * 2 + i % 2


def drawn(kind: str, shape: tuple[int, int], seed: int) -> Array:
    rng = np.random.default_rng(seed)
    values = rng.standard_normal(shape) * 2.0 ** rng.integers(-4, 5, shape)
    values[rng.random(shape) < 0.05] = 0
    return values.astype(DTYPES[kind])
