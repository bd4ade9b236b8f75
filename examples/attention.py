"""Attention, softmax(q kᵀ / sqrt(d)) v, in one pass over keys and values.

    python examples/attention.py

A block computes QUERIES rows of the result for one head, a warp EACH of them.  It walks over the
keys and values in tiles of 32, which it brings into shared memory: of each tile, a lane computes
the scores of one key, and then adds to its own places of the result.  What is known of the softmax
so far, the largest score and the sum, is corrected whenever a larger score turns up; the matrix of
all scores is never there.  With `causal` a query counts only the keys up to its own place; the
queries are the last of as many places as there are keys.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

import ferrule as fe
from ferrule import arch

DIM = 64
LANES = arch.WARP_SIZE
KEYS = LANES  # of a tile, one a lane
WARPS = 8
EACH = 4  # queries a warp
QUERIES = WARPS * EACH
PARTS = DIM // LANES  # places of a row of the result that a lane has


def shared_matrix(rows, columns, pitch):
    """A new matrix in shared memory."""
    memory = arch.alloc_smem(fe.Float32, rows * pitch)
    return fe.make_tensor(memory, fe.make_layout((rows, columns), stride=(pitch, 1)))


@fe.jit
def load(tile, x, head, first, rows: fe.Constexpr, transposed: fe.Constexpr):
    """Brings rows of a head into shared memory, a row a warp; 0 for rows that there are not."""
    lane, warp, _ = arch.thread_idx()
    for step in fe.range_constexpr(rows // WARPS):
        i = step * WARPS + warp
        for part in fe.range_constexpr(PARTS):
            d = part * LANES + lane
            value = x[head, first + i, d] if first + i < x.shape[1] else 0.0
            if transposed:
                tile[d, i] = value
            else:
                tile[i, d] = value


class Softmax(NamedTuple):
    """What a lane knows after a tile; `old` is what earlier weights are multiplied by."""

    weight: fe.Float32
    largest: fe.Float32
    total: fe.Float32
    old: fe.Float32


@fe.jit
def updated(score, largest, total):
    """The softmax with one more score from each lane."""
    larger = max(largest, arch.warp_reduction_max(score))
    # Before the first key that counts all scores are -inf; the difference of two would be a NaN.
    bound = larger if larger > -math.inf else 0.0
    weight, old = fe.math.exp(score - bound), fe.math.exp(largest - bound)
    return Softmax(weight, larger, total * old + weight, old)


@fe.kernel
def device_attention(
    q: fe.Tensor, k: fe.Tensor, v: fe.Tensor, out: fe.Tensor, causal: fe.Constexpr
):
    lane, warp, _ = arch.thread_idx()
    tile, head, _ = arch.block_idx()
    n, keys, first = q.shape[1], k.shape[1], tile * QUERIES
    of_q = shared_matrix(QUERIES, DIM, DIM)
    # Columns are written and rows read: one more than needed keeps the lanes in 32 banks.
    of_k = shared_matrix(DIM, KEYS, KEYS + 1)
    of_v = shared_matrix(KEYS, DIM, DIM)
    weights = shared_matrix(QUERIES, KEYS, KEYS)
    load(of_q, q, head, first, QUERIES, False)
    own = warp * EACH  # the first query of the warp
    largest = (fe.Float32(-math.inf),) * EACH
    totals = (fe.Float32(0.0),) * EACH  # of the keys that this lane has scored
    results = ((fe.Float32(0.0),) * PARTS,) * EACH
    end = min(keys, first + QUERIES + keys - n) if causal else keys
    for base in range(0, end, KEYS):
        load(of_k, k, head, base, KEYS, True)
        arch.sync_threads()
        scores = (fe.Float32(0.0),) * EACH
        for d in range(DIM):
            scores = tuple(s + of_q[own + e, d] * of_k[d, lane] for e, s in enumerate(scores))
        softmax = []
        for e in fe.range_constexpr(EACH):
            last = first + own + e + keys - n if causal else keys - 1
            score = scores[e] * (1.0 / math.sqrt(DIM)) if base + lane <= last else -math.inf
            softmax.append(updated(score, largest[e], totals[e]))
            weights[own + e, lane] = softmax[e].weight
        load(of_v, v, head, base, KEYS, False)
        arch.sync_threads()
        results = tuple(
            tuple(r * s.old for r in row) for row, s in zip(results, softmax, strict=True)
        )
        for i in range(KEYS):
            values = [of_v[i, part * LANES + lane] for part in range(PARTS)]
            results = tuple(
                tuple(r + weights[own + e, i] * value for r, value in zip(row, values, strict=True))
                for e, row in enumerate(results)
            )
        largest, totals = tuple(s.largest for s in softmax), tuple(s.total for s in softmax)
    for e in fe.range_constexpr(EACH):
        total = arch.warp_reduction_sum(totals[e])
        if first + own + e < n:
            for part in fe.range_constexpr(PARTS):
                value = results[e][part] / total if total > 0.0 else 0.0
                out[head, first + own + e, part * LANES + lane] = value


@fe.jit
def attention(q: fe.Tensor, k: fe.Tensor, v: fe.Tensor, out: fe.Tensor, causal: fe.Constexpr):
    """out[h] = softmax(q[h] k[h]ᵀ / sqrt(DIM)) v[h] for each head h; 0 where no key counts."""
    grid = (fe.ceil_div(q.shape[1], QUERIES), q.shape[0])
    device_attention(q, k, v, out, causal).launch(grid=grid, block=(LANES, WARPS))


def compiled(options: str = "--target cpu", *, causal: bool = False) -> fe.Function:
    """The function for any numbers of heads, queries and keys."""
    heads, n, keys = (fe.sym_int() for _ in range(3))

    def of(length):
        return fe.make_fake_compact_tensor(fe.Float32, (heads, length, DIM), stride_order=(2, 1, 0))

    return fe.compile(attention, of(n), of(keys), of(keys), of(n), causal, options=options)


def reference(q: np.ndarray, k: np.ndarray, v: np.ndarray, *, causal: bool = False) -> np.ndarray:
    """The same in NumPy, with the whole matrix of scores in float64; every query needs a key."""
    scores = q.astype(np.float64) @ k.swapaxes(1, 2) / math.sqrt(DIM)
    if causal:
        n, keys = scores.shape[1:]
        scores[:, np.arange(keys) > np.arange(keys - n, keys)[:, None]] = -np.inf
    e = np.exp(scores - scores.max(axis=2, keepdims=True))
    return e / e.sum(axis=2, keepdims=True) @ v


def main() -> None:
    """Compiles, runs, compares."""
    rng = np.random.default_rng(0)
    q = rng.standard_normal((3, 101, DIM), dtype=np.float32)
    k, v = (rng.standard_normal((3, 203, DIM), dtype=np.float32) for _ in range(2))
    for causal in (False, True):
        function = compiled(causal=causal)
        out = np.empty_like(q)
        function(q, k, v, out)
        expected = reference(q, k, v, causal=causal)
        np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-5)
        what = "causal: " if causal else ""
        print(f"{what}equals NumPy's result (max difference {abs(out - expected).max():.1e})")
    print(function.signature)


if __name__ == "__main__":
    main()
