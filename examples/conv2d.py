"""2-D convolution of images (NCHW) with padding and stride, one thread an output pixel.

    python examples/conv2d.py

The filter's size, the padding and the stride are known when the kernel is compiled, so that the
loops over the filter unroll; the sizes of the images and the numbers of channels are not.
"""

from __future__ import annotations

import numpy as np

import ferrule as fe

TILE_X, TILE_Y = 32, 8


@fe.kernel
def device_conv2d(
    x: fe.Tensor,
    weight: fe.Tensor,
    bias: fe.Tensor,
    y: fe.Tensor,
    padding: fe.Constexpr,
    stride: fe.Constexpr,
):
    bx, by, bz = fe.arch.block_idx()
    tx, ty, _ = fe.arch.thread_idx()
    filters, channels, height, width = weight.shape
    column, row = bx * TILE_X + tx, by * TILE_Y + ty
    image, out = bz // filters, bz % filters
    if row < y.shape[2] and column < y.shape[3]:
        total = bias[out]
        for channel in range(channels):
            for dy in fe.range_constexpr(height):
                for dx in fe.range_constexpr(width):
                    iy, ix = row * stride + dy - padding, column * stride + dx - padding
                    factor = weight[out, channel, dy, dx]
                    if 0 <= iy < x.shape[2] and 0 <= ix < x.shape[3]:
                        total += x[image, channel, iy, ix] * factor
        y[image, out, row, column] = total


@fe.jit
def conv2d(
    x: fe.Tensor,
    weight: fe.Tensor,
    bias: fe.Tensor,
    y: fe.Tensor,
    padding: fe.Constexpr,
    stride: fe.Constexpr,
):
    """y = x * weight + bias, as torch.nn.functional.conv2d."""
    images, filters, rows, columns = y.shape
    device_conv2d(x, weight, bias, y, padding, stride).launch(
        grid=(fe.ceil_div(columns, TILE_X), fe.ceil_div(rows, TILE_Y), images * filters),
        block=(TILE_X, TILE_Y, 1),
    )


def compiled(
    options: str = "--target cpu", size: int = 3, padding: int = 1, stride: int = 1
) -> fe.Function:
    """The function for float32 and a square filter; a call checks that all sizes agree."""
    images, channels, filters, rows, columns = (fe.sym_int() for _ in range(5))
    order = (3, 2, 1, 0)
    shape = (images, channels, rows, columns)
    x = fe.runtime.make_fake_compact_tensor(fe.Float32, shape, stride_order=order)
    shape = (filters, channels, size, size)
    weight = fe.runtime.make_fake_compact_tensor(fe.Float32, shape, stride_order=order)
    bias = fe.runtime.make_fake_compact_tensor(fe.Float32, (filters,))
    rows, columns = ((n + 2 * padding - size) // stride + 1 for n in (rows, columns))
    shape = (images, filters, rows, columns)
    y = fe.runtime.make_fake_compact_tensor(fe.Float32, shape, stride_order=order)
    return fe.compile(conv2d, x, weight, bias, y, padding, stride, options=options)


def reference(
    x: np.ndarray, weight: np.ndarray, bias: np.ndarray, padding: int, stride: int
) -> np.ndarray:
    """The same in NumPy."""
    sides = (padding, padding)
    padded = np.pad(x, ((0, 0), (0, 0), sides, sides))
    windows = np.lib.stride_tricks.sliding_window_view(padded, weight.shape[2:], axis=(2, 3))
    windows = windows[:, :, ::stride, ::stride]
    return np.einsum("nchwij,fcij->nfhw", windows, weight, optimize=True) + bias[:, None, None]


def main() -> None:
    """Compiles, runs, compares."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2, 5, 37, 50), dtype=np.float32)
    weight = rng.standard_normal((7, 5, 3, 3), dtype=np.float32)
    bias = rng.standard_normal(7, dtype=np.float32)
    for padding, stride in ((1, 1), (0, 1), (1, 2)):
        function = compiled(padding=padding, stride=stride)
        print(function.signature)
        expected = reference(x, weight, bias, padding, stride)
        y = np.empty(expected.shape, np.float32)
        function(x, weight, bias, y)
        np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-5)
        print(f"equals NumPy's result (max difference {abs(y - expected).max():.1e})")


if __name__ == "__main__":
    main()
