"""From the addresses that lanes have to those of this process: what all long helpers need.

A place is 0 where a lane may not go there; the warp then has the fault.
"""

from __future__ import annotations

from typing import Final

from ferrule.emulator.warps import layout

CONSTANTS: Final = {
    name: value for name, value in vars(layout).items() if name.isupper() and type(value) is int
}

SOURCE: Final = """
def fault(w: u64, kind: u32, lane: u32, address: u64, size: u64) -> i32:
    store_u32(w + FAULT, kind)
    store_u32(w + FAULT_LANE, lane)
    store_u64(w + FAULT_ADDRESS, address)
    store_u32(w + FAULT_SIZE, u32(size))
    return 1

def not_whole(w: u64, mask: u32) -> i32:
    return fault(w, SYNC, ctz(mask), u64(mask), NOT_WHOLE)

def aligned(w: u64, lane: u32, a: u64, align: u64) -> i1:
    if a & (align - 1) == 0:
        return 1
    fault(w, MISALIGNED, lane, a, align)
    return 0

def shared_place(w: u64, lane: u32, a: u64, size: u64, align: u64) -> u64:
    if not aligned(w, lane, a, align):
        return 0
    block = load_u64(w + BLOCK)
    limit = load_u64(block + SHARED_SIZE)
    if a > limit or a + size > limit:
        fault(w, SPACE, lane, a, size)
        return 0
    return a + load_u64(w + SHARED)

def alive(w: u64, lane: u32, a: u64, size: u64, limit: u64) -> i1:
    block = load_u64(w + BLOCK)
    at = a - load_u64(block + ARENA)
    end = at + size
    # Below the arena the difference wraps to a large number, which the first comparison refuses.
    if at > limit or end > limit:
        fault(w, MEMORY, lane, a, size)
        return 0
    shadow = load_u64(block + SHADOW)
    while at < end:
        last = min(end, (at | 255) + 1)
        # For each 256 bytes the shadow has how many of them, from the first on, may be used.
        valid = u64(load_u16(shadow + (at >> 8) * 2))
        if (at & 255) + (last - at) > valid:
            fault(w, MEMORY, lane, a, size)
            return 0
        at = last
    return 1

def global_place(w: u64, lane: u32, a: u64, size: u64, align: u64) -> u64:
    if CHECKED == 0:
        return a
    if not aligned(w, lane, a, align):
        return 0
    if not alive(w, lane, a, size, load_u64(load_u64(w + BLOCK) + GLOBAL_SIZE)):
        return 0
    return a

def generic_place(w: u64, lane: u32, a: u64, size: u64, align: u64) -> u64:
    if CHECKED == 0:
        return a
    if not aligned(w, lane, a, align):
        return 0
    if not alive(w, lane, a, size, load_u64(load_u64(w + BLOCK) + ARENA_SIZE)):
        return 0
    return a
"""
