"""Rows of float32 as floats of 8 bits with a scale for each row, and back.

    python examples/fp8_rows.py

A block has a row: its threads find the largest magnitude, which becomes 448, the largest number of
Float8E4M3FN.  `saturate=True` keeps a quotient that is rounded up from becoming NaN.  NumPy has no
such dtype, so the bytes are an array of uint8, which `recast` reads as floats.
"""

from __future__ import annotations

import numpy as np

import ferrule as fe

arch = fe.arch
E4M3 = fe.Float8E4M3FN
LARGEST = 448.0
THREADS = 128


def larger(x, y):
    return max(x, y)


@fe.kernel
def device_quantise(x: fe.Tensor, q: fe.Tensor, scales: fe.Tensor):
    row, thread = arch.block_idx()[0], arch.thread_idx()[0]
    most = fe.Float32(0)
    for j in range(thread, x.shape[1], THREADS):
        most = max(most, abs(x[row, j]))
    scale = arch.block_reduction(most, larger) / LARGEST
    if thread == 0:
        scales[row] = scale
    divisor = scale if scale > 0 else fe.Float32(1)
    for j in range(thread, x.shape[1], THREADS):
        q[row, j] = (x[row, j] / divisor).to(E4M3, saturate=True)


@fe.kernel
def device_dequantise(q: fe.Tensor, scales: fe.Tensor, y: fe.Tensor):
    row, thread = arch.block_idx()[0], arch.thread_idx()[0]
    for j in range(thread, y.shape[1], THREADS):
        y[row, j] = fe.Float32(q[row, j]) * scales[row]


@fe.jit
def there_and_back(x: fe.Tensor, bits: fe.Tensor, scales: fe.Tensor, y: fe.Tensor):
    """bits: x / scales as Float8E4M3FN; y: what is left of x."""
    q = bits.recast(E4M3)
    device_quantise(x, q, scales).launch(grid=x.shape[0], block=THREADS)
    device_dequantise(q, scales, y).launch(grid=x.shape[0], block=THREADS)


def compiled(options: str = "--target cpu") -> fe.Function:
    """The function for matrices of any size."""
    rows, columns = fe.sym_int(), fe.sym_int()
    matrix = fe.row_major((rows, columns), fe.Float32)
    bits = fe.row_major((rows, columns), fe.Uint8)
    scales = fe.row_major((rows,), fe.Float32)
    return fe.compile(there_and_back, matrix, bits, scales, matrix, options=options)


def numbers() -> np.ndarray:
    """The finite numbers of Float8E4M3FN by their bits, without the sign."""
    exponent, mantissa = np.divmod(np.arange(127), 8)
    normal = (1 + mantissa / 8) * 2.0 ** (exponent - 7)
    return np.where(exponent > 0, normal, mantissa / 8 * 2.0**-6)


def main() -> None:
    """Compiles, runs, and requires that no number of 8 bits is nearer."""
    x = np.random.default_rng(0).normal(0, 3, (64, 1000)).astype(np.float32)
    bits, scales, y = np.zeros(x.shape, np.uint8), np.zeros(64, np.float32), np.zeros_like(x)
    function = compiled()
    print(function.signature)
    function(x, bits, scales, y)
    np.testing.assert_array_equal(scales, np.abs(x).max(1) / np.float32(LARGEST))
    known = numbers()
    wanted = np.abs(x / scales[:, None]).astype(np.float64)
    nearest = np.abs(wanted[..., None] - known).min(-1)
    np.testing.assert_array_equal(np.abs(wanted - known[bits & 127]), nearest)
    signs = np.where(bits & 128, -1, 1)
    back = (signs * known[bits & 127]).astype(np.float32) * scales[:, None]
    np.testing.assert_array_equal(y, back)
    print(f"equals NumPy's result (largest error of a row: {_largest_error(x, y):.1%})")


def _largest_error(x: np.ndarray, y: np.ndarray) -> float:
    return float((np.abs(y - x).max(1) / np.abs(x).max(1)).max())


if __name__ == "__main__":
    main()
