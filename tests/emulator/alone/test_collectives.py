"""Reductions over a block with all checks: slots that no warp writes are no part of a result."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest

import ferrule as fe
from ferrule import arch


def reduction(dtype: Any, threads: int) -> Any:
    @fe.kernel
    def sum_kernel(x: fe.Tensor, y: fe.Tensor):
        t = arch.thread_idx()[0]
        y[t] = arch.block_reduction(x[t], operator.add)

    @fe.jit
    def total(x: fe.Tensor, y: fe.Tensor):
        sum_kernel(x, y).launch(grid=1, block=threads)

    fake = fe.make_fake_compact_tensor(dtype, (threads,))
    return fe.compile(total, fake, fake, options="--target cuda")


@pytest.mark.parametrize(("dtype", "of_numpy"), [(fe.Float32, np.float32), (fe.Int8, np.int8)])
@pytest.mark.parametrize("threads", [65, 224])
def test_blocks_of_three_and_seven_warps(dtype: Any, of_numpy: Any, threads: int) -> None:
    """LLVM joins the reads of three slots to one of four, and those of seven to two of four."""
    with fe.emulated_gpu("sm_90a", checks="all"):
        function = reduction(dtype, threads)
        values = np.arange(threads).astype(of_numpy) % 3
        x, y = fe.cuda.array(values), fe.cuda.empty((threads,), of_numpy.__name__)
        function(x, y)
        assert (fe.cuda.to_numpy(y) == values.sum(dtype=of_numpy)).all()
        del x, y
