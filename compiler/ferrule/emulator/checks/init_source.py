"""Which bytes of memory were written, as native functions: a bit for each."""

from __future__ import annotations

from typing import Final

from ferrule.emulator.native.bulk import CONSTANTS as BULK_CONSTANTS
from ferrule.emulator.native.bulk import SOURCE as BULK
from ferrule.emulator.native.types import joined

I_BITS, I_BASE, I_SIZE, I_LAUNCHES, I_NUMBER, I_LAUNCH = 0, 8, 16, 24, 32, 36
I_WINDOW, I_WINDOW_SIZE, I_LOCALS, I_LOCALS_SIZE, I_BYTES = 40, 48, 56, 64, 72
"""What a block has: the bits, the memory that they are of, a count of launches, the block of the
grid and the launch that it is at, and its own memory, which nobody has written when it begins."""

IN_SHARED: Final = 1 << 16
AROUND: Final = 1 << 17
"""A read of a word for the sake of a part of it: it is enough that some of it was written."""
OFFSET_SHIFT: Final = 24
"""Where the read begins behind the address."""
INDEX_SHIFT: Final = 32

CONSTANTS: Final = joined(
    BULK_CONSTANTS,
    {name: value for name, value in vars().items() if name.isupper() and type(value) is int},
) | {"CHECKED": 0}

SOURCE: Final = (
    BULK
    + """
def fresh(area: u64, start: u64, size: u64) -> i32:
    first = (start - load_u64(area + I_BASE)) >> 3
    fill(load_u64(area + I_BITS) + first, 0, (size + 7) >> 3)
    return 0

def renew(w: u64, area: u64, number: u32) -> i32:
    launch = load_u32(load_u64(area + I_LAUNCHES))
    for rank in range(u64(load_u32(cluster_of(w) + C_SIZE))):
        other = load_u64(block_of_rank(w, rank) + INITIALISED)
        fresh(other, load_u64(other + I_WINDOW), load_u64(other + I_WINDOW_SIZE))
        fresh(other, load_u64(other + I_LOCALS), load_u64(other + I_LOCALS_SIZE))
        block = block_of_rank(w, rank)
        if load_u32(block + RESERVED_SIZE) != 0:
            start = load_u64(block + SHARED_BASE) + u64(load_u32(block + RESERVED_START))
            mark(other, start, u64(load_u32(block + RESERVED_SIZE)))
        store_u32(other + I_NUMBER, grid_number(block))
        store_u32(other + I_LAUNCH, launch)
    return 0

def grid_number(block: u64) -> u32:
    number = load_u32(block + CTAID + 8) * load_u32(block + NCTAID + 4)
    number = number + load_u32(block + CTAID + 4)
    return number * load_u32(block + NCTAID) + load_u32(block + CTAID)

def begun(w: u64) -> u64:
    block = load_u64(w + BLOCK)
    area = load_u64(block + INITIALISED)
    if area == 0:
        return 0
    number = grid_number(block)
    if number != load_u32(area + I_NUMBER):
        renew(w, area, number)
    elif load_u32(area + I_LAUNCH) != load_u32(load_u64(area + I_LAUNCHES)):
        renew(w, area, number)
    return area

def place_in(w: u64, a: u64, how: u64) -> u64:
    if how & IN_SHARED == 0:
        return a
    block = load_u64(w + BLOCK)
    if a >> 24 != 0:
        other = block_of_rank(w, (a >> 24) - 1)
        if other != 0:
            block = other
    return load_u64(block + SHARED_BASE) + (a & 0xFFFFFF)

def inside(area: u64, a: u64, size: u64) -> i1:
    off = a - load_u64(area + I_BASE)
    return off < load_u64(area + I_SIZE) and off + size <= load_u64(area + I_SIZE)

def mark(area: u64, a: u64, size: u64) -> i32:
    if not inside(area, a, size):
        return 0
    off = a - load_u64(area + I_BASE)
    at = load_u64(area + I_BITS) + (off >> 3)
    left = size + (off & 7)
    # Without the bytes before the first one that share its 8 bits.
    low = ~((u32(1) << u32(off & 7)) - 1)
    while left > 16:
        store_u16(at, load_u16(at) | u16(low))
        low = ~u32(0)
        at = at + 2
        left = left - 16
    bits = low & ((u32(1) << u32(left)) - 1)
    store_u16(at, load_u16(at) | u16(bits))
    return 0

def unwritten(area: u64, a: u64, size: u64) -> i1:
    if not inside(area, a, size):
        return 0
    off = a - load_u64(area + I_BASE)
    at = load_u64(area + I_BITS) + (off >> 3)
    left = size + (off & 7)
    low = ~((u32(1) << u32(off & 7)) - 1) & 0xFFFF
    while left > 16:
        if u32(load_u16(at)) & low != low:
            return 1
        low = 0xFFFF
        at = at + 2
        left = left - 16
    bits = low & ((u32(1) << u32(left)) - 1)
    return u32(load_u16(at)) & bits != bits

def all_unwritten(area: u64, a: u64, size: u64) -> i1:
    for i in range(size):
        if not unwritten(area, a + i, 1):
            return 0
    return 1

def reads(w: u64, mask: u32, p0: u64, how: u64) -> i32:
    area = begun(w)
    if area == 0:
        return 0
    m = mask
    while m != 0:
        lane = ctz(m)
        m = m & (m - 1)
        a = place_in(w, load_u64(p0 + u64(lane) * 8), how) + (how >> OFFSET_SHIFT & 0xFF)
        if unwritten(area, a, how & 0xFFFF):
            if how & AROUND == 0 or all_unwritten(area, a, how & 0xFFFF):
                return fault(w, INIT, lane, a, how & 0xFFFF)
    return 0

def writes(w: u64, mask: u32, p0: u64, how: u64) -> i32:
    area = begun(w)
    if area == 0:
        return 0
    m = mask
    while m != 0:
        a = place_in(w, load_u64(p0 + u64(ctz(m)) * 8), how)
        m = m & (m - 1)
        mark(area, a, how & 0xFFFF)
    return 0

def copies(w: u64, mask: u32, p0: u64, p1: u64, p2: u64, how: u64) -> i32:
    area = begun(w)
    if area == 0:
        return 0
    m = mask
    while m != 0:
        lane = ctz(m)
        m = m & (m - 1)
        i = u64(lane)
        read = u64(load_u32(p2 + i * 4))
        source = load_u64(p1 + i * 8)
        if read != 0 and unwritten(area, source, read):
            return fault(w, INIT, lane, source, read)
        mark(area, place_in(w, load_u64(p0 + i * 8), how), how & 0xFFFF)
    return 0

def bytes_of_box(map: u64, sizes: u64, i: u64) -> u64:
    if map == 0:
        return u64(load_u32(sizes + i * 4))
    at = load_u64(map + i * 8)
    if load_u64(at + T_MAGIC) != MAGIC:
        return 0
    return shared_bytes(at)

def receives(w: u64, mask: u32, p0: u64, map: u64, sizes: u64, how: u64) -> i32:
    area = begun(w)
    if area == 0:
        return 0
    size = u64(load_u32(cluster_of(w) + C_SIZE))
    m = mask
    while m != 0:
        i = u64(ctz(m))
        m = m & (m - 1)
        to = load_u64(p0 + i * 8)
        many = bytes_of_box(map, sizes, i)
        mark(area, place_in(w, to, how), many)
        if how >> 20 & 1 == 1:
            for rank in range(size):
                mark(area, load_u64(block_of_rank(w, rank) + SHARED_BASE) + (to & 0xFFFFFF), many)
    return 0

def sends(w: u64, mask: u32, p0: u64, sizes: u64) -> i32:
    area = begun(w)
    if area == 0:
        return 0
    m = mask
    while m != 0:
        i = u64(ctz(m))
        m = m & (m - 1)
        mark(area, load_u64(p0 + i * 8), u64(load_u32(sizes + i * 4)))
    return 0

def sends_box(w: u64, mask: u32, map: u64, coordinates: u64) -> i32:
    area = begun(w)
    if area == 0:
        return 0
    at = local(32)
    m = mask
    while m != 0:
        i = u64(ctz(m))
        m = m & (m - 1)
        it = load_u64(map + i * 8)
        if load_u64(it + T_MAGIC) == MAGIC:
            at_place(it, coordinates, i, 0, at)
            mark_box(area, it, at)
    return 0

def mark_box(area: u64, map: u64, at: u64) -> i32:
    element = i64(load_u32(map + T_SIZE))
    first = first_inside(map, at)
    last = last_inside(map, at)
    if first < last:
        for row in range(rows_of(map)):
            place = row_at(map, at, row)
            if place != 0:
                start = place + u64((i64(load_i32(at)) + first) * element)
                mark(area, start, u64((last - first) * element))
    return 0
"""
)
