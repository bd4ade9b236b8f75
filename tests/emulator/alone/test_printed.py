"""`fe.print_tensor` in a kernel, and kernels whose tensors have sizes of the call."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import ferrule as fe

CUDA = "--target cuda --gpu-arch sm_90a"


@fe.kernel
def prints_column(a: fe.Tensor):
    fe.print_tensor(a[None, 0])


@fe.jit
def prints(a: fe.Tensor):
    prints_column(a).launch(grid=1, block=1)


@fe.kernel
def scale_rows(t: fe.Tensor):
    i = fe.arch.thread_idx()[0]
    if i < t.shape[0]:
        for j in range(t.shape[1]):
            t[i, j] = t[i, j] * 10 + i


@fe.jit
def scale(p: fe.Pointer, m: fe.Int32, n: fe.Int32):
    scale_rows(fe.make_tensor(p, fe.make_layout((m, n)))).launch(grid=1, block=32)


def test_elements_and_sizes(capfd: pytest.CaptureFixture[str]) -> None:
    with fe.emulated_gpu("sm_90a"):
        square: Any = fe.cuda.array(np.array([[-1, 5], [2, 3]], np.int8))
        fe.compile(prints, fe.row_major((2, 2), fe.Int8), options=CUDA)(square)
        fe.cuda.synchronize()
        data: Any = fe.cuda.array(np.ones(12, np.float32))
        fe.compile(scale, fe.make_ptr(fe.Float32, 0), 1, 1, options=CUDA)(data.data_ptr(), 2, 3)
        assert fe.cuda.to_numpy(data).tolist() == [10, 11] * 3 + [1] * 6
    shown = re.sub("0x[0-9a-f]{16}", "ADDRESS", capfd.readouterr().out)
    head = "tensor(raw_ptr(ADDRESS: i8, gmem, align<1>) o (2):(2), data="
    assert shown == f"{head}\n       [-1, ],\n       [2, ])\n"
