"""mma.sp: products of a matrix A of which half is 0, with the places of the rest in `e`.

Of each 4 elements of a row 2 are there (of 2 one, with elements of 32 bits; of 8 those of 2 pairs,
with elements of 4 bits), in the registers that a matrix of half as many columns has. `e` has 2 bits
for each of them, or for each pair, from the lowest on; of elements of 32 bits 0b0100 is the first,
and 0b1110 the second one. Which threads' `e` is taken is said by the selector f:

    elements of 16 and 32 bits   thread 4 g + first + c has bits of rows g (lower half) and g + 8,
                                 of 16 bits each, for the c-th part of the columns
    elements of 8 and 4 bits     thread 4 g + first + 2 c + h has those of row g + 8 h, 32 bits

Sums are those of `tensor_cores`, of the products that are there, in the order of k.
"""

from __future__ import annotations

from typing import Final

from ferrule.emulator.instructions.forms import Named, form, kind
from ferrule.emulator.instructions.helpers import helper
from ferrule.emulator.instructions.products.tensor_cores import (
    BITS,
    SOURCE,
    constants,
    fragment,
    sizes,
)
from ferrule.emulator.native.language import helper_text
from ferrule.emulator.ptx.module import Immediate, Instruction
from ferrule.emulator.warps.emitter import Emitter

_COMMON: Final = r"\.sp(?P<ordered>::ordered_metadata)?\.sync\.aligned\.(?P<shape>{})\.row\.col"
_SATURATING: Final = r"(?P<sat>\.satfinite)?\.s32"
_FORMS: Final = (
    ("m16n8k16|m16n8k32", r"\.f32\.(?P<a>f16)\.(?P<b>f16)\.(?P<c>f32)"),
    ("m16n8k16|m16n8k32", r"\.f16\.(?P<a>f16)\.(?P<b>f16)\.(?P<c>f16)"),
    ("m16n8k16|m16n8k32", r"\.f32\.(?P<a>bf16)\.(?P<b>bf16)\.(?P<c>f32)"),
    ("m16n8k8|m16n8k16", r"\.f32\.(?P<a>tf32)\.(?P<b>tf32)\.(?P<c>f32)"),
    ("m16n8k64", r"\.f32\.(?P<a>e4m3|e5m2)\.(?P<b>e4m3|e5m2)\.(?P<c>f32)"),
    ("m16n8k32|m16n8k64", _SATURATING + r"\.(?P<a>[su]8)\.(?P<b>[su]8)\.(?P<c>s32)"),
    ("m16n8k64|m16n8k128", _SATURATING + r"\.(?P<a>[su]4)\.(?P<b>[su]4)\.(?P<c>s32)"),
)


def _row_bits(a: str, depth: int) -> int:
    """The bits of metadata of a row."""
    return {32: 2 * depth, 4: depth // 2}.get(BITS[a], depth)


def _selectors(a: str, depth: int) -> int:
    """How many values the selector has: a thread, a pair of threads, or all of four."""
    return 64 // _row_bits(a, depth)


def _sparse(e: Emitter, item: Instruction, named: Named) -> None:
    shape, a, b, c = (kind(named, each) for each in ("shape", "a", "b", "c"))
    _, _, depth = sizes(shape)
    selector = item.operands[5]
    most = _selectors(a, depth)
    if not isinstance(selector, Immediate) or not 0 <= selector.value < most:
        raise e.refuse(f"the selector must be a number from 0 to {most - 1}")
    more = (named.get("sat") or "plain").strip(".")
    found = constants(shape, a, b, c, more, 2)
    given = []
    for operand, count in zip(item.operands[1:4], ("A_COUNT", "B_COUNT", "C_COUNT"), strict=True):
        parts = fragment(e, operand, found[count])
        given += [("<32 x i32>", e.read(each, "b32")) for each in parts]
    given.append(("<32 x i32>", e.read(item.operands[4], "b32")))
    results = fragment(e, item.operands[0], found["C_COUNT"])
    ordered = "ordered" if named["ordered"] else "any"
    name = f"mma.sp:{shape}:{a}:{b}:{c}:{more}:{ordered}:{selector.value}"
    values = e.call_many(name, given, ["<32 x i32>"] * len(results))
    for register, value in zip(results, values, strict=True):
        e.write(register, "b32", value)


for _shapes, _types in _FORMS:
    form("mma", _COMMON.format(_shapes) + _types, 6)(_sparse)

_SOURCE: Final = (
    SOURCE
    + """
def bits_at(p: u64, row: u64, at: u64, lane: u64) -> u32:
    words = p + (A_COUNT + B_COUNT + C_COUNT) * 256
    if WIDE != 0:
        part = load_u32(words + (lane + (at >> 4)) * 4) >> u32((row >> 3) * 16)
        return part >> u32(at & 15)
    return load_u32(words + (lane + (at >> 5) * 2 + (row >> 3)) * 4) >> u32(at & 31)

def place_of(p: u64, row: u64, j: u64) -> u64:
    lane = (row & 7) * 4 + FIRST
    if SINGLE != 0:
        return j * 2 + u64(bits_at(p, row, j * 4, lane) >> 1 & 1)
    if PAIRS != 0:
        pair = u64(bits_at(p, row, (j >> 1) * 2, lane) & 3)
        return (j >> 2) * 8 + pair * 2 + (j & 1)
    return (j >> 1) * 4 + u64(bits_at(p, row, j * 2, lane) & 3)

def good(two: u32) -> i1:
    if SINGLE != 0:
        return two == 4 or two == 14
    first = two & 3
    second = two >> 2
    return first < second or (ORDERED == 0 and first != second)

def checked(w: u64, p: u64) -> i32:
    for row in range(u64(16)):
        for part in range(u64(ROW_BITS // 4)):
            lane = (row & 7) * 4 + FIRST
            two = bits_at(p, row, part * 4, lane) & 15
            if not good(two):
                word = load_u32(p + (A_COUNT + B_COUNT + C_COUNT) * 256 + lane * 4)
                return fault(w, SYNC, u32(lane), u64(word), BAD_INDICES)
    return 0

def floats(w: u64, mask: u32, p: u64) -> i32:
    if mask != 0xFFFFFFFF:
        return not_whole(w, mask)
    if checked(w, p) != 0:
        return 1
    a = local(4096)
    there = local(1024)
    b = local(2048)
    c = local(512)
    fill(there, 0, 1024)
    for lane in range(u64(32)):
        for r in range(u64(A_COUNT)):
            word = load_u32(p + r * 256 + lane * 4)
            for i in range(u64(EACH)):
                row = a_row(r, lane)
                k = place_of(p, row, a_chunk(r) * (4 * EACH) + (lane & 3) * EACH + i)
                store_f32(a + (row * DEPTH + k) * 4, decoded(word, u32(i), A_KIND))
                store_u8(there + row * DEPTH + k, 1)
    float_factors(p, b)
    float_sums(p, c)
    for m in range(u64(16)):
        row8 = load_f32x8(c + m * 32)
        for k in range(u64(DEPTH)):
            if load_u8(there + m * DEPTH + k) != 0:
                factor = splat_f32x8(load_f32(a + (m * DEPTH + k) * 4))
                row8 = fma(factor, load_f32x8(b + k * 32), row8)
        store_f32x8(c + m * 32, row8)
    return floats_out(p, c)

def integers(w: u64, mask: u32, p: u64) -> i32:
    if mask != 0xFFFFFFFF:
        return not_whole(w, mask)
    if checked(w, p) != 0:
        return 1
    a = local(8192)
    b = local(4096)
    c = local(1024)
    fill(a, 0, 8192)
    for lane in range(u64(32)):
        for r in range(u64(A_COUNT)):
            word = load_u32(p + r * 256 + lane * 4)
            for i in range(u64(EACH)):
                row = a_row(r, lane)
                k = place_of(p, row, a_chunk(r) * (4 * EACH) + (lane & 3) * EACH + i)
                store_i32(a + (row * DEPTH + k) * 4, integer(word, u32(i), A_KIND))
    integer_factors(p, b)
    integer_sums(p, c)
    multiply_integers(a, b, c)
    return words_out(p, c)
"""
)


@helper("mma.sp")
def _helper(
    name: str, shape: str, a: str, b: str, c: str, more: str, order: str, selector: str
) -> str:
    """`mma.sp:m16n8k16:f16:f16:f32:plain:ordered:0`: A, B, C and e, then places for D."""
    _, _, depth = sizes(shape)
    first = int(selector) * (4 // _selectors(a, depth))
    more_constants = {
        "WIDE": int(BITS[a] > 8),
        "SINGLE": int(BITS[a] == 32),
        "PAIRS": int(BITS[a] == 4),
        "ORDERED": int(order == "ordered"),
        "FIRST": first,
        "ROW_BITS": _row_bits(a, depth),
    }
    entry = "integers" if c == "s32" else "floats"
    return helper_text(name, _SOURCE, entry, 1, constants(shape, a, b, c, more, 2) | more_constants)
