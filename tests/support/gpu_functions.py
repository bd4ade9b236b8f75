"""A function that launches one kernel, and tensors for it on a GPU that is not there."""

from __future__ import annotations

from typing import Any

import numpy as np
from cuda_device import forged

import ferrule as fe
from ferrule.runtime import make_fake_compact_tensor


@fe.kernel
def add_one_kernel(a: fe.Tensor, b: fe.Tensor):
    """Adds one, 256 threads a block."""
    bx, _, _ = fe.arch.block_idx()
    tx, _, _ = fe.arch.thread_idx()
    i = bx * 256 + tx
    if i < a.shape[0]:
        b[i] = a[i] + 1.0


@fe.jit
def add_one(a: fe.Tensor, b: fe.Tensor):
    """Adds one to each element."""
    add_one_kernel(a, b).launch(grid=((a.shape[0] + 255) // 256,), block=(256,))


def vector(dtype: Any = fe.Float32) -> Any:
    """A fake vector of any length."""
    return make_fake_compact_tensor(dtype, (fe.sym_int(symbol="n"),))


def compiled(function: Any = add_one, *examples: Any, options: Any) -> fe.Function:
    """The function for vectors, unless there are examples."""
    return fe.compile(function, *(examples or (vector(), vector())), options=options)


def floats(*shape: int, device: int = 0) -> Any:
    """A tensor that says that it is on a GPU."""
    return forged(np.zeros(shape, np.float32), device)
