"""What orders threads: barriers, lanes of a warp that meet, fences, and strong accesses.

- A barrier (bar, barrier) orders what the threads that it waits for have done before it, and those
  that only arrive, before what the threads that wait do after it. Of a warp, bar.warp.sync does;
  shuffles, votes and matches order nothing that their lanes do, but what one lane knows of other
  warps and blocks, all that take part know then.
- Nothing else takes part in a barrier: neither threads that it does not count, nor those that have
  ended. PTX lets a barrier of all threads pass without the latter, but only who executes it is
  ordered by it.
- A strong write that releases, or that follows a fence of its thread, leaves at its address what
  the thread knew then (at the fence); a read-modify-write adds to what is there. A strong read that
  acquires takes that; what a relaxed read finds is taken by the next fence of its thread.
- Fences and accesses of scope .cta order within a block alone.
"""

from __future__ import annotations

from typing import Final

# The table of addresses that something was released at.
O_LAUNCH, O_BLOCK, O_ADDRESS, O_GPU, O_CTA, O_BYTES = 0, 4, 8, 16, 24, 32
TABLE_BITS: Final = 16
MOST_PROBES: Final = 256

CONSTANTS: Final = {
    name: value for name, value in vars().items() if name.isupper() and type(value) is int
}

STRONG: Final = """
def place_of(world: u64, a: u64, makes: i1) -> u64:
    table = load_u64(world + W_TABLE)
    launch = load_u32(world + W_LAUNCH_ERA)
    # 2^64 divided by the golden ratio: the high bits of a product with it differ for near numbers.
    hash = ((a >> 2) * 0x9E3779B97F4A7C15) >> (64 - TABLE_BITS)
    for i in range(u64(MOST_PROBES)):
        at = table + ((hash + i) & ((1 << TABLE_BITS) - 1)) * O_BYTES
        # Entries of earlier launches are free: the table is not cleared.
        if load_u32(at + O_LAUNCH) != launch:
            if makes:
                fill(at, 0, O_BYTES)
                store_u32(at + O_LAUNCH, launch)
                store_u64(at + O_ADDRESS, a)
                return at
            return 0
        if load_u64(at + O_ADDRESS) == a:
            return at
    if makes:
        store_u32(world + W_STOPPED, 1)
    return 0

def released_here(area: u64, at: u64) -> u64:
    # One more than the number of the block: 0 means none.
    if load_u32(at + O_BLOCK) == load_u32(area + R_NUMBER) + 1:
        return load_u64(at + O_CTA)
    return 0

def read_strong(area: u64, t: u32, at: u64, how: u64, level: u32) -> i32:
    found = released_here(area, at)
    if level > 1:
        found = merged(area, load_u64(at + O_GPU), found)
    if found == 0:
        return 0
    if how & HOW_ACQUIRES != 0:
        return acquire(area, t, found)
    s = state_of(area, t)
    store_u64(s + S_SEEN, merged(area, load_u64(s + S_SEEN), found))
    return 0

def left(area: u64, old: u64, new: u64, how: u64) -> u64:
    if how & HOW_ATOMIC != 0:
        return merged(area, old, new)
    return new

def write_strong(area: u64, t: u32, a: u64, how: u64, level: u32) -> i32:
    world = load_u64(area + R_WORLD)
    s = state_of(area, t)
    here = load_u64(s + S_FENCE_CTA)
    far = load_u64(s + S_FENCE)
    if how & HOW_RELEASES != 0:
        here = message(area, t)
        far = here
    if level == 1:
        far = 0
    at = place_of(world, a, here != 0 or far != 0)
    if at == 0:
        return 0
    store_u64(at + O_CTA, left(area, released_here(area, at), here, how))
    store_u32(at + O_BLOCK, load_u32(area + R_NUMBER) + 1)
    store_u64(at + O_GPU, left(area, load_u64(at + O_GPU), far, how))
    return 0

def synchronise(area: u64, t: u32, a: u64, how: u64) -> i32:
    level = u32(how >> HOW_LEVEL_SHIFT) & 3
    if how & HOW_READS != 0:
        at = place_of(load_u64(area + R_WORLD), a, 0)
        if at != 0:
            read_strong(area, t, at, how, level)
    if how & HOW_WRITES != 0:
        write_strong(area, t, a, how, level)
    return 0
"""

FENCE: Final = """
def fence(w: u64, mask: u32, how: u64) -> i32:
    area = entered(w)
    if area == 0:
        return 0
    level = u32(how >> HOW_LEVEL_SHIFT) & 3
    m = mask
    while m != 0:
        lane = ctz(m)
        m = m & (m - 1)
        t = load_u32(w + WARP_ID) * 32 + lane
        s = state_of(area, t)
        if how & HOW_ACQUIRES != 0:
            acquire(area, t, load_u64(s + S_SEEN))
        if how & HOW_RELEASES != 0:
            made = message(area, t)
            store_u64(s + S_FENCE_CTA, made)
            if level > 1:
                store_u64(s + S_FENCE, made)
    return 0
"""

MEET: Final = """
def meet(w: u64, mask: u32) -> i32:
    area = entered(w)
    if area == 0:
        return 0
    warp = load_u32(w + WARP_ID) * 32
    # Behind the sixteen barriers.
    m = meeting_at(area, 16)
    empty(area, m)
    store_u64(m + M_KNOWN, 0)
    lanes = mask
    while lanes != 0:
        bring(area, m, warp + ctz(lanes))
        lanes = lanes & (lanes - 1)
    lanes = mask
    while lanes != 0:
        fetch(area, m, warp + ctz(lanes))
        lanes = lanes & (lanes - 1)
    return 0

def shares(w: u64, mask: u32) -> i32:
    area = entered(w)
    if area == 0:
        return 0
    warp = load_u32(w + WARP_ID) * 32
    known = u32(0)
    lanes = mask
    while lanes != 0:
        s = state_of(area, warp + ctz(lanes))
        if has_row(area, s) or load_u64(s + S_KNOWN) != 0:
            known = 1
        lanes = lanes & (lanes - 1)
    if known == 0:
        return 0
    m = meeting_at(area, 16)
    empty(area, m)
    store_u64(m + M_KNOWN, 0)
    lanes = mask
    while lanes != 0:
        t = warp + ctz(lanes)
        lanes = lanes & (lanes - 1)
        s = state_of(area, t)
        if has_row(area, s):
            raise_row(m + M_ROW, row_of(area, t), load_u32(s + S_LOW), load_u32(s + S_HIGH))
            widen(m + M_LOW, load_u32(s + S_LOW), load_u32(s + S_HIGH))
        store_u64(m + M_KNOWN, merged(area, load_u64(m + M_KNOWN), load_u64(s + S_KNOWN)))
    # Of each other the lanes learn nothing.
    fill(m + M_ROW + u64(warp) * 4, 0, u64(min(32, load_u32(area + R_STRIDE) - warp)) * 4)
    lanes = mask
    while lanes != 0:
        fetch(area, m, warp + ctz(lanes))
        lanes = lanes & (lanes - 1)
    return 0

def arrives(w: u64, mask: u32, p0: u64, waits: u64) -> i32:
    area = entered(w)
    if area == 0:
        return 0
    number = load_u32(p0 + u64(ctz(mask)) * 4)
    if number > 15:
        return 0
    counts = area + R_COUNTS + u64(number) * 8
    if waits != 0:
        at = load_u64(area + R_WAITING) + u64(number) * 128 + u64(load_u32(w + WARP_ID)) * 4
        store_u32(at, load_u32(at) | mask)
        store_u32(counts, load_u32(counts) + popc(mask))
        return 0
    store_u32(counts + 4, load_u32(counts + 4) + popc(mask))
    m = mask
    while m != 0:
        bring(area, meeting_at(area, u64(number)), load_u32(w + WARP_ID) * 32 + ctz(m))
        m = m & (m - 1)
    return 0

def next_lane(lanes: u64, from_here: u32, count: u32) -> u32:
    t = from_here
    while t < count:
        word = load_u32(lanes + u64(t >> 5) * 4) >> (t & 31)
        if word != 0:
            return t + ctz(word)
        t = (t | 31) + 1
    return count

def new_era(area: u64, lanes: u64) -> i32:
    count = load_u32(area + R_THREADS)
    known = u64(0)
    t = next_lane(lanes, 0, count)
    while t < count:
        known = merged(area, known, load_u64(state_of(area, t) + S_KNOWN))
        t = next_lane(lanes, t + 1, count)
    t = next_lane(lanes, 0, count)
    while t < count:
        s = state_of(area, t)
        store_u64(s + S_KNOWN, known)
        store_u64(s + S_SNAPSHOT, 0)
        t = next_lane(lanes, t + 1, count)
    next_era(area)
    return 0

def some_meet(area: u64, lanes: u64, m: u64) -> i32:
    count = load_u32(area + R_THREADS)
    t = next_lane(lanes, 0, count)
    while t < count:
        bring(area, m, t)
        t = next_lane(lanes, t + 1, count)
    t = next_lane(lanes, 0, count)
    while t < count:
        fetch(area, m, t)
        t = next_lane(lanes, t + 1, count)
    return 0

def completes(w: u64, mask: u32) -> i32:
    area = entered(w)
    if area == 0:
        return 0
    block = load_u64(w + BLOCK)
    for i in range(u64(16)):
        counts = area + R_COUNTS + i * 8
        waiting = load_u32(counts)
        arrived = load_u32(counts + 4)
        # Threads have come, and the barrier counts none: it has let them go.
        if waiting + arrived != 0 and load_u32(block + BARRIERS + i * 8) == 0:
            lanes = load_u64(area + R_WAITING) + i * 128
            m = meeting_at(area, i)
            # Threads that have ended take no part, so what they did stays unordered.
            if arrived == 0 and waiting == load_u32(area + R_THREADS):
                new_era(area, lanes)
            else:
                some_meet(area, lanes, m)
            empty(area, m)
            store_u64(m + M_KNOWN, 0)
            fill(lanes, 0, 128)
            store_u64(counts, 0)
    return 0
"""
