"""c = a @ b, one thread an element: the first matmul that anybody writes.

    python examples/matmul.py

It reads every row of a and column of b again and again: see a library for a fast one.
"""

from __future__ import annotations

import numpy as np

import ferrule as fe

TILE = 16


@fe.kernel
def device_matmul(a: fe.Tensor, b: fe.Tensor, c: fe.Tensor):
    bx, by, _ = fe.arch.block_idx()
    tx, ty, _ = fe.arch.thread_idx()
    row, column = by * TILE + ty, bx * TILE + tx
    if row < c.shape[0] and column < c.shape[1]:
        total = fe.Float32(0.0)
        for k in range(a.shape[1]):
            total += a[row, k] * b[k, column]
        c[row, column] = total


@fe.jit
def matmul(a: fe.Tensor, b: fe.Tensor, c: fe.Tensor):
    """c = a @ b."""
    m, n = c.shape
    device_matmul(a, b, c).launch(
        grid=(fe.ceil_div(n, TILE), fe.ceil_div(m, TILE), 1), block=(TILE, TILE, 1)
    )


def compiled(options: str = "--target cpu") -> fe.Function:
    """The function for row-major float32 matrices of any sizes that agree."""
    m, n, k = (fe.sym_int() for _ in range(3))

    def matrix(*shape):
        return fe.runtime.make_fake_compact_tensor(fe.Float32, shape, stride_order=(1, 0))

    return fe.compile(matmul, matrix(m, k), matrix(k, n), matrix(m, n), options=options)


def main() -> None:
    """Compiles, runs, compares."""
    function = compiled()
    print(function.signature)
    rng = np.random.default_rng(0)
    a = rng.standard_normal((123, 200), dtype=np.float32)
    b = rng.standard_normal((200, 77), dtype=np.float32)
    c = np.empty((123, 77), np.float32)
    function(a, b, c)
    expected = a @ b
    # Sums of 200 products, in another order.
    np.testing.assert_allclose(c, expected, rtol=1e-4, atol=1e-4)
    print(f"equals NumPy's result (max difference {abs(c - expected).max():.1e})")


if __name__ == "__main__":
    main()
