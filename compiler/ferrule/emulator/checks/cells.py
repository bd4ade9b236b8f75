"""The last accesses of each 4 bytes of memory, and whether a new one races with them.

A cell has the last plain write, the last strong one, and three reads: the last one, the last one
of another warp, and the last one of another block. Of accesses to fewer than 4 bytes, the last one
of the 4 is remembered; two accesses to different bytes never conflict.

Two accesses conflict if they touch the same byte and one of them writes. They race if they are by
different threads, none is known to the other's thread as past, and they are not *morally strong*:
both strong (relaxed, acquire, release, volatile, or atomic) with scopes that include each other's
thread. Two plain writes of the same value are let through: nothing can tell them apart.
"""

from __future__ import annotations

from typing import Final

from ferrule.emulator.checks import clocks
from ferrule.emulator.native.bulk import CONSTANTS as BULK_CONSTANTS
from ferrule.emulator.native.bulk import SOURCE as BULK
from ferrule.emulator.native.types import joined

INDEX_MASK: Final = (1 << 20) - 1
MASK_SHIFT, LEVEL_SHIFT = 20, 24
NOT_DONE: Final = 1 << 26
"""What is done when its thread has waited, such as a write by cp.async; it has its number for a
clock, and above QUEUE_SHIFT the sort that the number counts."""
QUEUE_SHIFT: Final = 28
ASYNC_WRITE: Final = 1 << 27
"""A write by the asynchronous proxy."""
WEAK, OF_BLOCK, OF_CLUSTER, OF_GPU = range(4)
"""Levels: plain accesses, and strong ones by their scope."""

RECORD: Final = 12
"""An access: its era, which tells the block; thread and clock; instruction, bytes and kind."""
C_STRONG, C_LAST, C_WARP, C_BLOCK = 12, 24, 36, 48
CELL_BYTES: Final = 64
PAGE_SHIFT: Final = 16
PAGE_BYTES: Final = (1 << PAGE_SHIFT) // 4 * CELL_BYTES

# How an instruction accesses memory: a number that its call has as the last pointer.
HOW_WRITES, HOW_READS, HOW_ACQUIRES, HOW_RELEASES = 1 << 16, 1 << 17, 1 << 18, 1 << 19
HOW_SHARED, HOW_ATOMIC, HOW_VALUES = 1 << 20, 1 << 21, 1 << 22
HOW_PENDING, HOW_ASYNC, HOW_PROXY = 1 << 23, 1 << 26, 1 << 27
HOW_FROM_SHARED: Final = HOW_VALUES
"""The same bit for copies, whose values nobody compares: they read shared memory."""
HOW_LEVEL_SHIFT, HOW_QUEUE_SHIFT, HOW_INDEX_SHIFT = 24, 28, 32
HOW_OFFSET_SHIFT: Final = 52
"""Where an access begins behind its address; the number of an instruction has 20 bits."""

CONSTANTS: Final = joined(
    BULK_CONSTANTS,
    clocks.CONSTANTS,
    {name: value for name, value in vars().items() if name.isupper() and type(value) is int},
)

SOURCE: Final = (
    BULK
    + clocks.SOURCE
    + """
def real(w: u64, a: u64, how: u64) -> u64:
    if how & HOW_SHARED == 0:
        return a
    block = load_u64(w + BLOCK)
    if a >> 24 != 0:
        other = block_of_rank(w, (a >> 24) - 1)
        if other != 0:
            block = other
    return load_u64(block + SHARED_BASE) + (a & 0xFFFFFF)

def cell_of(world: u64, a: u64) -> u64:
    off = a - load_u64(world + W_BASE)
    if off >= load_u64(world + W_SIZE):
        return 0
    entry = load_u64(world + W_PAGES) + (off >> PAGE_SHIFT) * 8
    # Pages of cells are taken when their memory is first touched.
    page = load_u64(entry)
    if page == 0:
        page = load_u64(world + W_PAGE_FREE)
        if page + PAGE_BYTES > load_u64(world + W_PAGE_END):
            store_u32(world + W_STOPPED, 1)
            return 0
        store_u64(world + W_PAGE_FREE, page + PAGE_BYTES)
        store_u64(entry, page)
    return page + ((off & ((1 << PAGE_SHIFT) - 1)) >> 2) * CELL_BYTES

def oldest_for(area: u64, world: u64, a: u64) -> u32:
    if a - load_u64(world + W_BASE) >= load_u64(world + W_GLOBAL):
        # Shared memory lies behind global memory, and what a block before this one did there is
        # over.
        return load_u32(area + R_FIRST_ERA)
    return load_u32(world + W_LAUNCH_ERA)

def block_of(area: u64, record: u64) -> u32:
    eras = load_u64(load_u64(area + R_WORLD) + W_ERAS)
    return load_u32(eras + u64(load_u32(record)) * 4)

def morally_strong(area: u64, record: u64, info: u32) -> i1:
    mine = (info >> LEVEL_SHIFT) & 3
    other = (load_u32(record + 8) >> LEVEL_SHIFT) & 3
    if mine == 0 or other == 0:
        return 0
    if block_of(area, record) == load_u32(area + R_NUMBER):
        return 1
    # The other block may be of the same cluster only if clusters have several.
    need = OF_CLUSTER if load_u32(area + R_CLUSTER) > 1 else u32(OF_GPU)
    return mine >= need and other >= need

def lasts(area: u64, s: u64, t: u32, u: u32, which: u64, which_one: u32) -> i1:
    q = queue_of(area, u, which)
    if which_one > load_u32(q + Q_UPTO):
        return 1
    waits = load_u32(q + Q_WAITS)
    i = waits
    found = u64(0)
    while i != 0 and waits - i < MOST_WAITS:
        i = i - 1
        at = q + Q_ENDED + u64(i % MOST_WAITS) * WAIT_BYTES
        if load_u32(at) < which_one:
            break
        found = at
        # The waits before are forgotten, so the order is taken to be there.
        if waits - i == MOST_WAITS:
            return 0
    if found == 0:
        return 0
    number = load_u32(area + R_NUMBER)
    return not knows(area, s, t, number, load_u32(found + 4), u | (load_u32(found + 8) << 10))

def pending(area: u64, s: u64, t: u32, record: u64) -> i1:
    block = block_of(area, record)
    if block != load_u32(area + R_NUMBER):
        e = entry_for(load_u64(s + S_KNOWN), block)
        if e == 0:
            return 1
        return load_u32(e + K_ERA) < load_u32(record)
    which = u64(load_u32(record + 8) >> QUEUE_SHIFT) & 3
    u = load_u32(record + 4) & 1023
    which_one = load_u32(record + 4) >> 10
    if which != PRODUCTS:
        return lasts(area, s, t, u, which, which_one)
    if u >> 5 == t >> 5:
        return which_one > load_u32(queue_of(area, u, which) + Q_UPTO)
    for lane in range(u32(32)):
        v = (u & ~31) | lane
        if v < load_u32(area + R_THREADS) and not lasts(area, s, t, v, which, which_one):
            return 0
    return 1

def conflicts(area: u64, s: u64, t: u32, record: u64, info: u32, oldest: u32) -> i1:
    era = load_u32(record)
    old = load_u32(record + 8)
    if era < oldest or (old & info & (15 << MASK_SHIFT)) == 0:
        return 0
    who = load_u32(record + 4)
    block = block_of(area, record)
    if old & NOT_DONE != 0:
        return not morally_strong(area, record, info) and pending(area, s, t, record)
    if block == load_u32(area + R_NUMBER) and (who & 1023) == t:
        return 0
    if morally_strong(area, record, info):
        return 0
    return not knows(area, s, t, block, era, who)

def note(area: u64, record: u64, who: u32, info: u32) -> i32:
    store_u32(record, load_u32(area + R_ERA))
    store_u32(record + 4, who)
    store_u32(record + 8, info)
    return 0

def note_read(area: u64, cell: u64, who: u32, info: u32, oldest: u32) -> i32:
    last = cell + C_LAST
    other = cell + C_WARP
    if load_u32(last) >= oldest and load_u32(last) != 0:
        here = load_u32(area + R_NUMBER)
        if block_of(area, last) != here:
            copy(cell + C_BLOCK, last, RECORD)
        elif (load_u32(last + 4) >> 5) & 31 != (who >> 5) & 31:
            copy(other, last, RECORD)
        elif (load_u32(last + 4) ^ who) & 1023 != 0:
            stale = load_u32(other) < load_u32(area + R_ERA) or block_of(area, other) != here
            if stale or (load_u32(other + 4) >> 5) & 31 == (who >> 5) & 31:
                copy(other, last, RECORD)
    return note(area, last, who, info)

def forget(record: u64, info: u32) -> i32:
    old = load_u32(record + 8)
    # The write covers all bytes of the old access: who races with that races with the write too.
    if (old & ~info & (15 << MASK_SHIFT)) == 0:
        store_u32(record, 0)
    return 0

def note_write(area: u64, cell: u64, who: u32, info: u32) -> i32:
    forget(cell + C_LAST, info)
    forget(cell + C_WARP, info)
    forget(cell + C_BLOCK, info)
    if (info >> LEVEL_SHIFT) & 3 != 0:
        return note(area, cell + C_STRONG, who, info)
    forget(cell + C_STRONG, info)
    return note(area, cell, who, info)

def value_of(at: u64, a: u64, lane: u32, how: u64, p: u64) -> u8:
    off = at - a
    width = (how >> 8) & 255
    return load_u8(load_u64(p + (off // width) * 8) + u64(lane) * width + off % width)

def same_value(area: u64, record: u64, t: u32, g: u64, a: u64, how: u64, p: u64, m: u32) -> i1:
    if how & HOW_VALUES == 0 or (load_u32(record + 8) >> LEVEL_SHIFT) & 15 != 0:
        return 0
    size = how & 255
    other = load_u32(record + 4) & 1023
    theirs = u64(0)
    # The other lane may write by the same instruction: its value is not in memory yet.
    together = block_of(area, record) == load_u32(area + R_NUMBER)
    together = together and (load_u32(record + 8) & INDEX_MASK) == u32(how >> HOW_INDEX_SHIFT)
    if together and other >> 5 == t >> 5 and (m >> (other & 31)) & 1 == 1:
        theirs = load_u64(load_u64(p + 64) + u64(other & 31) * 8)
        theirs = real(load_u64(p + 72), theirs, how)
        if g + 4 <= theirs or theirs + size <= g:
            theirs = 0
    for i in range(u64(4)):
        at = g + i
        bit = load_u32(record + 8) >> (MASK_SHIFT + u32(i))
        if at >= a and at < a + size and bit & 1 == 1:
            was = load_u8(at)
            if theirs != 0 and at >= theirs and at < theirs + size:
                was = value_of(at, theirs, other & 31, how, p)
            if value_of(at, a, t & 31, how, p) != was:
                return 0
    return 1

def race(w: u64, area: u64, t: u32, record: u64, info: u32, a: u64, why: u32) -> i32:
    copy(area + R_OLD, record, RECORD)
    s = state_of(area, t)
    note(area, area + R_NEW, t | (clock_of(area, s) << 10), info)
    store_u64(area + R_ADDRESS, a)
    store_u32(area + R_WHY, why)
    return fault(w, RACE, t & 31, a, 4)
"""
)

ACCESS: Final = """
def fenced(area: u64, s: u64, t: u32, record: u64, info: u32, oldest: u32, by: u64) -> i1:
    old = load_u32(record + 8)
    era = load_u32(record)
    if era < oldest or (old & info & (15 << MASK_SHIFT)) == 0:
        return 1
    if old & (NOT_DONE | ASYNC_WRITE) != 0:
        return 1
    if block_of(area, record) != load_u32(area + R_NUMBER):
        return 1
    who = load_u32(record + 4)
    writer = state_of(area, who & 1023)
    if load_u32(writer + by) > era or load_u32(s + by) > era:
        return 1
    if load_u32(writer + by) == era and load_u32(writer + by + 4) >= who >> 10:
        return 1
    return load_u32(s + by) == era and who & 1023 != t

def whole(w: u64, area: u64, t: u32, a: u64, size: u64, how: u64) -> i32:
    at = a
    while at < a + size:
        part = min(4 - (at & 3), a + size - at)
        if granule(w, area, t, at & ~3, at, how | part, 0, 0) != 0:
            return 1
        at = at + part
    return 0

def granule(w: u64, area: u64, t: u32, g: u64, a: u64, how: u64, p: u64, m: u32) -> i32:
    world = load_u64(area + R_WORLD)
    cell = cell_of(world, g)
    if cell == 0:
        return 0
    size = how & 255
    # The bytes of these 4 that are accessed.
    low = u32(0) if a <= g else u32(a - g)
    high = u32(4) if a + size >= g + 4 else u32(a + size - g)
    bits = ((u32(1) << high) - 1) & ~((u32(1) << low) - 1)
    info = u32(how >> HOW_INDEX_SHIFT) | (bits << MASK_SHIFT)
    info = info | ((u32(how >> HOW_LEVEL_SHIFT) & 3) << LEVEL_SHIFT)
    oldest = oldest_for(area, world, a)
    s = state_of(area, t)
    who = t | (clock_of(area, s) << 10)
    if how & HOW_PENDING != 0:
        which = (how >> HOW_QUEUE_SHIFT) & 3
        info = info | NOT_DONE | (u32(which) << QUEUE_SHIFT)
        who = t | (load_u32(queue_of(area, t, which) + Q_ISSUED) << 10)
    if how & HOW_ASYNC != 0:
        info = info | ASYNC_WRITE
    if how & HOW_PROXY != 0 and not fenced(area, s, t, cell, info, oldest, S_PROXY_ERA):
        return race(w, area, t, cell, info, g, 4)
    if conflicts(area, s, t, cell, info, oldest):
        if how & HOW_WRITES == 0:
            return race(w, area, t, cell, info, g, 1)
        if not same_value(area, cell, t, g, a, how, p, m):
            return race(w, area, t, cell, info, g, 2)
    if conflicts(area, s, t, cell + C_STRONG, info, oldest):
        return race(w, area, t, cell + C_STRONG, info, g, 1 if how & HOW_WRITES == 0 else 2)
    if how & HOW_WRITES == 0:
        return note_read(area, cell, who, info, oldest)
    for i in range(u64(3)):
        record = cell + C_LAST + i * RECORD
        if conflicts(area, s, t, record, info, oldest):
            return race(w, area, t, record, info, g, 3)
    return note_write(area, cell, who, info)

def access(w: u64, mask: u32, p0: u64, p1: u64, p2: u64, p3: u64, p4: u64, all: u64) -> i32:
    area = entered(w)
    if area == 0:
        return 0
    how = all & ((u64(1) << HOW_OFFSET_SHIFT) - 1)
    p = local(80)
    store_u64(p, p1)
    store_u64(p + 8, p2)
    store_u64(p + 16, p3)
    store_u64(p + 24, p4)
    store_u64(p + 64, p0)
    store_u64(p + 72, w)
    warp = load_u32(w + WARP_ID) * 32
    m = mask
    while m != 0:
        lane = ctz(m)
        m = m & (m - 1)
        t = warp + lane
        a = real(w, load_u64(p0 + u64(lane) * 8), how) + (all >> HOW_OFFSET_SHIFT)
        g = a & ~3
        while g < a + (how & 255):
            if granule(w, area, t, g, a, how, p, mask) != 0:
                return 1
            g = g + 4
        if (how >> HOW_LEVEL_SHIFT) & 3 != 0:
            synchronise(area, t, a, how)
    return 0
"""
