"""The boxes of tensor maps: copied between global and shared memory, row by row.

A row of the innermost dim is contiguous. The rest of the dims are numbered together, and are
outside where a coordinate is. Lines of 16 bytes in shared memory change places by their address.

Of a map for im2col a row is the channels of a pixel. Pixels are numbered from the one at the
coordinates on, inside of the bounding box and then in the next image; the offsets are added to what
is found there. Of 4-bit floats that are padded, which are counted in bytes here, 8 bytes and a gap
of 8 make a line.

A place is 28 bytes: five coordinates, and three offsets of 16 bits.
"""

from __future__ import annotations

from typing import Final

SOURCE: Final = """
def swizzled(a: u64, mode: u32) -> u64:
    # Bits 7 to 9 of the address change bits 4 to 6: one of them, two or three, by the mode.
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
    # The driver ignores the element stride of the innermost dim (cuTensorMapEncodeTiled).
    if dim == 0:
        return i64(box)
    return i64((box + step - 1) // step)

def stride_of(map: u64, dim: u64) -> u64:
    # 36 bits, a word and a byte behind all words, in units of 16 bytes.
    low = u64(load_u32(map + T_STRIDES + (dim - 1) * 4))
    return (low | (u64(load_u8(map + T_STRIDES + 16 + dim - 1)) << 32)) << 4

def at_place(map: u64, p: u64, i: u64, offsets: u64, at: u64) -> i32:
    rank = u64(load_u32(map + T_RANK))
    for dim in range(rank):
        store_u32(at + dim * 4, load_u32(p + dim * 256 + i * 4))
    if load_u8(map + T_PADDED) != 0:
        # Counted in bytes, which have two elements each.
        store_i32(at, load_i32(at) >> 1)
    for k in range(u64(3)):
        store_u16(at + 20 + k * 2, u16(0))
        if k < offsets:
            store_u16(at + 20 + k * 2, u16(load_u32(p + (rank + k) * 256 + i * 4)))
    return 0

def rows_of(map: u64) -> i64:
    if load_u8(map + T_IM2COL) != 0:
        return i64(load_u32(map + T_BOX + 4))
    rows = i64(1)
    for dim in range(u64(1), u64(load_u32(map + T_RANK))):
        rows = rows * steps_of(map, dim)
    return rows

def box_bytes(map: u64) -> u64:
    return u64(rows_of(map) * steps_of(map, 0)) * u64(load_u32(map + T_SIZE))

def shared_bytes(map: u64) -> u64:
    return box_bytes(map) << u64(load_u8(map + T_PADDED))

def lower_of(map: u64, dim: u64) -> i64:
    return i64(load_i16(map + T_LOWER + (dim - 1) * 2))

def upper_of(map: u64, dim: u64) -> i64:
    upper = i64(load_i16(map + T_UPPER + (dim - 1) * 2))
    return i64(load_u32(map + T_DIMS + dim * 4)) + upper

def in_bounding_box(map: u64, at: u64) -> i1:
    for dim in range(u64(1), u64(load_u32(map + T_RANK)) - 1):
        where = i64(load_i32(at + dim * 4))
        step = i64(load_u32(map + T_STEPS + dim * 4))
        lower = lower_of(map, dim)
        if where < lower or where > upper_of(map, dim) or (where - lower) % step != 0:
            return 0
    return 1

def pixel_at(map: u64, at: u64, row: i64) -> u64:
    left = row
    place = load_u64(map + T_ADDRESS)
    last = u64(load_u32(map + T_RANK)) - 1
    for dim in range(u64(1), last + 1):
        step = i64(load_u32(map + T_STEPS + dim * 4))
        where = i64(load_i32(at + dim * 4))
        if dim == last:
            where = where + left * step
        else:
            lower = lower_of(map, dim)
            many = (upper_of(map, dim) - lower) // step + 1
            left = left + (where - lower) // step
            offset = i64(load_u16(at + 20 + (dim - 1) * 2))
            where = lower + (left % many) * step + offset
            left = left // many
        # A size is stored less one, so that 2^32 fits too.
        if where < 0 or where > i64(load_u32(map + T_DIMS + dim * 4)):
            return 0
        place = place + u64(where) * stride_of(map, dim)
    return place

def row_at(map: u64, at: u64, row: i64) -> u64:
    if load_u8(map + T_IM2COL) != 0:
        return pixel_at(map, at, row)
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
    # A size is stored less one.
    end = i64(load_u32(map + T_DIMS)) + 1
    return max(min(end - start, steps_of(map, 0)), 0)

def fill_row(buffer: u64, map: u64, size: u64) -> i32:
    fill(buffer, 0, size)
    if load_u8(map + T_FILL) != 0:
        element = u64(load_u32(map + T_SIZE))
        at = u64(0)
        while at < size:
            # A NaN: all bits but the sign are 1.
            fill(buffer + at, 255, element)
            store_u8(buffer + at + element - 1, 127)
            at = at + element
    return 0

def pad_row(to: u64, buffer: u64, size: u64, mode: u32) -> i32:
    chunk = u64(0)
    while chunk < size:
        there = swizzled(to + chunk * 2, mode)
        copy(there, buffer + chunk, 8)
        fill(there + 8, 205, 8)
        chunk = chunk + 8
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
    # At most 256 elements of 8 bytes.
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
            if load_u8(map + T_PADDED) != 0:
                pad_row(shared + u64(row) * size * 2, buffer, size, mode)
                continue
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
