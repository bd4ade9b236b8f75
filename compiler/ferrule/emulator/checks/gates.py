"""What mbarriers, the barrier of a cluster and asynchronous copies order, as native functions.

- Who arrives at an mbarrier orders what it did before it before what those do who have seen that
  phase complete; so do copies that complete at it. At the barrier of a cluster it is the same.
  `.relaxed` orders nothing. To initialise an mbarrier is a plain write of it.
- cp.async writes when its thread has waited for its group, for that thread alone; others need an
  order after that. Until then every access of the place races with it, the own thread's too.
- Copies of the asynchronous proxy (cp.async.bulk, of tensor maps) write shared memory for those who
  wait at their mbarrier, behind whose mbarrier.init a fence.mbarrier_init or fence.proxy.async
  should stand; a multicast does that in each block. What they read, and what wgmma reads of shared
  memory, must have been written before, and a fence.proxy.async must stand behind the write.
- st.async writes, and red.async changes, the shared memory of a block of the cluster for those who
  wait at its mbarrier.
- What copies to global memory and wgmma read may be written again when their thread (for wgmma any
  of its warp) has waited for their group, and by others who know of that; the same holds for what
  the copies write. Copies to shared memory are taken to read where they begin.

A gate has for each block of the cluster two meetings: of the phase under way, and of the last.
"""

from __future__ import annotations

from typing import Final

G_PARITY, G_CURRENT, G_DONE, G_BYTES = 0, 8, 136, 264

CONSTANTS: Final = {
    name: value for name, value in vars().items() if name.isupper() and type(value) is int
}

GATES: Final = """
def gate_at(area: u64, key: u64) -> u64:
    world = load_u64(area + R_WORLD)
    # An odd key: the entry of the address itself says who released there.
    at = place_of(world, key | 1, 1)
    if at == 0:
        return 0
    g = load_u64(at + O_GPU)
    if g == 0:
        g = taken(world, G_BYTES)
        if g != 0:
            fill(g, 0, G_BYTES)
            store_u64(at + O_GPU, g)
    return g

def gate_meeting(area: u64, slot: u64) -> u64:
    m = load_u64(slot)
    if m == 0:
        size = M_ROW + u64(load_u32(area + R_STRIDE)) * 4
        m = taken(load_u64(area + R_WORLD), size)
        if m != 0:
            fill(m, 0, size)
            store_u64(slot, m)
    return m

def forget_meeting(area: u64, m: u64) -> i32:
    if m != 0:
        empty(area, m)
        store_u32(m + M_ERA, 0)
        store_u64(m + M_KNOWN, 0)
    return 0

def turn(area: u64, g: u64, parity: u32) -> i32:
    if load_u32(g + G_PARITY) == parity:
        return 0
    store_u32(g + G_PARITY, parity)
    for rank in range(u64(16)):
        now = load_u64(g + G_CURRENT + rank * 8)
        # The meetings of the phase before are used again, empty, for the one that begins.
        old = load_u64(g + G_DONE + rank * 8)
        store_u64(g + G_DONE + rank * 8, now)
        store_u64(g + G_CURRENT + rank * 8, old)
        forget_meeting(area, old)
    return 0

def enter_gate(w: u64, area: u64, g: u64, t: u32) -> i32:
    rank = u64(load_u32(load_u64(w + BLOCK) + RANK))
    m = gate_meeting(area, g + G_CURRENT + rank * 8)
    if m != 0:
        bring(area, m, t)
    return 0

def told(area: u64, other: u64, m: u64) -> u64:
    if load_u64(m + M_TOLD) != 0:
        return load_u64(m + M_TOLD)
    f = load_u64(m + M_KNOWN)
    if load_u32(m + M_ERA) != 0 and load_u32(m + M_HIGH) > load_u32(m + M_LOW):
        world = load_u64(area + R_WORLD)
        size = u64(load_u32(area + R_STRIDE)) * 4
        own = taken(world, 8 + K_BYTES)
        row = taken(world, size)
        if own == 0 or row == 0:
            return 0
        copy(row, m + M_ROW, size)
        store_u64(own, 1)
        store_u32(own + 8 + K_BLOCK, load_u32(other + R_NUMBER))
        store_u32(own + 8 + K_ERA, load_u32(m + M_ERA))
        store_u32(own + 8 + K_THREAD, 0)
        store_u32(own + 8 + K_CLOCK, load_u32(row))
        store_u64(own + 8 + K_ROW, row)
        f = merged(area, own, f)
    store_u64(m + M_TOLD, f)
    return f

def pass_gate(w: u64, area: u64, g: u64, t: u32) -> i32:
    own = u64(load_u32(load_u64(w + BLOCK) + RANK))
    for rank in range(u64(load_u32(cluster_of(w) + C_SIZE))):
        m = load_u64(g + G_DONE + rank * 8)
        if m != 0:
            if rank == own:
                fetch(area, m, t)
            else:
                other = load_u64(block_of_rank(w, rank) + WATCHED)
                acquire(area, t, told(area, other, m))
    return 0

def known_place(area: u64, a: u64) -> i1:
    return a & 7 == 0 and cell_of(load_u64(area + R_WORLD), a) != 0

def gate_of(area: u64, at: u64) -> u64:
    if not known_place(area, at):
        return 0
    g = gate_at(area, at)
    if g != 0:
        turn(area, g, u32(load_u64(at) >> 61) & 1)
    return g

def inits(w: u64, mask: u32, p0: u64, how: u64) -> i32:
    area = entered(w)
    if area == 0:
        return 0
    m = mask
    while m != 0:
        at = real(w, load_u64(p0 + u64(ctz(m)) * 8), how)
        m = m & (m - 1)
        if known_place(area, at):
            g = gate_at(area, at)
            if g != 0:
                store_u32(g + G_PARITY, 0)
                for i in range(u64(32)):
                    forget_meeting(area, load_u64(g + G_CURRENT + i * 8))
    return 0

def enters(w: u64, mask: u32, p0: u64, how: u64) -> i32:
    area = entered(w)
    if area == 0:
        return 0
    m = mask
    while m != 0:
        lane = ctz(m)
        m = m & (m - 1)
        g = gate_of(area, real(w, load_u64(p0 + u64(lane) * 8), how))
        if g != 0:
            enter_gate(w, area, g, load_u32(w + WARP_ID) * 32 + lane)
    return 0

def leaves(w: u64, mask: u32, p0: u64, p1: u64, how: u64) -> i32:
    area = entered(w)
    if area == 0:
        return 0
    m = mask
    while m != 0:
        lane = ctz(m)
        m = m & (m - 1)
        if load_u32(p1 + u64(lane) * 4) != 0:
            g = gate_of(area, real(w, load_u64(p0 + u64(lane) * 8), how))
            if g != 0:
                pass_gate(w, area, g, load_u32(w + WARP_ID) * 32 + lane)
    return 0

def cluster_enters(w: u64, mask: u32) -> i32:
    area = entered(w)
    if area == 0:
        return 0
    cluster = cluster_of(w)
    g = gate_at(area, cluster)
    if g == 0:
        return 0
    turn(area, g, load_u32(cluster + C_PHASE))
    m = mask
    while m != 0:
        enter_gate(w, area, g, load_u32(w + WARP_ID) * 32 + ctz(m))
        m = m & (m - 1)
    return 0

def cluster_waits(w: u64, mask: u32) -> i32:
    area = entered(w)
    if area == 0:
        return 0
    cluster = cluster_of(w)
    g = gate_at(area, cluster)
    if g == 0:
        return 0
    phase = load_u32(cluster + C_PHASE)
    turn(area, g, phase)
    m = mask
    while m != 0:
        lane = ctz(m)
        m = m & (m - 1)
        if (load_u32(w + ARRIVED_PHASE) >> lane) & 1 == phase:
            at = load_u64(area + R_WAITING) + 16 * 128 + u64(load_u32(w + WARP_ID)) * 4
            store_u32(at, load_u32(at) | (u32(1) << lane))
        else:
            pass_gate(w, area, g, load_u32(w + WARP_ID) * 32 + lane)
    return 0

def passes_all(w: u64, block: u64, area: u64, g: u64) -> i32:
    lanes = load_u64(area + R_WAITING) + 16 * 128
    count = load_u32(area + R_THREADS)
    t = next_lane(lanes, 0, count)
    while t < count:
        pass_gate(load_u64(block + FIRST_WARP), area, g, t)
        t = next_lane(lanes, t + 1, count)
    fill(lanes, 0, 128)
    return 0

def cluster_completes(w: u64, mask: u32) -> i32:
    area = entered(w)
    if area == 0:
        return 0
    cluster = cluster_of(w)
    g = gate_at(area, cluster)
    if g == 0 or load_u32(g + G_PARITY) == load_u32(cluster + C_PHASE):
        return 0
    turn(area, g, load_u32(cluster + C_PHASE))
    for rank in range(u64(load_u32(cluster + C_SIZE))):
        block = block_of_rank(w, rank)
        other = load_u64(block + WATCHED)
        if load_u32(other + R_LAUNCH) == load_u32(area + R_LAUNCH):
            passes_all(w, block, other, g)
    return 0
"""

COPIES: Final = """
def one_more(area: u64, t: u32, which: u64) -> i32:
    q = queue_of(area, t, which)
    store_u32(q + Q_ISSUED, min(load_u32(q + Q_ISSUED) + 1, MOST_CLOCK))
    return 0

def issues(w: u64, mask: u32, p0: u64, p1: u64, p2: u64, how: u64) -> i32:
    area = entered(w)
    if area == 0:
        return 0
    size = how & 255
    rest = how & ~255
    m = mask
    while m != 0:
        lane = ctz(m)
        m = m & (m - 1)
        i = u64(lane)
        t = load_u32(w + WARP_ID) * 32 + lane
        one_more(area, t, COPIES)
        read = min(u64(load_u32(p2 + i * 4)), size)
        source = load_u64(p1 + i * 8)
        # Another address is refused by the instruction itself, which comes next.
        if source & 3 == 0:
            if whole(w, area, t, source, read, rest | HOW_READS) != 0:
                return 1
        to = real(w, load_u64(p0 + i * 8), rest | HOW_SHARED)
        if to & 3 == 0:
            if whole(w, area, t, to, size, rest | HOW_WRITES | HOW_PENDING) != 0:
                return 1
    return 0

def commits(w: u64, mask: u32, which: u64) -> i32:
    area = entered(w)
    if area == 0:
        return 0
    m = mask
    while m != 0:
        q = queue_of(area, load_u32(w + WARP_ID) * 32 + ctz(m), which)
        m = m & (m - 1)
        count = load_u32(q + Q_COMMITS)
        store_u32(q + Q_GROUPS + u64(count % MOST_GROUPS) * 4, load_u32(q + Q_ISSUED))
        store_u32(q + Q_COMMITS, count + 1)
    return 0

def ended(area: u64, t: u32, q: u64, upto: u32) -> i32:
    if upto <= load_u32(q + Q_UPTO):
        return 0
    waits = load_u32(q + Q_WAITS)
    at = q + Q_ENDED + u64(waits % MOST_WAITS) * WAIT_BYTES
    store_u32(at, upto)
    store_u32(at + 4, load_u32(area + R_ERA))
    store_u32(at + 8, clock_of(area, state_of(area, t)))
    store_u32(q + Q_WAITS, waits + 1)
    store_u32(q + Q_UPTO, upto)
    return 0

def waited(w: u64, mask: u32, which: u64, left_open: u64) -> i32:
    area = entered(w)
    if area == 0:
        return 0
    m = mask
    while m != 0:
        t = load_u32(w + WARP_ID) * 32 + ctz(m)
        q = queue_of(area, t, which)
        m = m & (m - 1)
        # cp.async.wait_all waits for what is in no group too.
        if left_open == 255:
            ended(area, t, q, load_u32(q + Q_ISSUED))
        else:
            most = u32(left_open)
            count = load_u32(q + Q_COMMITS)
            if count > most:
                last = count - most - 1
                # Groups before the last ones are forgotten: nothing is taken to have ended.
                if most < MOST_GROUPS:
                    ended(area, t, q, load_u32(q + Q_GROUPS + u64(last % MOST_GROUPS) * 4))
    return 0

def arrives_later(w: u64, mask: u32, p0: u64, how: u64) -> i32:
    area = entered(w)
    if area == 0:
        return 0
    m = mask
    while m != 0:
        t = load_u32(w + WARP_ID) * 32 + ctz(m)
        m = m & (m - 1)
        q = queue_of(area, t, COPIES)
        ended(area, t, q, load_u32(q + Q_ISSUED))
    return enters(w, mask, p0, how)

def map_at(area: u64, maps: u64, i: u64, form: u64) -> u64:
    map = load_u64(maps + i * 8)
    world = load_u64(area + R_WORLD)
    if map - load_u64(world + W_BASE) >= load_u64(world + W_SIZE) or map & 63 != 0:
        return 0
    if load_u64(map + T_MAGIC) != MAGIC or load_u32(map + T_RANK) != u32(form & 0xFF):
        return 0
    if u64(load_u8(map + T_IM2COL)) != form >> 16:
        return 0
    return map

def box(w: u64, area: u64, t: u32, map: u64, p: u64, form: u64, how: u64) -> i32:
    at = local(32)
    at_place(map, p + 256, u64(t & 31), (form >> 8) & 0xFF, at)
    if form >> 16 != 0:
        if not in_bounding_box(map, at):
            return 0
    element = i64(load_u32(map + T_SIZE))
    first = first_inside(map, at)
    last = last_inside(map, at)
    if first >= last:
        return 0
    for row in range(rows_of(map)):
        place = row_at(map, at, row)
        if place != 0:
            start = place + u64((i64(load_i32(at)) + first) * element)
            if whole(w, area, t, start, u64((last - first) * element), how) != 0:
                return 1
    return 0

def receive(w: u64, area: u64, t: u32, to: u64, at: u64, size: u64, how: u64) -> i32:
    cell = cell_of(load_u64(area + R_WORLD), at)
    if cell != 0:
        oldest = load_u32(area + R_FIRST_ERA)
        if not fenced(area, state_of(area, t), t, cell, 15 << MASK_SHIFT, oldest, S_INIT_ERA):
            index = u32(how >> HOW_INDEX_SHIFT)
            if conflicts(area, state_of(area, t), t, cell, index | (15 << MASK_SHIFT), oldest):
                return race(w, area, t, cell, index, at, 1)
            world = load_u64(area + R_WORLD)
            store_u32(world + W_UNFENCED, 1)
            store_u32(world + W_INIT, load_u32(cell + 8) & INDEX_MASK)
            store_u32(world + W_COPY, index)
    if to & 15 == 0 and size < 1 << 20:
        if whole(w, area, t, to, size, how | HOW_WRITES | HOW_ASYNC) != 0:
            return 1
    g = gate_of(area, at)
    if g != 0:
        enter_gate(w, area, g, t)
    return 0

def receive_all(w: u64, area: u64, t: u32, to: u64, at: u64, size: u64, ranks: u32,
                how: u64) -> i32:
    own = block_with(w, to, 1)
    if own == 0 or block_with(w, at, 1) != own:
        return 0
    m = ranks & 0xFFFF
    if m >> load_u32(cluster_of(w) + C_SIZE) != 0:
        return 0
    while m != 0:
        rank = u64(ctz(m))
        m = m & (m - 1)
        shift = load_u64(block_of_rank(w, rank) + SHARED_BASE) - load_u64(own + SHARED_BASE)
        if receive(w, area, t, to + shift, at + shift, size, how) != 0:
            return 1
    return 0

def fetches(w: u64, mask: u32, p0: u64, p1: u64, p2: u64, p3: u64, ranks: u64, how: u64) -> i32:
    area = entered(w)
    if area == 0:
        return 0
    m = mask
    while m != 0:
        lane = ctz(m)
        m = m & (m - 1)
        i = u64(lane)
        t = load_u32(w + WARP_ID) * 32 + lane
        size = u64(load_u32(p2 + i * 4))
        source = load_u64(p1 + i * 8)
        if how & HOW_FROM_SHARED != 0:
            source = real(w, source, how)
        rest = how & ~HOW_FROM_SHARED
        if source & 15 == 0 and size < 1 << 20:
            if whole(w, area, t, source, size, rest | HOW_READS | HOW_PROXY) != 0:
                return 1
        to = real(w, load_u64(p0 + i * 8), how)
        at = real(w, load_u64(p3 + i * 8), how)
        if ranks == 0:
            if receive(w, area, t, to, at, size, rest) != 0:
                return 1
        elif receive_all(w, area, t, to, at, size, load_u32(ranks + i * 4), rest) != 0:
            return 1
    return 0

def fetches_box(w: u64, mask: u32, p: u64, form: u64, cast: u64, how: u64) -> i32:
    area = entered(w)
    if area == 0:
        return 0
    rest = p + ((form & 0xFF) + ((form >> 8) & 0xFF) + 1) * 256
    m = mask
    while m != 0:
        lane = ctz(m)
        m = m & (m - 1)
        i = u64(lane)
        t = load_u32(w + WARP_ID) * 32 + lane
        map = map_at(area, p, i, form)
        if map != 0:
            if box(w, area, t, map, p, form, how | HOW_READS | HOW_PROXY) != 0:
                return 1
            to = real(w, load_u64(rest + i * 8), how)
            at = real(w, load_u64(rest + 256 + i * 8), how)
            if cast == 0:
                if receive(w, area, t, to, at, shared_bytes(map), how) != 0:
                    return 1
            else:
                ranks = load_u32(rest + 512 + i * 4)
                if receive_all(w, area, t, to, at, shared_bytes(map), ranks, how) != 0:
                    return 1
    return 0

def stores(w: u64, mask: u32, p0: u64, p1: u64, how: u64) -> i32:
    area = entered(w)
    if area == 0:
        return 0
    size = how & 255
    m = mask
    while m != 0:
        lane = ctz(m)
        m = m & (m - 1)
        t = load_u32(w + WARP_ID) * 32 + lane
        to = real(w, load_u64(p0 + u64(lane) * 8), how)
        if to & (size - 1) == 0:
            if whole(w, area, t, to, size, (how & ~255) | HOW_WRITES) != 0:
                return 1
        g = gate_of(area, real(w, load_u64(p1 + u64(lane) * 8), how))
        if g != 0:
            enter_gate(w, area, g, t)
    return 0

def leave_shared(w: u64, area: u64, t: u32, a: u64, size: u64, how: u64) -> i32:
    one_more(area, t, BULK_READS)
    one_more(area, t, BULK_WRITES)
    if a & 15 != 0 or size >= 1 << 20:
        return 0
    pending_read = HOW_READS | HOW_PROXY | HOW_PENDING | (u64(BULK_READS) << HOW_QUEUE_SHIFT)
    weak = how & ~(HOW_ATOMIC | (3 << HOW_LEVEL_SHIFT))
    return whole(w, area, t, a, size, weak | pending_read)

def sends(w: u64, mask: u32, p0: u64, p1: u64, sizes: u64, how: u64) -> i32:
    area = entered(w)
    if area == 0:
        return 0
    writes = how | HOW_WRITES | HOW_PENDING | (u64(BULK_WRITES) << HOW_QUEUE_SHIFT)
    m = mask
    while m != 0:
        lane = ctz(m)
        m = m & (m - 1)
        i = u64(lane)
        t = load_u32(w + WARP_ID) * 32 + lane
        size = u64(load_u32(sizes + i * 4))
        if leave_shared(w, area, t, real(w, load_u64(p1 + i * 8), how), size, how) != 0:
            return 1
        to = load_u64(p0 + i * 8)
        if to & 15 == 0 and size < 1 << 20:
            if whole(w, area, t, to, size, writes) != 0:
                return 1
    return 0

def sends_box(w: u64, mask: u32, p: u64, form: u64, how: u64) -> i32:
    area = entered(w)
    if area == 0:
        return 0
    rest = p + ((form & 0xFF) + 1) * 256
    writes = how | HOW_WRITES | HOW_PENDING | (u64(BULK_WRITES) << HOW_QUEUE_SHIFT)
    m = mask
    while m != 0:
        lane = ctz(m)
        m = m & (m - 1)
        t = load_u32(w + WARP_ID) * 32 + lane
        map = map_at(area, p, u64(lane), form)
        if map != 0:
            a = real(w, load_u64(rest + u64(lane) * 8), how)
            if leave_shared(w, area, t, a, box_bytes(map), how) != 0:
                return 1
            if box(w, area, t, map, p, form, writes) != 0:
                return 1
    return 0

def proxy_fence(w: u64, mask: u32, all: u64) -> i32:
    area = entered(w)
    if area == 0:
        return 0
    m = mask
    while m != 0:
        s = state_of(area, load_u32(w + WARP_ID) * 32 + ctz(m))
        m = m & (m - 1)
        store_u32(s + S_INIT_ERA, load_u32(area + R_ERA))
        store_u32(s + S_INIT, clock_of(area, s))
        if all != 0:
            copy(s + S_PROXY_ERA, s + S_INIT_ERA, 8)
        tick(area, s)
    return 0

def reads_line(w: u64, area: u64, t: u32, at: u64, how: u64) -> i32:
    block = load_u64(w + BLOCK)
    if at + 16 > load_u64(block + SHARED_SIZE):
        return 0
    return whole(w, area, t, load_u64(block + SHARED_BASE) + at, 16, how)

def reads_matrix(w: u64, area: u64, t: u32, desc: u64, first: u64, count: u64, trans: u64,
                 depth: u64, how: u64) -> i32:
    if trans != 0:
        for k in range(depth):
            for u in range(count >> 3):
                if reads_line(w, area, t, mn_line(desc, (first >> 3) + u, k), how) != 0:
                    return 1
        return 0
    for mn in range(count):
        for line in range(u64(2)):
            if reads_line(w, area, t, k_line(desc, first + mn, line), how) != 0:
                return 1
    return 0

def multiplies(w: u64, mask: u32, p0: u64, p1: u64, shape: u64, depth: u64, how: u64) -> i32:
    area = entered(w)
    if area == 0:
        return 0
    first = load_u32(w + WARP_ID) * 32
    for lane in range(u32(32)):
        one_more(area, first + lane, PRODUCTS)
    reads = how | HOW_READS | HOW_PROXY | HOW_PENDING | (u64(PRODUCTS) << HOW_QUEUE_SHIFT)
    columns = shape & 0xFFFF
    rows = u64(load_u32(w + WARP_ID) & 3) * 16
    if (shape >> 16) & 1 == 0:
        trans = (shape >> 17) & 1
        if reads_matrix(w, area, first, load_u64(p0), rows, 16, trans, depth, reads) != 0:
            return 1
    trans = (shape >> 18) & 1
    return reads_matrix(w, area, first, load_u64(p1), 0, columns, trans, depth, reads)
"""
