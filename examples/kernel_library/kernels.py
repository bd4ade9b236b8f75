"""A small library of five kernels, to ship as objects, as a shared library or as a wheel.

    ferrule build kernels.py -o dist                    # dist/libactivations.so and its headers
    ferrule build kernels.py -o dist --format wheel     # dist/activations-1.0.0-py3-none-….whl

`with_package.py`, `with_c.c` and `with_rust.rs` call what was built; none of them needs ferrule.
"""

import ferrule as fe

THREADS = 256


@fe.kernel
def scale_kernel(x: fe.Tensor, y: fe.Tensor, factor: fe.Float32):
    i = fe.arch.block_idx()[0] * THREADS + fe.arch.thread_idx()[0]
    if i < x.shape[0]:
        y[i] = factor * x[i]


@fe.jit
def scale(x: fe.Tensor, y: fe.Tensor, factor: fe.Float32 = 1.0):
    """Writes `factor * x` to `y`."""
    grid = (fe.ceil_div(x.shape[0], THREADS), 1, 1)
    scale_kernel(x, y, factor).launch(grid=grid, block=(THREADS, 1, 1))


@fe.kernel
def relu_kernel(x: fe.Tensor, y: fe.Tensor):
    i = fe.arch.block_idx()[0] * THREADS + fe.arch.thread_idx()[0]
    if i < x.shape[0]:
        y[i] = fe.math.max(x[i], fe.Float32(0.0))


@fe.jit
def relu(x: fe.Tensor, y: fe.Tensor):
    """Writes `max(x, 0)` to `y`."""
    grid = (fe.ceil_div(x.shape[0], THREADS), 1, 1)
    relu_kernel(x, y).launch(grid=grid, block=(THREADS, 1, 1))


@fe.kernel
def silu_kernel(x: fe.Tensor, y: fe.Tensor):
    i = fe.arch.block_idx()[0] * THREADS + fe.arch.thread_idx()[0]
    if i < x.shape[0]:
        y[i] = x[i] / (fe.Float32(1.0) + fe.math.exp(-x[i]))


@fe.jit
def silu(x: fe.Tensor, y: fe.Tensor):
    """Writes `x / (1 + exp(-x))` to `y`."""
    grid = (fe.ceil_div(x.shape[0], THREADS), 1, 1)
    silu_kernel(x, y).launch(grid=grid, block=(THREADS, 1, 1))


@fe.jit
def softmax(x: fe.Tensor, y: fe.Tensor):
    """Writes the softmax of each row of the matrix `x` to `y`."""
    for row in range(x.shape[0]):
        largest = x[row, 0]
        for column in range(x.shape[1]):
            largest = fe.math.max(largest, x[row, column])
        total = fe.Float32(0.0)
        for column in range(x.shape[1]):
            y[row, column] = fe.math.exp(x[row, column] - largest)
            total = total + y[row, column]
        for column in range(x.shape[1]):
            y[row, column] = y[row, column] / total


@fe.jit
def sum_of_squares(x: fe.Tensor) -> fe.Float32:
    """The sum of the squares of the elements."""
    total = fe.Float32(0.0)
    for i in range(x.shape[0]):
        total = total + x[i] * x[i]
    return total


n, rows, columns = fe.sym_int(), fe.sym_int(), fe.sym_int()
vector = fe.make_fake_compact_tensor(fe.Float32, (n,))
matrix = fe.make_fake_compact_tensor(fe.Float32, (rows, columns), stride_order=(1, 0))

library = fe.Library(
    "activations",
    [
        fe.Job(scale, [vector, vector, fe.Float32(1.0)]),
        fe.Job(relu, [vector, vector]),
        fe.Job(silu, [vector, vector]),
        fe.Job(softmax, [matrix, matrix]),
        fe.Job(sum_of_squares, [vector]),
    ],
    version="1.0.0",
    summary="Activation functions with checked arguments.",
)
