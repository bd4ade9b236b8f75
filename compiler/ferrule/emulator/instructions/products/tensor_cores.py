"""mma.sync: products of small matrices, over a warp.

What is computed: products are exact. With elements of f16, bf16, tf32 and fp8, c + a0 b0 + a1 b1 +
... is summed up in the order of k, rounded to the nearest float32 after each term, and where d is
f16 once more at the end; tf32 elements are float32 without their low 13 bits. The manual leaves
order and rounding open and a GPU takes others, so results may differ in their last bits. f64: the
same by fma in f64. Integers: the exact sum, its low 32 bits, or with .satfinite the nearest
number that 32 bits have. NaNs are canonical.

Fragments: with `g = lane / 4`, `t = lane % 4`, and E elements in a register, register r of A has
row g + 8 (r % 2) (g in shapes of 8 rows) and columns 4E (r / 2) + E t + e; register r of B has rows
4E r + E t + e of column g; element i of C and D is in row g + 8 (i / 2) and column 2t + i % 2.
"""

from __future__ import annotations

import re
from typing import Final

from ferrule.emulator.instructions.forms import Named, form, kind
from ferrule.emulator.instructions.helpers import helper
from ferrule.emulator.native.barriers import CONSTANTS
from ferrule.emulator.native.language import helper_text
from ferrule.emulator.native.places import CONSTANTS as PLACE_CONSTANTS
from ferrule.emulator.native.places import SOURCE as PLACES
from ferrule.emulator.native.products import KINDS, NUMBERS
from ferrule.emulator.ptx.module import Instruction, Operand
from ferrule.emulator.warps.emitter import Emitter, items_of

BITS: Final = {
    "f16": 16, "bf16": 16, "tf32": 32, "e4m3": 8, "e5m2": 8, "f64": 64,
    "s8": 8, "u8": 8, "s4": 4, "u4": 4, "b1": 1,
}  # fmt: skip

_COMMON: Final = r"\.sync\.aligned\.(?P<shape>{})\.row\.col"
_FLOATS: Final = (
    ("m16n8k8|m16n8k16", r"\.f32\.(?P<a>f16)\.(?P<b>f16)\.(?P<c>f32)"),
    ("m16n8k8|m16n8k16", r"\.f16\.(?P<a>f16)\.(?P<b>f16)\.(?P<c>f16)"),
    ("m16n8k8|m16n8k16", r"\.f32\.(?P<a>bf16)\.(?P<b>bf16)\.(?P<c>f32)"),
    ("m16n8k4|m16n8k8", r"\.f32\.(?P<a>tf32)\.(?P<b>tf32)\.(?P<c>f32)"),
    ("m16n8k16|m16n8k32", r"\.f32\.(?P<a>e4m3|e5m2)\.(?P<b>e4m3|e5m2)\.(?P<c>f32)"),
    ("m16n8k16|m16n8k32", r"\.f16\.(?P<a>e4m3|e5m2)\.(?P<b>e4m3|e5m2)\.(?P<c>f16)"),
    ("m8n8k4|m16n8k4|m16n8k8|m16n8k16", r"\.f64\.(?P<a>f64)\.(?P<b>f64)\.(?P<c>f64)"),
)
_SATURATING: Final = r"(?P<sat>\.satfinite)?\.s32"
_INTEGERS: Final = (
    ("m8n8k16|m16n8k16|m16n8k32", _SATURATING + r"\.(?P<a>[su]8)\.(?P<b>[su]8)\.(?P<c>s32)"),
    ("m8n8k32|m16n8k32|m16n8k64", _SATURATING + r"\.(?P<a>[su]4)\.(?P<b>[su]4)\.(?P<c>s32)"),
    (
        "m8n8k128|m16n8k128|m16n8k256",
        r"\.s32\.(?P<a>b1)\.(?P<b>b1)\.(?P<c>s32)\.(?P<op>xor|and)\.popc",
    ),
)


def _mma(e: Emitter, item: Instruction, named: Named) -> None:
    shape, a, b, c = (kind(named, each) for each in ("shape", "a", "b", "c"))
    rows, _, depth = sizes(shape)
    word = "b64" if a == "f64" else "b32"
    llvm = "<32 x i64>" if a == "f64" else "<32 x i32>"
    each = max(1, 32 // BITS[a]) * 4
    counts = [depth // each * (rows // 8), depth // each, rows // 4 // (2 if c == "f16" else 1)]
    given = []
    for operand, count in zip(item.operands[1:], counts, strict=True):
        given += [(llvm, e.read(part, word)) for part in fragment(e, operand, count)]
    results = fragment(e, item.operands[0], counts[2])
    more = (named.get("sat") or named.get("op") or "plain").strip(".")
    name = f"mma:{shape}:{a}:{b}:{c}:{more}"
    for register, value in zip(results, e.call_many(name, given, [llvm] * counts[2]), strict=True):
        e.write(register, word, value)


for _shapes, _types in (*_FLOATS, *_INTEGERS):
    form("mma", _COMMON.format(_shapes) + _types, 4)(_mma)


def fragment(e: Emitter, operand: Operand, count: int) -> tuple[Operand, ...]:
    parts = items_of(operand)
    if len(parts) != count:
        raise e.refuse(f"a fragment has {len(parts)} registers, not {count}")
    return parts


def sizes(shape: str) -> tuple[int, int, int]:
    found = re.fullmatch(r"m(\d+)n(\d+)k(\d+)", shape)
    assert found is not None
    return int(found[1]), int(found[2]), int(found[3])


SOURCE: Final = (
    PLACES
    + NUMBERS
    + """
def a_row(r: u64, lane: u64) -> u64:
    return (lane >> 2) + ((r & 1) * 8 if ROWS == 16 else 0)

def a_chunk(r: u64) -> u64:
    return (r >> 1) if ROWS == 16 else r

def sum_place(c: u64, lane: u64, i: u64, size: u64) -> u64:
    return c + (((lane >> 2) + (i >> 1) * 8) * 8 + (lane & 3) * 2 + (i & 1)) * size

def float_factors(p: u64, b: u64) -> i32:
    for lane in range(u64(32)):
        for r in range(u64(B_COUNT)):
            word = load_u32(p + (r + A_COUNT) * 256 + lane * 4)
            for i in range(u64(EACH)):
                k = r * (4 * EACH) + (lane & 3) * EACH + i
                store_f32(b + (k * 8 + (lane >> 2)) * 4, decoded(word, u32(i), B_KIND))
    return 0

def float_sums(p: u64, c: u64) -> i32:
    for lane in range(u64(32)):
        for i in range(u64(4)):
            at = sum_place(c, lane, i, 4)
            if HALF != 0:
                word = load_u32(p + (A_COUNT + B_COUNT + (i >> 1)) * 256 + lane * 4)
                store_f32(at, decoded(word, u32(i & 1), F16))
            else:
                store_f32(at, load_f32(p + (A_COUNT + B_COUNT + i) * 256 + lane * 4))
    return 0

def floats_out(p: u64, c: u64) -> i32:
    d = p + RESULTS * 256
    for lane in range(u64(32)):
        for i in range(u64(4)):
            at = sum_place(c, lane, i, 4)
            if HALF != 0:
                store_u16(d + (i >> 1) * 256 + lane * 4 + (i & 1) * 2, half_bits(load_f32(at)))
            else:
                store_u32(d + i * 256 + lane * 4, single_bits(load_f32(at)))
    return 0

def integer_factors(p: u64, b: u64) -> i32:
    for lane in range(u64(32)):
        for r in range(u64(B_COUNT)):
            word = load_u32(p + (r + A_COUNT) * 256 + lane * 4)
            for i in range(u64(EACH)):
                k = r * (4 * EACH) + (lane & 3) * EACH + i
                store_i32(b + (k * 8 + (lane >> 2)) * 4, integer(word, u32(i), B_KIND))
    return 0

def integer_sums(p: u64, c: u64) -> i32:
    for lane in range(u64(32)):
        for i in range(u64(C_COUNT)):
            at = sum_place(c, lane, i, 8)
            store_i64(at, i64(load_i32(p + (A_COUNT + B_COUNT + i) * 256 + lane * 4)))
    return 0

def multiply_integers(a: u64, b: u64, c: u64) -> i32:
    for m in range(u64(ROWS)):
        row = i32x8(0)
        for k in range(u64(DEPTH)):
            factor = splat_i32x8(load_i32(a + (m * DEPTH + k) * 4))
            row = row + factor * load_i32x8(b + k * 32)
        store_i64x8(c + m * 64, load_i64x8(c + m * 64) + i64x8(row))
    return 0

def words_out(p: u64, c: u64) -> i32:
    d = p + RESULTS * 256
    for lane in range(u64(32)):
        for i in range(u64(C_COUNT)):
            sum = load_i64(sum_place(c, lane, i, 8))
            if SATURATES != 0:
                sum = max(min(sum, 2147483647), -2147483648)
            store_i32(d + i * 256 + lane * 4, i32(sum))
    return 0
"""
)
"""What products have in common, sparse ones too."""

_SOURCE: Final = (
    SOURCE
    + """
def floats(w: u64, mask: u32, p: u64) -> i32:
    if mask != 0xFFFFFFFF:
        return not_whole(w, mask)
    a = local(2048)
    b = local(1024)
    c = local(512)
    for lane in range(u64(32)):
        for r in range(u64(A_COUNT)):
            word = load_u32(p + r * 256 + lane * 4)
            for i in range(u64(EACH)):
                k = a_chunk(r) * (4 * EACH) + (lane & 3) * EACH + i
                store_f32(a + (a_row(r, lane) * DEPTH + k) * 4, decoded(word, u32(i), A_KIND))
    float_factors(p, b)
    float_sums(p, c)
    for m in range(u64(16)):
        row = load_f32x8(c + m * 32)
        for k in range(u64(DEPTH)):
            factor = splat_f32x8(load_f32(a + (m * DEPTH + k) * 4))
            row = fma(factor, load_f32x8(b + k * 32), row)
        store_f32x8(c + m * 32, row)
    return floats_out(p, c)

def doubles(w: u64, mask: u32, p: u64) -> i32:
    if mask != 0xFFFFFFFF:
        return not_whole(w, mask)
    a = local(2048)
    b = local(1024)
    c = local(1024)
    for lane in range(u64(32)):
        for r in range(u64(A_COUNT)):
            k = a_chunk(r) * 4 + (lane & 3)
            at = a + (a_row(r, lane) * DEPTH + k) * 8
            store_f64(at, load_f64(p + r * 256 + lane * 8))
        for r in range(u64(B_COUNT)):
            at = b + ((r * 4 + (lane & 3)) * 8 + (lane >> 2)) * 8
            store_f64(at, load_f64(p + (r + A_COUNT) * 256 + lane * 8))
        for i in range(u64(C_COUNT)):
            at = sum_place(c, lane, i, 8)
            store_f64(at, load_f64(p + (A_COUNT + B_COUNT + i) * 256 + lane * 8))
    for m in range(u64(ROWS)):
        row = load_f64x8(c + m * 64)
        for k in range(u64(DEPTH)):
            factor = splat_f64x8(load_f64(a + (m * DEPTH + k) * 8))
            row = fma(factor, load_f64x8(b + k * 64), row)
        store_f64x8(c + m * 64, row)
    d = p + RESULTS * 256
    for lane in range(u64(32)):
        for i in range(u64(C_COUNT)):
            store_u64(d + i * 256 + lane * 8, double_bits(load_f64(sum_place(c, lane, i, 8))))
    return 0

def integers(w: u64, mask: u32, p: u64) -> i32:
    if mask != 0xFFFFFFFF:
        return not_whole(w, mask)
    a = local(4096)
    b = local(2048)
    c = local(1024)
    for lane in range(u64(32)):
        for r in range(u64(A_COUNT)):
            word = load_u32(p + r * 256 + lane * 4)
            for i in range(u64(EACH)):
                k = a_chunk(r) * (4 * EACH) + (lane & 3) * EACH + i
                store_i32(a + (a_row(r, lane) * DEPTH + k) * 4, integer(word, u32(i), A_KIND))
    integer_factors(p, b)
    integer_sums(p, c)
    multiply_integers(a, b, c)
    return words_out(p, c)

def bits(w: u64, mask: u32, p: u64) -> i32:
    if mask != 0xFFFFFFFF:
        return not_whole(w, mask)
    a = local(512)
    b = local(256)
    c = local(1024)
    for lane in range(u64(32)):
        for r in range(u64(A_COUNT)):
            k = a_chunk(r) * 4 + (lane & 3)
            store_u32(a + (a_row(r, lane) * (DEPTH // 32) + k) * 4,
                      load_u32(p + r * 256 + lane * 4))
        for r in range(u64(B_COUNT)):
            store_u32(b + ((r * 4 + (lane & 3)) * 8 + (lane >> 2)) * 4,
                      load_u32(p + (r + A_COUNT) * 256 + lane * 4))
    integer_sums(p, c)
    for m in range(u64(ROWS)):
        row = u32x8(0)
        for k in range(u64(DEPTH // 32)):
            one = splat_u32x8(load_u32(a + (m * (DEPTH // 32) + k) * 4))
            other = load_u32x8(b + k * 32)
            both = one ^ other
            if AND != 0:
                both = one & other
            row = row + popc(both)
        store_i64x8(c + m * 64, load_i64x8(c + m * 64) + i64x8(row))
    return words_out(p, c)
"""
)


def constants(shape: str, a: str, b: str, c: str, more: str, packed: int = 1) -> dict[str, int]:
    """What the native text is written with; A has one element of `packed` in its rows."""
    rows, _, depth = sizes(shape)
    each = max(1, 32 // BITS[a])
    a_count, b_count = depth // packed // each // 4 * (rows // 8), depth // each // 4
    c_count = rows // 4 // (2 if c == "f16" else 1)
    return (
        PLACE_CONSTANTS
        | CONSTANTS
        | KINDS
        | {
            "ROWS": rows,
            "DEPTH": depth,
            "EACH": each,
            "A_COUNT": a_count,
            "B_COUNT": b_count,
            "C_COUNT": c_count,
            "RESULTS": a_count + b_count + c_count + (packed > 1),
            "A_KIND": KINDS.get(a.upper(), 0),
            "B_KIND": KINDS.get(b.upper(), 0),
            "HALF": int(c == "f16"),
            "SATURATES": int(more == "satfinite"),
            "AND": int(more == "and"),
        }
    )


@helper("mma")
def _helper(name: str, shape: str, a: str, b: str, c: str, more: str) -> str:
    """`mma:m16n8k16:f16:f16:f32:plain`: registers of A, B and C, then places for those of D."""
    entry = {"f64": "doubles", "f32": "floats", "f16": "floats"}.get(c, "integers")
    entry = "bits" if a == "b1" else entry
    return helper_text(name, _SOURCE, entry, 1, constants(shape, a, b, c, more))
