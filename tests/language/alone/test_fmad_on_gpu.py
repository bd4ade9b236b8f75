"""Products and sums as one operation: the same bits on the CPU and on an emulated GPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ferrule as fe
from ferrule import arch


@fe.jit(fmad=False)
def rounded(x, y):
    return x * y


@fe.kernel
def mixed_kernel(a: fe.Tensor, b: fe.Tensor, out: fe.Tensor):
    i = arch.block_idx()[0] * 64 + arch.thread_idx()[0]
    total, x, y = a[i] * 0, a[i], b[i]
    for k in range(1, 9):
        x, y = a[(i + k) % a.shape[0]], b[i]
        total = total * x - y * x
        if x > y:
            total += rounded(x, y) + x * total
        total = y - total * 0.5
    pair = fe.make_fragment((2,), a.element_type)
    pair[0], pair[1] = x, y
    total += fe.sum(pair.load() * pair.load()) + fe.math.exp(x * y - total)
    out[i] = arch.warp_reduction_sum(total * x) * total + fe.math.tanh(total * y + x)


@fe.jit
def mixed(a: fe.Tensor, b: fe.Tensor, out: fe.Tensor):
    mixed_kernel(a, b, out).launch(grid=a.shape[0] // 64, block=64)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_under_either_setting(dtype: Any) -> None:
    rng = np.random.default_rng(7)
    a, b = (rng.standard_normal(256).astype(dtype) for _ in range(2))
    results = []
    for fmad in ("true", "false"):
        wanted = np.zeros_like(a)
        on_cpu = fe.compile(mixed, a, b, wanted, options=f"--target cpu --fmad={fmad}")
        on_cpu(a, b, wanted)
        options = "--target cuda --gpu-arch sm_90a" + (" --fmad=false" if fmad == "false" else "")
        with fe.emulated_gpu("sm_90a"):
            there = [fe.cuda.array(each) for each in (a, b, np.zeros_like(a))]
            fe.compile(mixed, *there, options=options)(*there)
            assert fe.cuda.to_numpy(there[2]).tobytes() == wanted.tobytes()
        results.append(wanted)
    assert (results[0] != results[1]).mean() > 0.2
    np.testing.assert_allclose(*results, rtol=1e-2)
