"""Programs that launch kernels, compiled, interpreted, and each beside itself in plain Python."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from agreement import run_all_ways
from plain_python import Program, collect, f32, ramp, zeros

import ferrule as fe

PROGRAMS: list[Program] = []
program = collect(PROGRAMS)


class Point(NamedTuple):
    x: float
    y: float


def twice(x):
    return 2 * (x + 1)


@fe.kernel
def saxpy_kernel(a, x, y, alpha):
    n = x.shape[0]
    i = fe.arch.block_idx()[0] * fe.arch.block_dim()[0] + fe.arch.thread_idx()[0]
    inside = n > i
    if not inside:
        pass
    else:
        y[i] = alpha * x[i] + a[0]


@program(f32(10), ramp(77), zeros(77), 2.0)
def launched_several_times(a, x, y, alpha: fe.Float32):
    n = x.shape[0]
    for block in (16, 32):
        saxpy_kernel(a, x, y, alpha).launch(grid=(n + block - 1) // block, block=block)
    if alpha > 1.0:
        for _ in range(3):
            saxpy_kernel(a, y, y, 0.5).launch(grid=[(n + 63) // 64], block=(64,))
    saxpy_kernel(a, alpha=np.float32(2.0), y=y, x=y).launch(grid=(3, 1), block=(20, 1, 1))
    saxpy_kernel(a, alpha=np.float32(3.0), y=y, x=y).launch(grid=3, block=1)


@fe.kernel
def apply_kernel(b, function, point):
    i = fe.arch.thread_idx()[0]
    b[i] = function(b[i]) + point.x


@program(ramp(4), 3)
def constants_of_kernels_are_told_apart(b, n: fe.Int32):
    for k in (1.0, 2.0, 3.0):
        apply_kernel(b, lambda x, k=k: x * k, Point(k, 0.0)).launch(grid=1, block=4)
        apply_kernel(b, twice, Point(np.float64(k), 1.0)).launch(grid=1, block=n)


@fe.kernel
def guarded_kernel(out, lower, upper, way):
    x, y, _ = fe.arch.thread_idx()
    bx, by, _ = fe.arch.block_idx()
    i, j = bx * 8 + x, by * 4 + y
    m, n = out.shape
    if way == 0:
        inside = i < n and j < m
        wanted = lower <= i and not i > upper
        if inside and wanted:
            out[j, i] += 1.0
    elif way == 1:
        if not (i >= n):
            if m > j:
                if not (i < lower or i > upper):
                    out[j, i] += 2.0
                else:
                    out[j, i] -= 1.0
    elif way == 2:
        if i < n and j < m and i % 2 == j % 2:
            out[j, i] += i
    else:
        if lower <= i < n and 0 <= j < m and i != upper:
            out[j, i] = out[j, i] * 2
            for k in range(i, n, 5):
                out[j, i] += k


@program(zeros(7, 19), 3, 12)
def guards_of_all_shapes(out, lower: fe.Int32, upper: fe.Int32):
    m, n = out.shape
    for way in fe.range_constexpr(4):
        guarded_kernel(out, lower, upper, way).launch(
            grid=((n + 7) // 8, (m + 3) // 4), block=(8, 4)
        )


@fe.kernel
def cube_kernel(out, a):
    x, y, z = fe.arch.block_idx()
    t = fe.arch.thread_idx()
    total = 0.0
    k = 0
    while k <= z:
        total += a[k, y, x]
        k += 1
    out[z, y, x] = total + t[0] + t[1] * 2


@program(zeros(3, 4, 5), ramp(3, 4, 5))
def three_dims_without_a_guard(out, a):
    d, h, w = out.shape
    cube_kernel(out, a).launch(grid=(w, h, d), block=1)


@fe.kernel
def row_kernel(out, a):
    row = fe.arch.block_idx()[0] * 2 + fe.arch.thread_idx()[0]
    if row < a.shape[0]:
        largest, place, seen = a[row, 0], 0, False
        for j in range(1, a.shape[1]):
            x = a[row, j]
            if x > largest:
                largest, place = x, j
            seen = seen or x == 3.0
        total = 0.0
        for j in range(a.shape[1]):
            total += fe.math.exp(a[row, j] - largest)
        out[row, 0], out[row, 1], out[row, 2] = total, place, seen


@program(zeros(5, 3), np.sin(ramp(5, 7) * 3).astype(np.float32))
def rows(out, a):
    row_kernel(out, a).launch(grid=(a.shape[0] + 1) // 2, block=2)


@program(zeros(0, 3), zeros(0, 7))
def no_rows(out, a):
    row_kernel(out, a).launch(grid=(a.shape[0] + 1) // 2, block=2)


@pytest.mark.parametrize("each", PROGRAMS, ids=lambda p: p[0].__name__)
def test_program(each: Program) -> None:
    run_all_ways(*each, tolerance=1e-6)
