"""What threads know of each other's past: vector clocks, as native functions.

A block's time is cut into *eras*: a barrier for which all its threads wait begins a new one, and
everything of earlier eras is known to all threads of the block. (Where some have ended, what they
did is not known to the others, and there are no more eras.) Within an era, each thread has a
clock, and a *row* with the last clock of each thread of its block that it knows; most threads never
need one. What is known of other blocks is a *message*: for each block an era, a thread and its
clock, and a row. Messages do not change once they are made, so many threads can have the same one.

A race is looked for by comparing with what a thread knows. Where knowledge is rounded, it is
rounded up: an order that is not there may be assumed, so that a race stays unseen; one that is
there is never forgotten, so that nothing is reported that is none.
"""

from __future__ import annotations

from typing import Final

from ferrule.emulator.warps.layout import LANES

# What all blocks of a machine have together.
W_FREE, W_FREE_END, W_STOPPED, W_ERA, W_LAUNCH_ERA = 0, 8, 16, 20, 24
W_PAGES, W_PAGE_FREE, W_PAGE_END, W_TABLE, W_BASE, W_SIZE, W_GLOBAL = 32, 40, 48, 56, 64, 72, 80
W_ERAS: Final = 88
"""The block of each era."""
W_UNFENCED, W_INIT, W_COPY = 96, 100, 104
"""Whether a copy completes an mbarrier without a fence behind its initialisation, and the numbers
of both instructions."""
WORLD_BYTES: Final = 128

# What a block has: `number` is the block of the grid that it is at the moment.
R_WORLD, R_NUMBER, R_ERA, R_FIRST_ERA, R_THREADS, R_STRIDE = 0, 8, 12, 16, 20, 24
R_CLUSTER, R_STATES, R_ROWS, R_MEETINGS, R_WAITING, R_LAUNCH = 28, 32, 40, 48, 56, 64
R_ADDRESS, R_OLD, R_NEW, R_WHY, R_QUEUES = 72, 80, 96, 112, 120
R_COUNTS: Final = 128
"""For each of 16 barriers how many threads wait, and how many arrived and went on."""
AREA_BYTES: Final = R_COUNTS + 16 * 8

# A thread.
S_ROW_ERA, S_LOW, S_HIGH, S_CLOCK_ERA, S_CLOCK, S_PROXY_ERA, S_PROXY = 0, 4, 8, 12, 16, 20, 24
S_KNOWN, S_SNAPSHOT, S_LAST, S_FENCE, S_FENCE_CTA, S_SEEN = 32, 40, 48, 56, 64, 72
S_INIT_ERA, S_INIT = 80, 84
"""The last fence for mbarriers that were initialised, which a fence of all is too."""
STATE_BYTES: Final = 88

# What a thread does asynchronously, of four sorts: writes of cp.async, what bulk copies read of
# shared memory and write to global memory, and what products read.
COPIES, BULK_READS, BULK_WRITES, PRODUCTS, QUEUES = range(5)
Q_ERA, Q_ISSUED, Q_COMMITS, Q_UPTO, Q_WAITS, Q_GROUPS, Q_ENDED = 0, 4, 8, 12, 16, 20, 84
"""The first era of the block that it is of; how many began, groups, how many ended at how many
waits; then for the last groups how many had begun, and for the last waits how many had ended, in
which era, at which clock."""
MOST_GROUPS, MOST_WAITS, WAIT_BYTES = 16, 8, 12
QUEUE_BYTES: Final = 192

# Where threads meet: a barrier, or lanes of a warp. Behind it lies its row.
M_ERA, M_LOW, M_HIGH, M_KNOWN, M_TOLD, M_ROW = 0, 4, 8, 16, 24, 32
# The sixteen named barriers of a block, and one more for the lanes of a warp.
MEETINGS: Final = 17

# An entry of a message.
K_BLOCK, K_ERA, K_THREAD, K_CLOCK, K_ROW, K_BYTES = 0, 4, 8, 12, 16, 24
# A record has thread and clock in one word, and a block at most 1024 threads.
MOST_CLOCK: Final = (1 << 22) - 1

CONSTANTS: Final = {
    name: value for name, value in vars().items() if name.isupper() and type(value) is int
} | {"LANES": LANES}

SOURCE: Final = """
def next_era(area: u64) -> u32:
    world = load_u64(area + R_WORLD)
    era = load_u32(world + W_ERA) + 1
    store_u32(world + W_ERA, era)
    store_u32(area + R_ERA, era)
    store_u32(load_u64(world + W_ERAS) + u64(era) * 4, load_u32(area + R_NUMBER))
    return era

def begin(area: u64, world: u64, number: u32) -> u64:
    store_u32(area + R_NUMBER, number)
    store_u32(area + R_FIRST_ERA, next_era(area))
    store_u32(area + R_LAUNCH, load_u32(world + W_LAUNCH_ERA))
    fill(load_u64(area + R_STATES), 0, u64(load_u32(area + R_THREADS)) * STATE_BYTES)
    fill(area + R_COUNTS, 0, 128)
    fill(load_u64(area + R_WAITING), 0, MEETINGS * 128)
    for i in range(u64(MEETINGS)):
        store_u64(meeting_at(area, i) + M_KNOWN, 0)
    return area

def entered(w: u64) -> u64:
    block = load_u64(w + BLOCK)
    area = load_u64(block + WATCHED)
    if area == 0:
        return 0
    world = load_u64(area + R_WORLD)
    if load_u32(world + W_STOPPED) != 0:
        return 0
    number = load_u32(block + CTAID + 8) * load_u32(block + NCTAID + 4)
    number = number + load_u32(block + CTAID + 4)
    number = number * load_u32(block + NCTAID) + load_u32(block + CTAID)
    if number == load_u32(area + R_NUMBER):
        if load_u32(area + R_LAUNCH) == load_u32(world + W_LAUNCH_ERA):
            return area
    return begin(area, world, number)

def taken(world: u64, size: u64) -> u64:
    at = load_u64(world + W_FREE)
    if at + size > load_u64(world + W_FREE_END):
        store_u32(world + W_STOPPED, 1)
        return 0
    store_u64(world + W_FREE, at + size)
    return at

def state_of(area: u64, t: u32) -> u64:
    return load_u64(area + R_STATES) + u64(t) * STATE_BYTES

def queue_of(area: u64, t: u32, which: u64) -> u64:
    q = load_u64(area + R_QUEUES) + (u64(t) * QUEUES + which) * QUEUE_BYTES
    first = load_u32(area + R_FIRST_ERA)
    if load_u32(q + Q_ERA) != first:
        # It is of a block before this one: nothing clears all queues when a block begins.
        fill(q, 0, Q_GROUPS)
        store_u32(q + Q_ERA, first)
    return q

def row_of(area: u64, t: u32) -> u64:
    return load_u64(area + R_ROWS) + u64(t) * u64(load_u32(area + R_STRIDE)) * 4

def meeting_at(area: u64, i: u64) -> u64:
    return load_u64(area + R_MEETINGS) + i * (M_ROW + u64(load_u32(area + R_STRIDE)) * 4)

def clock_of(area: u64, s: u64) -> u32:
    # A clock of an earlier era counts as one that has just begun.
    if load_u32(s + S_CLOCK_ERA) != load_u32(area + R_ERA):
        return 1
    return load_u32(s + S_CLOCK)

def tick(area: u64, s: u64) -> u32:
    # A clock that stands still makes later accesses look known: a race may stay unseen.
    now = min(clock_of(area, s) + 1, MOST_CLOCK)
    store_u32(s + S_CLOCK_ERA, load_u32(area + R_ERA))
    store_u32(s + S_CLOCK, now)
    return now

def has_row(area: u64, s: u64) -> i1:
    return load_u32(s + S_ROW_ERA) == load_u32(area + R_ERA)

def with_row(area: u64, s: u64, t: u32) -> u64:
    row = row_of(area, t)
    if not has_row(area, s):
        fill(row, 0, u64(load_u32(area + R_STRIDE)) * 4)
        store_u32(s + S_ROW_ERA, load_u32(area + R_ERA))
        store_u32(s + S_LOW, t)
        store_u32(s + S_HIGH, t)
    # The row is about to change.
    store_u64(s + S_SNAPSHOT, 0)
    return row

def raise_row(to: u64, source: u64, low: u32, high: u32) -> i32:
    # In vectors of 8: rows have a multiple of 8 clocks.
    i = low & 0xFFFFFFF8
    while i < high:
        at = u64(i) * 4
        store_u32x8(to + at, max(load_u32x8(to + at), load_u32x8(source + at)))
        i = i + 8
    return 0

def raise_one(row: u64, t: u32, clock: u32) -> i32:
    at = row + u64(t) * 4
    store_u32(at, max(load_u32(at), clock))
    return 0

def widen(at: u64, low: u32, high: u32) -> i32:
    store_u32(at, min(load_u32(at), low))
    store_u32(at + 4, max(load_u32(at + 4), high))
    return 0

def empty(area: u64, m: u64) -> i32:
    low = u64(load_u32(m + M_LOW) & 0xFFFFFFF8)
    high = u64((load_u32(m + M_HIGH) + 7) & 0xFFFFFFF8)
    if high > low:
        fill(m + M_ROW + low * 4, 0, (high - low) * 4)
    store_u32(m + M_ERA, load_u32(area + R_ERA))
    store_u32(m + M_LOW, load_u32(area + R_STRIDE))
    store_u32(m + M_HIGH, 0)
    store_u64(m + M_TOLD, 0)
    return 0

def bring(area: u64, m: u64, t: u32) -> i32:
    s = state_of(area, t)
    if load_u32(m + M_ERA) != load_u32(area + R_ERA):
        empty(area, m)
    store_u64(m + M_TOLD, 0)
    if has_row(area, s):
        low = load_u32(s + S_LOW)
        high = load_u32(s + S_HIGH)
        raise_row(m + M_ROW, row_of(area, t), low, high)
        widen(m + M_LOW, low, high)
    raise_one(m + M_ROW, t, clock_of(area, s))
    widen(m + M_LOW, t, t + 1)
    store_u64(m + M_KNOWN, merged(area, load_u64(m + M_KNOWN), load_u64(s + S_KNOWN)))
    tick(area, s)
    return 0

def fetch(area: u64, m: u64, t: u32) -> i32:
    s = state_of(area, t)
    if load_u32(m + M_ERA) == load_u32(area + R_ERA):
        row = with_row(area, s, t)
        low = load_u32(m + M_LOW)
        high = load_u32(m + M_HIGH)
        raise_row(row, m + M_ROW, low, high)
        widen(s + S_LOW, low, high)
    store_u64(s + S_KNOWN, merged(area, load_u64(s + S_KNOWN), load_u64(m + M_KNOWN)))
    return 0

def entry_for(f: u64, block: u32) -> u64:
    if f == 0:
        return 0
    low = u64(0)
    high = load_u64(f)
    while low < high:
        # Entries are in the order of their blocks.
        middle = (low + high) >> 1
        e = f + 8 + middle * K_BYTES
        here = load_u32(e + K_BLOCK)
        if here == block:
            return e
        if here < block:
            low = middle + 1
        else:
            high = middle
    return 0

def entry_covers(e: u64, other: u64) -> i1:
    if e == 0:
        return 0
    if load_u32(e + K_ERA) != load_u32(other + K_ERA):
        return load_u32(e + K_ERA) > load_u32(other + K_ERA)
    if load_u32(e + K_THREAD) != load_u32(other + K_THREAD):
        return 0
    if load_u32(e + K_CLOCK) < load_u32(other + K_CLOCK):
        return 0
    row = load_u64(other + K_ROW)
    return row == 0 or row == load_u64(e + K_ROW)

def covers(f: u64, other: u64, but: u32) -> i1:
    for i in range(load_u64(other)):
        e = other + 8 + i * K_BYTES
        if load_u32(e + K_BLOCK) != but:
            if not entry_covers(entry_for(f, load_u32(e + K_BLOCK)), e):
                return 0
    return 1

def merged_row(area: u64, x: u64, y: u64) -> u64:
    size = u64(load_u32(area + R_STRIDE)) * 4
    row = taken(load_u64(area + R_WORLD), size)
    if row == 0:
        return 0
    fill(row, 0, size)
    if load_u64(x + K_ROW) != 0:
        copy(row, load_u64(x + K_ROW), size)
    if load_u64(y + K_ROW) != 0:
        raise_row(row, load_u64(y + K_ROW), 0, load_u32(area + R_STRIDE))
    raise_one(row, load_u32(x + K_THREAD), load_u32(x + K_CLOCK))
    raise_one(row, load_u32(y + K_THREAD), load_u32(y + K_CLOCK))
    return row

def combine(area: u64, to: u64, x: u64, y: u64) -> i32:
    if load_u32(x + K_ERA) > load_u32(y + K_ERA) or entry_covers(x, y):
        copy(to, x, K_BYTES)
        return 0
    copy(to, y, K_BYTES)
    if load_u32(x + K_ERA) == load_u32(y + K_ERA) and not entry_covers(y, x):
        store_u64(to + K_ROW, merged_row(area, x, y))
    return 0

def merged(area: u64, f: u64, other: u64) -> u64:
    if other == 0 or f == other:
        return f
    if f == 0:
        return other
    if covers(f, other, 0xFFFFFFFF):
        return f
    n = load_u64(f)
    many = load_u64(other)
    made = taken(load_u64(area + R_WORLD), 8 + (n + many) * K_BYTES)
    if made == 0:
        return 0
    i = u64(0)
    j = u64(0)
    count = u64(0)
    while i < n or j < many:
        x = f + 8 + i * K_BYTES
        y = other + 8 + j * K_BYTES
        to = made + 8 + count * K_BYTES
        count = count + 1
        if j == many:
            copy(to, x, K_BYTES)
            i = i + 1
        elif i == n:
            copy(to, y, K_BYTES)
            j = j + 1
        elif load_u32(x + K_BLOCK) < load_u32(y + K_BLOCK):
            copy(to, x, K_BYTES)
            i = i + 1
        elif load_u32(y + K_BLOCK) < load_u32(x + K_BLOCK):
            copy(to, y, K_BYTES)
            j = j + 1
        else:
            combine(area, to, x, y)
            i = i + 1
            j = j + 1
    store_u64(made, count)
    return made

def foreign(area: u64, f: u64) -> u64:
    own = entry_for(f, load_u32(area + R_NUMBER))
    if own == 0:
        return f
    n = load_u64(f)
    if n == 1:
        return 0
    made = taken(load_u64(area + R_WORLD), 8 + (n - 1) * K_BYTES)
    if made == 0:
        return 0
    before = own - (f + 8)
    copy(made + 8, f + 8, before)
    copy(made + 8 + before, own + K_BYTES, (n - 1) * K_BYTES - before)
    store_u64(made, n - 1)
    return made

def snapshot(area: u64, s: u64, t: u32) -> u64:
    if not has_row(area, s):
        return 0
    if load_u64(s + S_SNAPSHOT) == 0:
        size = u64(load_u32(area + R_STRIDE)) * 4
        made = taken(load_u64(area + R_WORLD), size)
        if made == 0:
            return 0
        copy(made, row_of(area, t), size)
        store_u64(s + S_SNAPSHOT, made)
    return load_u64(s + S_SNAPSHOT)

def message(area: u64, t: u32) -> u64:
    s = state_of(area, t)
    own = taken(load_u64(area + R_WORLD), 8 + K_BYTES)
    if own == 0:
        return 0
    store_u64(own, 1)
    store_u32(own + 8 + K_BLOCK, load_u32(area + R_NUMBER))
    store_u32(own + 8 + K_ERA, load_u32(area + R_ERA))
    store_u32(own + 8 + K_THREAD, t)
    store_u32(own + 8 + K_CLOCK, clock_of(area, s))
    store_u64(own + 8 + K_ROW, snapshot(area, s, t))
    tick(area, s)
    return merged(area, own, load_u64(s + S_KNOWN))

def acquire(area: u64, t: u32, f: u64) -> i32:
    s = state_of(area, t)
    # The same message again tells nothing new.
    if f == 0 or f == load_u64(s + S_LAST):
        return 0
    store_u64(s + S_LAST, f)
    e = entry_for(f, load_u32(area + R_NUMBER))
    if e != 0:
        if load_u32(e + K_ERA) == load_u32(area + R_ERA):
            row = with_row(area, s, t)
            u = load_u32(e + K_THREAD)
            raise_one(row, u, load_u32(e + K_CLOCK))
            widen(s + S_LOW, u, u + 1)
            if load_u64(e + K_ROW) != 0:
                raise_row(row, load_u64(e + K_ROW), 0, load_u32(area + R_STRIDE))
                widen(s + S_LOW, 0, load_u32(area + R_STRIDE))
    known = load_u64(s + S_KNOWN)
    if not covers(known, f, load_u32(area + R_NUMBER)):
        store_u64(s + S_KNOWN, merged(area, known, foreign(area, f)))
    return 0

def knows(area: u64, s: u64, t: u32, block: u32, era: u32, who: u32) -> i1:
    u = who & 1023
    clock = who >> 10
    if block == load_u32(area + R_NUMBER):
        if era < load_u32(area + R_ERA) or u == t:
            return 1
        if not has_row(area, s):
            return 0
        return load_u32(row_of(area, t) + u64(u) * 4) >= clock
    e = entry_for(load_u64(s + S_KNOWN), block)
    if e == 0:
        return 0
    if load_u32(e + K_ERA) != era:
        return load_u32(e + K_ERA) > era
    if load_u32(e + K_THREAD) == u and load_u32(e + K_CLOCK) >= clock:
        return 1
    row = load_u64(e + K_ROW)
    if row == 0:
        return 0
    return load_u32(row + u64(u) * 4) >= clock
"""
