"""Matmuls on tensor cores on a GPU: slices that are copied, and, from sm_90 on, boxes.

PYTHONPATH=compiler:runtime:specs python -m pytest tests/gpu -q
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import ferrule as fe
from ferrule.runtime.devices import cuda_devices

pytestmark = pytest.mark.needs_cuda
SIZES = pytest.mark.parametrize(
    "m, n, k", [(64, 64, 64), (100, 72, 200), (5, 264, 8), (1024, 512, 1024), (2500, 520, 72)]
)
TILES = pytest.mark.parametrize("tiles", ["SMALL", "LARGE"])


def load(name: str) -> ModuleType:
    path = Path(__file__).parents[2] / f"examples/{name}.py"
    spec = importlib.util.spec_from_file_location(f"examples.{name}", path)
    assert spec is not None and spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def require(capability: tuple[int, int], what: str) -> None:
    if own() < capability:
        major, minor = capability
        pytest.skip(f"{what} are of GPUs from sm_{major}{minor} on")


def own() -> tuple[int, int]:
    """The compute capability of device 0."""
    device = cuda_devices()[0]
    return device.major, device.minor


def agrees(function: Any, m: int, n: int, k: int) -> None:
    """With NumPy, about whole numbers, whose products and sums are exact."""
    rng = np.random.default_rng(m)
    a, b = (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((m, k), (k, n)))
    c = fe.cuda.array(np.full((m, n), -1, np.float16))
    function(fe.cuda.array(a), fe.cuda.array(b), c)
    wanted = a.astype(np.float32) @ b.astype(np.float32)
    np.testing.assert_array_equal(fe.cuda.to_numpy(c), wanted.astype(np.float16))


@SIZES
@TILES
def test_a_matmul_of_copied_slices(tiles: str, m: int, n: int, k: int) -> None:
    require((8, 0), "mma and cp_async")
    example = load("tensor_core_matmul")
    chosen = {"dtype": fe.Float16, "result": fe.Float16, "tiles": getattr(example, tiles)}
    agrees(example.compiled("--target cuda", **chosen), m, n, k)


@SIZES
@TILES
def test_a_matmul_of_boxes(tiles: str, m: int, n: int, k: int) -> None:
    require((9, 0), "tensor maps")
    if tiles == "LARGE":
        require_registers_that_move()
    example = load("tma_matmul")
    agrees(example.compiled("--target cuda", tiles=getattr(example, tiles)), m, n, k)


def require_registers_that_move() -> None:
    """And shared memory for four slices."""
    if own()[0] not in (9, 10):
        pytest.skip("the large tiles are for sm_90a and sm_100a")
