"""The sum and the largest of a vector, by blocks, warps and lanes.

    python examples/reduction.py

The first kernel reduces a part of the vector in each block: threads add up what they read, the
lanes of a warp give each other their sums in five steps, and the first warp reduces what the others
have left in shared memory.  The second kernel reduces what the blocks have left, with the function
that does all of this.  No atomics, so that the result is the same in every run.
"""

from __future__ import annotations

import operator

import numpy as np

import ferrule as fe
from ferrule import arch

THREADS = 256
WARPS = THREADS // arch.WARP_SIZE
EACH = 64  # elements a thread


def by_lanes(value, op, lanes):
    """`op` of the values of neighbouring lanes: this is arch.warp_reduction."""
    for step in fe.range_constexpr(lanes.bit_length() - 1):
        value = op(value, arch.shuffle_sync_bfly(value, 1 << step))
    return value


@fe.kernel
def device_parts(x: fe.Tensor, parts: fe.Tensor, op: fe.Constexpr, start: fe.Constexpr):
    tid, _, _ = arch.thread_idx()
    bid, _, _ = arch.block_idx()
    value = fe.Float32(start)
    for k in range(EACH):
        i = (bid * EACH + k) * THREADS + tid
        if i < x.shape[0]:
            value = op(value, x[i])
    value = by_lanes(value, op, arch.WARP_SIZE)
    warps = arch.alloc_smem(fe.Float32, WARPS)
    if arch.lane_idx() == 0:
        warps[arch.warp_idx()] = value
    arch.sync_threads()
    if arch.warp_idx() == 0:
        value = warps[arch.lane_idx() % WARPS]
        value = by_lanes(value, op, WARPS)
        if tid == 0:
            parts[bid] = value


@fe.kernel
def device_whole(parts: fe.Tensor, out: fe.Tensor, op: fe.Constexpr, start: fe.Constexpr):
    tid, _, _ = arch.thread_idx()
    value = fe.Float32(start)
    for i in range(tid, parts.shape[0], THREADS):
        value = op(value, parts[i])
    value = arch.block_reduction(value, op)
    if tid == 0:
        out[0] = value


def reduce(x, out, op, start):
    """out[0] = op of all elements of x."""
    blocks = fe.ceil_div(x.shape[0], THREADS * EACH)
    parts = fe.empty((blocks,), fe.Float32)
    device_parts(x, parts, op, start).launch(grid=(blocks,), block=(THREADS,))
    device_whole(parts, out, op, start).launch(grid=(1,), block=(THREADS,))


@fe.jit
def sum_and_max(x: fe.Tensor, total: fe.Tensor, largest: fe.Tensor):
    """total[0] = sum(x), largest[0] = max(x); of no elements 0 and -inf."""
    reduce(x, total, operator.add, 0.0)
    reduce(x, largest, max, -float("inf"))


def compiled(options: str = "--target cpu") -> fe.Function:
    """The function for float32 vectors of any length."""
    x = fe.make_fake_compact_tensor(fe.Float32, (fe.sym_int(),))
    one = fe.make_fake_compact_tensor(fe.Float32, (1,))
    return fe.compile(sum_and_max, x, one, one, options=options)


def main() -> None:
    """Compiles, runs, compares."""
    function = compiled()
    print(function.signature)
    x = np.random.default_rng(0).standard_normal(1_000_003, dtype=np.float32)
    total, largest = np.empty(1, np.float32), np.empty(1, np.float32)
    function(x, total, largest)
    expected = x.sum(dtype=np.float64)
    assert largest[0] == x.max()
    np.testing.assert_allclose(total[0], expected, rtol=1e-4, atol=1e-2)
    print(f"equals NumPy's result (difference of the sums {abs(total[0] - expected):.1e})")


if __name__ == "__main__":
    main()
