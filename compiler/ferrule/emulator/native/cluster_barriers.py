"""The barrier of a cluster, and addresses in the windows of its blocks."""

from __future__ import annotations

from typing import Final

from ferrule.emulator.native.barriers import CONSTANTS as BARRIER_CONSTANTS
from ferrule.emulator.native.clusters import SOURCE as CLUSTERS
from ferrule.emulator.native.places import CONSTANTS as PLACE_CONSTANTS

CONSTANTS: Final = PLACE_CONSTANTS | BARRIER_CONSTANTS

SOURCE: Final = (
    CLUSTERS
    + """
def released(w: u64, live: u32) -> i32:
    cluster = cluster_of(w)
    store_u32(cluster + C_PHASE, load_u32(cluster + C_PHASE) ^ 1)
    store_u32(cluster + C_MISSING, live)
    leader = leader_of(w)
    # The warps of all blocks of a cluster lie behind each other, from those of the first block on.
    warp = load_u64(leader + FIRST_WARP)
    for i in range(load_u32(leader + ALL_WARPS)):
        lanes = u32(0)
        for lane in range(u32(32)):
            if load_u32(warp + BARRIER + u64(lane) * 4) == CLUSTER_BARRIER:
                lanes = lanes | (u32(1) << lane)
        store_u32(warp + READY, load_u32(warp + READY) | (lanes & load_u32(warp + LIVE)))
        warp = warp + load_u64(leader + WARP_STRIDE)
    return moved_on(w)

def in_phase(w: u64, lanes: u32) -> u32:
    parity = load_u32(cluster_of(w) + C_PHASE)
    phases = load_u32(w + ARRIVED_PHASE)
    if parity == 0:
        phases = ~phases
    return load_u32(w + ARRIVED) & phases & lanes

def arrive(w: u64, mask: u32) -> i32:
    twice = load_u32(w + ARRIVED) & mask
    if twice != 0:
        return fault(w, SYNC, ctz(twice), 0, ARRIVED_TWICE)
    cluster = cluster_of(w)
    store_u32(w + ARRIVED, load_u32(w + ARRIVED) | mask)
    phases = load_u32(w + ARRIVED_PHASE) & ~mask
    if load_u32(cluster + C_PHASE) == 1:
        phases = phases | mask
    store_u32(w + ARRIVED_PHASE, phases)
    missing = load_u32(cluster + C_MISSING) - popc(mask)
    store_u32(cluster + C_MISSING, missing)
    if missing == 0:
        return released(w, load_u32(cluster + C_LIVE))
    return moved_on(w)

def wait(w: u64, mask: u32) -> i32:
    never = mask & ~load_u32(w + ARRIVED)
    if never != 0:
        return fault(w, SYNC, ctz(never), 0, NEVER_ARRIVED)
    waiting = in_phase(w, mask)
    store_u32(w + ARRIVED, load_u32(w + ARRIVED) & ~mask)
    store_u32(w + READY, load_u32(w + READY) & ~waiting)
    m = waiting
    while m != 0:
        store_u32(w + BARRIER + u64(ctz(m)) * 4, CLUSTER_BARRIER)
        m = m & (m - 1)
    return 0

def leave(w: u64, mask: u32) -> i32:
    cluster = cluster_of(w)
    live = load_u32(cluster + C_LIVE) - popc(mask)
    # Threads that have arrived in this phase are not missing any more.
    missing = load_u32(cluster + C_MISSING) - popc(mask & ~in_phase(w, mask))
    store_u32(cluster + C_MISSING, missing)
    if missing == 0 and live != 0:
        return released(w, live)
    return 0

def map_address(w: u64, mask: u32, p0: u64, p1: u64, p2: u64) -> i32:
    m = mask
    while m != 0:
        lane = ctz(m)
        m = m & (m - 1)
        i = u64(lane)
        a = load_u64(p0 + i * 8)
        rank = u64(load_u32(p1 + i * 4))
        block = block_of_rank(w, rank)
        if block == 0:
            return fault(w, SPACE, lane, rank, 0)
        if GENERIC != 0:
            own = block_with(w, a, 0)
            if own == 0:
                return fault(w, SPACE, lane, a, 0)
            a = a - load_u64(own + SHARED_BASE) + load_u64(block + SHARED_BASE)
        else:
            # One more than the rank: 0 is the own window.
            a = (a & 0xFFFFFF) | ((rank + 1) << 24)
        store_u64(p2 + i * 8, a)
    return 0

def rank_of_address(w: u64, mask: u32, p0: u64, p1: u64) -> i32:
    m = mask
    while m != 0:
        lane = ctz(m)
        m = m & (m - 1)
        a = load_u64(p0 + u64(lane) * 8)
        block = load_u64(w + BLOCK)
        if GENERIC != 0:
            block = block_with(w, a, 0)
        elif a >> 24 != 0:
            block = block_of_rank(w, (a >> 24) - 1)
        if block == 0:
            return fault(w, SPACE, lane, a, 0)
        store_u32(p1 + u64(lane) * 4, load_u32(block + RANK))
    return 0

def to_generic(w: u64, mask: u32, p0: u64, p1: u64) -> i32:
    m = mask
    while m != 0:
        lane = ctz(m)
        m = m & (m - 1)
        a = load_u64(p0 + u64(lane) * 8)
        block = load_u64(w + BLOCK)
        if a >> 24 != 0:
            block = block_of_rank(w, (a >> 24) - 1)
        if block == 0 or a >> 32 != 0:
            return fault(w, SPACE, lane, a, 0)
        store_u64(p1 + u64(lane) * 8, (a & 0xFFFFFF) + load_u64(block + SHARED_BASE))
    return 0

def from_generic(w: u64, mask: u32, p0: u64, p1: u64) -> i32:
    m = mask
    while m != 0:
        lane = ctz(m)
        m = m & (m - 1)
        a = load_u64(p0 + u64(lane) * 8)
        block = block_with(w, a, 0)
        if block == 0:
            return fault(w, SPACE, lane, a, 0)
        there = a - load_u64(block + SHARED_BASE)
        if block != load_u64(w + BLOCK):
            there = there | ((u64(load_u32(block + RANK)) + 1) << 24)
        store_u64(p1 + u64(lane) * 8, there)
    return 0

def inside(w: u64, mask: u32, p0: u64, p1: u64) -> i32:
    m = mask
    while m != 0:
        lane = ctz(m)
        m = m & (m - 1)
        block = block_with(w, load_u64(p0 + u64(lane) * 8), 1)
        store_u32(p1 + u64(lane) * 4, 1 if block != 0 else 0)
    return 0
"""
)
