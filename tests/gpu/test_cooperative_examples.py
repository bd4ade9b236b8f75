"""The examples whose threads work together give on a GPU what they give on the CPU."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import ferrule as fe

pytestmark = pytest.mark.needs_cuda

FOLDER = Path(__file__).parents[2] / "examples"


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"gpu_examples.{name}", FOLDER / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def floats(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).standard_normal(shape, dtype=np.float32)


def empty(dtype: Any, *shape: int) -> Any:
    return np.zeros(shape, dtype)


def integers(limit: int, dtype: Any, count: int) -> Any:
    return np.random.default_rng(count).integers(0, limit, count, dtype=dtype)


WORKS: dict[str, tuple[int, Any]] = {
    "attention": (1, lambda: (*(floats(2, n, 64) for n in (33, 70, 70)), floats(2, 33, 64))),
    "block_layer_norm": (1, lambda: (floats(5, 300), floats(300), floats(300), floats(5, 300))),
    "block_softmax": (1, lambda: (floats(5, 300), empty(np.float32, 5, 300))),
    "histogram": (1, lambda: (integers(256, np.uint8, 70_001), empty(np.int64, 256))),
    "prefix_sum": (1, lambda: (integers(99, np.int32, 70_001), empty(np.int64, 70_001))),
    "radix_sort": (1, lambda: (integers(1 << 32, np.uint32, 7001), empty(np.uint32, 7001))),
    "reduction": (2, lambda: (floats(70_001), floats(1), floats(1))),
    "tiled_matmul": (1, lambda: (floats(70, 45), floats(45, 99), floats(70, 99))),
    "top_k": (2, lambda: (floats(9, 300), empty(np.float32, 9, 8), empty(np.int32, 9, 8))),
    "transpose": (1, lambda: (floats(70, 99), floats(99, 70))),
}
"""For each example how many of its last arguments are results, and its arguments."""


@pytest.mark.parametrize("name", WORKS)
def test_both_targets_agree(name: str) -> None:
    results, make = WORKS[name]
    example, host = load(name), make()
    device = [fe.cuda.array(argument) for argument in host]
    example.compiled()(*host)
    example.compiled("--target cuda")(*device)
    for ours, theirs in zip(host[-results:], device[-results:], strict=True):
        np.testing.assert_allclose(fe.cuda.to_numpy(theirs), ours, rtol=1e-5, atol=1e-5)
