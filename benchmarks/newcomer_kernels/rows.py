"""Kernels that work on rows: norms, softmax, losses, optimisers, rotations."""

from __future__ import annotations

from typing import Final

import numpy as np
from newcomer_kernels.cases import Case, floats, zeros

import ferrule as fe

arch = fe.arch
BLOCK: Final = 128


def add(x, y):
    return x + y


# ---- layer norm, backward ----


@fe.kernel
def layer_norm_kernel(x, w, dy, mean, rstd, dx):
    row, thread = arch.block_idx()[0], arch.thread_idx()[0]
    n = x.shape[1]
    m, r = mean[row], rstd[row]
    first, second = fe.Float32(0), fe.Float32(0)
    for j in range(thread, n, BLOCK):
        g = dy[row, j] * w[j]
        first += g
        second += g * (x[row, j] - m) * r
    first = arch.block_reduction(first, add) / n
    second = arch.block_reduction(second, add) / n
    for j in range(thread, n, BLOCK):
        normal = (x[row, j] - m) * r
        dx[row, j] = r * (dy[row, j] * w[j] - first - normal * second)


@fe.jit
def layer_norm(x, w, dy, mean, rstd, dx):
    layer_norm_kernel(x, w, dy, mean, rstd, dx).launch(grid=x.shape[0], block=BLOCK)


def numba_layer_norm(x, w, dy, mean, rstd, dx):
    rows, n = x.shape
    for i in range(rows):
        m, r = mean[i], rstd[i]
        first, second = np.float32(0), np.float32(0)
        for j in range(n):
            g = dy[i, j] * w[j]
            first += g
            second += g * (x[i, j] - m) * r
        first /= np.float32(n)
        second /= np.float32(n)
        for j in range(n):
            dx[i, j] = r * (dy[i, j] * w[j] - first - (x[i, j] - m) * r * second)


LAYER_NORM: Final = Case(
    "layer norm, backward",
    layer_norm,
    numba_layer_norm,
    "x w dy mean rstd dx",
    """
    long n = x1;
    for (long i = 0; i < x0; i++) {
        float m = mean[i], r = rstd[i], first = 0, second = 0;
        for (long j = 0; j < n; j++) {
            float g = dy[i * n + j] * w[j];
            first += g;
            second += g * (x[i * n + j] - m) * r;
        }
        first /= n; second /= n;
        for (long j = 0; j < n; j++)
            dx[i * n + j] = r * (dy[i * n + j] * w[j] - first - (x[i * n + j] - m) * r * second);
    }""",
    lambda n: (
        floats(128, n),
        floats(n, seed=1),
        floats(128, n, seed=2),
        floats(128, seed=3),
        floats(128, seed=4),
        zeros(128, n),
    ),
    1024,
)


# ---- softmax, backward ----


@fe.kernel
def softmax_kernel(y, dy, dx):
    row, thread = arch.block_idx()[0], arch.thread_idx()[0]
    total = fe.Float32(0)
    for j in range(thread, y.shape[1], BLOCK):
        total += y[row, j] * dy[row, j]
    total = arch.block_reduction(total, add)
    for j in range(thread, y.shape[1], BLOCK):
        dx[row, j] = y[row, j] * (dy[row, j] - total)


@fe.jit
def softmax(y, dy, dx):
    softmax_kernel(y, dy, dx).launch(grid=y.shape[0], block=BLOCK)


def numba_softmax(y, dy, dx):
    for i in range(y.shape[0]):
        total = np.float32(0)
        for j in range(y.shape[1]):
            total += y[i, j] * dy[i, j]
        for j in range(y.shape[1]):
            dx[i, j] = y[i, j] * (dy[i, j] - total)


SOFTMAX: Final = Case(
    "softmax, backward",
    softmax,
    numba_softmax,
    "y dy dx",
    """
    for (long i = 0; i < y0; i++) {
        float total = 0;
        for (long j = 0; j < y1; j++) total += y[i * y1 + j] * dy[i * y1 + j];
        for (long j = 0; j < y1; j++) dx[i * y1 + j] = y[i * y1 + j] * (dy[i * y1 + j] - total);
    }""",
    lambda n: (floats(128, n), floats(128, n, seed=1), zeros(128, n)),
    1024,
)


# ---- cross entropy, forward and backward ----


@fe.kernel
def cross_entropy_kernel(logits, target, loss, grad):
    row, thread = arch.block_idx()[0], arch.thread_idx()[0]
    n = logits.shape[1]
    largest = logits[row, thread]
    for j in range(thread, n, BLOCK):
        largest = max(largest, logits[row, j])
    largest = arch.block_reduction(largest, max)
    total = fe.Float32(0)
    for j in range(thread, n, BLOCK):
        total += fe.math.exp(logits[row, j] - largest)
    total = arch.block_reduction(total, add)
    wanted = target[row]
    if thread == 0:
        loss[row] = fe.math.log(total) + largest - logits[row, wanted]
    for j in range(thread, n, BLOCK):
        chance = fe.math.exp(logits[row, j] - largest) / total
        grad[row, j] = chance - (1.0 if j == wanted else 0.0)


@fe.jit
def cross_entropy(logits, target, loss, grad):
    cross_entropy_kernel(logits, target, loss, grad).launch(grid=logits.shape[0], block=BLOCK)


def numba_cross_entropy(logits, target, loss, grad):
    for i in range(logits.shape[0]):
        largest = logits[i, 0]
        for j in range(logits.shape[1]):
            largest = max(largest, logits[i, j])
        total = np.float32(0)
        for j in range(logits.shape[1]):
            total += np.exp(logits[i, j] - largest)
        loss[i] = np.log(total) + largest - logits[i, target[i]]
        for j in range(logits.shape[1]):
            grad[i, j] = np.exp(logits[i, j] - largest) / total
        grad[i, target[i]] -= np.float32(1)


CROSS_ENTROPY: Final = Case(
    "cross entropy, both ways",
    cross_entropy,
    numba_cross_entropy,
    "logits target loss grad",
    """
    long n = logits1;
    for (long i = 0; i < logits0; i++) {
        float *row = logits + i * n, largest = row[0], total = 0;
        for (long j = 0; j < n; j++) largest = row[j] > largest ? row[j] : largest;
        for (long j = 0; j < n; j++) total += expf(row[j] - largest);
        loss[i] = logf(total) + largest - row[target[i]];
        for (long j = 0; j < n; j++) grad[i * n + j] = expf(row[j] - largest) / total;
        grad[i * n + target[i]] -= 1;
    }""",
    lambda n: (floats(64, n), np.arange(64, dtype=np.int32), zeros(64), zeros(64, n)),
    2048,
    outputs=2,
)


# ---- AdamW ----


@fe.kernel
def adamw_kernel(p, g, m, v, rate: fe.Float32, out):
    i = arch.block_idx()[0] * BLOCK + arch.thread_idx()[0]
    if i < p.shape[0]:
        first = 0.9 * m[i] + 0.1 * g[i]
        second = 0.999 * v[i] + 0.001 * g[i] * g[i]
        step = first / (fe.math.sqrt(second) + 1e-8)
        out[i] = p[i] * (1.0 - rate * 0.01) - rate * step


@fe.jit
def adamw(p, g, m, v, rate: fe.Float32, out):
    blocks = (p.shape[0] + BLOCK - 1) // BLOCK
    adamw_kernel(p, g, m, v, rate, out).launch(grid=blocks, block=BLOCK)


def numba_adamw(p, g, m, v, rate, out):
    rate = np.float32(rate)
    for i in range(p.shape[0]):
        first = np.float32(0.9) * m[i] + np.float32(0.1) * g[i]
        second = np.float32(0.999) * v[i] + np.float32(0.001) * g[i] * g[i]
        step = first / (np.sqrt(second) + np.float32(1e-8))
        out[i] = p[i] * (np.float32(1) - rate * np.float32(0.01)) - rate * step


ADAMW: Final = Case(
    "AdamW",
    adamw,
    numba_adamw,
    "p g m v rate out",
    """
    for (long i = 0; i < p0; i++) {
        float first = 0.9f * m[i] + 0.1f * g[i];
        float second = 0.999f * v[i] + 0.001f * g[i] * g[i];
        float step = first / (sqrtf(second) + 1e-8f);
        out[i] = p[i] * (1.0f - rate * 0.01f) - rate * step;
    }""",
    lambda n: (
        floats(n),
        floats(n, seed=1),
        floats(n, seed=2),
        np.abs(floats(n, seed=3)),
        0.001,
        zeros(n),
    ),
    100_000,
)


# ---- group norm ----


@fe.kernel
def group_norm_kernel(x, w, b, out):
    """x: (groups, channels of one, places)."""
    group, thread = arch.block_idx()[0], arch.thread_idx()[0]
    channels, places = x.shape[1], x.shape[2]
    total, squares = fe.Float32(0), fe.Float32(0)
    for c in range(channels):
        for i in range(thread, places, BLOCK):
            value = x[group, c, i]
            total += value
            squares += value * value
    total = arch.block_reduction(total, add)
    squares = arch.block_reduction(squares, add)
    count = fe.Float32(channels * places)
    mean = total / count
    scale = 1.0 / fe.math.sqrt(squares / count - mean * mean + 1e-5)
    for c in range(channels):
        for i in range(thread, places, BLOCK):
            out[group, c, i] = (x[group, c, i] - mean) * scale * w[c] + b[c]


@fe.jit
def group_norm(x, w, b, out):
    group_norm_kernel(x, w, b, out).launch(grid=x.shape[0], block=BLOCK)


def numba_group_norm(x, w, b, out):
    groups, channels, places = x.shape
    for g in range(groups):
        total, squares = np.float32(0), np.float32(0)
        for c in range(channels):
            for i in range(places):
                total += x[g, c, i]
                squares += x[g, c, i] * x[g, c, i]
        count = np.float32(channels * places)
        mean = total / count
        scale = np.float32(1) / np.sqrt(squares / count - mean * mean + np.float32(1e-5))
        for c in range(channels):
            for i in range(places):
                out[g, c, i] = (x[g, c, i] - mean) * scale * w[c] + b[c]


GROUP_NORM: Final = Case(
    "group norm",
    group_norm,
    numba_group_norm,
    "x w b out",
    """
    long n = x1 * x2;
    for (long g = 0; g < x0; g++) {
        float total = 0, squares = 0, *v = x + g * n;
        for (long i = 0; i < n; i++) { total += v[i]; squares += v[i] * v[i]; }
        float mean = total / n, scale = 1 / sqrtf(squares / n - mean * mean + 1e-5f);
        for (long c = 0; c < x1; c++)
            for (long i = 0; i < x2; i++)
                out[g * n + c * x2 + i] = (v[c * x2 + i] - mean) * scale * w[c] + b[c];
    }""",
    lambda n: (floats(32, 8, n), floats(8, seed=1), floats(8, seed=2), zeros(32, 8, n)),
    1024,
)


# ---- rotary embedding, interleaved ----


@fe.kernel
def rope_kernel(x, cos, sin, out):
    """x: (tokens, heads, 128); a block for each token and head, a thread for each pair."""
    token, head, i = arch.block_idx()[0], arch.block_idx()[1], arch.thread_idx()[0]
    a, b = x[token, head, 2 * i], x[token, head, 2 * i + 1]
    c, s = cos[token, i], sin[token, i]
    out[token, head, 2 * i] = a * c - b * s
    out[token, head, 2 * i + 1] = a * s + b * c


@fe.jit
def rope(x, cos, sin, out):
    rope_kernel(x, cos, sin, out).launch(grid=(x.shape[0], x.shape[1]), block=64)


def numba_rope(x, cos, sin, out):
    for t in range(x.shape[0]):
        for h in range(x.shape[1]):
            for i in range(cos.shape[1]):
                a, b = x[t, h, 2 * i], x[t, h, 2 * i + 1]
                out[t, h, 2 * i] = a * cos[t, i] - b * sin[t, i]
                out[t, h, 2 * i + 1] = a * sin[t, i] + b * cos[t, i]


ROPE: Final = Case(
    "rope, interleaved",
    rope,
    numba_rope,
    "x cos sin out",
    """
    for (long t = 0; t < x0; t++)
        for (long h = 0; h < x1; h++)
            for (long i = 0; i < cos1; i++) {
                float *p = x + (t * x1 + h) * x2 + 2 * i, *o = out + (t * x1 + h) * x2 + 2 * i;
                float c = cos[t * cos1 + i], s = sin[t * cos1 + i];
                o[0] = p[0] * c - p[1] * s;
                o[1] = p[0] * s + p[1] * c;
            }""",
    lambda n: (floats(n, 16, 128), floats(n, 64, seed=1), floats(n, 64, seed=2), zeros(n, 16, 128)),
    64,
)

# ---- a cast to floats of 8 bits, with a scale for each row ----


@fe.kernel
def fp8_kernel(x, scale, out):
    row, thread = arch.block_idx()[0], arch.thread_idx()[0]
    for j in range(thread, x.shape[1], BLOCK):
        out[row, j] = (x[row, j] * scale[row]).to(fe.Float8E4M3FN, saturate=True)


@fe.jit
def fp8(x, scale, out):
    fp8_kernel(x, scale, out.recast(fe.Float8E4M3FN)).launch(grid=x.shape[0], block=BLOCK)


def numba_fp8(x, scale, out):
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            bits = np.float32(x[i, j] * scale[i]).view(np.uint32)
            size = min(bits & np.uint32(0x7FFFFFFF), np.uint32(0x43E00000))
            odd = (size >> np.uint32(20)) & np.uint32(1)
            large = ((size + odd + np.uint32(0x7FFFF)) >> np.uint32(20)) - np.uint32(960)
            tiny = np.uint32(size).view(np.float32) + np.float32(16384)
            small = np.float32(tiny).view(np.uint32) - np.uint32(0x46800000)
            found = small if size < np.uint32(0x3C800000) else large
            found = np.uint32(0x7F) if bits & 0x7FFFFFFF > 0x7F800000 else found
            out[i, j] = np.uint8(found | ((bits >> np.uint32(24)) & np.uint32(128)))


FP8: Final = Case(
    "fp8 cast with scale",
    fp8,
    numba_fp8,
    "x scale out",
    """
    for (long i = 0; i < x0; i++)
        for (long j = 0; j < x1; j++) {
            float v = x[i * x1 + j] * scale[i], tiny;
            uint32_t bits, size, small, large;
            memcpy(&bits, &v, 4);
            size = bits & 0x7FFFFFFF;
            if (size > 0x43E00000) size = 0x43E00000;
            large = ((size + ((size >> 20) & 1) + 0x7FFFF) >> 20) - 960;
            memcpy(&tiny, &size, 4);
            tiny += 16384;
            memcpy(&small, &tiny, 4);
            uint32_t found = size < 0x3C800000 ? small - 0x46800000 : large;
            found = (bits & 0x7FFFFFFF) > 0x7F800000 ? 0x7F : found;
            out[i * x1 + j] = found | (bits >> 24 & 128);
        }""",
    lambda n: (1000 * floats(64, n), floats(64, seed=1), zeros(64, n, dtype=np.uint8)),
    4096,
    tolerance=0,
)

ROWS: Final = (LAYER_NORM, SOFTMAX, CROSS_ENTROPY, ADAMW, GROUP_NORM, ROPE, FP8)
