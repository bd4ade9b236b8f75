"""mbarrier objects: 64 bits in shared memory.

    bits 0-19 pending arrivals, 20-39 expected arrivals, 40-60 bytes under way (signed), 61 parity
    of the phase, 62-63 the number 1 in an object that was initialised

A phase is complete when nothing is pending and no bytes are under way.
"""

from __future__ import annotations

from typing import Final

from ferrule.emulator.native.clusters import SOURCE as CLUSTERS

NOT_INITIALISED, TOO_MANY_ARRIVALS, BAD_COUNT, BAD_BYTES, COMPLETES = range(1, 6)
NO_MAP, OTHER_RANK, OTHER_TYPE, ARRIVED_TWICE, NEVER_ARRIVED = range(6, 11)
NOT_WHOLE, NO_WARPGROUP, BASE_OFFSET, OTHER_MASKS = range(11, 15)
OTHER_MODE, OUTSIDE_OF_BOX, ODD_START, LOADS_ALONE, BAD_FIELD, NOT_USABLE = range(15, 21)
NOT_THE_SAME, BAD_INDICES = range(21, 23)

FAULTS: Final = {
    NOT_INITIALISED: "the mbarrier at {:#x} is not initialised",
    TOO_MANY_ARRIVALS: "more threads arrive at the mbarrier at {:#x} than it expects in this phase",
    BAD_COUNT: "the count of the mbarrier at {:#x} must be from 1 to 1048575",
    BAD_BYTES: "more bytes are under way for the mbarrier at {:#x} than it counts, up to 1048575",
    COMPLETES: "it completes the phase of the mbarrier at {:#x}, which .noComplete denies",
    NO_MAP: "at {:#x} is no tensor map of the emulated driver",
    OTHER_RANK: "the tensor map at {:#x} has another number of dims",
    OTHER_TYPE: "the tensor map at {:#x} has elements that cannot be reduced so",
    OTHER_MODE: "one of the tensor map at {:#x} and the instruction is for im2col, the other not",
    OUTSIDE_OF_BOX: "the coordinates are no pixel of the bounding box that the tensor map at {:#x} "
    "has, as its corners and element strides say",
    ODD_START: "the first coordinate must be a multiple of 128, as the tensor map at {:#x} is of "
    "padded 4-bit elements",
    LOADS_ALONE: "the tensor map at {:#x} is of padded 4-bit elements, which are only loaded",
    BAD_FIELD: "no tensor map has the value {} in this field, or it is not emulated",
    NOT_USABLE: "the tensor map at {:#x} has no elements, or a box whose rows do not have the "
    "bytes of its swizzle, which is not emulated",
    ARRIVED_TWICE: "the thread arrives at the barrier of the cluster and has not waited before",
    NOT_WHOLE: "it takes all 32 threads of a warp, but the mask of those here is {:#x}",
    NO_WARPGROUP: "it takes four warps, but the block ends before",
    BASE_OFFSET: "the base offset of the descriptor {:#x} is not 0, which is not emulated",
    OTHER_MASKS: "the thread waits for the lanes {:#010x}, of which some came with another mask, "
    "and have ended since",
    NEVER_ARRIVED: "the thread waits at the barrier of the cluster and has not arrived",
    NOT_THE_SAME: "its address and stride must be the same in all threads of the warp",
    BAD_INDICES: "the metadata {:#010x} names no two different elements of four in their order",
}
"""What went wrong, for the address that the fault has."""

CONSTANTS: Final = {
    "NOT_INITIALISED": NOT_INITIALISED, "TOO_MANY_ARRIVALS": TOO_MANY_ARRIVALS,
    "BAD_COUNT": BAD_COUNT, "BAD_BYTES": BAD_BYTES, "COMPLETES": COMPLETES,
    "NO_MAP": NO_MAP, "OTHER_RANK": OTHER_RANK, "OTHER_TYPE": OTHER_TYPE,
    "OTHER_MODE": OTHER_MODE, "OUTSIDE_OF_BOX": OUTSIDE_OF_BOX, "ODD_START": ODD_START,
    "LOADS_ALONE": LOADS_ALONE, "BAD_FIELD": BAD_FIELD, "NOT_USABLE": NOT_USABLE,
    "NOT_WHOLE": NOT_WHOLE, "NO_WARPGROUP": NO_WARPGROUP, "BASE_OFFSET": BASE_OFFSET,
    "ARRIVED_TWICE": ARRIVED_TWICE, "NEVER_ARRIVED": NEVER_ARRIVED,
    "NOT_THE_SAME": NOT_THE_SAME, "BAD_INDICES": BAD_INDICES,
}  # fmt: skip

SOURCE: Final = (
    CLUSTERS
    + """
def packed(pending: u64, expected: u64, bytes: i64, parity: u64) -> u64:
    return pending | (expected << 20) | ((u64(bytes) & 0x1FFFFF) << 40) | (parity << 61) | (1 << 62)

def pending_of(state: u64) -> u64:
    return state & 0xFFFFF

def expected_of(state: u64) -> u64:
    return (state >> 20) & 0xFFFFF

def bytes_of(state: u64) -> i64:
    # The 21 bits from 40 on with their sign: the three bits above are shifted out first.
    return i64(state << 3) >> 43

def parity_of(state: u64) -> u64:
    return (state >> 61) & 1

def wrong(w: u64, lane: u32, at: u64, why: u64) -> i32:
    return fault(w, SYNC, lane, at, why)

def initialised(w: u64, lane: u32, at: u64) -> i1:
    # Neither zeros nor what `inval` leaves begins with these two bits.
    if load_u64(at) >> 62 == 1:
        return 1
    wrong(w, lane, at, NOT_INITIALISED)
    return 0

def change(w: u64, lane: u32, at: u64, bytes: i64, arrivals: u64, drops: u64, ends: i1) -> i32:
    if not initialised(w, lane, at):
        return 1
    state = load_u64(at)
    if arrivals > pending_of(state) or drops > expected_of(state):
        return wrong(w, lane, at, TOO_MANY_ARRIVALS)
    under_way = bytes_of(state) + bytes
    if under_way > 1048575 or under_way < -1048575:
        return wrong(w, lane, at, BAD_BYTES)
    pending = pending_of(state) - arrivals
    expected = expected_of(state) - drops
    parity = parity_of(state)
    # What only expects bytes completes no phase.
    if ends and pending == 0 and under_way == 0:
        pending = expected
        parity = parity ^ 1
    store_u64(at, packed(pending, expected, under_way, parity))
    return moved_on(w)

def init(w: u64, mask: u32, p0: u64, p1: u64) -> i32:
    m = mask
    while m != 0:
        lane = ctz(m)
        m = m & (m - 1)
        at = barrier_place(w, lane, load_u64(p0 + u64(lane) * 8), 0)
        if at == 0:
            return 1
        count = u64(load_u32(p1 + u64(lane) * 4))
        if count == 0 or count > 1048575:
            return wrong(w, lane, at, BAD_COUNT)
        store_u64(at, packed(count, count, 0, 0))
    return moved_on(w)

def inval(w: u64, mask: u32, p0: u64) -> i32:
    m = mask
    while m != 0:
        lane = ctz(m)
        m = m & (m - 1)
        at = barrier_place(w, lane, load_u64(p0 + u64(lane) * 8), 0)
        if at == 0:
            return 1
        if not initialised(w, lane, at):
            return 1
        # Bits 62 and 63 are both 1, so nobody takes it for one that was initialised.
        store_u64(at, 0xCDCDCDCDCDCDCDCD)
    return 0

def arrive_lane(w: u64, lane: u32, at: u64, count: u64, bytes: i64) -> i32:
    if not initialised(w, lane, at):
        return 1
    if count == 0 or count > 1048575:
        return wrong(w, lane, at, BAD_COUNT)
    if NO_COMPLETE != 0:
        state = load_u64(at)
        if count == pending_of(state) and bytes_of(state) == 0:
            return wrong(w, lane, at, COMPLETES)
    return change(w, lane, at, bytes, count, count if DROPS != 0 else 0, 1)

def arrive(w: u64, mask: u32, p0: u64, p1: u64, p2: u64) -> i32:
    m = mask
    while m != 0:
        lane = ctz(m)
        m = m & (m - 1)
        at = barrier_place(w, lane, load_u64(p0 + u64(lane) * 8), REMOTE)
        if at == 0:
            return 1
        if not initialised(w, lane, at):
            return 1
        given = load_u32(p1 + u64(lane) * 4)
        state = load_u64(at)
        if EXPECTS != 0:
            # mbarrier.arrive.expect_tx expects the bytes first, and then arrives once (PTX ISA).
            if change(w, lane, at, i64(i32(given)), 0, 0, 0) != 0:
                return 1
            given = 1
        if arrive_lane(w, lane, at, u64(given), 0) != 0:
            return 1
        store_u64(p2 + u64(lane) * 8, state)
    return 0

def transfer(w: u64, mask: u32, p0: u64, p1: u64) -> i32:
    m = mask
    while m != 0:
        lane = ctz(m)
        m = m & (m - 1)
        at = barrier_place(w, lane, load_u64(p0 + u64(lane) * 8), REMOTE)
        if at == 0:
            return 1
        bytes = i64(load_i32(p1 + u64(lane) * 4))
        if EXPECTS != 0:
            if change(w, lane, at, bytes, 0, 0, 0) != 0:
                return 1
        elif change(w, lane, at, -bytes, 0, 0, 1) != 0:
            return 1
    return 0

def count(w: u64, mask: u32, p0: u64, p1: u64) -> i32:
    m = mask
    while m != 0:
        lane = ctz(m)
        m = m & (m - 1)
        store_u32(p1 + u64(lane) * 4, u32(pending_of(load_u64(p0 + u64(lane) * 8))))
    return 0
"""
)
