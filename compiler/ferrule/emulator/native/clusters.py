"""Places in the shared memory of a cluster's blocks, and its random numbers.

An address of `.shared::cluster` is an offset in the block's own window, as in `.shared::cta`, or
has the rank of another block, plus one, above bit 24. Generic addresses are those of the process.
"""

from __future__ import annotations

from typing import Final

from ferrule.emulator.native.places import SOURCE as PLACES

SOURCE: Final = (
    PLACES
    + """
def cluster_of(w: u64) -> u64:
    return load_u64(load_u64(w + BLOCK) + CLUSTER)

def leader_of(w: u64) -> u64:
    return load_u64(cluster_of(w) + C_BLOCKS)

def block_of_rank(w: u64, rank: u64) -> u64:
    cluster = cluster_of(w)
    if rank >= u64(load_u32(cluster + C_SIZE)):
        return 0
    return load_u64(cluster + C_BLOCKS + rank * 8)

def lives(w: u64, lane: u32, block: u64, a: u64, size: u64) -> i1:
    if load_u32(block + THREADS) != 0:
        return 1
    fault(w, ENDED, lane, a, size)
    return 0

def cluster_place(w: u64, lane: u32, a: u64, size: u64, align: u64) -> u64:
    if not aligned(w, lane, a, align):
        return 0
    block = load_u64(w + BLOCK)
    if a >> 24 != 0:
        block = block_of_rank(w, (a >> 24) - 1)
        if block == 0:
            fault(w, SPACE, lane, a, size)
            return 0
        if not lives(w, lane, block, a, size):
            return 0
    at = a & 0xFFFFFF
    if at + size > load_u64(block + SHARED_SIZE):
        fault(w, SPACE, lane, a, size)
        return 0
    return at + load_u64(block + SHARED_BASE)

def block_with(w: u64, a: u64, size: u64) -> u64:
    cluster = cluster_of(w)
    for rank in range(u64(load_u32(cluster + C_SIZE))):
        block = load_u64(cluster + C_BLOCKS + rank * 8)
        # Below the window the difference wraps to a large number, which the first comparison
        # refuses.
        at = a - load_u64(block + SHARED_BASE)
        limit = load_u64(block + SHARED_SIZE)
        if at <= limit and at + size <= limit:
            return block
    return 0

def window_place(w: u64, lane: u32, a: u64, size: u64, align: u64, remote: i1) -> u64:
    if not aligned(w, lane, a, align):
        return 0
    block = block_with(w, a, size)
    if block == 0 or (not remote and block != load_u64(w + BLOCK)):
        fault(w, SPACE, lane, a, size)
        return 0
    if not lives(w, lane, block, a, size):
        return 0
    return a

def barrier_place(w: u64, lane: u32, a: u64, remote: i1) -> u64:
    if GENERIC != 0:
        return window_place(w, lane, a, 8, 8, remote)
    if IN_CLUSTER != 0:
        return cluster_place(w, lane, a, 8, 8)
    return shared_place(w, lane, a, 8, 8)

def moved_on(w: u64) -> i32:
    # Something that others may wait for has changed, so the cluster is not stuck.
    store_u32(leader_of(w) + IDLE, 0)
    return 0

def chance(w: u64) -> i1:
    leader = leader_of(w)
    seed = load_u64(leader + RANDOM)
    if seed == 0:
        return 0
    # Marsaglia's xorshift with 64 bits. It never leaves 0, which means here that nothing is random.
    seed = seed ^ (seed << 13)
    seed = seed ^ (seed >> 7)
    seed = seed ^ (seed << 17)
    store_u64(leader + RANDOM, seed)
    return (seed >> 40) & 1 == 1
"""
)
