"""Kernels on tensors whose offsets need more than 32 bits, with the values that they find there."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from cuda_device import forged_at

import ferrule as fe
from ferrule.runtime import make_fake_tensor

OPTIONS = "--target cuda --gpu-arch sm_90a"
FAR = (1 << 31) + 4096
"""Elements between two rows, of one byte each."""


@fe.kernel
def double_kernel(a: fe.Tensor, b: fe.Tensor):
    row, column = fe.arch.block_idx()[0], fe.arch.thread_idx()[0]
    if row < a.shape[0] and column < a.shape[1]:
        b[row, column] = a[row, column] * fe.Int8(2)


@fe.jit
def double(a: fe.Tensor, b: fe.Tensor):
    double_kernel(a, b).launch(grid=a.shape[0], block=32)


@fe.kernel
def tiles_kernel(a: fe.Tensor, b: fe.Tensor):
    source = fe.local_tile(a, (1, 4), (fe.arch.block_idx()[0], None))
    target = fe.local_tile(b, (1, 4), (fe.arch.block_idx()[0], None))
    for k in range(a.shape[1] // 4):
        target[0, fe.arch.thread_idx()[0], k] = source[0, fe.arch.thread_idx()[0], k] * fe.Int8(2)


@fe.jit
def double_tiles(a: fe.Tensor, b: fe.Tensor):
    tiles_kernel(a, b).launch(grid=a.shape[0], block=4)


@fe.jit
def double_whole(a: fe.Tensor, b: fe.Tensor):
    b[:] = a[:] * fe.Int8(2)


@pytest.fixture(scope="module")
def sparse() -> Iterator[int]:
    """The address of memory of which the system keeps only the pages that are written."""
    with mmap.mmap(-1, 8 * FAR + 4096) as memory:
        place = np.frombuffer(memory, np.uint8)
        yield place.ctypes.data
        del place


def view(address: int, dtype: Any, rows: int, step: int) -> np.ndarray[Any, Any]:
    """Some rows of 8, `step` elements apart, as an array of the host."""
    whole = np.ctypeslib.as_array((np.ctypeslib.as_ctypes_type(dtype) * 1).from_address(address))
    return np.lib.stride_tricks.as_strided(
        whole, (rows, 8), (step * whole.itemsize, whole.itemsize), subok=False
    )


def matrix(dtype: Any) -> Any:
    shape = (fe.sym_int(64), fe.sym_int(64))
    return make_fake_tensor(dtype, shape, (fe.sym_int(64), fe.sym_int(64)))


@pytest.mark.parametrize("backwards", [False, True], ids=["forwards", "backwards"])
@pytest.mark.parametrize("function", [double, double_tiles, double_whole])
def test_rows_that_lie_far_apart(sparse: int, function: Any, backwards: bool) -> None:
    source, target = view(sparse, np.int8, 2, FAR), view(sparse + 64, np.int8, 2, FAR)
    source[:], target[:] = np.arange(16).reshape(2, 8), 0
    step, first = (-FAR, sparse + FAR) if backwards else (FAR, sparse)
    with fe.emulated_gpu("sm_90a", checks=False):
        compiled = fe.compile(function, matrix(fe.Int8), matrix(fe.Int8), options=OPTIONS)
        a = forged_at(first, (2, 8), (step, 1), fe.Int8.dlpack)
        b = forged_at(first + 64, (2, 8), (step, 1), fe.Int8.dlpack)
        compiled(a, b)
    np.testing.assert_array_equal(target, source * 2)
