"""Copies of boxes on a real GPU, from sm_90 on: a matmul whose tiles are boxes.

PYTHONPATH=compiler:runtime:specs python -m pytest tests/gpu -q
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

pytestmark = [pytest.mark.needs_cuda, pytest.mark.needs_torch]


@pytest.fixture(scope="module")
def example() -> ModuleType:
    """examples/tma_matmul.py, on a GPU that has tensor maps."""
    import torch

    if torch.cuda.get_device_capability() < (9, 0):
        pytest.skip("tensor maps are of GPUs from sm_90 on")
    path = Path(__file__).parents[2] / "examples/tma_matmul.py"
    spec = importlib.util.spec_from_file_location("examples.tma_matmul", path)
    assert spec is not None and spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("m, n, k", [(64, 64, 64), (100, 72, 200), (1024, 512, 1024)])
def test_a_matmul_of_boxes(example: ModuleType, m: int, n: int, k: int) -> None:
    import torch

    function = example.compiled("--target cuda")
    a, b = (torch.randint(-3, 4, shape, device="cuda").half() for shape in ((m, k), (k, n)))
    c = torch.full((m, n), -1.0, device="cuda", dtype=torch.float16)
    function(a, b, c)
    torch.testing.assert_close(c, (a.float() @ b.float()).half(), rtol=0, atol=0)
