"""What the threads of a block compute together, as it is written for Numba: plain loops.

See numba_kernels.py, which these go with.  The first loop of each is the one that
`threads.parallel` shares among the cores.
"""

from __future__ import annotations

import math

import numpy as np


def matmul(a, b, c):
    """The loops of examples/tiled_matmul.py."""
    m, depth, n = c.shape[0], a.shape[1], c.shape[1]
    columns = (n + 31) // 32
    for block in range((m + 31) // 32 * columns):
        top, left = block // columns * 32, block % columns * 32
        of_a, of_b = np.zeros((32, 32), np.float32), np.zeros((32, 32), np.float32)
        sums = np.zeros((32, 32), np.float32)
        for base in range(0, depth, 32):
            for i in range(32):
                for j in range(32):
                    inside = top + i < m and base + j < depth
                    of_a[i, j] = a[top + i, base + j] if inside else np.float32(0)
                    inside = base + i < depth and left + j < n
                    of_b[i, j] = b[base + i, left + j] if inside else np.float32(0)
            for i in range(32):
                for k in range(32):
                    for j in range(32):
                        sums[i, j] += of_a[i, k] * of_b[k, j]
        for i in range(min(32, m - top)):
            for j in range(min(32, n - left)):
                c[top + i, left + j] = sums[i, j]


def transpose(a, out):
    """By tiles, as the example."""
    m, n = a.shape
    for tile in range((m + 31) // 32):
        for left in range(0, n, 32):
            for j in range(left, min(left + 32, n)):
                for i in range(tile * 32, min(tile * 32 + 32, m)):
                    out[j, i] = a[i, j]


def sum_and_max(x, total, largest):
    """In pieces of 4096, as the blocks of the example."""
    pieces = (x.shape[0] + 4095) // 4096
    sums, tops = np.empty(pieces, np.float32), np.empty(pieces, np.float32)
    for piece in range(pieces):
        s, top = np.float32(0), np.float32(-np.inf)
        for i in range(piece * 4096, min(piece * 4096 + 4096, x.shape[0])):
            s += x[i]
            top = max(top, x[i])
        sums[piece], tops[piece] = s, top
    total[0], largest[0] = sums.sum(), tops.max()


def prefix_sum(x, out):
    """In two passes over pieces; only the first is shared among cores."""
    n = x.shape[0]
    pieces = (n + 2047) // 2048
    sums = np.zeros(pieces + 1, np.int64)
    for piece in range(pieces):
        total = np.int64(0)
        for i in range(piece * 2048, min(piece * 2048 + 2048, n)):
            total += x[i]
        sums[piece + 1] = total
    before = np.int64(0)
    for i in range(n):
        before += x[i]
        out[i] = before


def histogram(x, counts):
    """Counts of pieces, added up at the end."""
    pieces = (x.shape[0] + 65535) // 65536
    parts = np.zeros((pieces, 256), np.int64)
    for piece in range(pieces):
        for i in range(piece * 65536, min(piece * 65536 + 65536, x.shape[0])):
            parts[piece, x[i]] += 1
    counts[:] = parts.sum(0)


def top_k(x, values, places):
    """By insertion into the best of the row so far."""
    for row in range(x.shape[0]):
        best, at = np.full(8, -np.inf, np.float32), np.zeros(8, np.int32)
        for j in range(x.shape[1]):
            if x[row, j] > best[7]:
                slot = 7
                while slot > 0 and x[row, j] > best[slot - 1]:
                    best[slot], at[slot] = best[slot - 1], at[slot - 1]
                    slot -= 1
                best[slot], at[slot] = x[row, j], j
        values[row], places[row] = best, at


def attention(q, k, v, out):
    """One query after the other, online, as the example but without tiles."""
    n, keys, dim = q.shape[1], k.shape[1], q.shape[2]
    scale = np.float32(1 / math.sqrt(dim))
    for query in range(q.shape[0] * n):
        head, row = query // n, query % n
        largest, total = np.float32(-np.inf), np.float32(0)
        result = np.zeros(dim, np.float32)
        for j in range(keys):
            score = np.float32(0)
            for d in range(dim):
                score += q[head, row, d] * k[head, j, d]
            score *= scale
            bound = max(largest, score)
            old, weight = math.exp(largest - bound), math.exp(score - bound)
            total = total * old + weight
            for d in range(dim):
                result[d] = result[d] * old + weight * v[head, j, d]
            largest = bound
        for d in range(dim):
            out[head, row, d] = result[d] / total
