"""Elements of matrices as numbers, and sums as bits: what mma and wgmma need."""

from __future__ import annotations

from typing import Final

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
        small = f32(bits & 7) * as_f32(u32(0x3B000000))
        return as_f32(as_u32(small) | sign)
    return as_f32(sign | ((exponent + 120) << 23) | ((bits & 7) << 20))

def decoded(word: u32, i: u32, kind: u32) -> f32:
    if kind == F16:
        return half_value((word >> (i * 16)) & 65535)
    if kind == BF16:
        return as_f32((word >> (i * 16)) << 16)
    if kind == TF32:
        return as_f32(word & 0xFFFFE000)
    if kind == E4M3:
        return e4m3_value((word >> (i * 8)) & 255)
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
