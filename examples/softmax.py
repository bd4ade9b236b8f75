"""Softmax over the rows of a matrix, one thread a row, in three passes over it.

    python examples/softmax.py

The row's largest element is subtracted first, so that no exponential overflows.  Maximum and sum are
taken in LANES parts, which a CPU works on at once; the quickstart has the plain loops.
"""

from __future__ import annotations

import numpy as np

import ferrule as fe

THREADS = 128
LANES = 16


@fe.jit
def fold(n, start, step, combine):
    """start, combined with step(j) for each j below n, in LANES parts."""
    whole = n // LANES * LANES
    parts = (start,) * LANES
    for j in range(0, whole, LANES):
        parts = tuple(combine(part, step(j + lane)) for lane, part in enumerate(parts))
    result = start
    for part in parts:
        result = combine(result, part)
    for j in range(whole, n):
        result = combine(result, step(j))
    return result


@fe.kernel
def device_softmax(x: fe.Tensor, y: fe.Tensor):
    bid, _, _ = fe.arch.block_idx()
    tid, _, _ = fe.arch.thread_idx()
    row = bid * THREADS + tid
    if row < x.shape[0]:
        n = x.shape[1]
        largest = fold(n, x[row, 0], lambda j: x[row, j], max)
        for j in range(n):
            y[row, j] = fe.math.exp(x[row, j] - largest)
        total = fold(n, fe.Float32(0.0), lambda j: y[row, j], lambda a, b: a + b)
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
