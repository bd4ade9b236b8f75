"""Tensor maps of the kernel language: what a launch hands over, on the stand-in of the driver."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from cuda_device import FakeCuda, forged
from tensor_maps import Map, decoded

import ferrule as fe
from ferrule.compiler.cuda.tilings import DataType, L2Promotion, Swizzle

arch = fe.arch
OPTIONS = "--target cuda --gpu-arch sm_90a"


@fe.kernel
def copying(of_a, of_b, b: fe.Tensor):
    tile, arrived = arch.alloc_smem(fe.Float32, 256), arch.alloc_smem(fe.Int64, 1)
    if arch.thread_idx()[0] == 0:
        arch.mbarrier_init(arrived, 1)
        arch.cp_async_bulk_tensor(tile, of_a, (0, 0), arrived)
        arch.cp_async_bulk_tensor(of_b, tile, (0, 0))
    b[0, 0] = 1.0


@fe.jit
def copy(a: fe.Tensor, b: fe.Tensor, blocks: fe.Int32):
    of_a = arch.make_tensor_map(a, (8, 32), swizzle="128B", l2_promotion="128B")
    of_b = arch.make_tensor_map(b, (8, 32), element_strides=(2, 1))
    copying(of_a, of_b, b).launch(grid=blocks, block=32)


def square() -> Any:
    return fe.make_fake_tensor(fe.Float32, (fe.sym_int(), fe.sym_int()), (fe.sym_int64(), 1))


@pytest.fixture
def compiled(fake_cuda: FakeCuda) -> fe.Function:
    return fe.compile(copy, square(), square(), fe.Int32(1), options=OPTIONS)


def aligned(rows: int, columns: int) -> np.ndarray[Any, Any]:
    data = np.zeros(rows * columns * 4 + 64, np.uint8)
    start = -data.ctypes.data % 64
    return data[start : start + rows * columns * 4].view(np.float32).reshape(rows, columns)


def test_a_launch_hands_over_its_maps(fake_cuda: FakeCuda, compiled: fe.Function) -> None:
    a, b = aligned(10, 32), aligned(12, 64)
    compiled(forged(a), forged(b), 1)
    (launch,) = fake_cuda.launches()
    # The tensor b, then the maps; a is there as a map alone.
    assert [len(each) for each in launch.parameters] == [24, 128, 128]
    of_a, of_b = (decoded(each) for each in launch.parameters[1:])
    known = (DataType.FLOAT32, a.ctypes.data, (32, 10), (128,), (32, 8), (1, 1))
    assert of_a == Map(*known, swizzle=Swizzle.B128, promotion=L2Promotion.B128)
    assert (of_b.sizes, of_b.strides, of_b.steps) == ((64, 12), (256,), (1, 2))


def test_each_launch_encodes_anew(fake_cuda: FakeCuda, compiled: fe.Function) -> None:
    a, b = aligned(10, 32), aligned(12, 64)
    for given in (a, a[2:]):
        compiled(forged(given), forged(b), 1)
    found = [decoded(launch.parameters[1]) for launch in fake_cuda.launches()]
    assert [each.sizes for each in found] == [(32, 10), (32, 8)]
    assert found[1].address == a[2:].ctypes.data


def test_an_empty_tensor_and_an_empty_grid_are_no_error(
    fake_cuda: FakeCuda, compiled: fe.Function
) -> None:
    compiled(forged(aligned(0, 32)), forged(aligned(12, 64)), 0)
    assert fake_cuda.launches() == []


def test_a_stride_that_no_map_has_is_named(fake_cuda: FakeCuda, compiled: fe.Function) -> None:
    message = (
        "of_a has a stride of 132 bytes in a launch of copy, in dim 1 from the innermost on, but "
        "its tensor map, box (32, 8), swizzle 128B of float32, needs multiples of 16 less than "
        "2**40"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        compiled(forged(aligned(10, 33)), forged(aligned(12, 64)), 1)
    assert (fake_cuda.depth, fake_cuda.launches()) == (0, [])
