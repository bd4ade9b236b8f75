"""Strides from which a function of the signature computes a launch are those of the call, also in
dims of size 1, where the signature alone allows any."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from cuda_device import FakeCuda, forged
from numpy.lib.stride_tricks import as_strided

import ferrule as fe
from ferrule import specs
from ferrule.specs import Scalar, Signature, Tensor, Tuple

M, N = specs.sym_int(symbol="m"), specs.sym_int(symbol="n")
X = Tensor("x", (M, N), "float32")
SOURCE = 'extern "C" __global__ void touch(float* x, float* y) { x[0] = 1; }'
Sizes = Callable[[Signature], Any]


def with_cuda(grid: Sizes, *, block: Any = 32) -> fe.Function:
    signature = Signature("touch", [X, Tensor("y", (M,), "float32")])
    return fe.frontends.cuda.compile(SOURCE, signature, grid=grid, block=block, target="sm_90a")


def with_mlir(grid: Sizes, *, block: Any = 32) -> fe.Function:
    text = """
    gpu.module @kernels {
      gpu.func @touch(%x: memref<?x?xf32>, %y: memref<?xf32>) kernel { gpu.return }
    }
    """
    compiled = fe.frontends.mlir.compile
    return compiled(text, "touch", grid=grid, block=block, target="sm_90a")


def with_numba(grid: Sizes, *, block: Any = 32) -> fe.Function:
    def touch(x, y):
        x[0, 0] = 1

    given = {"grid": grid, "block": block, "target": "sm_90"}
    return fe.frontends.numba.compile(touch, X, Tensor("y", (M,), "float32"), **given)


def with_cutile(grid: Sizes) -> fe.Function:
    import cuda.tile as ct

    @ct.kernel
    def touch(x, y):
        ct.store(y, index=(0,), tile=ct.load(y, index=(0,), shape=(16,)))

    both = [X, Tensor("y", (M,), "float32")]
    return fe.frontends.cutile.compile(touch, both, grid=grid, target="sm_90")


def with_warp(dim: Sizes) -> fe.Function:
    import warp as wp

    @wp.kernel(module="unique")
    def touch(x: wp.array2d(dtype=wp.float32), y: wp.array(dtype=wp.float32)):
        x[0, 0] = wp.float32(1.0)

    how: Any = {"specs": {"x": X}, "smaller": ["x", "y"], "target": "sm_90"}
    return fe.frontends.warp.compile(touch, dim=dim, **how)


NEEDED = {
    with_cuda: "cuda.bindings.nvrtc",
    with_mlir: "torch_mlir",
    with_numba: "numba_cuda",
    with_cutile: "cuda.tile",
    with_warp: "warp",
}


def needed(compiled: Any) -> None:
    """Skips where a package is not installed."""
    package, _, rest = NEEDED[compiled].partition(".")
    found = importlib.util.find_spec(package)
    if found is None or (rest and importlib.util.find_spec(NEEDED[compiled]) is None):
        pytest.skip(f"{NEEDED[compiled]} is not installed")


def matrix(rows: int, step: int) -> np.ndarray:
    return as_strided(np.zeros(999, np.float32), (rows, 8), (4 * step, 4))


def call(function: fe.Function, rows: int, step: int) -> None:
    function(forged(matrix(rows, step)), forged(np.zeros(rows, np.float32)))


@pytest.mark.parametrize("compiled", NEEDED, ids=lambda each: each.__name__)
def test_a_grid_of_a_stride_is_that_of_the_call(fake_cuda: FakeCuda, compiled: Any) -> None:
    needed(compiled)
    function = compiled(lambda sig: sig["x"].strides[0])
    for rows in (4, 1):
        call(function, rows, 8)
    with pytest.raises(ValueError, match=r"x\.strides\[0\].*but got 16"):
        call(function, 1, 16)
    assert len(fake_cuda.launches()) == 2


@pytest.mark.parametrize("compiled", NEEDED, ids=lambda each: each.__name__)
def test_a_grid_of_sizes_takes_any_stride_that_moves_nothing(
    fake_cuda: FakeCuda, compiled: Any
) -> None:
    needed(compiled)
    call(compiled(lambda sig: sig["x"].shape[1]), 1, 16)
    assert len(fake_cuda.launches()) == 1


@pytest.mark.parametrize("compiled", [with_mlir, with_numba], ids=lambda each: each.__name__)
def test_a_block_of_a_stride_is_that_of_the_call(fake_cuda: FakeCuda, compiled: Any) -> None:
    needed(compiled)
    function = compiled(lambda sig: sig["x"].shape[0], block=lambda sig: sig["x"].strides[0])
    call(function, 1, 8)
    with pytest.raises(ValueError, match=r"x\.strides\[0\]"):
        call(function, 1, 16)


def test_so_it_is_inside_of_a_tuple(fake_cuda: FakeCuda, nvrtc: Any) -> None:
    pair = Tuple("p", (X, Scalar("k", "int32")))
    signature = Signature("touch", [pair, Tensor("y", (M,), "float32")])
    function = fe.frontends.cuda.compile(
        SOURCE,
        signature,
        params=[X.data, signature["y"].data],
        grid=lambda sig: sig["p"].items[0].strides[0],
        block=32,
        target="sm_90a",
    )
    y = forged(np.zeros(1, np.float32))
    function((forged(matrix(1, 8)), 3), y)
    with pytest.raises(ValueError, match=r"p\[0\]\.strides\[0\]"):
        function((forged(matrix(1, 16)), 3), y)
