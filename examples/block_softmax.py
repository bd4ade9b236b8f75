"""Softmax over the rows of a matrix, one block a row.

    python examples/block_softmax.py

The threads of the block read neighbours, and reduce what they have found together.  For long rows
this is faster on a GPU than a thread a row, as in softmax.py.
"""

from __future__ import annotations

import operator

import numpy as np

import ferrule as fe
from ferrule import arch

THREADS = 256


@fe.kernel
def device_softmax(x: fe.Tensor, y: fe.Tensor):
    row, _, _ = arch.block_idx()
    tid, _, _ = arch.thread_idx()
    n = x.shape[1]
    largest = fe.Float32(-float("inf"))
    for j in range(tid, n, THREADS):
        largest = max(largest, x[row, j])
    largest = arch.block_reduction(largest, max)
    total = fe.Float32(0.0)
    for j in range(tid, n, THREADS):
        e = fe.math.exp(x[row, j] - largest)
        y[row, j] = e
        total += e
    total = arch.block_reduction(total, operator.add)
    for j in range(tid, n, THREADS):
        y[row, j] = y[row, j] / total


@fe.jit
def softmax(x: fe.Tensor, y: fe.Tensor):
    """y = softmax(x) along the last dim."""
    device_softmax(x, y).launch(grid=(x.shape[0],), block=(THREADS,))


def compiled(options: str = "--target cpu") -> fe.Function:
    """The function for float32 matrices of any size."""
    m, n = fe.sym_int(), fe.sym_int()
    rows = fe.make_fake_compact_tensor(fe.Float32, (m, n), stride_order=(1, 0))
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
