"""Grids and points: a stencil, a filter, a fractal, rays, bodies."""

from __future__ import annotations

from typing import Final

import numpy as np
from newcomer_kernels.cases import Case, floats, zeros

import ferrule as fe

arch = fe.arch
BLOCK: Final = 256
CONTRACT: Final = {"contract"}
"""What gcc does without being asked: a product and a sum are rounded once."""


# ---- a stencil of seven points ----


@fe.kernel(fast_math=CONTRACT)
def stencil_kernel(x, out):
    k = arch.block_idx()[0] * BLOCK + arch.thread_idx()[0] + 1
    j, i = arch.block_idx()[1] + 1, arch.block_idx()[2] + 1
    if k < x.shape[2] - 1:
        around = x[i - 1, j, k] + x[i + 1, j, k] + x[i, j - 1, k] + x[i, j + 1, k]
        around += x[i, j, k - 1] + x[i, j, k + 1]
        out[i, j, k] = around - 6.0 * x[i, j, k]


@fe.jit
def stencil(x, out):
    grid = ((x.shape[2] - 2 + BLOCK - 1) // BLOCK, x.shape[1] - 2, x.shape[0] - 2)
    stencil_kernel(x, out).launch(grid=grid, block=BLOCK)


def numba_stencil(x, out):
    for i in range(1, x.shape[0] - 1):
        for j in range(1, x.shape[1] - 1):
            for k in range(1, x.shape[2] - 1):
                around = x[i - 1, j, k] + x[i + 1, j, k] + x[i, j - 1, k] + x[i, j + 1, k]
                around += x[i, j, k - 1] + x[i, j, k + 1]
                out[i, j, k] = around - np.float32(6) * x[i, j, k]


STENCIL: Final = Case(
    "3-D stencil",
    stencil,
    numba_stencil,
    "x out",
    """
    long a = x1 * x2, b = x2;
    for (long i = 1; i < x0 - 1; i++)
        for (long j = 1; j < x1 - 1; j++)
            for (long k = 1; k < x2 - 1; k++) {
                float *p = x + i * a + j * b + k;
                float around = p[-a] + p[a] + p[-b] + p[b];
                around += p[-1] + p[1];
                out[i * a + j * b + k] = around - 6.0f * p[0];
            }""",
    lambda n: (floats(32, 32, n), zeros(32, 32, n)),
    256,
)


# ---- a separable filter ----


@fe.kernel(fast_math=CONTRACT)
def filter_kernel(x, w, between, out):
    """Rows, then columns; a block for each row, 9 taps, values at the borders stay."""
    row, thread = arch.block_idx()[0], arch.thread_idx()[0]
    for j in range(thread, x.shape[1] - 8, BLOCK):
        total = fe.Float32(0)
        for tap in fe.range_constexpr(9):
            total += w[tap] * x[row, j + tap]
        between[row, j] = total


@fe.kernel(fast_math=CONTRACT)
def down_kernel(between, w, out):
    row, thread = arch.block_idx()[0], arch.thread_idx()[0]
    for j in range(thread, out.shape[1], BLOCK):
        total = fe.Float32(0)
        for tap in fe.range_constexpr(9):
            total += w[tap] * between[row + tap, j]
        out[row, j] = total


@fe.jit
def smooth(x, w, between, out):
    filter_kernel(x, w, between, out).launch(grid=x.shape[0], block=BLOCK)
    down_kernel(between, w, out).launch(grid=out.shape[0], block=BLOCK)


def numba_smooth(x, w, between, out):
    for i in range(x.shape[0]):
        for j in range(x.shape[1] - 8):
            total = np.float32(0)
            for tap in range(9):
                total += w[tap] * x[i, j + tap]
            between[i, j] = total
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            total = np.float32(0)
            for tap in range(9):
                total += w[tap] * between[i + tap, j]
            out[i, j] = total


SMOOTH: Final = Case(
    "separable filter",
    smooth,
    numba_smooth,
    "x w between out",
    """
    for (long i = 0; i < x0; i++)
        for (long j = 0; j < x1 - 8; j++) {
            float total = 0;
            for (long tap = 0; tap < 9; tap++) total += w[tap] * x[i * x1 + j + tap];
            between[i * between1 + j] = total;
        }
    for (long i = 0; i < out0; i++)
        for (long j = 0; j < out1; j++) {
            float total = 0;
            for (long tap = 0; tap < 9; tap++) total += w[tap] * between[(i + tap) * between1 + j];
            out[i * out1 + j] = total;
        }""",
    lambda n: (floats(n, 512), floats(9, seed=1), zeros(n, 504), zeros(n - 8, 504)),
    256,
)


# ---- Mandelbrot ----


@fe.kernel(fast_math=CONTRACT)
def fractal_kernel(out):
    row = arch.block_idx()[0]
    for j in range(arch.thread_idx()[0], out.shape[1], BLOCK):
        x = -2.0 + 3.0 * fe.Float32(j) / fe.Float32(out.shape[1])
        y = -1.5 + 3.0 * fe.Float32(row) / fe.Float32(out.shape[0])
        a, b = fe.Float32(0), fe.Float32(0)
        steps = fe.Int32(0)
        while steps < 64 and a * a + b * b < 4.0:
            a, b = a * a - b * b + x, 2.0 * a * b + y
            steps += 1
        out[row, j] = steps


@fe.jit
def fractal(out):
    fractal_kernel(out).launch(grid=out.shape[0], block=BLOCK)


def numba_fractal(out):
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            x = np.float32(-2) + np.float32(3) * np.float32(j) / np.float32(out.shape[1])
            y = np.float32(-1.5) + np.float32(3) * np.float32(i) / np.float32(out.shape[0])
            a, b, steps = np.float32(0), np.float32(0), 0
            while steps < 64 and a * a + b * b < np.float32(4):
                a, b = a * a - b * b + x, np.float32(2) * a * b + y
                steps += 1
            out[i, j] = steps


FRACTAL: Final = Case(
    "Mandelbrot",
    fractal,
    numba_fractal,
    "out",
    """
    for (long i = 0; i < out0; i++)
        for (long j = 0; j < out1; j++) {
            float x = -2.0f + 3.0f * (float)j / (float)out1;
            float y = -1.5f + 3.0f * (float)i / (float)out0;
            float a = 0, b = 0;
            int steps = 0;
            while (steps < 64 && a * a + b * b < 4) {
                float t = a * a - b * b + x;
                b = 2 * a * b + y;
                a = t;
                steps++;
            }
            out[i * out1 + j] = steps;
        }""",
    lambda n: (zeros(64, n, dtype=np.int32),),
    256,
    tolerance=2.0,  # contraction, which only C does, moves the border
)


# ---- rays and boxes ----


@fe.kernel
def rays_kernel(origin, inverse, boxes, out):
    """origin, inverse: (3, rays); boxes: (boxes, 6); the nearest box of each ray."""
    i = arch.block_idx()[0] * 64 + arch.thread_idx()[0]
    if i < origin.shape[1]:
        nearest = fe.Float32(1e30)
        for k in range(boxes.shape[0]):
            enter, leave = fe.Float32(0), fe.Float32(1e30)
            for axis in fe.range_constexpr(3):
                a = (boxes[k, axis] - origin[axis, i]) * inverse[axis, i]
                b = (boxes[k, axis + 3] - origin[axis, i]) * inverse[axis, i]
                enter = max(enter, min(a, b))
                leave = min(leave, max(a, b))
            nearest = min(nearest, enter if enter <= leave else 1e30)
        out[i] = nearest


@fe.jit
def rays(origin, inverse, boxes, out):
    blocks = (origin.shape[1] + 63) // 64
    rays_kernel(origin, inverse, boxes, out).launch(grid=blocks, block=64)


def numba_rays(origin, inverse, boxes, out):
    far = np.float32(1e30)
    for i in range(origin.shape[1]):
        nearest = far
        for k in range(boxes.shape[0]):
            enter, leave = np.float32(0), far
            for axis in range(3):
                a = (boxes[k, axis] - origin[axis, i]) * inverse[axis, i]
                b = (boxes[k, axis + 3] - origin[axis, i]) * inverse[axis, i]
                enter = max(enter, min(a, b))
                leave = min(leave, max(a, b))
            nearest = min(nearest, enter if enter <= leave else far)
        out[i] = nearest


RAYS: Final = Case(
    "rays and boxes",
    rays,
    numba_rays,
    "origin inverse boxes out",
    """
    long n = origin1;
    for (long i = 0; i < n; i++) {
        float nearest = 1e30f;
        for (long k = 0; k < boxes0; k++) {
            float enter = 0, leave = 1e30f, *box = boxes + k * 6;
            for (long axis = 0; axis < 3; axis++) {
                float a = (box[axis] - origin[axis * n + i]) * inverse[axis * n + i];
                float b = (box[axis + 3] - origin[axis * n + i]) * inverse[axis * n + i];
                float low = a < b ? a : b, high = a < b ? b : a;
                enter = enter > low ? enter : low;
                leave = leave < high ? leave : high;
            }
            float at = enter <= leave ? enter : 1e30f;
            nearest = nearest < at ? nearest : at;
        }
        out[i] = nearest;
    }""",
    lambda n: (
        floats(3, n),
        (1 / (floats(3, n, seed=1) + np.float32(2))).astype(np.float32),
        np.hstack([floats(64, 3, seed=2), floats(64, 3, seed=2) + np.float32(0.2)]),
        zeros(n),
    ),
    4096,
)


# ---- bodies that attract each other ----


@fe.kernel
def bodies_kernel(x, y, z, mass, out):
    i = arch.block_idx()[0] * 64 + arch.thread_idx()[0]
    if i < x.shape[0]:
        a, b, c = fe.Float32(0), fe.Float32(0), fe.Float32(0)
        for j in range(x.shape[0]):
            dx, dy, dz = x[j] - x[i], y[j] - y[i], z[j] - z[i]
            inverse = 1.0 / fe.math.sqrt(dx * dx + dy * dy + dz * dz + 0.01)
            pull = mass[j] * inverse * inverse * inverse
            a, b, c = a + dx * pull, b + dy * pull, c + dz * pull
        out[0, i], out[1, i], out[2, i] = a, b, c


@fe.jit
def bodies(x, y, z, mass, out):
    bodies_kernel(x, y, z, mass, out).launch(grid=(x.shape[0] + 63) // 64, block=64)


def numba_bodies(x, y, z, mass, out):
    for i in range(x.shape[0]):
        a, b, c = np.float32(0), np.float32(0), np.float32(0)
        for j in range(x.shape[0]):
            dx, dy, dz = x[j] - x[i], y[j] - y[i], z[j] - z[i]
            square = dx * dx + dy * dy + dz * dz + np.float32(0.01)
            inverse = np.float32(1) / np.sqrt(square)
            pull = mass[j] * inverse * inverse * inverse
            a, b, c = a + dx * pull, b + dy * pull, c + dz * pull
        out[0, i], out[1, i], out[2, i] = a, b, c


BODIES: Final = Case(
    "n bodies",
    bodies,
    numba_bodies,
    "x y z mass out",
    """
    for (long i = 0; i < x0; i++) {
        float a = 0, b = 0, c = 0;
        for (long j = 0; j < x0; j++) {
            float dx = x[j] - x[i], dy = y[j] - y[i], dz = z[j] - z[i];
            float inverse = 1 / sqrtf(dx * dx + dy * dy + dz * dz + 0.01f);
            float pull = mass[j] * inverse * inverse * inverse;
            a += dx * pull; b += dy * pull; c += dz * pull;
        }
        out[i] = a; out[x0 + i] = b; out[2 * x0 + i] = c;
    }""",
    lambda n: (
        floats(n),
        floats(n, seed=1),
        floats(n, seed=2),
        np.abs(floats(n, seed=3)),
        zeros(3, n),
    ),
    1024,
    tolerance=1e-2,
    power=2,
)

POINTS: Final = (STENCIL, SMOOTH, FRACTAL, RAYS, BODIES)
