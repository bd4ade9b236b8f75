"""y = alpha * x + y on vectors, one thread an element.

    python examples/saxpy.py

The check `if i < x.shape[0]` costs nothing on the CPU: the loop over threads ends where it fails.
"""

from __future__ import annotations

import numpy as np

import ferrule as fe

THREADS = 256


@fe.kernel
def device_saxpy(alpha: fe.Float32, x: fe.Tensor, y: fe.Tensor):
    bid, _, _ = fe.arch.block_idx()
    tid, _, _ = fe.arch.thread_idx()
    i = bid * THREADS + tid
    if i < x.shape[0]:
        y[i] = alpha * x[i] + y[i]


@fe.jit
def saxpy(alpha: fe.Float32, x: fe.Tensor, y: fe.Tensor):
    """y = alpha * x + y."""
    blocks = fe.ceil_div(x.shape[0], THREADS)
    device_saxpy(alpha, x, y).launch(grid=(blocks, 1, 1), block=(THREADS, 1, 1))


def compiled(options: str = "--target cpu") -> fe.Function:
    """The function for float32 vectors of any length."""
    n = fe.sym_int()
    vector = fe.runtime.make_fake_compact_tensor(fe.Float32, (n,))
    return fe.compile(saxpy, fe.Float32(1.0), vector, vector, options=options)


def main() -> None:
    """Compiles, runs, compares with NumPy."""
    function = compiled()
    print(function.signature)
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal(1_000_003, dtype=np.float32) for _ in range(2))
    expected = np.float32(2.5) * x + y
    function(2.5, x, y)
    # The product may be rounded or not before it is added.
    np.testing.assert_allclose(y, expected, rtol=1e-6, atol=1e-6)
    print(f"equals NumPy's result (max difference {abs(y - expected).max():.1e})")


if __name__ == "__main__":
    main()
