"""Kernels of `sass.py` that no example has, in ferrule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import ferrule as fe
from ferrule import arch

THREADS: Final = 256


@fe.kernel
def device_add(a: fe.Tensor, b: fe.Tensor, c: fe.Tensor):
    i = arch.block_idx()[0] * THREADS + arch.thread_idx()[0]
    if i < a.shape[0]:
        c[i] = a[i] + b[i]


@fe.jit
def add_1d(a: fe.Tensor, b: fe.Tensor, c: fe.Tensor):
    """c = a + b of vectors."""
    device_add(a, b, c).launch(grid=fe.ceil_div(a.shape[0], THREADS), block=THREADS)


@fe.kernel
def device_add_2d(a: fe.Tensor, b: fe.Tensor, c: fe.Tensor):
    (bx, by, _), (tx, ty, _) = arch.block_idx(), arch.thread_idx()
    row, column = by * 8 + ty, bx * 32 + tx
    if row < c.shape[0] and column < c.shape[1]:
        c[row, column] = a[row, column] + b[row, column]


@fe.jit
def add_2d(a: fe.Tensor, b: fe.Tensor, c: fe.Tensor):
    """c = a + b of matrices with any strides."""
    m, n = c.shape
    grid = (fe.ceil_div(n, 32), fe.ceil_div(m, 8))
    device_add_2d(a, b, c).launch(grid=grid, block=(32, 8))


@fe.kernel
def device_saxpy_vectors(alpha: fe.Float32, x: fe.Tensor, y: fe.Tensor):
    i = arch.block_idx()[0] * THREADS + arch.thread_idx()[0]
    if i < x.shape[0] // 4:
        part = fe.zipped_divide(y, (4,))[None, i]
        part.store(alpha * fe.zipped_divide(x, (4,))[None, i].load() + part.load())


@fe.jit
def saxpy_vectors(alpha: fe.Float32, x: fe.Tensor, y: fe.Tensor):
    """y = alpha * x + y, four elements a thread."""
    grid = fe.ceil_div(x.shape[0] // 4, THREADS)
    device_saxpy_vectors(alpha, x, y).launch(grid=grid, block=THREADS)


@fe.kernel
def device_row_gather(table: fe.Tensor, rows: fe.Tensor, out: fe.Tensor):
    (piece, row, _), (tid, _, _) = arch.block_idx(), arch.thread_idx()
    column = piece * THREADS + tid
    if column < out.shape[1]:
        out[row, column] = table[rows[row], column]


@fe.jit
def row_gather(table: fe.Tensor, rows: fe.Tensor, out: fe.Tensor):
    """out[i] = table[rows[i]]."""
    grid = (fe.ceil_div(out.shape[1], THREADS), out.shape[0])
    device_row_gather(table, rows, out).launch(grid=grid, block=THREADS)


@fe.kernel
def device_stencil(a: fe.Tensor, out: fe.Tensor, middle: fe.Float32, side: fe.Float32):
    (bx, by, bz), (tx, ty, tz) = arch.block_idx(), arch.thread_idx()
    x, y, z = bx * 32 + tx + 1, by * 4 + ty + 1, bz * 2 + tz + 1
    if x < a.shape[2] - 1 and y < a.shape[1] - 1 and z < a.shape[0] - 1:
        total = a[z, y, x - 1] + a[z, y, x + 1] + a[z, y - 1, x] + a[z, y + 1, x]
        total = total + a[z - 1, y, x] + a[z + 1, y, x]
        out[z, y, x] = middle * a[z, y, x] + side * total


@fe.jit
def stencil(a: fe.Tensor, out: fe.Tensor, middle: fe.Float32, side: fe.Float32):
    """Seven points of a grid."""
    depth, height, width = a.shape
    grid = (fe.ceil_div(width, 32), fe.ceil_div(height, 4), fe.ceil_div(depth, 2))
    device_stencil(a, out, middle, side).launch(grid=grid, block=(32, 4, 2))


@fe.kernel
def device_sgemm_16(a: fe.Tensor, b: fe.Tensor, c: fe.Tensor):
    (bx, by, _), (tx, ty, _) = arch.block_idx(), arch.thread_idx()
    row, column = by * 16 + ty, bx * 16 + tx
    layout = fe.make_layout((16, 16), stride=(16, 1))
    of_a = fe.make_tensor(arch.alloc_smem(fe.Float32, 256), layout)
    of_b = fe.make_tensor(arch.alloc_smem(fe.Float32, 256), layout)
    m, n, k = c.shape[0], c.shape[1], a.shape[1]
    total = fe.Float32(0.0)
    for base in range(0, k, 16):
        of_a[ty, tx] = a[row, base + tx] if row < m and base + tx < k else 0.0
        of_b[ty, tx] = b[base + ty, column] if base + ty < k and column < n else 0.0
        arch.sync_threads()
        for i in range(16):
            total += of_a[ty, i] * of_b[i, tx]
        arch.sync_threads()
    if row < m and column < n:
        c[row, column] = total


@fe.jit
def sgemm_16(a: fe.Tensor, b: fe.Tensor, c: fe.Tensor):
    """c = a @ b, an element a thread."""
    grid = (fe.ceil_div(c.shape[1], 16), fe.ceil_div(c.shape[0], 16))
    device_sgemm_16(a, b, c).launch(grid=grid, block=(16, 16))


@fe.kernel
def device_sgemm_64(a: fe.Tensor, b: fe.Tensor, c: fe.Tensor):
    t, (bx, by, _) = arch.thread_idx()[0], arch.block_idx()
    tx, ty = t % 16, t // 16
    layout = fe.make_layout((16, 64), stride=(64, 1))
    of_a = fe.make_tensor(arch.alloc_smem(fe.Float32, 1024, 16), layout)
    of_b = fe.make_tensor(arch.alloc_smem(fe.Float32, 1024, 16), layout)
    sums = tuple([fe.full((4,), 0.0, fe.Float32) for _ in range(4)])
    for base in range(0, a.shape[0], 16):
        for source, tile, at in ((a, of_a, by), (b, of_b, bx)):
            part = fe.local_tile(source, (1, 4), (base + ty, at * 16 + tx))[0, None].load()
            fe.local_tile(tile, (1, 4), (ty, tx))[0, None].store(part)
        arch.sync_threads()
        for i in fe.range_constexpr(16):
            left = fe.local_tile(of_a, (1, 4), (i, ty))[0, None].load()
            right = fe.local_tile(of_b, (1, 4), (i, tx))[0, None].load()
            sums = tuple([sums[y] + left[y] * right for y in range(4)])
        arch.sync_threads()
    for y in fe.range_constexpr(4):
        fe.local_tile(c, (1, 4), (by * 64 + ty * 4 + y, bx * 16 + tx))[0, None].store(sums[y])


@fe.jit
def sgemm_64(a: fe.Tensor, b: fe.Tensor, c: fe.Tensor):
    """c = a.T @ b of whole tiles, 4 x 4 elements a thread."""
    grid = (c.shape[1] // 64, c.shape[0] // 64)
    device_sgemm_64(a, b, c).launch(grid=grid, block=256)


def elementwise(value: Callable[[Any], Any]) -> Any:
    """The function of a kernel that applies a function to each element."""

    @fe.kernel
    def device_elementwise(a: fe.Tensor, c: fe.Tensor):
        i = arch.block_idx()[0] * THREADS + arch.thread_idx()[0]
        if i < a.shape[0]:
            c[i] = value(a[i])

    @fe.jit
    def apply(a: fe.Tensor, c: fe.Tensor):
        device_elementwise(a, c).launch(grid=fe.ceil_div(a.shape[0], THREADS), block=THREADS)

    return apply


def gelu(x):
    """By the error function."""
    return 0.5 * x * (1.0 + fe.math.erf(x * 0.70710678))


@fe.jit
def whole(a: fe.Tensor, b: fe.Tensor, c: fe.Tensor):
    """c = a * 2 + b, as an expression of whole tensors."""
    c[:] = a[:] * 2.0 + b[:]


# ---- compiling ----


def _vector(*, aligned: bool = False) -> Any:
    n = fe.sym_int(divisibility=4) if aligned else fe.sym_int()
    return fe.make_fake_compact_tensor(fe.Float32, (n,), assumed_align=16 if aligned else None)


def _matrix(*shape: Any, dtype: Any = fe.Float32, align: int | None = None) -> Any:
    return fe.make_fake_compact_tensor(
        dtype, shape, stride_order=tuple(reversed(range(len(shape)))), assumed_align=align
    )


def _strided(*shape: Any) -> Any:
    return fe.make_fake_tensor(fe.Float32, shape, tuple(fe.sym_int64() for _ in shape))


def compiled_add_1d(options: str) -> fe.Function:
    """For vectors of one length."""
    return fe.compile(add_1d, *(_vector(),) * 3, options=options)


def compiled_add_2d(options: str) -> fe.Function:
    """For matrices with six strides."""
    m, n = fe.sym_int(), fe.sym_int()
    return fe.compile(add_2d, *(_strided(m, n) for _ in range(3)), options=options)


def compiled_saxpy_vectors(options: str) -> fe.Function:
    """For aligned vectors."""
    vector = _vector(aligned=True)
    return fe.compile(saxpy_vectors, fe.Float32, vector, vector, options=options)


def compiled_row_gather(options: str) -> fe.Function:
    """For 32-bit indices."""
    rows, count, n = (fe.sym_int() for _ in range(3))
    indices = fe.make_fake_compact_tensor(fe.Int32, (count,))
    return fe.compile(row_gather, _matrix(rows, n), indices, _matrix(count, n), options=options)


def compiled_stencil(options: str) -> fe.Function:
    """For grids of any size."""
    grid = _matrix(*(fe.sym_int() for _ in range(3)))
    return fe.compile(stencil, grid, grid, fe.Float32, fe.Float32, options=options)


def compiled_sgemm_16(options: str) -> fe.Function:
    """For matrices of any sizes that agree."""
    m, n, k = (fe.sym_int() for _ in range(3))
    return fe.compile(sgemm_16, _matrix(m, k), _matrix(k, n), _matrix(m, n), options=options)


def compiled_sgemm_64(options: str) -> fe.Function:
    """For square matrices of whole tiles."""
    n, k = fe.sym_int(divisibility=64), fe.sym_int(divisibility=16)
    matrices = (_matrix(k, n, align=16), _matrix(k, n, align=16), _matrix(n, n, align=16))
    return fe.compile(sgemm_64, *matrices, options=options)


def compiled_elementwise(value: Callable[[Any], Any]) -> Callable[[str], fe.Function]:
    """For vectors."""
    return lambda options: fe.compile(elementwise(value), _vector(), _vector(), options=options)


def compiled_whole_1d(options: str) -> fe.Function:
    """For aligned vectors."""
    return fe.compile(whole, *(_vector(aligned=True),) * 3, options=options)


def compiled_whole_2d(options: str) -> fe.Function:
    """For matrices with six strides."""
    m, n = fe.sym_int(), fe.sym_int()
    return fe.compile(whole, *(_strided(m, n) for _ in range(3)), options=options)
