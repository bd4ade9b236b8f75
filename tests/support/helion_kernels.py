"""A kernel of Helion that the tests record.  Needs Helion."""

from __future__ import annotations

import helion
import helion.language as hl
import torch

CONFIG = helion.Config(block_sizes=[128])


@helion.kernel(config=CONFIG)
def doubled(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for tile in hl.tile(x.size(0)):
        out[tile] = x[tile] * 2 + y[tile]
    return out
