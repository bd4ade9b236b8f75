"""Copies under way, which are done late: when a thread waits for them, never before it has to.

A warp has a queue of its `cp.async`, an entry for each instruction with what its lanes copy. A
cluster has a queue of bulk copies, an entry for each lane. A full queue does its oldest entry. With
random schedules any of them may be done at any instruction of this kind.

An entry of a warp: lanes that are not done, what it is (a copy, or an arrival at an mbarrier when
all before it is done), bytes; then for each lane the group, bytes that are read, to and from.
An entry of a cluster: see the B_ names.
"""

from __future__ import annotations

from typing import Final

from ferrule.emulator.native.barriers import CONSTANTS as BARRIER_CONSTANTS
from ferrule.emulator.native.barriers import SOURCE as BARRIERS
from ferrule.emulator.native.places import CONSTANTS as PLACE_CONSTANTS

E_MASK, E_KIND, E_SIZE, E_GROUP, E_READ, E_TO, E_FROM = 0, 4, 8, 64, 192, 320, 576
COPY, ARRIVAL = 0, 1

B_DONE, B_WHAT, B_WARP, B_LANE, B_GROUP, B_BARRIER = 0, 4, 8, 16, 20, 24
B_TO, B_FROM, B_SIZE, B_MAP, B_AT, B_OP, B_DO, B_REDUCE, B_DATA = (
    32,
    40,
    48,
    56,
    64,
    92,
    96,
    104,
    112,
)
"""Whether it is done, what it is; the thread and its group; the mbarrier, or 0; to, from, bytes;
the tensor map, the place in the tensor (see `boxes`); the reduction's operation; the functions that
do it, 0 for plain copies, and that reduce; what a store has of its own, 16 bytes."""
PLAIN, LOADS_TENSOR, STORES_TENSOR = range(3)

CONSTANTS: Final = (
    PLACE_CONSTANTS
    | BARRIER_CONSTANTS
    | {name: value for name, value in vars().items() if name.isupper() and type(value) is int}
    | {"GENERIC": 0, "IN_CLUSTER": 0, "REMOTE": 0, "NO_COMPLETE": 0, "DROPS": 0, "EXPECTS": 0}
    | {"INCREASES": 0, "SIZE": 0, "PENDING": 0, "BY_PARITY": 0, "MULTICAST": 0, "HOW": 0}
    | {"FROM_SHARED": 0, "VALUES": 1, "RANK_OF_COPY": 1, "IM2COL": 0, "OFFSETS": 0, "FIELD": 0}
)

SOURCE: Final = (
    BARRIERS
    + """
def entry_at(area: u64, number: u32) -> u64:
    return area + A_ENTRIES + u64(number % MOST_ENTRIES) * E_BYTES

def do_lane(w: u64, entry: u64, lane: u64) -> i32:
    store_u32(entry + E_MASK, load_u32(entry + E_MASK) & ~(u32(1) << u32(lane)))
    to = load_u64(entry + E_TO + lane * 8)
    if load_u32(entry + E_KIND) == ARRIVAL:
        return change(w, u32(lane), to, 0, 1, 0, 1)
    size = u64(load_u32(entry + E_SIZE))
    read = u64(load_u32(entry + E_READ + lane * 4))
    copy(to, load_u64(entry + E_FROM + lane * 8), read)
    # cp.async writes zeros where it is told to read less (PTX ISA).
    fill(to + read, 0, size - read)
    return 0

def do_entry(w: u64, entry: u64, lanes: u32) -> i32:
    m = load_u32(entry + E_MASK) & lanes
    while m != 0:
        lane = ctz(m)
        m = m & (m - 1)
        if do_lane(w, entry, u64(lane)) != 0:
            return 1
    return 0

def forget_done(area: u64) -> i32:
    first = load_u32(area + A_FIRST)
    end = load_u32(area + A_END)
    while first != end and load_u32(entry_at(area, first) + E_MASK) == 0:
        first = first + 1
    store_u32(area + A_FIRST, first)
    return 0

def do_groups(w: u64, lanes: u32, most: u32) -> i32:
    area = load_u64(w + ASYNC)
    end = load_u32(area + A_END)
    number = load_u32(area + A_FIRST)
    while number != end:
        entry = entry_at(area, number)
        m = load_u32(entry + E_MASK) & lanes
        while m != 0:
            lane = u64(ctz(m))
            m = m & (m - 1)
            group = load_u32(entry + E_GROUP + lane * 4)
            now = load_u32(area + A_GROUP + lane * 4)
            # The difference is right also where the counters have wrapped around.
            if i32(now - group) > i32(most) and load_u32(entry + E_KIND) == COPY:
                if do_lane(w, entry, lane) != 0:
                    return 1
        number = number + 1
    return forget_done(area)

def do_all(w: u64, lanes: u32) -> i32:
    area = load_u64(w + ASYNC)
    end = load_u32(area + A_END)
    number = load_u32(area + A_FIRST)
    while number != end:
        entry = entry_at(area, number)
        if load_u32(entry + E_KIND) == COPY:
            if do_entry(w, entry, lanes) != 0:
                return 1
        number = number + 1
    return forget_done(area)

def do_oldest(w: u64) -> i32:
    area = load_u64(w + ASYNC)
    if load_u32(area + A_FIRST) == load_u32(area + A_END):
        return 0
    if do_entry(w, entry_at(area, load_u32(area + A_FIRST)), 0xFFFFFFFF) != 0:
        return 1
    return forget_done(area)

def new_entry(w: u64, mask: u32, kind: u32, size: u32) -> u64:
    area = load_u64(w + ASYNC)
    if load_u32(area + A_END) - load_u32(area + A_FIRST) == MOST_ENTRIES:
        if do_oldest(w) != 0:
            return 0
    end = load_u32(area + A_END)
    entry = entry_at(area, end)
    store_u32(area + A_END, end + 1)
    store_u32(entry + E_MASK, mask)
    store_u32(entry + E_KIND, kind)
    store_u32(entry + E_SIZE, size)
    return entry

def done_before(w: u64, area: u64, last: u32, lanes: u32) -> i32:
    number = load_u32(area + A_FIRST)
    while number != last:
        if do_entry(w, entry_at(area, number), lanes) != 0:
            return 1
        number = number + 1
    return do_entry(w, entry_at(area, last), lanes)

def do_arrivals(w: u64, from_warp: u64, at: u64) -> i32:
    area = load_u64(from_warp + ASYNC)
    if area == 0:
        return 0
    end = load_u32(area + A_END)
    number = load_u32(area + A_FIRST)
    while number != end:
        entry = entry_at(area, number)
        if load_u32(entry + E_KIND) == ARRIVAL:
            lanes = u32(0)
            m = load_u32(entry + E_MASK)
            while m != 0:
                lane = ctz(m)
                m = m & (m - 1)
                if load_u64(entry + E_TO + u64(lane) * 8) == at:
                    lanes = lanes | (u32(1) << lane)
            if lanes != 0:
                if done_before(w, area, number, lanes) != 0:
                    return 1
        number = number + 1
    return forget_done(area)

def arrivals_at(w: u64, at: u64) -> i32:
    block = load_u64(w + BLOCK)
    warp = load_u64(block + FIRST_WARP)
    for i in range(load_u32(block + WARPS)):
        if do_arrivals(w, warp, at) != 0:
            return 1
        warp = warp + load_u64(block + WARP_STRIDE)
    return 0

def issue(w: u64, mask: u32, p0: u64, p1: u64, p2: u64) -> i32:
    entry = new_entry(w, mask, COPY, SIZE)
    if entry == 0:
        return 1
    area = load_u64(w + ASYNC)
    m = mask
    while m != 0:
        lane = ctz(m)
        m = m & (m - 1)
        i = u64(lane)
        to = shared_place(w, lane, load_u64(p0 + i * 8), SIZE, SIZE)
        if to == 0:
            return 1
        read = load_u32(p2 + i * 4)
        source = load_u64(p1 + i * 8)
        if read > SIZE:
            return fault(w, MEMORY, lane, source, u64(read))
        if read != 0:
            if CHECKED != 0 and not aligned(w, lane, source, SIZE):
                return 1
            if global_place(w, lane, source, u64(read), 1) == 0:
                return 1
        store_u64(entry + E_TO + i * 8, to)
        store_u64(entry + E_FROM + i * 8, source)
        store_u32(entry + E_READ + i * 4, read)
        store_u32(entry + E_GROUP + i * 4, load_u32(area + A_GROUP + i * 4))
    if chance(w):
        return do_oldest(w)
    return 0

def later_arrival(w: u64, mask: u32, p0: u64) -> i32:
    entry = new_entry(w, mask, ARRIVAL, 0)
    if entry == 0:
        return 1
    m = mask
    while m != 0:
        lane = ctz(m)
        m = m & (m - 1)
        at = barrier_place(w, lane, load_u64(p0 + u64(lane) * 8), 0)
        if at == 0:
            return 1
        if not initialised(w, lane, at):
            return 1
        store_u64(entry + E_TO + u64(lane) * 8, at)
        if INCREASES != 0:
            state = load_u64(at)
            if pending_of(state) == 1048575:
                return wrong(w, lane, at, BAD_COUNT)
            store_u64(at, state + 1)
    if chance(w):
        return do_oldest(w)
    return 0

def commit(w: u64, mask: u32) -> i32:
    area = load_u64(w + ASYNC)
    m = mask
    while m != 0:
        at = area + A_GROUP + u64(ctz(m)) * 4
        m = m & (m - 1)
        store_u32(at, load_u32(at) + 1)
    return 0

def wait_groups(w: u64, mask: u32) -> i32:
    return do_groups(w, mask, PENDING)

def wait_all(w: u64, mask: u32) -> i32:
    return do_all(w, mask)
"""
)
