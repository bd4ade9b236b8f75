"""The kernels of the examples as they are written for Numba: plain loops over NumPy arrays.

Nothing is imported from Numba here: `jit` makes a function that compiles itself.  Float32 stays
float32, so that both sides do the same work; sums are added in the order of the loop, as Numba
does without `fastmath`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np


def jit(function: Callable[..., Any]) -> Any:
    """Numba's dispatcher of a function, new and not compiled; one thread, exact arithmetic."""
    import numba

    return numba.njit(function)


def saxpy(alpha, x, y):
    for i in range(x.shape[0]):
        y[i] = alpha * x[i] + y[i]


def swiglu(x, y):
    d = y.shape[1]
    one = np.float32(1)
    for t in range(y.shape[0]):
        for i in range(d):
            gate = x[t, i]
            y[t, i] = gate / (one + math.exp(-gate)) * x[t, d + i]


def rotary(q, positions, cos, sin):
    half = cos.shape[1]
    for t in range(q.shape[0]):
        position = positions[t]
        for head in range(q.shape[1]):
            for i in range(half):
                c, s = cos[position, i], sin[position, i]
                first, second = q[t, head, i], q[t, head, half + i]
                q[t, head, i] = first * c - second * s
                q[t, head, half + i] = second * c + first * s


def softmax(x, y):
    n = x.shape[1]
    for row in range(x.shape[0]):
        largest = x[row, 0]
        for j in range(1, n):
            largest = max(largest, x[row, j])
        total = np.float32(0)
        for j in range(n):
            y[row, j] = math.exp(x[row, j] - largest)
            total += y[row, j]
        for j in range(n):
            y[row, j] = y[row, j] / total


def layer_norm(x, weight, bias, y, eps):
    n = x.shape[1]
    one, count = np.float32(1), np.float32(n)
    for row in range(x.shape[0]):
        total = np.float32(0)
        for j in range(n):
            total += x[row, j]
        mean = total / count
        squares = np.float32(0)
        for j in range(n):
            difference = x[row, j] - mean
            squares += difference * difference
        scale = one / math.sqrt(squares / count + eps)
        for j in range(n):
            y[row, j] = (x[row, j] - mean) * scale * weight[j] + bias[j]


def gather(cache, table, lengths, out):
    page_size = cache.shape[1]
    for b in range(out.shape[0]):
        for t in range(out.shape[1]):
            if t < lengths[b]:
                page = table[b, t // page_size]
                for i in range(out.shape[2]):
                    out[b, t, i] = cache[page, t % page_size, i]
            else:
                for i in range(out.shape[2]):
                    out[b, t, i] = 0


def conv2d(x, weight, bias, y):
    height, width = x.shape[2], x.shape[3]
    for n in range(y.shape[0]):
        for f in range(y.shape[1]):
            for row in range(y.shape[2]):
                for column in range(y.shape[3]):
                    total = bias[f]
                    for c in range(x.shape[1]):
                        for dy in range(3):
                            for dx in range(3):
                                iy, ix = row + dy - 1, column + dx - 1
                                if 0 <= iy < height and 0 <= ix < width:
                                    total += x[n, c, iy, ix] * weight[f, c, dy, dx]
                    y[n, f, row, column] = total


def matmul(a, b, c):
    for row in range(c.shape[0]):
        for column in range(c.shape[1]):
            total = np.float32(0)
            for k in range(a.shape[1]):
                total += a[row, k] * b[k, column]
            c[row, column] = total
