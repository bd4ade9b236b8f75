"""CUDA C++ on a GPU: the reduction and the matmul of the example, against PyTorch."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import ferrule as fe
from ferrule import specs
from ferrule.frontends import cuda
from ferrule.frontends.cuda.nvcc import find_nvcc
from ferrule.frontends.cuda.nvrtc import find_nvrtc
from ferrule.specs import Signature, Tensor

pytestmark = [pytest.mark.needs_cuda, pytest.mark.needs_torch]


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")


@pytest.fixture
def arch(torch: Any) -> str:
    if find_nvrtc() is None and find_nvcc() is None:
        pytest.skip("there is neither NVRTC nor nvcc")
    major, minor = torch.cuda.get_device_capability()
    return f"sm_{major}{minor}"


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "examples"))
    import cuda_cpp

    return cuda_cpp


@pytest.mark.parametrize("size", [0, 1, 4095, 4097, 3_000_001])
def test_the_reduction_adds_up(example: ModuleType, torch: Any, arch: str, size: int) -> None:
    x = torch.rand(size, device="cuda")
    total = torch.from_dlpack(example.reduction(arch)(x))
    torch.testing.assert_close(total, x.sum()[None])


@pytest.mark.parametrize(("m", "n", "k"), [(1, 1, 1), (16, 16, 16), (33, 70, 129)])
def test_the_matmul_multiplies(
    example: ModuleType, torch: Any, arch: str, m: int, n: int, k: int
) -> None:
    a, b = torch.rand(m, k, device="cuda"), torch.rand(k, n, device="cuda")
    product = torch.from_dlpack(example.matmul(arch)(a, b))
    torch.testing.assert_close(product, a @ b, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("form", ["cubin", "ptx"])
def test_the_static_memory_of_a_kernel_is_allowed_for(torch: Any, arch: str, form: Any) -> None:
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
    found = torch.zeros(128, device="cuda")
    fn(found)
    torch.testing.assert_close(found.cpu(), torch.arange(128.0).flip(0) + 1)
