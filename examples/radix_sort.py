"""Sorts a vector of unsigned integers by their digits, from the last to the first.

    python examples/radix_sort.py

A pass orders by one digit of BITS bits and keeps the order of equal ones: blocks count the digits
of their parts; one block turns the counts into the places where the elements of each digit and
block begin; and blocks write their elements there.  Within a block an element's place follows from
which lanes of the warp have the same digit, and how many such are before it.
"""

from __future__ import annotations

import operator

import numpy as np

import ferrule as fe
from ferrule import arch

BITS = 4
DIGITS = 1 << BITS
THREADS = 256
WARPS = THREADS // arch.WARP_SIZE


@fe.jit
def digit_of(value, shift):
    """The digit that begins at a bit."""
    return fe.Int32((value >> shift) & (DIGITS - 1))


@fe.kernel
def device_count(x: fe.Tensor, counts: fe.Tensor, shift: fe.Int32):
    """counts[digit, block] = how often the digit is in the block's part."""
    tid, _, _ = arch.thread_idx()
    bid, _, _ = arch.block_idx()
    own, i = arch.alloc_smem(fe.Int32, DIGITS), bid * THREADS + tid
    if tid < DIGITS:
        own[tid] = 0
    arch.sync_threads()
    if i < x.shape[0]:
        arch.atomic_add(own + digit_of(x[i], shift), 1)
    arch.sync_threads()
    if tid < DIGITS:
        counts[tid, bid] = own[tid]


@fe.kernel
def device_places(counts: fe.Tensor):
    """Each count becomes the sum of those before it: of smaller digits, then of earlier blocks."""
    tid, _, _ = arch.thread_idx()
    n, blocks = counts.shape[0] * counts.shape[1], counts.shape[1]
    before = fe.Int32(0)
    for base in range(0, n, THREADS):
        i, own = base + tid, fe.Int32(0)
        if i < n:
            own = counts[i // blocks, i % blocks]
        place = arch.block_scan_exclusive(own, operator.add, before)
        if i < n:
            counts[i // blocks, i % blocks] = place
        before += arch.block_reduction(own, operator.add)


@fe.kernel
def device_move(x: fe.Tensor, counts: fe.Tensor, out: fe.Tensor, shift: fe.Int32):
    tid, _, _ = arch.thread_idx()
    bid, _, _ = arch.block_idx()
    lane, warp = arch.lane_idx(), arch.warp_idx()
    i = bid * THREADS + tid
    # How often a warp has each digit, and from that, how often those before it have it.
    layout = fe.make_layout((WARPS, DIGITS), stride=(DIGITS, 1))
    earlier = fe.make_tensor(arch.alloc_smem(fe.Int32, WARPS * DIGITS), layout)
    for j in range(tid, WARPS * DIGITS, THREADS):
        earlier[j // DIGITS, j % DIGITS] = 0
    arch.sync_threads()
    digit, value = DIGITS, x[0]  # threads past the end have a digit of their own
    if i < x.shape[0]:
        value = x[i]
        digit = digit_of(value, shift)
    alike = arch.match_any_sync(digit)
    rank = fe.math.popc(alike & ((fe.Uint32(1) << lane) - 1))
    if i < x.shape[0] and rank == 0:
        earlier[warp, digit] = fe.math.popc(alike)
    arch.sync_threads()
    if tid < DIGITS:
        total = counts[tid, bid]
        for w in range(WARPS):
            own = earlier[w, tid]
            earlier[w, tid] = total
            total += own
    arch.sync_threads()
    if i < x.shape[0]:
        out[earlier[warp, digit] + rank] = value


def one_pass(x, out, counts, shift):
    """out = x in the order of one digit."""
    grid, block = (counts.shape[1],), (THREADS,)
    device_count(x, counts, shift).launch(grid=grid, block=block)
    device_places(counts).launch(grid=(1,), block=block)
    device_move(x, counts, out, shift).launch(grid=grid, block=block)


@fe.jit
def radix_sort(x: fe.Tensor, out: fe.Tensor):
    """out = x, sorted."""
    blocks = fe.ceil_div(x.shape[0], THREADS)
    other, counts = fe.empty_like(x), fe.empty((DIGITS, blocks), fe.Int32)
    out[:] = x[:]
    for shift in range(0, 32, 2 * BITS):
        one_pass(out, other, counts, shift)
        one_pass(other, out, counts, shift + BITS)


def compiled(options: str = "--target cpu") -> fe.Function:
    """The function for uint32 vectors of any length."""
    x = fe.make_fake_compact_tensor(fe.Uint32, (fe.sym_int(),))
    return fe.compile(radix_sort, x, x, options=options)


def main() -> None:
    """Compiles, runs, compares."""
    function = compiled()
    print(function.signature)
    x = np.random.default_rng(0).integers(0, 2**32, 200_003, dtype=np.uint32)
    out = np.empty_like(x)
    function(x, out)
    np.testing.assert_array_equal(out, np.sort(x))
    print("equals NumPy's result")


if __name__ == "__main__":
    main()
