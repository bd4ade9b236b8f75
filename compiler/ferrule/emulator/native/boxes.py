"""The boxes of tensor maps: copied between global and shared memory, row by row.

A row of the innermost dim is contiguous. The rest of the dims are numbered together, and are
outside where a coordinate is. Lines of 16 bytes in shared memory change places by their address.
"""

from __future__ import annotations

from typing import Final

SOURCE: Final = """
def swizzled(a: u64, mode: u32) -> u64:
    if mode == 1:
        return a ^ ((a >> 3) & 16)
    if mode == 2:
        return a ^ ((a >> 3) & 48)
    if mode == 3:
        return a ^ ((a >> 3) & 112)
    return a

def steps_of(map: u64, dim: u64) -> i64:
    box = load_u32(map + T_BOX + dim * 4)
    step = load_u32(map + T_STEPS + dim * 4)
    if dim == 0:
        return i64(box)
    return i64((box + step - 1) // step)

def stride_of(map: u64, dim: u64) -> u64:
    low = u64(load_u32(map + T_STRIDES + (dim - 1) * 4))
    return (low | (u64(load_u8(map + T_STRIDES + 16 + dim - 1)) << 32)) << 4

def rows_of(map: u64) -> i64:
    rows = i64(1)
    for dim in range(u64(1), u64(load_u32(map + T_RANK))):
        rows = rows * steps_of(map, dim)
    return rows

def box_bytes(map: u64) -> u64:
    return u64(rows_of(map) * steps_of(map, 0)) * u64(load_u32(map + T_SIZE))

def row_at(map: u64, at: u64, row: i64) -> u64:
    left = row
    place = load_u64(map + T_ADDRESS)
    for dim in range(u64(1), u64(load_u32(map + T_RANK))):
        many = steps_of(map, dim)
        i = left % many
        left = left // many
        step = i64(load_u32(map + T_STEPS + dim * 4))
        where = i64(load_i32(at + dim * 4)) + i * step
        if where < 0 or where > i64(load_u32(map + T_DIMS + dim * 4)):
            return 0
        place = place + u64(where) * stride_of(map, dim)
    return place

def first_inside(map: u64, at: u64) -> i64:
    start = i64(load_i32(at))
    return max(min(-start, steps_of(map, 0)), 0)

def last_inside(map: u64, at: u64) -> i64:
    start = i64(load_i32(at))
    end = i64(load_u32(map + T_DIMS)) + 1
    return max(min(end - start, steps_of(map, 0)), 0)

def fill_row(buffer: u64, map: u64, size: u64) -> i32:
    fill(buffer, 0, size)
    if load_u32(map + T_FILL) != 0:
        element = u64(load_u32(map + T_SIZE))
        at = u64(0)
        while at < size:
            fill(buffer + at, 255, element)
            store_u8(buffer + at + element - 1, 127)
            at = at + element
    return 0

def do_tensor(entry: u64) -> i32:
    map = load_u64(entry + B_MAP)
    at = entry + B_AT
    element = i64(load_u32(map + T_SIZE))
    many = steps_of(map, 0)
    size = u64(many * element)
    first = first_inside(map, at)
    last = last_inside(map, at)
    mode = load_u32(map + T_SWIZZLE)
    loads = load_u32(entry + B_WHAT) == LOADS_TENSOR
    shared = load_u64(entry + B_TO)
    if not loads:
        shared = load_u64(entry + B_FROM)
    buffer = local(2048)
    for row in range(rows_of(map)):
        place = row_at(map, at, row)
        inside = place != 0 and first < last
        place = place + u64((i64(load_i32(at)) + first) * element)
        skip = u64(first * element)
        count = u64((last - first) * element)
        if loads:
            fill_row(buffer, map, size)
            if inside:
                copy(buffer + skip, place, count)
        chunk = u64(0)
        while chunk < size:
            there = swizzled(shared + u64(row) * size + chunk, mode)
            if loads:
                copy(there, buffer + chunk, 16)
            else:
                copy(buffer + chunk, there, 16)
            chunk = chunk + 16
        if inside and not loads:
            how = load_u32(entry + B_OP)
            if how != 0:
                call(load_u64(entry + B_REDUCE), place, buffer + skip, count, u64(how - 1))
            else:
                copy(place, buffer + skip, count)
    return 0

def check_tensor(w: u64, lane: u32, entry: u64) -> i32:
    map = load_u64(entry + B_MAP)
    at = entry + B_AT
    element = i64(load_u32(map + T_SIZE))
    first = first_inside(map, at)
    last = last_inside(map, at)
    if first >= last:
        return 0
    for row in range(rows_of(map)):
        place = row_at(map, at, row)
        if place != 0:
            start = place + u64((i64(load_i32(at)) + first) * element)
            if global_place(w, lane, start, u64((last - first) * element), 1) == 0:
                return 1
    return 0
"""
