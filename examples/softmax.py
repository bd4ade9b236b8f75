"""Softmax over the rows of a matrix, one thread a row.

    python examples/softmax.py

The row's largest element is subtracted first, so that no exponential overflows.  The sum is taken
in LANES partial sums, which the CPU adds at once: floats are added in the order that the program
says, and one sum is one addition after the other.  (A maximum has no such order.)
"""

from __future__ import annotations

import numpy as np

import ferrule as fe

THREADS = 128
LANES = 16


@fe.jit
def row_sum(y, row):
    """The sum of a row of y."""
    n = y.shape[1]
    whole = n // LANES * LANES
    sums = (fe.Float32(0.0),) * LANES
    for j in range(0, whole, LANES):
        sums = tuple(part + y[row, j + lane] for lane, part in enumerate(sums))
    total = sum(sums)
    for j in range(whole, n):
        total += y[row, j]
    return total


@fe.kernel
def device_softmax(x: fe.Tensor, y: fe.Tensor):
    bid, _, _ = fe.arch.block_idx()
    tid, _, _ = fe.arch.thread_idx()
    row = bid * THREADS + tid
    if row < x.shape[0]:
        n = x.shape[1]
        largest = x[row, 0]
        for j in range(1, n):
            largest = max(largest, x[row, j])
        for j in range(n):
            y[row, j] = fe.math.exp(x[row, j] - largest)
        total = row_sum(y, row)
        for j in range(n):
            y[row, j] = y[row, j] / total


@fe.jit
def softmax(x: fe.Tensor, y: fe.Tensor):
    """y = softmax(x) along the last dim."""
    blocks = fe.ceil_div(x.shape[0], THREADS)
    device_softmax(x, y).launch(grid=(blocks,), block=(THREADS,))


def compiled(options: str = "--target cpu") -> fe.Function:
    """The function for float32 matrices of any size."""
    m, n = fe.sym_int(), fe.sym_int()
    rows = fe.runtime.make_fake_compact_tensor(fe.Float32, (m, n), stride_order=(1, 0))
    return fe.compile(softmax, rows, rows, options=options)


def reference(x: np.ndarray) -> np.ndarray:
    """The same in NumPy."""
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def main() -> None:
    """Compiles, runs, compares."""
    function = compiled()
    print(function.signature)
    x = np.random.default_rng(0).standard_normal((300, 1027), dtype=np.float32) * 10
    y = np.empty_like(x)
    function(x, y)
    expected = reference(x)
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-7)
    print(f"equals NumPy's result (max difference {abs(y - expected).max():.1e})")


if __name__ == "__main__":
    main()
