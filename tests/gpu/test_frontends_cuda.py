"""CUDA C++ on a GPU: the reduction and the matmul of the example, against NumPy."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import ferrule as fe
from ferrule import specs
from ferrule.frontends import cuda
from ferrule.frontends.cuda.nvcc import find_nvcc
from ferrule.frontends.cuda.nvrtc import find_nvrtc
from ferrule.runtime.devices import cuda_devices, emulated_arch
from ferrule.specs import Signature, Tensor

pytestmark = pytest.mark.needs_cuda


@pytest.fixture
def arch() -> str:
    if find_nvrtc() is None and find_nvcc() is None:
        pytest.skip("there is neither NVRTC nor nvcc")
    device = cuda_devices()[0]
    return f"sm_{device.major}{device.minor}"


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "examples"))
    import cuda_cpp

    return cuda_cpp


@pytest.mark.parametrize("size", [0, 1, 4095, 4097, 3_000_001])
def test_the_reduction_adds_up(example: ModuleType, arch: str, size: int) -> None:
    x = np.random.default_rng(size).random(size, np.float32)
    total = fe.cuda.to_numpy(example.reduction(arch)(fe.cuda.array(x)))
    np.testing.assert_allclose(total, [x.sum(dtype=np.float64)], rtol=1e-5)


@pytest.mark.parametrize(("m", "n", "k"), [(1, 1, 1), (16, 16, 16), (33, 70, 129)])
def test_the_matmul_multiplies(example: ModuleType, arch: str, m: int, n: int, k: int) -> None:
    rng = np.random.default_rng(m)
    a, b = rng.random((m, k), np.float32), rng.random((k, n), np.float32)
    product = example.matmul(arch)(fe.cuda.array(a), fe.cuda.array(b))
    np.testing.assert_allclose(fe.cuda.to_numpy(product), a @ b, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("form", ["cubin", "ptx"])
def test_the_static_memory_of_a_kernel_is_allowed_for(arch: str, form: Any) -> None:
    if form == "cubin" and emulated_arch():
        pytest.skip("an emulated GPU executes PTX alone")
    source = """
    extern "C" __global__ void fill(float* out) {
      extern __shared__ float dynamic[];
      __shared__ float fixed[4096];
      dynamic[threadIdx.x] = threadIdx.x;
      fixed[threadIdx.x] = 1;
      __syncthreads();
      out[threadIdx.x] = dynamic[127 - threadIdx.x] + fixed[threadIdx.x];
    }
    """
    out = Tensor("out", (specs.sym_int(),), "float32")
    fn: fe.Function = cuda.compile(
        source,
        Signature("fill", [out]),
        grid=fe.frontends.fixed(1),
        block=128,
        smem=40 << 10,
        target=arch,
        form=form,
    )
    found = fe.cuda.zeros(128)
    fn(found)
    np.testing.assert_array_equal(fe.cuda.to_numpy(found), np.arange(128.0)[::-1] + 1)
