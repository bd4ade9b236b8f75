"""Products: matrices of narrow integers, a layer with its activation, attention, k-means."""

from __future__ import annotations

from typing import Final

import numpy as np
from newcomer_kernels.cases import Case, floats, zeros

import ferrule as fe

arch = fe.arch
BLOCK: Final = 256


def integers(low: int, high: int, *shape: int, dtype: type = np.int8) -> np.ndarray:
    """Random integers."""
    return np.random.default_rng(3).integers(low, high, shape).astype(dtype)


# ---- int4 weights ----


@fe.kernel
def int4_kernel(x, w, scale, out):
    """w: (k / 2, n), the low four bits of a byte first; a thread for each column."""
    row = arch.block_idx()[1]
    j = arch.block_idx()[0] * BLOCK + arch.thread_idx()[0]
    if j < w.shape[1]:
        total = fe.Float32(0)
        for k in range(w.shape[0]):
            packed = fe.Int32(w[k, j])
            total += x[row, 2 * k] * fe.Float32((packed & 15) - 8)
            total += x[row, 2 * k + 1] * fe.Float32((packed >> 4) - 8)
        out[row, j] = total * scale[j]


@fe.jit
def int4(x, w, scale, out):
    grid = ((w.shape[1] + BLOCK - 1) // BLOCK, x.shape[0])
    int4_kernel(x, w, scale, out).launch(grid=grid, block=BLOCK)


def numba_int4(x, w, scale, out):
    for i in range(x.shape[0]):
        for j in range(w.shape[1]):
            out[i, j] = 0
        for k in range(w.shape[0]):
            for j in range(w.shape[1]):
                packed = np.int32(w[k, j])
                low, high = np.float32((packed & 15) - 8), np.float32((packed >> 4) - 8)
                out[i, j] = out[i, j] + x[i, 2 * k] * low + x[i, 2 * k + 1] * high
        for j in range(w.shape[1]):
            out[i, j] *= scale[j]


INT4: Final = Case(
    "int4 matrix product",
    int4,
    numba_int4,
    "x w scale out",
    """
    for (long i = 0; i < x0; i++) {
        float *o = out + i * w1;
        for (long j = 0; j < w1; j++) o[j] = 0;
        for (long k = 0; k < w0; k++) {
            float a = x[i * x1 + 2 * k], b = x[i * x1 + 2 * k + 1];
            for (long j = 0; j < w1; j++) {
                int packed = w[k * w1 + j];
                o[j] = o[j] + a * ((packed & 15) - 8) + b * ((packed >> 4) - 8);
            }
        }
        for (long j = 0; j < w1; j++) o[j] *= scale[j];
    }""",
    lambda n: (
        floats(8, 512),
        integers(0, 256, 256, n, dtype=np.uint8),
        floats(n, seed=1),
        zeros(8, n),
    ),
    1024,
    tolerance=2e-3,
)


# ---- int8 ----


@fe.kernel
def int8_kernel(x, w, scale, out):
    row = arch.block_idx()[1]
    j = arch.block_idx()[0] * BLOCK + arch.thread_idx()[0]
    if j < w.shape[1]:
        total = fe.Int32(0)
        for k in range(w.shape[0]):
            total += fe.Int32(x[row, k]) * fe.Int32(w[k, j])
        out[row, j] = fe.Float32(total) * scale[j]


@fe.jit
def int8(x, w, scale, out):
    grid = ((w.shape[1] + BLOCK - 1) // BLOCK, x.shape[0])
    int8_kernel(x, w, scale, out).launch(grid=grid, block=BLOCK)


def numba_int8(x, w, scale, out):
    sums = np.empty(w.shape[1], np.int32)
    for i in range(x.shape[0]):
        sums[:] = 0
        for k in range(w.shape[0]):
            for j in range(w.shape[1]):
                sums[j] += np.int32(x[i, k]) * np.int32(w[k, j])
        for j in range(w.shape[1]):
            out[i, j] = np.float32(sums[j]) * scale[j]


INT8: Final = Case(
    "int8 matrix product",
    int8,
    numba_int8,
    "x w scale out",
    """
    int *sums = malloc(w1 * sizeof(int));
    for (long i = 0; i < x0; i++) {
        memset(sums, 0, w1 * sizeof(int));
        for (long k = 0; k < w0; k++)
            for (long j = 0; j < w1; j++) sums[j] += (int)x[i * x1 + k] * (int)w[k * w1 + j];
        for (long j = 0; j < w1; j++) out[i * w1 + j] = sums[j] * scale[j];
    }
    free(sums);""",
    lambda n: (
        integers(-128, 128, 8, 512),
        integers(-128, 128, 512, n),
        floats(n, seed=1),
        zeros(8, n),
    ),
    1024,
)


# ---- a product with bias and GELU ----


@fe.kernel
def gelu_kernel(x, w, bias, out):
    row = arch.block_idx()[1]
    j = arch.block_idx()[0] * BLOCK + arch.thread_idx()[0]
    if j < w.shape[1]:
        total = fe.Float32(0)
        for k in range(w.shape[0]):
            total += x[row, k] * w[k, j]
        total += bias[j]
        inner = 0.7978845608 * (total + 0.044715 * total * total * total)
        out[row, j] = 0.5 * total * (1.0 + fe.math.tanh(inner))


@fe.jit
def gelu(x, w, bias, out):
    grid = ((w.shape[1] + BLOCK - 1) // BLOCK, x.shape[0])
    gelu_kernel(x, w, bias, out).launch(grid=grid, block=BLOCK)


def numba_gelu(x, w, bias, out):
    for i in range(x.shape[0]):
        for j in range(w.shape[1]):
            out[i, j] = bias[j]
        for k in range(w.shape[0]):
            for j in range(w.shape[1]):
                out[i, j] += x[i, k] * w[k, j]
        for j in range(w.shape[1]):
            v = out[i, j]
            inner = np.float32(0.7978845608) * (v + np.float32(0.044715) * v * v * v)
            out[i, j] = np.float32(0.5) * v * (np.float32(1) + np.tanh(inner))


GELU: Final = Case(
    "product, bias and GELU",
    gelu,
    numba_gelu,
    "x w bias out",
    """
    for (long i = 0; i < x0; i++) {
        float *o = out + i * w1;
        for (long j = 0; j < w1; j++) o[j] = bias[j];
        for (long k = 0; k < w0; k++)
            for (long j = 0; j < w1; j++) o[j] += x[i * x1 + k] * w[k * w1 + j];
        for (long j = 0; j < w1; j++) {
            float v = o[j];
            o[j] = 0.5f * v * (1 + tanhf(0.7978845608f * (v + 0.044715f * v * v * v)));
        }
    }""",
    lambda n: (floats(16, 512), floats(512, n, seed=1), floats(n, seed=2), zeros(16, n)),
    1024,
    tolerance=2e-3,
)


# ---- attention of one token over a window ----


def add(x, y):
    return x + y


@fe.kernel
def decode_kernel(q, keys, values, window: fe.Int32, out):
    """q: (heads, 64); keys, values: (tokens, heads / 4, 64); a block of 64 threads for a head."""
    head, thread = arch.block_idx()[0], arch.thread_idx()[0]
    tokens, group = keys.shape[0], head // 4
    first = max(tokens - window, 0)
    chances = arch.alloc_smem(fe.Float32, 4096)
    largest = fe.Float32(-1e30)
    for t in range(first + thread, tokens, 64):
        total = fe.Float32(0)
        for d in fe.range(64, reassociate=True):
            total += q[head, d] * keys[t, group, d]
        total *= 0.125
        chances[t - first] = total
        largest = max(largest, total)
    largest = arch.block_reduction(largest, max)
    sum_ = fe.Float32(0)
    for t in range(first + thread, tokens, 64):
        chance = fe.math.exp(chances[t - first] - largest)
        chances[t - first] = chance
        sum_ += chance
    sum_ = arch.block_reduction(sum_, add)
    arch.sync_threads()
    total = fe.Float32(0)
    for t in range(first, tokens):
        total += chances[t - first] * values[t, group, thread]
    out[head, thread] = total / sum_


@fe.jit
def decode(q, keys, values, window: fe.Int32, out):
    decode_kernel(q, keys, values, window, out).launch(grid=q.shape[0], block=64)


def numba_decode(q, keys, values, window, out):
    tokens = keys.shape[0]
    first = max(tokens - window, 0)
    chances = np.empty(tokens - first, np.float32)
    for h in range(q.shape[0]):
        largest = np.float32(-1e30)
        for t in range(first, tokens):
            total = np.float32(0)
            for d in range(64):
                total += q[h, d] * keys[t, h // 4, d]
            chances[t - first] = total * np.float32(0.125)
            largest = max(largest, chances[t - first])
        total = np.float32(0)
        for t in range(tokens - first):
            chances[t] = np.exp(chances[t] - largest)
            total += chances[t]
        for d in range(64):
            out[h, d] = 0
        for t in range(first, tokens):
            for d in range(64):
                out[h, d] += chances[t - first] * values[t, h // 4, d]
        for d in range(64):
            out[h, d] /= total


DECODE: Final = Case(
    "attention of one token, window",
    decode,
    numba_decode,
    "q keys values window out",
    """
    long first = keys0 > window ? keys0 - window : 0, count = keys0 - first;
    float *chances = malloc(count * sizeof(float));
    for (long h = 0; h < q0; h++) {
        float largest = -1e30f, sum = 0, *o = out + h * 64;
        for (long t = 0; t < count; t++) {
            float total = 0;
            for (long d = 0; d < 64; d++)
                total += q[h * 64 + d] * keys[((first + t) * keys1 + h / 4) * 64 + d];
            chances[t] = total * 0.125f;
            largest = chances[t] > largest ? chances[t] : largest;
        }
        for (long t = 0; t < count; t++) {
            chances[t] = expf(chances[t] - largest);
            sum += chances[t];
        }
        for (long d = 0; d < 64; d++) o[d] = 0;
        for (long t = 0; t < count; t++)
            for (long d = 0; d < 64; d++)
                o[d] += chances[t] * values[((first + t) * keys1 + h / 4) * 64 + d];
        for (long d = 0; d < 64; d++) o[d] /= sum;
    }
    free(chances);""",
    lambda n: (
        floats(16, 64),
        floats(n, 4, 64, seed=1),
        floats(n, 4, 64, seed=2),
        n // 2,
        zeros(16, 64),
    ),
    2048,
    fast=True,
)


# ---- k-means, the nearest centre ----


@fe.kernel
def nearest_kernel(points, centres, out):
    i = arch.block_idx()[0] * BLOCK + arch.thread_idx()[0]
    if i < points.shape[1]:
        best, least = fe.Int32(0), fe.Float32(1e30)
        for c in range(centres.shape[0]):
            distance = fe.Float32(0)
            for d in fe.range_constexpr(8):
                gap = points[d, i] - centres[c, d]
                distance += gap * gap
            best = c if distance < least else best
            least = min(least, distance)
        out[i] = best


@fe.jit
def nearest(points, centres, out):
    blocks = (points.shape[1] + BLOCK - 1) // BLOCK
    nearest_kernel(points, centres, out).launch(grid=blocks, block=BLOCK)


def numba_nearest(points, centres, out):
    for i in range(points.shape[1]):
        best, least = 0, np.float32(1e30)
        for c in range(centres.shape[0]):
            distance = np.float32(0)
            for d in range(8):
                gap = points[d, i] - centres[c, d]
                distance += gap * gap
            if distance < least:
                best, least = c, distance
        out[i] = best


NEAREST: Final = Case(
    "k-means, nearest centre",
    nearest,
    numba_nearest,
    "points centres out",
    """
    for (long i = 0; i < points1; i++) {
        int best = 0;
        float least = 1e30f;
        for (long c = 0; c < centres0; c++) {
            float distance = 0;
            for (long d = 0; d < 8; d++) {
                float gap = points[d * points1 + i] - centres[c * 8 + d];
                distance += gap * gap;
            }
            if (distance < least) { best = c; least = distance; }
        }
        out[i] = best;
    }""",
    lambda n: (floats(8, n), floats(32, 8, seed=1), zeros(n, dtype=np.int32)),
    16384,
)

PRODUCTS: Final = (INT4, INT8, GELU, DECODE, NEAREST)
