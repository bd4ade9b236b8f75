"""wgmma: products of 64 rows by N columns over four warps, each of which does its own 16 rows.

A product waits in the queue of its warp, and reads what it multiplies, adds to and writes when it
is done: shared memory, and registers in the frame. Matrices in shared memory are made of lines of
16 bytes; with `mn` the row of A or the column of B, u that number in lines, offsets in bytes, and
S the bytes of the swizzle (leading and stride are those of the descriptor):

    K-major, no swizzle     16 (mn % 8) + stride (mn / 8) + leading (line of k)
    K-major, swizzled       S (mn % 8) + stride (mn / 8) + 16 (line of k)
    MN-major, no swizzle    stride u + 16 (k % 8) + leading (k / 8)
    MN-major, swizzled      16 (u % (S/16)) + leading (u / (S/16)) + S (k % 8) + stride (k / 8)

A swizzle is of the bits of the whole address, as in bulk tensor copies.
"""

from __future__ import annotations

from typing import Final

from ferrule.emulator.native.barriers import CONSTANTS as BARRIER_CONSTANTS
from ferrule.emulator.native.clusters import SOURCE as CLUSTERS
from ferrule.emulator.native.places import CONSTANTS as PLACE_CONSTANTS

KINDS: Final = {
    "F16": 1, "BF16": 2, "TF32": 3, "E4M3": 4, "E5M2": 5, "S8": 6, "U8": 7, "S4": 8, "U4": 9,
}  # fmt: skip

NUMBERS: Final = """
def half_value(bits: u32) -> f32:
    return f32(as_f16(u16(bits)))

def e4m3_value(bits: u32) -> f32:
    sign = (bits & 128) << 24
    exponent = (bits >> 3) & 15
    if bits & 127 == 127:
        return as_f32(u32(0x7FFFFFFF))
    if exponent == 0:
        # 2^-9, the smallest subnormal number of this format.
        small = f32(bits & 7) * as_f32(u32(0x3B000000))
        return as_f32(as_u32(small) | sign)
    # 120 is the difference of the biases, 127 - 7.
    return as_f32(sign | ((exponent + 120) << 23) | ((bits & 7) << 20))

def decoded(word: u32, i: u32, kind: u32) -> f32:
    if kind == F16:
        return half_value((word >> (i * 16)) & 65535)
    if kind == BF16:
        return as_f32((word >> (i * 16)) << 16)
    if kind == TF32:
        # The hardware reads the upper 19 bits.
        return as_f32(word & 0xFFFFE000)
    if kind == E4M3:
        return e4m3_value((word >> (i * 8)) & 255)
    # E5M2 is the upper byte of a float16.
    return half_value(((word >> (i * 8)) & 255) << 8)

def integer(word: u32, i: u32, kind: u32) -> i32:
    if kind == S8:
        return i32(i8(word >> (i * 8)))
    if kind == U8:
        return i32((word >> (i * 8)) & 255)
    if kind == S4:
        return i32(word << (28 - i * 4)) >> 28
    return i32((word >> (i * 4)) & 15)

def half_bits(value: f32) -> u16:
    if value != value:
        return 0x7FFF
    return as_u16(f16(value))

def single_bits(value: f32) -> u32:
    if value != value:
        return 0x7FFFFFFF
    return as_u32(value)

def double_bits(value: f64) -> u64:
    if value != value:
        return 0x7FFFFFFFFFFFFFFF
    return as_u64(value)
"""


P_DO, P_SLOTS, P_A, P_B, P_KEEPS, P_GROUP, P_INDEX = 0, 8, 16, 24, 32, 36, 40

CONSTANTS: Final = (
    PLACE_CONSTANTS
    | BARRIER_CONSTANTS
    | KINDS
    | {name: value for name, value in vars().items() if name.startswith("P_")}
    | {"CHECKED": 1, "PENDING": 0}
)

QUEUE: Final = (
    CLUSTERS
    + """
def product_at(area: u64, number: u32) -> u64:
    return area + A_PRODUCTS + u64(number % MOST_PRODUCTS) * P_BYTES

def do_products(w: u64, most: i32) -> i32:
    area = load_u64(w + ASYNC)
    number = load_u32(area + A_WGMMA)
    end = load_u32(area + A_WGMMA_END)
    committed = load_u32(area + A_WGMMA_GROUP)
    while number != end:
        entry = product_at(area, number)
        if i32(committed - load_u32(entry + P_GROUP)) <= most:
            return 0
        number = number + 1
        store_u32(area + A_WGMMA, number)
        if call(load_u64(entry + P_DO), w, 0xFFFFFFFF, entry) != 0:
            return 1
    return 0

def issue(w: u64, mask: u32, p: u64) -> i32:
    if mask != 0xFFFFFFFF:
        return fault(w, SYNC, ctz(mask), u64(mask), NOT_WHOLE)
    # The last of the four warps must be in the block.
    if load_u32(w + WARP_ID) | 3 >= load_u32(load_u64(w + BLOCK) + WARPS):
        return fault(w, SYNC, 0, 0, NO_WARPGROUP)
    area = load_u64(w + ASYNC)
    if load_u32(area + A_WGMMA_END) - load_u32(area + A_WGMMA) == MOST_PRODUCTS:
        # Below 0: also those whose group is not committed yet.
        if do_products(w, -2) != 0:
            return 1
    end = load_u32(area + A_WGMMA_END)
    store_u32(area + A_WGMMA_END, end + 1)
    entry = product_at(area, end)
    store_u64(entry + P_DO, load_u64(p))
    store_u64(entry + P_SLOTS, load_u64(p + 256))
    store_u64(entry + P_A, load_u64(p + 512))
    store_u64(entry + P_B, load_u64(p + 768))
    store_u32(entry + P_KEEPS, load_u32(p + 1024))
    store_u32(entry + P_GROUP, load_u32(area + A_WGMMA_GROUP))
    if chance(w):
        return do_products(w, -2)
    return 0

def commit(w: u64, mask: u32) -> i32:
    area = load_u64(w + ASYNC)
    store_u32(area + A_WGMMA_GROUP, load_u32(area + A_WGMMA_GROUP) + 1)
    return 0

def wait(w: u64, mask: u32) -> i32:
    return do_products(w, PENDING)
"""
)

LINES: Final = """
def span_of(desc: u64) -> u64:
    # PTX ISA, matrix descriptor: 1 is a swizzle of 128 bytes, 2 one of 64, 3 one of 32.
    return u64(256) >> (desc >> 62)

def turned(at: u64, desc: u64) -> u64:
    if desc >> 62 == 0:
        return at
    return at ^ ((at >> 3) & (span_of(desc) - 16))

def k_line(desc: u64, mn: u64, line: u64) -> u64:
    # A descriptor has addresses and distances without their 4 lowest bits.
    start = (desc & 0x3FFF) << 4
    leading = ((desc >> 16) & 0x3FFF) << 4
    stride = ((desc >> 32) & 0x3FFF) << 4
    at = start + stride * (mn >> 3)
    if desc >> 62 == 0:
        return at + 16 * (mn & 7) + leading * line
    return turned(at + span_of(desc) * (mn & 7) + 16 * line, desc)

def mn_line(desc: u64, u: u64, k: u64) -> u64:
    start = (desc & 0x3FFF) << 4
    leading = ((desc >> 16) & 0x3FFF) << 4
    stride = ((desc >> 32) & 0x3FFF) << 4
    if desc >> 62 == 0:
        return start + stride * u + 16 * (k & 7) + leading * (k >> 3)
    lines = span_of(desc) >> 4
    at = start + 16 * (u % lines) + leading * (u // lines)
    return turned(at + span_of(desc) * (k & 7) + stride * (k >> 3), desc)

"""

SOURCE: Final = (
    CLUSTERS
    + NUMBERS
    + LINES
    + """
def line_place(w: u64, at: u64) -> u64:
    if at + 16 > load_u64(load_u64(w + BLOCK) + SHARED_SIZE):
        fault(w, SPACE, 0, at, 16)
        return 0
    return at + load_u64(w + SHARED)

def put_number(to: u64, word: u32, i: u32, kind: u32, negated: u32) -> i32:
    if WHOLE != 0:
        store_i32(to, integer(word, i, kind))
    else:
        value = decoded(word, i, kind)
        store_f32(to, -value if negated != 0 else value)
    return 0

def spread(w: u64, to: u64, place: u64, step: u64, kind: u32, negated: u32) -> i32:
    for j in range(u64(4)):
        word = load_u32(place + j * 4)
        if BITS != 0:
            store_u32(to + j * step, word)
        else:
            for i in range(u64(EACH)):
                put_number(to + (j * EACH + i) * step, word, u32(i), kind, negated)
    return 0

def matrix(w: u64, to: u64, desc: u64, first: u64, count: u64, trans: u32, mn_step: u64,
           k_step: u64, kind: u32, negated: u32) -> i32:
    if (desc >> 49) & 7 != 0:
        return fault(w, SYNC, 0, desc, BASE_OFFSET)
    if trans != 0:
        for k in range(u64(DEPTH)):
            for u in range(count >> 3):
                place = line_place(w, mn_line(desc, (first >> 3) + u, k))
                if place == 0:
                    return 1
                spread(w, to + k * k_step + u * 8 * mn_step, place, mn_step, kind, negated)
        return 0
    for mn in range(count):
        for line in range(u64(2)):
            place = line_place(w, k_line(desc, first + mn, line))
            if place == 0:
                return 1
            there = to + mn * mn_step + line * (DEPTH >> 1) * k_step
            spread(w, there, place, k_step, kind, negated)
    return 0

def left(w: u64, entry: u64, a: u64) -> i32:
    if A_REGISTERS == 0:
        rows = u64(load_u32(w + WARP_ID) & 3) * 16
        return matrix(w, a, load_u64(entry + P_A), rows, 16, TRANS_A, DEPTH * 4, 4, A_KIND, MINUS_A)
    slots = load_u64(entry + P_SLOTS) + D_COUNT * 4
    for r in range(u64(4)):
        register = w + u64(load_u32(slots + r * 4))
        for lane in range(u64(32)):
            word = load_u32(register + lane * 4)
            row = (lane >> 2) + (r & 1) * 8
            first = (r >> 1) * (4 * EACH) + (lane & 3) * EACH
            if BITS != 0:
                store_u32(a + (row * DEPTH + first) * 4, word)
            else:
                for i in range(u64(EACH)):
                    put_number(a + (row * DEPTH + first + i) * 4, word, u32(i), A_KIND, MINUS_A)
    return 0

def right(w: u64, entry: u64, b: u64) -> i32:
    # Rows of 256 numbers: vectors of the last columns reach behind them.
    fill(b, 0, DEPTH * 1024)
    return matrix(w, b, load_u64(entry + P_B), 0, COLUMNS, TRANS_B, 4, 1024, B_KIND, MINUS_B)

def sums(entry: u64, w: u64, c: u64, out: u32) -> i32:
    slots = load_u64(entry + P_SLOTS)
    for r in range(u64(D_COUNT)):
        register = w + u64(load_u32(slots + r * 4))
        for lane in range(u64(32)):
            if HALF != 0:
                at = c + (((lane >> 2) + (r & 1) * 8) * 256 + (r >> 1) * 8 + (lane & 3) * 2) * 4
                here = register + lane * 4
                if out != 0:
                    store_u16(here, half_bits(load_f32(at)))
                    store_u16(here + 2, half_bits(load_f32(at + 4)))
                else:
                    store_f32(at, half_value(u32(load_u16(here))))
                    store_f32(at + 4, half_value(u32(load_u16(here + 2))))
            else:
                row = (lane >> 2) + ((r >> 1) & 1) * 8
                column = (r >> 2) * 8 + (lane & 3) * 2 + (r & 1)
                at = c + (row * 256 + column) * 4
                if out == 0:
                    store_u32(at, load_u32(register + lane * 4))
                elif WHOLE != 0:
                    store_u32(register + lane * 4, load_u32(at))
                else:
                    store_u32(register + lane * 4, single_bits(load_f32(at)))
    return 0

def multiply_floats(a: u64, b: u64, c: u64) -> i32:
    for m in range(u64(16)):
        for n in range(u64((COLUMNS + 31) // 32)):
            row = load_f32x32(c + m * 1024 + n * 128)
            for k in range(u64(DEPTH)):
                factor = splat_f32x32(load_f32(a + (m * DEPTH + k) * 4))
                row = fma(factor, load_f32x32(b + k * 1024 + n * 128), row)
            store_f32x32(c + m * 1024 + n * 128, row)
    return 0

def multiply_integers(a: u64, b: u64, c: u64) -> i32:
    for m in range(u64(16)):
        for n in range(u64((COLUMNS + 7) // 8)):
            row = i32x8(0)
            for k in range(u64(DEPTH)):
                one = splat_i32x8(load_i32(a + (m * DEPTH + k) * 4))
                other = load_i32x8(b + k * 1024 + n * 32)
                if BITS != 0:
                    row = row + popc(one & other)
                else:
                    row = row + one * other
            # In 64 bits, so that a sum beyond 32 bits can be seen and limited.
            wide = i64x8(row) + i64x8(load_i32x8(c + m * 1024 + n * 32))
            if SATURATES != 0:
                wide = max(min(wide, 2147483647), -2147483648)
            store_i32x8(c + m * 1024 + n * 32, i32x8(wide))
    return 0

def product(w: u64, mask: u32, entry: u64) -> i32:
    # 16 rows of at most 32 numbers; 32 rows of 256; and 16 rows of 256; 4 bytes each.
    a = local(2048)
    b = local(32768)
    c = local(16384)
    if left(w, entry, a) != 0:
        return 1
    if right(w, entry, b) != 0:
        return 1
    fill(c, 0, 16384)
    if load_u32(entry + P_KEEPS) != 0:
        sums(entry, w, c, 0)
    if WHOLE != 0:
        multiply_integers(a, b, c)
    else:
        multiply_floats(a, b, c)
    return sums(entry, w, c, 1)
"""
)
