"""Bulk copies: plain ones, those of boxes of a tensor map, and reductions; and waits for them."""

from __future__ import annotations

from typing import Final

from ferrule.emulator import tensormaps
from ferrule.emulator.native import boxes, reductions
from ferrule.emulator.native.queues import CONSTANTS as QUEUE_CONSTANTS
from ferrule.emulator.native.queues import SOURCE as QUEUES

CONSTANTS: Final = (
    QUEUE_CONSTANTS
    | {name: value for name, value in vars(tensormaps).items() if name.startswith("T_")}
    | {"MAGIC": tensormaps.MAGIC}
    | reductions.CONSTANTS
)

SOURCE: Final = (
    QUEUES
    + reductions.SOURCE
    + boxes.SOURCE
    + """
def bulk_at(cluster: u64, number: u32) -> u64:
    return cluster + C_ENTRIES + u64(number % MOST_BULK) * B_BYTES

def do_bulk(w: u64, entry: u64) -> i32:
    store_u32(entry + B_DONE, 1)
    size = load_u64(entry + B_SIZE)
    do = load_u64(entry + B_DO)
    if do == 0:
        copy(load_u64(entry + B_TO), load_u64(entry + B_FROM), size)
    elif call(do, entry) != 0:
        return 1
    at = load_u64(entry + B_BARRIER)
    if at != 0:
        return change(w, load_u32(entry + B_LANE), at, -i64(size), 0, 0, 1)
    return 0

def forget_bulk(cluster: u64) -> i32:
    first = load_u32(cluster + C_FIRST)
    end = load_u32(cluster + C_END)
    while first != end and load_u32(bulk_at(cluster, first) + B_DONE) != 0:
        first = first + 1
    store_u32(cluster + C_FIRST, first)
    return 0

def oldest_bulk(w: u64) -> i32:
    cluster = cluster_of(w)
    if load_u32(cluster + C_FIRST) == load_u32(cluster + C_END):
        return 0
    entry = bulk_at(cluster, load_u32(cluster + C_FIRST))
    if do_bulk(w, entry) != 0:
        return 1
    return forget_bulk(cluster)

def latest_bulk(w: u64) -> i32:
    cluster = cluster_of(w)
    if load_u32(cluster + C_FIRST) == load_u32(cluster + C_END):
        return 0
    entry = bulk_at(cluster, load_u32(cluster + C_END) - 1)
    if load_u32(entry + B_DONE) == 0:
        if do_bulk(w, entry) != 0:
            return 1
    return forget_bulk(cluster)

def new_bulk(w: u64, lane: u32, what: u32) -> u64:
    cluster = cluster_of(w)
    if load_u32(cluster + C_END) - load_u32(cluster + C_FIRST) == MOST_BULK:
        if oldest_bulk(w) != 0:
            return 0
    end = load_u32(cluster + C_END)
    entry = bulk_at(cluster, end)
    store_u32(entry + B_DONE, 0)
    store_u32(entry + B_WHAT, what)
    store_u64(entry + B_WARP, w)
    store_u32(entry + B_LANE, lane)
    store_u32(entry + B_GROUP, load_u32(load_u64(w + ASYNC) + A_BULK_GROUP + u64(lane) * 4))
    store_u64(entry + B_BARRIER, 0)
    store_u32(entry + B_OP, 0)
    store_u64(entry + B_DO, 0)
    return entry

def add_bulk(w: u64) -> i32:
    cluster = cluster_of(w)
    store_u32(cluster + C_END, load_u32(cluster + C_END) + 1)
    return 0

def one_of_barrier(w: u64, at: u64) -> i32:
    cluster = cluster_of(w)
    number = load_u32(cluster + C_FIRST)
    end = load_u32(cluster + C_END)
    while number != end:
        entry = bulk_at(cluster, number)
        if load_u32(entry + B_DONE) == 0 and load_u64(entry + B_BARRIER) == at:
            if do_bulk(w, entry) != 0:
                return 2
            forget_bulk(cluster)
            return 1
        number = number + 1
    return 0

def bulk_groups(w: u64, mask: u32, most: i32) -> i32:
    cluster = cluster_of(w)
    area = load_u64(w + ASYNC)
    number = load_u32(cluster + C_FIRST)
    end = load_u32(cluster + C_END)
    while number != end:
        entry = bulk_at(cluster, number)
        lane = u64(load_u32(entry + B_LANE))
        mine = load_u64(entry + B_WARP) == w and (mask >> u32(lane)) & 1 == 1
        if mine and load_u32(entry + B_DONE) == 0 and load_u64(entry + B_BARRIER) == 0:
            now = load_u32(area + A_BULK_GROUP + lane * 4)
            # The difference is right also where the counters have wrapped around.
            if i32(now - load_u32(entry + B_GROUP)) > most:
                if do_bulk(w, entry) != 0:
                    return 1
        number = number + 1
    return forget_bulk(cluster)

def bulk_commit(w: u64, mask: u32) -> i32:
    area = load_u64(w + ASYNC)
    m = mask
    while m != 0:
        at = area + A_BULK_GROUP + u64(ctz(m)) * 4
        m = m & (m - 1)
        store_u32(at, load_u32(at) + 1)
    if chance(w):
        return oldest_bulk(w)
    return 0

def bulk_wait(w: u64, mask: u32) -> i32:
    return bulk_groups(w, mask, PENDING)

def bulk_flush(w: u64, mask: u32) -> i32:
    return bulk_groups(w, mask, -1)

def look(w: u64, lane: u32, at: u64, parity: u64) -> i32:
    if not initialised(w, lane, at):
        return 2
    if parity_of(load_u64(at)) != parity:
        return 1
    # A wait makes the copies happen: first all of cp.async, then bulk copies one by one, until the
    # phase is complete.
    if arrivals_at(w, at) != 0:
        return 2
    while parity_of(load_u64(at)) == parity:
        more = one_of_barrier(w, at)
        if more != 1:
            return more
    return 1

def test(w: u64, mask: u32, p0: u64, p1: u64, p2: u64) -> i32:
    if chance(w):
        if oldest_bulk(w) != 0:
            return 1
    waiting = u32(0)
    m = mask
    while m != 0:
        lane = ctz(m)
        m = m & (m - 1)
        at = barrier_place(w, lane, load_u64(p0 + u64(lane) * 8), 0)
        if at == 0:
            return 1
        parity = u64(0)
        if BY_PARITY != 0:
            parity = u64(load_u32(p1 + u64(lane) * 4) & 1)
        else:
            parity = parity_of(load_u64(p1 + u64(lane) * 8))
        found = look(w, lane, at, parity)
        if found == 2:
            return 1
        if found == 0:
            waiting = waiting | (u32(1) << lane)
        store_u32(p2 + u64(lane) * 4, u32(found))
    store_u32(w + WAIT_LANES, (load_u32(w + WAIT_LANES) & ~mask) | waiting)
    if waiting != 0:
        store_u32(w + WAITED, 1)
        store_u32(w + FUEL, 0)
    else:
        moved_on(w)
    return 0

def bulk_sizes(w: u64, lane: u32, a: u64, size: u32) -> i32:
    if size & 15 != 0:
        return fault(w, MISALIGNED, lane, u64(size), 16)
    return 0

def barrier_of_rank(w: u64, rank: u64, at: u64, own: u64) -> u64:
    block = block_of_rank(w, rank)
    # The same offset in the window of the other block.
    return load_u64(block + SHARED_BASE) + (at - load_u64(own + SHARED_BASE))

def send(w: u64, lane: u32, entry: u64, to: u64, at: u64, ranks: u32) -> i32:
    own = block_with(w, to, 1)
    if MULTICAST == 0:
        store_u64(entry + B_TO, to)
        store_u64(entry + B_BARRIER, at)
        return add_bulk(w)
    size = load_u32(cluster_of(w) + C_SIZE)
    m = ranks & 0xFFFF
    if m >> size != 0:
        return fault(w, SPACE, lane, u64(m), 0)
    # The entry is not in the queue yet, and `new_bulk` may give its place again.
    keep = local(128)
    copy(keep, entry, B_BYTES)
    while m != 0:
        rank = u64(ctz(m))
        m = m & (m - 1)
        place = barrier_of_rank(w, rank, to, own)
        if not lives(w, lane, block_of_rank(w, rank), place, load_u64(keep + B_SIZE)):
            return 1
        one = new_bulk(w, lane, load_u32(keep + B_WHAT))
        if one == 0:
            return 1
        copy(one, keep, B_BYTES)
        store_u64(one + B_TO, place)
        store_u64(one + B_BARRIER, barrier_of_rank(w, rank, at, own))
        add_bulk(w)
    return 0

def bulk_load(w: u64, mask: u32, p0: u64, p1: u64, p2: u64, p3: u64, p4: u64) -> i32:
    m = mask
    while m != 0:
        lane = ctz(m)
        m = m & (m - 1)
        i = u64(lane)
        size = load_u32(p2 + i * 4)
        source = load_u64(p1 + i * 8)
        if bulk_sizes(w, lane, source, size) != 0:
            return 1
        to = cluster_place(w, lane, load_u64(p0 + i * 8), u64(size), 16)
        if to == 0:
            return 1
        if FROM_SHARED != 0:
            source = shared_place(w, lane, source, u64(size), 16)
        else:
            source = global_place(w, lane, source, u64(size), 16)
        if source == 0:
            return 1
        at = cluster_place(w, lane, load_u64(p3 + i * 8), 8, 8)
        if at == 0:
            return 1
        if not initialised(w, lane, at):
            return 1
        entry = new_bulk(w, lane, PLAIN)
        if entry == 0:
            return 1
        if HOW != 0:
            store_u64(entry + B_DO, address_of(do_reduction))
            store_u32(entry + B_OP, HOW)
        store_u64(entry + B_FROM, source)
        store_u64(entry + B_SIZE, u64(size))
        if send(w, lane, entry, to, at, load_u32(p4 + i * 4)) != 0:
            return 1
        if chance(w):
            if latest_bulk(w) != 0:
                return 1
    return 0

def bulk_store(w: u64, mask: u32, p0: u64, p1: u64, p2: u64) -> i32:
    m = mask
    while m != 0:
        lane = ctz(m)
        m = m & (m - 1)
        i = u64(lane)
        size = load_u32(p2 + i * 4)
        if bulk_sizes(w, lane, load_u64(p0 + i * 8), size) != 0:
            return 1
        to = global_place(w, lane, load_u64(p0 + i * 8), u64(size), 16)
        if to == 0:
            return 1
        source = shared_place(w, lane, load_u64(p1 + i * 8), u64(size), 16)
        if source == 0:
            return 1
        entry = new_bulk(w, lane, PLAIN)
        if entry == 0:
            return 1
        if HOW != 0:
            store_u64(entry + B_DO, address_of(do_reduction))
            store_u32(entry + B_OP, HOW)
        store_u64(entry + B_TO, to)
        store_u64(entry + B_FROM, source)
        store_u64(entry + B_SIZE, u64(size))
        add_bulk(w)
        if chance(w):
            if latest_bulk(w) != 0:
                return 1
    return 0

def map_place(w: u64, lane: u32, a: u64) -> u64:
    map = generic_place(w, lane, a, 128, 64)
    if map == 0:
        return 0
    if load_u64(map + T_MAGIC) != MAGIC:
        wrong(w, lane, a, NO_MAP)
        return 0
    if load_u32(map + T_RANK) != RANK_OF_COPY:
        wrong(w, lane, a, OTHER_RANK)
        return 0
    if load_u8(map + T_IM2COL) != IM2COL:
        wrong(w, lane, a, OTHER_MODE)
        return 0
    if not is_usable(map):
        wrong(w, lane, a, NOT_USABLE)
        return 0
    return map

def is_usable(map: u64) -> i1:
    row = load_u32(map + T_BOX) * load_u32(map + T_SIZE)
    if row == 0 or row & 15 != 0:
        return 0
    if load_u8(map + T_PADDED) != 0:
        row = row * 2
    mode = load_u32(map + T_SWIZZLE)
    return mode == 0 or row == u32(16) << mode

def host_type(kind: u64) -> u64:
    # PTX's element types have the numbers of CUtensorMapDataType, but f64 is 9, bf16 is 10, and 8
    # is f32.ftz, which is not emulated.
    if kind == 9:
        return 8
    if kind == 10:
        return 9
    if kind == 8:
        return 99
    return kind

def bytes_of_type(kind: u64) -> u32:
    if kind < 1:
        return 1
    if kind == 1 or kind == 6 or kind == 9:
        return 2
    if kind == 2 or kind == 3 or kind == 7:
        return 4
    return 8

def replace_dim(map: u64, dim: u64, value: u64) -> i1:
    at = map + dim * 4
    if dim >= 5:
        return 0
    if FIELD == 2:
        store_u32(at + T_BOX, u32(value))
        return value > 0 and value <= 256
    if FIELD == 3:
        store_u32(at + T_DIMS, u32(value) - 1)
        return value > 0
    if FIELD == 5:
        store_u32(at + T_STEPS, u32(value))
        return value > 0 and value <= 8
    store_u32(at + T_STRIDES, u32(value >> 4))
    store_u8(map + T_STRIDES + 16 + dim, u8(value >> 36))
    return dim < 4 and value & 15 == 0 and value >> 40 == 0

def replace_field(map: u64, dim: u64, value: u64) -> i1:
    store_u64(map + T_MAGIC, MAGIC)
    if FIELD == 0:
        store_u64(map + T_ADDRESS, value)
        return value & 15 == 0
    if FIELD == 1:
        store_u32(map + T_RANK, u32(value) + 1)
        return value < 5
    if FIELD < 6:
        return replace_dim(map, dim, value)
    if FIELD == 6:
        kind = host_type(value)
        store_u32(map + T_TYPE, u32(kind))
        store_u32(map + T_SIZE, bytes_of_type(kind))
        return kind < 10
    if FIELD == 7:
        return value == 0
    if FIELD == 8:
        store_u32(map + T_SWIZZLE, u32(value))
        return value < 4
    store_u8(map + T_FILL, u8(value))
    return value < 2

def map_replace(w: u64, mask: u32, p0: u64, p1: u64, p2: u64) -> i32:
    m = mask
    while m != 0:
        lane = ctz(m)
        m = m & (m - 1)
        i = u64(lane)
        map = u64(0)
        if FROM_SHARED != 0:
            map = shared_place(w, lane, load_u64(p0 + i * 8), 128, 64)
        else:
            map = global_place(w, lane, load_u64(p0 + i * 8), 128, 64)
        if map == 0:
            return 1
        value = load_u64(p2 + i * 8)
        if not replace_field(map, u64(load_u32(p1 + i * 4)), value):
            return wrong(w, lane, value, BAD_FIELD)
    return 0

def map_copy(w: u64, mask: u32, p0: u64, p1: u64) -> i32:
    if mask == 0:
        return 0
    lane = ctz(mask)
    to = global_place(w, lane, load_u64(p0 + u64(lane) * 8), 128, 64)
    if to == 0:
        return 1
    source = shared_place(w, lane, load_u64(p1 + u64(lane) * 8), 128, 64)
    if source == 0:
        return 1
    copy(to, source, 128)
    return 0

def tensor_op(kind: u32) -> u32:
    if kind == 2:
        return TYPE_U32
    if kind == 3:
        return TYPE_S32
    if kind == 4:
        return TYPE_U64
    if kind == 5:
        return TYPE_S64
    if kind == 6:
        return TYPE_F16
    if kind == 7:
        return TYPE_F32
    if kind == 8:
        return TYPE_F64
    if kind == 9:
        return TYPE_BF16
    return 15

def can_reduce(kind: u32, op: u32) -> i1:
    if kind == 15:
        return 0
    if kind == TYPE_F32 or kind == TYPE_F64:
        return op == OP_ADD
    if kind == TYPE_F16 or kind == TYPE_BF16:
        return op == OP_ADD or op == OP_MIN or op == OP_MAX
    if op == OP_INC or op == OP_DEC:
        return kind == TYPE_U32
    return 1

def checked_place(w: u64, lane: u32, a: u64, map: u64, at: u64, what: u32) -> i32:
    if load_u8(map + T_PADDED) != 0:
        if what != LOADS_TENSOR:
            return wrong(w, lane, a, LOADS_ALONE)
        # In bytes: 64 of them are 128 elements.
        if load_i32(at) & 63 != 0:
            return wrong(w, lane, a, ODD_START)
    if IM2COL != 0:
        if not in_bounding_box(map, at):
            return wrong(w, lane, a, OUTSIDE_OF_BOX)
    return 0

def tensor_entry(w: u64, lane: u32, p: u64, what: u32) -> u64:
    i = u64(lane)
    map = map_place(w, lane, load_u64(p + i * 8))
    if map == 0:
        return 0
    entry = new_bulk(w, lane, what)
    if entry == 0:
        return 0
    store_u64(entry + B_DO, address_of(do_tensor))
    store_u64(entry + B_MAP, map)
    at_place(map, p + 256, i, OFFSETS, entry + B_AT)
    if checked_place(w, lane, load_u64(p + i * 8), map, entry + B_AT, what) != 0:
        return 0
    store_u64(entry + B_SIZE, box_bytes(map))
    if CHECKED != 0:
        if check_tensor(w, lane, entry) != 0:
            return 0
    return entry

def tensor_load(w: u64, mask: u32, p: u64) -> i32:
    rest = p + (RANK_OF_COPY + 1 + OFFSETS) * 256
    m = mask
    while m != 0:
        lane = ctz(m)
        m = m & (m - 1)
        i = u64(lane)
        entry = tensor_entry(w, lane, p, LOADS_TENSOR)
        if entry == 0:
            return 1
        size = shared_bytes(load_u64(entry + B_MAP))
        to = cluster_place(w, lane, load_u64(rest + i * 8), size, 128)
        if to == 0:
            return 1
        at = cluster_place(w, lane, load_u64(rest + 256 + i * 8), 8, 8)
        if at == 0:
            return 1
        if not initialised(w, lane, at):
            return 1
        if send(w, lane, entry, to, at, load_u32(rest + 512 + i * 4)) != 0:
            return 1
        if chance(w):
            if latest_bulk(w) != 0:
                return 1
    return 0

def tensor_store(w: u64, mask: u32, p: u64) -> i32:
    rest = p + (RANK_OF_COPY + 1) * 256
    m = mask
    while m != 0:
        lane = ctz(m)
        m = m & (m - 1)
        entry = tensor_entry(w, lane, p, STORES_TENSOR)
        if entry == 0:
            return 1
        size = load_u64(entry + B_SIZE)
        source = shared_place(w, lane, load_u64(rest + u64(lane) * 8), size, 128)
        if source == 0:
            return 1
        store_u64(entry + B_FROM, source)
        if HOW != 0:
            kind = tensor_op(load_u32(load_u64(entry + B_MAP) + T_TYPE))
            if not can_reduce(kind, HOW - 1):
                return wrong(w, lane, load_u64(p + u64(lane) * 8), OTHER_TYPE)
            store_u32(entry + B_OP, HOW + kind * 16)
            store_u64(entry + B_REDUCE, address_of(reduce))
        add_bulk(w)
        if chance(w):
            if latest_bulk(w) != 0:
                return 1
    return 0

def store_async(w: u64, mask: u32, p0: u64, p1: u64, p2: u64, p3: u64, p4: u64, p5: u64) -> i32:
    m = mask
    while m != 0:
        lane = ctz(m)
        m = m & (m - 1)
        i = u64(lane)
        to = cluster_place(w, lane, load_u64(p0 + i * 8), SIZE * VALUES, SIZE * VALUES)
        if to == 0:
            return 1
        at = cluster_place(w, lane, load_u64(p1 + i * 8), 8, 8)
        if at == 0:
            return 1
        if not initialised(w, lane, at):
            return 1
        entry = new_bulk(w, lane, PLAIN)
        if entry == 0:
            return 1
        # The values of now: the registers may change before the store is done.
        copy(entry + B_DATA, p2 + i * SIZE, SIZE)
        if VALUES > 1:
            copy(entry + B_DATA + SIZE, p3 + i * SIZE, SIZE)
        if VALUES > 2:
            copy(entry + B_DATA + 2 * SIZE, p4 + i * SIZE, SIZE)
            copy(entry + B_DATA + 3 * SIZE, p5 + i * SIZE, SIZE)
        if HOW != 0:
            store_u64(entry + B_DO, address_of(do_reduction))
            store_u32(entry + B_OP, HOW)
        store_u64(entry + B_FROM, entry + B_DATA)
        store_u64(entry + B_TO, to)
        store_u64(entry + B_SIZE, SIZE * VALUES)
        store_u64(entry + B_BARRIER, at)
        add_bulk(w)
        if chance(w):
            if latest_bulk(w) != 0:
                return 1
    return 0
"""
)
