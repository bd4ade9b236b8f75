"""Layer norm over the rows of a matrix, with weight and bias, one thread a row.

    python examples/layer_norm.py

A row is summed in LANES partial sums, which the CPU adds at once: floats are added in the order
that the program says, and one sum is one addition after the other.  It is also more exact.
"""

from __future__ import annotations

import numpy as np

import ferrule as fe

THREADS = 128
LANES = 16


@fe.jit
def row_mean(x, row, term):
    """The mean of term(x[row, j]) over the row."""
    n = x.shape[1]
    whole = n // LANES * LANES
    sums = (fe.Float32(0.0),) * LANES
    for j in range(0, whole, LANES):
        sums = tuple(part + term(x[row, j + lane]) for lane, part in enumerate(sums))
    total = sum(sums)
    for j in range(whole, n):
        total += term(x[row, j])
    return total / n


@fe.kernel
def device_layer_norm(
    x: fe.Tensor, weight: fe.Tensor, bias: fe.Tensor, y: fe.Tensor, eps: fe.Float32
):
    bid, _, _ = fe.arch.block_idx()
    tid, _, _ = fe.arch.thread_idx()
    row = bid * THREADS + tid
    if row < x.shape[0]:
        mean = row_mean(x, row, lambda v: v)
        variance = row_mean(x, row, lambda v: (v - mean) * (v - mean))
        scale = fe.math.rsqrt(variance + eps)
        for j in range(x.shape[1]):
            y[row, j] = (x[row, j] - mean) * scale * weight[j] + bias[j]


@fe.jit
def layer_norm(
    x: fe.Tensor, weight: fe.Tensor, bias: fe.Tensor, y: fe.Tensor, eps: fe.Float32 = 1e-5
):
    """y = (x - mean) / sqrt(variance + eps) * weight + bias along the last dim."""
    blocks = fe.ceil_div(x.shape[0], THREADS)
    device_layer_norm(x, weight, bias, y, eps).launch(grid=(blocks,), block=(THREADS,))


def compiled(options: str = "--target cpu") -> fe.Function:
    """The function for float32 matrices of any size."""
    m, n = fe.sym_int(), fe.sym_int()
    rows = fe.runtime.make_fake_compact_tensor(fe.Float32, (m, n), stride_order=(1, 0))
    vector = fe.runtime.make_fake_compact_tensor(fe.Float32, (n,))
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
