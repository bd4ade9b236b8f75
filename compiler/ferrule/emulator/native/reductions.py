"""What reducing bulk copies do to each element."""

from __future__ import annotations

from typing import Final

OPS: Final = ("add", "min", "max", "inc", "dec", "and", "or", "xor")
TYPES: Final = ("u32", "s32", "u64", "s64", "f16", "bf16", "f32", "f64")

CONSTANTS: Final = {f"OP_{name.upper()}": i for i, name in enumerate(OPS)} | {
    f"TYPE_{name.upper()}": i for i, name in enumerate(TYPES)
}

SOURCE: Final = """
def flushed(bits: u32) -> f32:
    # The exponent of zeros and subnormal numbers is 0.
    if (bits >> 23) & 255 == 0:
        return as_f32(bits & 0x80000000)
    return as_f32(bits)

def added_half(a: u16, b: u16, brain: i1) -> u16:
    if brain:
        sum = as_f32(u32(a) << 16) + as_f32(u32(b) << 16)
        bits = as_u32(sum)
        if sum != sum:
            return 0x7FFF
        # One less than a half, and the last bit that stays: a tie is rounded up only from an odd
        # one.
        return u16((bits + 32767 + ((bits >> 16) & 1)) >> 16)
    total = f32(as_f16(a)) + f32(as_f16(b))
    if total != total:
        return 0x7FFF
    return as_u16(f16(total))

def value_half(bits: u16, brain: i1) -> f32:
    if brain:
        return as_f32(u32(bits) << 16)
    return f32(as_f16(bits))

def reduced_half(a: u16, b: u16, op: u32, brain: i1) -> u16:
    if op == OP_ADD:
        return added_half(a, b, brain)
    x = value_half(a, brain)
    y = value_half(b, brain)
    if x != x:
        return b if y == y else 0x7FFF
    if y != y:
        return a
    if x == y:
        if op == OP_MIN:
            return a | b
        return a & b
    if op == OP_MIN:
        return a if x < y else b
    return a if x > y else b

def reduced_single(a: u32, b: u32) -> u32:
    sum = flushed(a) + flushed(b)
    if sum != sum:
        return 0x7FFFFFFF
    return as_u32(flushed(as_u32(sum)))

def reduced_word(a: u32, b: u32, op: u32, signed: i1) -> u32:
    if op == OP_ADD:
        return a + b
    if op == OP_AND:
        return a & b
    if op == OP_OR:
        return a | b
    if op == OP_XOR:
        return a ^ b
    if op == OP_INC:
        return 0 if a >= b else a + 1
    if op == OP_DEC:
        return b if a == 0 or a > b else a - 1
    less = a < b
    if signed:
        less = i32(a) < i32(b)
    if op == OP_MIN:
        return a if less else b
    return b if less else a

def reduced_long(a: u64, b: u64, op: u32, signed: i1) -> u64:
    if op == OP_ADD:
        return a + b
    if op == OP_AND:
        return a & b
    if op == OP_OR:
        return a | b
    if op == OP_XOR:
        return a ^ b
    less = a < b
    if signed:
        less = i64(a) < i64(b)
    if op == OP_MIN:
        return a if less else b
    return b if less else a

def do_reduction(entry: u64) -> i32:
    how = u64(load_u32(entry + B_OP) - 1)
    return reduce(load_u64(entry + B_TO), load_u64(entry + B_FROM), load_u64(entry + B_SIZE), how)

def reduce(to: u64, source: u64, size: u64, how: u64) -> i32:
    op = u32(how & 15)
    kind = u32(how >> 4)
    at = u64(0)
    while at < size:
        if kind == TYPE_F16 or kind == TYPE_BF16:
            a = load_u16(to + at)
            store_u16(to + at, reduced_half(a, load_u16(source + at), op, kind == TYPE_BF16))
            at = at + 2
        elif kind == TYPE_F32:
            store_u32(to + at, reduced_single(load_u32(to + at), load_u32(source + at)))
            at = at + 4
        elif kind == TYPE_F64:
            store_f64(to + at, load_f64(to + at) + load_f64(source + at))
            at = at + 8
        elif kind == TYPE_U32 or kind == TYPE_S32:
            b = load_u32(source + at)
            store_u32(to + at, reduced_word(load_u32(to + at), b, op, kind == TYPE_S32))
            at = at + 4
        else:
            c = load_u64(source + at)
            store_u64(to + at, reduced_long(load_u64(to + at), c, op, kind == TYPE_S64))
            at = at + 8
    return 0
"""
