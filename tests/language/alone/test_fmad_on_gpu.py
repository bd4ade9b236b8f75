"""Products and sums as one operation: the same bits on the CPU and on an emulated GPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ferrule as fe
from ferrule import arch

ONE = [
    *(fe.math.exp, fe.math.exp2, fe.math.expm1, fe.math.log, fe.math.log2, fe.math.log10),
    *(fe.math.log1p, fe.math.rsqrt, fe.math.cbrt, fe.math.sin, fe.math.cos, fe.math.tan),
    *(fe.math.asin, fe.math.acos, fe.math.atan, fe.math.sinh, fe.math.cosh, fe.math.tanh),
    *(fe.math.sigmoid, fe.math.erf, fe.math.erfc),
]
TWO = [fe.math.pow, fe.math.atan2]


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


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_functions_by_formulas_with_fma(dtype: Any) -> None:
    """A GPU starts from approximations, of which only errors are known, and ends at the same
    bits."""

    @fe.kernel
    def kernel(a: fe.Tensor, b: fe.Tensor, out: fe.Tensor):
        i = arch.block_idx()[0] * 128 + arch.thread_idx()[0]
        for k in fe.range_constexpr(len(ONE)):
            out[k, i] = ONE[k](a[i])
        for k in fe.range_constexpr(len(TWO)):
            out[len(ONE) + k, i] = TWO[k](a[i], b[i])

    @fe.jit
    def function(a: fe.Tensor, b: fe.Tensor, out: fe.Tensor):
        kernel(a, b, out).launch(grid=a.shape[0] // 128, block=128)

    rng = np.random.default_rng(3)
    bits = {2: np.uint16, 4: np.uint32, 8: np.uint64}[np.dtype(dtype).itemsize]
    anything = rng.integers(0, np.iinfo(bits).max, 1024, dtype=bits).view(dtype)
    usual = rng.standard_normal(1920) * np.exp2(rng.uniform(-12, 7, 1920))
    edges = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, *np.linspace(-110, 95, 121)]
    a = np.concatenate([anything, usual.astype(dtype), np.array(edges, dtype)])
    a = a[: len(a) // 128 * 128]
    b, wanted = rng.permutation(a), np.zeros((len(ONE) + len(TWO), len(a)), dtype)
    fe.compile(function, a, b, wanted, options="--target cpu --fmad")(a, b, wanted)
    with fe.emulated_gpu("sm_90a", checks="memory,approx"):
        there = [fe.cuda.array(each) for each in (a, b, np.zeros_like(wanted))]
        fe.compile(function, *there, options="--target cuda --gpu-arch sm_90a")(*there)
        found = fe.cuda.to_numpy(there[2])
    # There are many NaNs, and no function promises which.
    for each, of_cpu in zip(found, wanted, strict=True):
        number = ~np.isnan(of_cpu)
        assert (np.isnan(each) == ~number).all()
        assert each[number].tobytes() == of_cpu[number].tobytes()
