"""The prefix sums of a vector of any length, in three launches.

    python examples/prefix_sum.py

Each block adds up its part; one block makes prefix sums of these sums; then each block makes the
prefix sums of its part, from what the parts before it have.  Integers, which add up alike in any
order.
"""

from __future__ import annotations

import operator

import numpy as np

import ferrule as fe
from ferrule import arch

THREADS = 256
EACH = 8  # elements a thread
PART = THREADS * EACH


@fe.kernel
def device_sums(x: fe.Tensor, sums: fe.Tensor):
    tid, _, _ = arch.thread_idx()
    bid, _, _ = arch.block_idx()
    total = fe.Int64(0)
    for k in range(EACH):
        i = bid * PART + k * THREADS + tid
        if i < x.shape[0]:
            total += x[i]
    total = arch.block_reduction(total, operator.add)
    if tid == 0:
        sums[bid] = total


@fe.kernel
def device_scan_sums(sums: fe.Tensor):
    """Each sum becomes that of those before it.  One block, which takes THREADS at a time."""
    tid, _, _ = arch.thread_idx()
    n = sums.shape[0]
    before = fe.Int64(0)
    for base in range(0, n, THREADS):
        own = fe.Int64(0)
        if base + tid < n:
            own = sums[base + tid]
        scanned = arch.block_scan(own, operator.add)
        if base + tid < n:
            sums[base + tid] = before + scanned - own
        before += arch.block_reduction(own, operator.add)


@fe.kernel
def device_scan(x: fe.Tensor, sums: fe.Tensor, out: fe.Tensor):
    tid, _, _ = arch.thread_idx()
    bid, _, _ = arch.block_idx()
    n, part = x.shape[0], arch.alloc_smem(fe.Int64, PART)
    # The block reads and writes neighbours; each thread adds up EACH that follow each other.
    for j in range(tid, PART, THREADS):
        part[j] = fe.Int64(x[bid * PART + j]) if bid * PART + j < n else fe.Int64(0)
    arch.sync_threads()
    total = fe.Int64(0)
    for k in range(EACH):
        total += part[tid * EACH + k]
    total = arch.block_scan_exclusive(total, operator.add, sums[bid])
    for k in range(EACH):
        total += part[tid * EACH + k]
        part[tid * EACH + k] = total
    arch.sync_threads()
    for j in range(tid, PART, THREADS):
        if bid * PART + j < n:
            out[bid * PART + j] = part[j]


@fe.jit
def prefix_sum(x: fe.Tensor, out: fe.Tensor):
    """out[i] = x[0] + … + x[i]."""
    blocks = fe.ceil_div(x.shape[0], PART)
    sums = fe.empty((blocks,), fe.Int64)
    device_sums(x, sums).launch(grid=(blocks,), block=(THREADS,))
    device_scan_sums(sums).launch(grid=(1,), block=(THREADS,))
    device_scan(x, sums, out).launch(grid=(blocks,), block=(THREADS,))


def compiled(options: str = "--target cpu") -> fe.Function:
    """The function from int32 vectors of any length to int64."""
    n = fe.sym_int()
    x = fe.make_fake_compact_tensor(fe.Int32, (n,))
    out = fe.make_fake_compact_tensor(fe.Int64, (n,))
    return fe.compile(prefix_sum, x, out, options=options)


def main() -> None:
    """Compiles, runs, compares."""
    function = compiled()
    print(function.signature)
    rng = np.random.default_rng(0)
    x = rng.integers(-(2**31), 2**31, 1_000_003).astype(np.int32)
    out = np.empty(x.shape, np.int64)
    function(x, out)
    np.testing.assert_array_equal(out, np.cumsum(x, dtype=np.int64))
    print("equals NumPy's result")


if __name__ == "__main__":
    main()
