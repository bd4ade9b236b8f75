"""How often each of 256 values is in a vector of bytes.

    python examples/histogram.py

Each block counts in shared memory, where an atomic is cheap, and adds what it has counted to the
result once.
"""

from __future__ import annotations

import numpy as np

import ferrule as fe
from ferrule import arch

BINS = 256
THREADS = 256
EACH = 64  # elements a thread


@fe.kernel
def device_clear(counts: fe.Tensor):
    counts[arch.thread_idx()[0]] = 0


@fe.kernel
def device_histogram(x: fe.Tensor, counts: fe.Tensor):
    tid, _, _ = arch.thread_idx()
    bid, _, _ = arch.block_idx()
    own = arch.alloc_smem(fe.Int32, BINS)
    own[tid] = 0
    arch.sync_threads()
    for k in range(EACH):
        i = (bid * EACH + k) * THREADS + tid
        if i < x.shape[0]:
            arch.atomic_add(own + x[i], 1)
    arch.sync_threads()
    if own[tid] > 0:
        arch.atomic_add(counts.iterator + tid, fe.Int64(own[tid]))


@fe.jit
def histogram(x: fe.Tensor, counts: fe.Tensor):
    """counts[v] = how many elements of x are v."""
    device_clear(counts).launch(grid=(1,), block=(BINS,))
    blocks = fe.ceil_div(x.shape[0], THREADS * EACH)
    device_histogram(x, counts).launch(grid=(blocks,), block=(THREADS,))


def compiled(options: str = "--target cpu") -> fe.Function:
    """The function for bytes; the counts are int64."""
    x = fe.make_fake_compact_tensor(fe.Uint8, (fe.sym_int(),))
    counts = fe.make_fake_compact_tensor(fe.Int64, (BINS,))
    return fe.compile(histogram, x, counts, options=options)


def main() -> None:
    """Compiles, runs, compares."""
    function = compiled()
    print(function.signature)
    normal = np.random.default_rng(0).standard_normal(1_000_003)
    x = np.clip(normal * 20 + 128, 0, 255).astype(np.uint8)
    counts = np.empty(BINS, np.int64)
    function(x, counts)
    np.testing.assert_array_equal(counts, np.bincount(x, minlength=BINS))
    print("equals NumPy's result")


if __name__ == "__main__":
    main()
