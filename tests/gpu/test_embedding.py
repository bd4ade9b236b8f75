"""The tiny language of the guide, on a GPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from embedded import tiny_dsl

import ferrule as fe

pytestmark = pytest.mark.needs_cuda


def both(limit: float, x: Any, y: Any) -> Any:
    return ((1 - x) / (2.5 / y) - (0.1 + 3 * x)).maximum(limit)


@pytest.mark.parametrize("size", [0, 1, 255, 257, 70_001])
def test_both_targets_give_the_same_bits(size: int) -> None:
    rng = np.random.default_rng(size)
    x, y = (rng.standard_normal(size, dtype=np.float32) for _ in range(2))
    ours = tiny_dsl().build(both)(-0.5, x, y)
    on_gpu = tiny_dsl().build(both, "cuda")
    theirs = on_gpu(-0.5, *map(fe.cuda.array, (x, y)))
    assert str(theirs.device) == "cuda:0"
    np.testing.assert_array_equal(fe.cuda.to_numpy(theirs), np.from_dlpack(ours))
