"""The tiny language of the guide, on a real GPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from embedded import tiny_dsl

pytestmark = [pytest.mark.needs_cuda, pytest.mark.needs_torch]


def both(limit: float, x: Any, y: Any) -> Any:
    return ((1 - x) / (2.5 / y) - (0.1 + 3 * x)).maximum(limit)


@pytest.mark.parametrize("size", [0, 1, 255, 257, 70_001])
def test_both_targets_give_the_same_bits(size: int) -> None:
    import torch

    rng = np.random.default_rng(size)
    x, y = (rng.standard_normal(size, dtype=np.float32) for _ in range(2))
    ours = tiny_dsl().build(both)(-0.5, x, y)
    theirs = tiny_dsl().build(both, "cuda")(-0.5, *(torch.from_numpy(a).cuda() for a in (x, y)))
    assert str(theirs.device) == "cuda:0"
    np.testing.assert_array_equal(theirs.cpu().numpy(), np.from_dlpack(ours))
