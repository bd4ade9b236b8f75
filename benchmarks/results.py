"""What it costs to get something back.

    python benchmarks/results.py [--quick] [--json FILE]

A function that returns one new torch tensor stands beside `torch.empty` of the same size: both ask
torch's allocator.  The other rows are results beside a function of the same parameters that returns
nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import subjects
from harness import (
    FULL,
    NS,
    QUICK,
    Effort,
    Goal,
    Result,
    Row,
    Skipped,
    Table,
    arguments,
    call_side,
    finish,
    measure,
)

import ferrule as fe

FERRULE: Final = "ferrule"
BASE: Final = "torch.empty"
NOTHING: Final = "returns nothing"
SIZES: Final = (1024, 1 << 20)


@fe.jit
def like(a: fe.Tensor):
    return fe.empty_like(a)
