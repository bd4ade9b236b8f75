"""Integer instructions of the emulated GPU against Python's integers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from ptx_programs import Array, apply, every_pair, integers

DTYPES = {
    f"{k}{n}": np.dtype(f"{'int' if k == 's' else 'uint'}{n}") for k in "su" for n in (16, 32, 64)
}
WIDE = [t for t in DTYPES if not t.endswith("16")]


def wrapped(value: int, dtype: np.dtype) -> int:
    bits = 8 * dtype.itemsize
    value &= (1 << bits) - 1
    return value - (1 << bits) if dtype.kind == "i" and value >> bits - 1 else value


def check(
    name: str, operands: list[Array], result: np.dtype, meaning: Callable[..., int], more: str = ""
) -> None:
    found = apply(name, operands, result, more)
    wanted = [
        wrapped(meaning(*(int(v) for v in row)), result) for row in zip(*operands, strict=True)
    ]
    wrong = np.flatnonzero(found != np.array(wanted, result))
    first = wrong[0] if len(wrong) else 0
    assert not len(wrong), (name, [each[first] for each in operands], found[first], wanted[first])


def pairs(dtype: np.dtype, count: int = 24) -> list[Array]:
    return list(every_pair(integers(dtype, count, 1), integers(dtype, count, 2)))


def quotient(a: int, b: int) -> int:
    """Towards 0; all ones where the divisor is 0."""
    if not b:
        return -1
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


MEANINGS = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul.lo": lambda a, b: a * b,
    "div": quotient,
    "rem": lambda a, b: -1 if not b else a - b * quotient(a, b),
    "min": min,
    "max": max,
}


@pytest.mark.parametrize("kind", DTYPES)
@pytest.mark.parametrize("op", MEANINGS)
def test_arithmetic(op: str, kind: str) -> None:
    check(f"{op}.{kind}", pairs(DTYPES[kind]), DTYPES[kind], MEANINGS[op])


@pytest.mark.parametrize("kind", DTYPES)
def test_the_upper_half_of_a_product(kind: str) -> None:
    dtype = DTYPES[kind]
    bits = 8 * dtype.itemsize
    check(f"mul.hi.{kind}", pairs(dtype), dtype, lambda a, b: a * b >> bits)


@pytest.mark.parametrize("kind", ["s16", "u16", "s32", "u32"])
def test_wide_products(kind: str) -> None:
    wide = np.dtype(
        DTYPES[kind].str.replace(str(DTYPES[kind].itemsize), str(2 * DTYPES[kind].itemsize))
    )
    check(f"mul.wide.{kind}", pairs(DTYPES[kind]), wide, lambda a, b: a * b)
    a, b = pairs(DTYPES[kind])
    check(f"mad.wide.{kind}", [a, b, integers(wide, len(a))], wide, lambda a, b, c: a * b + c)


@pytest.mark.parametrize("how", ["lo", "hi"])
@pytest.mark.parametrize("kind", DTYPES)
def test_mad(kind: str, how: str) -> None:
    dtype = DTYPES[kind]
    shift = 8 * dtype.itemsize if how == "hi" else 0
    a, b = pairs(dtype)
    c = integers(dtype, len(a), 3)
    check(f"mad.{how}.{kind}", [a, b, c], dtype, lambda a, b, c: (a * b >> shift) + c)


def test_saturation() -> None:
    s32 = np.dtype(np.int32)
    low, high = -(1 << 31), (1 << 31) - 1
    check("add.sat.s32", pairs(s32), s32, lambda a, b: max(low, min(high, a + b)))
    check("sub.sat.s32", pairs(s32), s32, lambda a, b: max(low, min(high, a - b)))


@pytest.mark.parametrize("kind", ["s32", "u32"])
@pytest.mark.parametrize("how", ["lo", "hi"])
def test_mul24(kind: str, how: str) -> None:
    def low(a: int) -> int:
        a &= (1 << 24) - 1
        return a - (1 << 24) if kind == "s32" and a >> 23 else a

    shift = 16 if how == "hi" else 0
    check(
        f"mul24.{how}.{kind}",
        pairs(DTYPES[kind]),
        DTYPES[kind],
        lambda a, b: low(a) * low(b) >> shift,
    )


@pytest.mark.parametrize("kind", ["s16", "s32", "s64"])
def test_neg_and_abs(kind: str) -> None:
    values = [integers(DTYPES[kind])]
    check(f"neg.{kind}", values, DTYPES[kind], lambda a: -a)
    check(f"abs.{kind}", values, DTYPES[kind], abs)


@pytest.mark.parametrize("kind", DTYPES)
def test_sad(kind: str) -> None:
    a, b = pairs(DTYPES[kind])
    c = integers(DTYPES[kind], len(a), 5)
    check(f"sad.{kind}", [a, b, c], DTYPES[kind], lambda a, b, c: c + abs(a - b))


@pytest.mark.parametrize("bits", [32, 64])
def test_counting_bits(bits: int) -> None:
    word = np.dtype(f"uint{bits}")
    u32 = np.dtype(np.uint32)
    values = [integers(word)]
    check(f"popc.b{bits}", values, u32, lambda a: bin(a).count("1"))
    check(f"clz.b{bits}", values, u32, lambda a: bits - a.bit_length())
    check(f"brev.b{bits}", values, word, lambda a: int(f"{a:0{bits}b}"[::-1], 2))


@pytest.mark.parametrize("kind", WIDE)
def test_bfind(kind: str) -> None:
    bits = int(kind[1:])

    def place(a: int) -> int:
        return (~a if a < 0 else a).bit_length() - 1

    def amount(a: int) -> int:
        return bits - 1 - place(a) if place(a) >= 0 else -1

    values = [integers(DTYPES[kind])]
    check(f"bfind.{kind}", values, np.dtype(np.uint32), place)
    check(f"bfind.shiftamt.{kind}", values, np.dtype(np.uint32), amount)


@pytest.mark.parametrize("kind", [*DTYPES, "b16", "b32", "b64"])
def test_shifts(kind: str) -> None:
    dtype = DTYPES.get(kind, np.dtype(f"uint{kind[1:]}"))
    bits = 8 * dtype.itemsize
    a, n = every_pair(
        integers(dtype, 24, 1),
        np.concatenate([np.arange(70), [255, 256, 1 << 31, (1 << 32) - 1]]).astype(np.uint32),
    )
    check(f"shr.{kind}", [a, n], dtype, lambda a, n: a >> min(n, bits))
    if kind[0] == "b":
        check(f"shl.{kind}", [a, n], dtype, lambda a, n: a << n if n < bits else 0)


@pytest.mark.parametrize("way", ["l", "r"])
@pytest.mark.parametrize("mode", ["clamp", "wrap"])
def test_funnel_shifts(way: str, mode: str) -> None:
    u32 = np.dtype(np.uint32)
    n = np.tile(np.concatenate([np.arange(40), [63, 64, 1 << 31]]), 8).astype(np.uint32)

    def meaning(low: int, high: int, n: int) -> int:
        n = n & 31 if mode == "wrap" else min(n, 32)
        both = high << 32 | low
        return both << n >> 32 if way == "l" else both >> n

    values = [integers(u32, len(n), 1), integers(u32, len(n), 2), n]
    check(f"shf.{way}.{mode}.b32", values, u32, meaning)


@pytest.mark.parametrize("kind", WIDE)
def test_bit_fields_taken_out(kind: str) -> None:
    bits = int(kind[1:])

    def meaning(a: int, place: int, size: int) -> int:
        place, size = place & 255, size & 255
        a &= (1 << bits) - 1
        sign = a >> min(place + size - 1, bits - 1) & 1 if kind[0] == "s" and size else 0
        return sum(
            (a >> place + i & 1 if i < size and place + i < bits else sign) << i
            for i in range(bits)
        )

    place, size = every_pair(
        *2 * [np.array([0, 1, 5, 31, 32, 33, 63, 64, 65, 200, 255, 256 + 3], np.uint32)]
    )
    check(f"bfe.{kind}", [integers(DTYPES[kind], len(place)), place, size], DTYPES[kind], meaning)
    ones = np.full(len(place), -1 if kind[0] == "s" else (1 << bits) - 1, DTYPES[kind])
    check(f"bfe.{kind}", [ones, place, size], DTYPES[kind], meaning)


@pytest.mark.parametrize("bits", [32, 64])
def test_bit_fields_put_in(bits: int) -> None:
    def meaning(a: int, b: int, place: int, size: int) -> int:
        for i in range(min(size & 255, max(0, bits - (place & 255)))):
            at = (place & 255) + i
            b = b & ~(1 << at) | (a >> i & 1) << at
        return b

    word = np.dtype(f"uint{bits}")
    place, size = every_pair(
        *2 * [np.array([0, 1, 5, 31, 32, 33, 63, 64, 65, 200, 255, 256 + 3], np.uint32)]
    )
    check(
        f"bfi.b{bits}",
        [integers(word, len(place), 1), integers(word, len(place), 2), place, size],
        word,
        meaning,
    )


def test_permuted_bytes() -> None:
    def meaning(a: int, b: int, chosen: int) -> int:
        both, value = b << 32 | a, 0
        for i in range(4):
            which = chosen >> 4 * i & 15
            byte = both >> 8 * (which & 7) & 255
            value |= (255 * (byte >> 7) if which & 8 else byte) << 8 * i
        return value

    u32 = np.dtype(np.uint32)
    check("prmt.b32", [integers(u32, 512, i) for i in range(3)], u32, meaning)


@pytest.mark.parametrize("table", [0, 0x80, 0xC0, 0x96, 0xE8, 0xCA, 0x1B, 0xFF])
def test_logic_of_three(table: int) -> None:
    def meaning(a: int, b: int, c: int) -> int:
        return sum(
            (table >> (4 * (a >> i & 1) + 2 * (b >> i & 1) + (c >> i & 1)) & 1) << i
            for i in range(32)
        )

    u32 = np.dtype(np.uint32)
    check("lop3.b32", [integers(u32, 64, i) for i in range(3)], u32, meaning, f"{table}")


@pytest.mark.parametrize("bits", [16, 32, 64])
def test_logic(bits: int) -> None:
    word = np.dtype(f"uint{bits}")
    check(f"and.b{bits}", pairs(word), word, lambda a, b: a & b)
    check(f"or.b{bits}", pairs(word), word, lambda a, b: a | b)
    check(f"xor.b{bits}", pairs(word), word, lambda a, b: a ^ b)
    check(f"not.b{bits}", [integers(word)], word, lambda a: ~a)
    check(f"cnot.b{bits}", [integers(word)], word, lambda a: int(not a))


COMPARED = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


@pytest.mark.parametrize("kind", DTYPES)
def test_comparisons(kind: str) -> None:
    for name, sign in {
        **COMPARED,
        **({"lo": "<", "ls": "<=", "hi": ">", "hs": ">="} if kind[0] == "u" else {}),
    }.items():
        a, b = pairs(DTYPES[kind])
        found = apply(f"setp.{name}.{kind}", [a, b], bool)
        assert (found == eval(f"a {sign} b")).all(), name
    third = np.arange(len(a)) % 3 == 0
    assert (apply(f"setp.lt.and.{kind}", [a, b, third], bool) == ((a < b) & third)).all()
    assert (apply(f"setp.lt.xor.{kind}", [a, b, third], bool) == ((a < b) ^ third)).all()
    assert (apply(f"selp.{kind}", [a, b, third], DTYPES[kind]) == np.where(third, a, b)).all()


KINDS = {**DTYPES, "s8": np.dtype(np.int8), "u8": np.dtype(np.uint8)}


@pytest.mark.parametrize("source", KINDS)
@pytest.mark.parametrize("target", KINDS)
def test_conversions(source: str, target: str) -> None:
    values = integers(KINDS[source])
    dtype = KINDS[target]
    check(f"cvt.{target}.{source}", [values], dtype, lambda a: a)
    info = np.iinfo(dtype)
    check(
        f"cvt.sat.{target}.{source}",
        [values],
        dtype,
        lambda a: max(int(info.min), min(int(info.max), a)),
    )
