"""Whole-tensor expressions on a GPU: sizes around those of blocks, addresses of any alignment."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from cuda_device import data_ptr, forged_at

import ferrule as fe
from ferrule.runtime import make_fake_compact_tensor

OPTIONS = "--target cuda --gpu-arch sm_90a"
SIZES = (0, 1, 2, 3, 255, 256, 1023, 1024, 1025, 2047, 2048, 2049, 4095, 4096, 4097, 5000)


@fe.jit
def added(c: fe.Tensor, a: fe.Tensor, b: fe.Tensor):
    c[:] = a[:] * 2 + b[:]


@fe.jit
def doubled(c: fe.Tensor):
    c[:] = c[:] + c[:]


@pytest.fixture(scope="module", autouse=True)
def gpu() -> Iterator[Any]:
    with fe.emulated_gpu("sm_90a", checks="memory,sync") as machine:
        yield machine


def compiled(function: Any, dtype: Any, count: int) -> Any:
    n = fe.sym_int()
    return fe.compile(function, *[make_fake_compact_tensor(dtype, (n,))] * count, options=OPTIONS)


@pytest.mark.parametrize(
    ("dtype", "of_numpy"),
    [(fe.Float32, np.float32), (fe.Float16, np.float16), (fe.Int8, np.int8), (fe.Int64, np.int64)],
)
def test_sizes_around_those_of_blocks(dtype: Any, of_numpy: Any) -> None:
    function = compiled(added, dtype, 3)
    rng = np.random.default_rng(0)
    for size in SIZES:
        a, b = (rng.integers(-20, 20, size).astype(of_numpy) for _ in range(2))
        on_gpu = [fe.cuda.array(each) for each in (np.zeros_like(a), a, b)]
        function(*on_gpu)
        np.testing.assert_array_equal(fe.cuda.to_numpy(on_gpu[0]), a * of_numpy(2) + b)


@pytest.mark.parametrize(
    "starts", [(0, 0, 0), (4, 8, 12), (1, 0, 0), (0, 1, 0), (0, 0, 3), (2, 2, 2)]
)
def test_addresses_of_any_alignment(starts: tuple[int, int, int]) -> None:
    function, size = compiled(added, fe.Float32, 3), 2500
    arrays = [np.arange(size + 16, dtype=np.float32) * scale for scale in (0, 1, -3)]
    on_gpu = [fe.cuda.array(each) for each in arrays]
    parts = [
        forged_at(data_ptr(whole) + 4 * start, (size,), (1,), fe.Float32.dlpack)
        for whole, start in zip(on_gpu, starts, strict=True)
    ]
    function(*parts)
    wanted = arrays[0].copy()
    first, a, b = (slice(start, start + size) for start in starts)
    wanted[first] = arrays[1][a] * 2 + arrays[2][b]
    np.testing.assert_array_equal(fe.cuda.to_numpy(on_gpu[0]), wanted)


def test_a_tensor_that_is_read_and_written() -> None:
    function = compiled(doubled, fe.Float16, 1)
    for size in SIZES:
        array = np.arange(size).astype(np.float16)
        on_gpu = fe.cuda.array(array)
        function(on_gpu)
        np.testing.assert_array_equal(fe.cuda.to_numpy(on_gpu), array + array)
