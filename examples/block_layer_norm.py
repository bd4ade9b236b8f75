"""Layer norm over the rows of a matrix, with weight and bias, one block a row.

    python examples/block_layer_norm.py

Each thread keeps what it has read of the row in registers, so that the row is read once; rows have
at most THREADS * EACH elements.
"""

from __future__ import annotations

import operator

import numpy as np

import ferrule as fe
from ferrule import arch

THREADS = 256
EACH = 8
LONGEST = THREADS * EACH


@fe.kernel
def device_layer_norm(
    x: fe.Tensor, weight: fe.Tensor, bias: fe.Tensor, y: fe.Tensor, eps: fe.Float32
):
    row, _, _ = arch.block_idx()
    tid, _, _ = arch.thread_idx()
    n = x.shape[1]
    own = fe.make_fragment((EACH,), fe.Float32)
    own.fill(0.0)
    total = fe.Float32(0.0)
    for k in fe.range_constexpr(EACH):
        j = k * THREADS + tid
        if j < n:
            own[k] = x[row, j]
            total += own[k]
    mean = arch.block_reduction(total, operator.add) / n
    squares = fe.Float32(0.0)
    for k in fe.range_constexpr(EACH):
        if k * THREADS + tid < n:
            squares += (own[k] - mean) * (own[k] - mean)
    variance = arch.block_reduction(squares, operator.add) / n
    scale = fe.math.rsqrt(variance + eps)
    for k in fe.range_constexpr(EACH):
        j = k * THREADS + tid
        if j < n:
            y[row, j] = (own[k] - mean) * scale * weight[j] + bias[j]


@fe.jit
def layer_norm(
    x: fe.Tensor, weight: fe.Tensor, bias: fe.Tensor, y: fe.Tensor, eps: fe.Float32 = 1e-5
):
    """y = (x - mean) / sqrt(variance + eps) * weight + bias along the last dim."""
    if x.shape[1] > LONGEST:
        raise ValueError(f"layer_norm: rows of at most {LONGEST} elements, but got {x.shape[1]}")
    device_layer_norm(x, weight, bias, y, eps).launch(grid=(x.shape[0],), block=(THREADS,))


def compiled(options: str = "--target cpu") -> fe.Function:
    """The function for float32 matrices with rows of at most LONGEST elements."""
    m, n = fe.sym_int(), fe.sym_int()
    rows = fe.make_fake_compact_tensor(fe.Float32, (m, n), stride_order=(1, 0))
    vector = fe.make_fake_compact_tensor(fe.Float32, (n,))
    return fe.compile(layer_norm, rows, vector, vector, rows, options=options)


def reference(x: np.ndarray, weight: np.ndarray, bias: np.ndarray, eps: float) -> np.ndarray:
    """The same in NumPy."""
    mean, variance = x.mean(axis=1, keepdims=True), x.var(axis=1, keepdims=True)
    return (x - mean) / np.sqrt(variance + np.float32(eps)) * weight + bias


def main() -> None:
    """Compiles, runs, compares."""
    function = compiled()
    print(function.signature)
    rng = np.random.default_rng(0)
    x = rng.standard_normal((300, 1027), dtype=np.float32) * 3 + 1
    weight, bias = (rng.standard_normal(1027, dtype=np.float32) for _ in range(2))
    y = np.empty_like(x)
    function(x, weight, bias, y)
    expected = reference(x, weight, bias, 1e-5)
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-5)
    print(f"equals NumPy's result (max difference {abs(y - expected).max():.1e})")


if __name__ == "__main__":
    main()
