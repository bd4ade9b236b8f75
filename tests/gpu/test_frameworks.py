"""Kernels of other frameworks on a GPU: what they compute, beside the frameworks' own launches."""

import importlib.util
from typing import Any

import numpy as np
import pytest

import ferrule as fe
from ferrule.specs import Tensor

pytestmark = [pytest.mark.needs_cuda, pytest.mark.needs_torch_cuda]

N = fe.sym_int()
SIZE = 1000


@pytest.fixture
def arrays() -> tuple[Any, Any]:
    import torch

    x = torch.arange(SIZE, dtype=torch.float32, device="cuda")
    return x, torch.ones_like(x)


@pytest.fixture
def arch() -> str:
    import torch

    major, minor = torch.cuda.get_device_capability()
    return f"sm_{major}{minor}"


def require(y: Any, alpha: float) -> None:
    """That y is alpha times 0, 1, …, plus one."""
    wanted = np.arange(SIZE, dtype=np.float32) * np.float32(alpha) + 1
    np.testing.assert_allclose(y.cpu().numpy(), wanted, rtol=1e-6)


def test_numba(arrays: tuple[Any, Any], arch: str) -> None:
    pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")
    from numba import cuda

    def saxpy(x, y, a):
        i = cuda.grid(1)
        if i < x.shape[0]:
            y[i] = a * x[i] + y[i]

    examples = [Tensor(name, (N,), "float32") for name in "xy"]
    sizes: dict[str, Any] = {"grid": fe.ceil_div(N, 128), "block": 128}
    fn = fe.frontends.numba.compile(saxpy, *examples, fe.Float32, target=arch, **sizes)
    x, y = arrays
    fn(x, y, 2.5)
    require(y, 2.5)
    other = y.clone().fill_(1)
    cuda.jit(saxpy)[8, 128](cuda.as_cuda_array(x), cuda.as_cuda_array(other), np.float32(2.5))
    require(other, 2.5)


def test_warp(arrays: tuple[Any, Any], arch: str) -> None:
    wp = pytest.importorskip("warp", reason="Warp is not installed")

    @wp.kernel(module="unique")
    def saxpy(x: wp.array(dtype=wp.float32), y: wp.array(dtype=wp.float32), a: wp.float32):
        i = wp.tid()
        y[i] = a * x[i] + y[i]

    x, y = arrays
    fe.frontends.warp.compile(saxpy, dim="x", target=arch)(x, y, 2.5)
    require(y, 2.5)
    other = y.clone().fill_(1)
    wp.launch(saxpy, SIZE, [wp.from_torch(x), wp.from_torch(other), 2.5])
    wp.synchronize()
    require(other, 2.5)


def test_cutile(arrays: tuple[Any, Any], arch: str) -> None:
    if importlib.util.find_spec("cuda") is None or importlib.util.find_spec("cuda.tile") is None:
        pytest.skip("cuTile is not installed")
    import cuda.tile as ct
    import torch

    @ct.kernel
    def axpy(x, y, a, TILE: ct.Constant[int]):
        block = ct.bid(0)
        added = ct.load(x, index=(block,), shape=(TILE,)) * a
        ct.store(y, index=(block,), tile=ct.load(y, index=(block,), shape=(TILE,)) + added)

    vector = fe.make_fake_tensor(fe.Float32, (N,), (1,), assumed_align=16)
    grid = fe.ceil_div(N, 128)
    x, y = arrays
    parameters = [vector, vector, fe.Float32, 128]
    fe.frontends.cutile.compile(axpy, parameters, grid=grid, target=arch)(x, y, 2.5)
    require(y, 2.5)
    other = y.clone().fill_(1)
    ct.launch(torch.cuda.current_stream(), (8,), axpy, (x, other, 2.5, 128))
    require(other, 2.5)


def test_tilelang(arrays: tuple[Any, Any], arch: str) -> None:
    pytest.importorskip("tilelang", reason="TileLang is not installed")
    T = pytest.importorskip("tilelang.language")
    n = T.dynamic("n", "int32")

    @T.prim_func
    def axpy(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32"), a: T.float32):
        with T.Kernel(T.ceildiv(n, 256), threads=256) as block:
            for i in T.Parallel(256):
                B[block * 256 + i] = A[block * 256 + i] * a + B[block * 256 + i]

    x, y = arrays
    fe.frontends.tilelang.compile(axpy, target=arch)(x, y, 2.5)
    require(y, 2.5)
