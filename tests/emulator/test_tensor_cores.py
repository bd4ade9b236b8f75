"""mma.sync of the emulated GPU: floats against exact fractions rounded term by term in the order of
k, integers against Python's."""

from __future__ import annotations

import re
from fractions import Fraction

import numpy as np
import pytest
from ptx_fragments import bits_of, drawn, held, packed, places, result_places, sizes
from ptx_programs import Array, kernel, launch
from ptx_tensors import DTYPES, summed, warp

from ferrule.emulator.machine import Fault, PtxError

FLOATS = [
    *[(s, a, a, c) for s in ("m16n8k8", "m16n8k16") for a, c in (("f16", "f16"), ("f16", "f32"))],
    ("m16n8k8", "bf16", "bf16", "f32"), ("m16n8k16", "bf16", "bf16", "f32"),
    ("m16n8k4", "tf32", "tf32", "f32"), ("m16n8k8", "tf32", "tf32", "f32"),
    ("m16n8k32", "e4m3", "e4m3", "f32"), ("m16n8k32", "e4m3", "e5m2", "f32"),
    ("m16n8k32", "e5m2", "e4m3", "f16"), ("m16n8k16", "e5m2", "e5m2", "f32"),
    ("m8n8k4", "f64", "f64", "f64"), ("m16n8k4", "f64", "f64", "f64"),
    ("m16n8k8", "f64", "f64", "f64"), ("m16n8k16", "f64", "f64", "f64"),
]  # fmt: skip


def multiplied(shape: str, a: Array, b: Array, c: Array, kinds: tuple[str, str, str]) -> Array:
    """D, by one instruction."""
    m = sizes(shape)[0]
    wide = {"f64": 64, "tf32": 32, "f16": 16, "bf16": 16}.get(kinds[0], 8)
    row, column = result_places(m)
    half = kinds[2] == "f16"
    accumulator = bits_of(c)[row, column]
    if half:
        accumulator = packed(accumulator.reshape(-1, 2, 32).transpose(0, 2, 1), 16)
    d, c_kind = kinds[2], kinds[2]
    types = f"{d}.{kinds[0]}.{kinds[1]}.{c_kind}"
    text = f"mma.sync.aligned.{shape}.row.col.{types} {{d}}, {{0}}, {{1}}, {{2}};"
    found = warp(text, [held(bits_of(a), wide, m), held(bits_of(b.T.copy()), wide, 8), accumulator],
                 np.zeros_like(accumulator))  # fmt: skip
    if half:
        pairs = np.stack([found & 0xFFFF, found >> 16], 1).astype(np.uint16)
        found = pairs.reshape(-1, 32)
    whole = np.empty((m, 8), found.dtype)
    whole[row, column] = found
    return whole.view(DTYPES[kinds[2]])


@pytest.mark.parametrize(("shape", "a", "b", "c"), FLOATS)
def test_floats(shape: str, a: str, b: str, c: str) -> None:
    m, n, k = sizes(shape)
    left, right, add = drawn(a, (m, k), 1), drawn(b, (k, n), 2), drawn(c, (m, n), 3)
    if a == "tf32":
        left, right = (
            (each.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)
            for each in (left, right)
        )
    wanted = summed(left, right, add, *((53, -1022) if a == "f64" else (24, -126)))
    found = multiplied(shape, left, right, add, (a, b, c))
    if c == "f16":
        with np.errstate(over="ignore"):
            wanted = np.array([np.float16(np.float32(float(x))) for x in wanted.ravel()])
        assert np.array_equal(found.ravel(), wanted)
    else:
        assert [Fraction(float(x)) for x in found.ravel()] == list(wanted.ravel())


def test_tf32_ignores_low_bits() -> None:
    left, right, add = drawn("tf32", (16, 8), 1), drawn("tf32", (8, 8), 2), drawn("f32", (16, 8), 3)
    kinds = ("tf32", "tf32", "f32")
    cut = [(x.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32) for x in (left, right)]
    found = multiplied("m16n8k8", left, right, add, kinds)
    assert np.array_equal(found, multiplied("m16n8k8", cut[0], cut[1], add, kinds))


@pytest.mark.parametrize("kind", ["e4m3", "e5m2"])
def test_every_float_of_8_bits(kind: str) -> None:
    """Each of 256 numbers times 1, its NaNs and infinities too."""
    every = np.arange(256, dtype=np.uint8).view(DTYPES[kind])
    for part in range(0, 256, 16):
        left = np.zeros((16, 32), DTYPES[kind])
        left[:, 0] = every[part : part + 16]
        right = np.zeros((32, 8), DTYPES[kind])
        right[0] = 1
        found = multiplied(
            "m16n8k32", left, right, np.zeros((16, 8), np.float32), (kind, kind, "f32")
        )
        wanted = every[part : part + 16].astype(np.float32)
        assert np.array_equal(found[:, 0], wanted, equal_nan=True)
        assert set(found.view(np.uint32)[np.isnan(found)]) <= {0x7FFFFFFF}


def test_special_floats() -> None:
    """Products are exact where they overflow or vanish in float32, and NaNs are canonical."""
    left, right = np.zeros((16, 16), DTYPES["bf16"]), np.zeros((16, 8), DTYPES["bf16"])
    add = np.zeros((16, 8), np.float32)
    left[0, :2], right[:2, 0] = (2.0**100, -(2.0**100)), (2.0**27, 2.0**26)
    left[1, 0], add[1, 0] = np.inf, 1
    left[2, 0], right[0, 1] = np.inf, 0
    left[3, 0], add[3, 0] = 2.0**-140, 2.0**-149
    found = multiplied("m16n8k16", left, right, add, ("bf16", "bf16", "f32"))
    assert found[0, 0] == np.float32(2.0**127) - np.float32(2.0**126)
    assert found[1, 0] == np.inf
    assert found.view(np.uint32)[2, 1] == 0x7FFFFFFF
    assert found[3, 0] == np.float32(float(left[3, 0]) * 2.0**27 + 2.0**-149)


INTEGERS = [
    *[(shape, "s8", "s8", "") for shape in ("m8n8k16", "m16n8k16", "m16n8k32")],
    *[(shape, "u8", "s8", ".satfinite") for shape in ("m8n8k16", "m16n8k16", "m16n8k32")],
    ("m16n8k32", "s8", "u8", ".satfinite"), ("m16n8k32", "u8", "u8", ".satfinite"),
    *[(shape, "s4", "u4", "") for shape in ("m8n8k32", "m16n8k32", "m16n8k64")],
    *[(shape, "u4", "s4", ".satfinite") for shape in ("m8n8k32", "m16n8k32", "m16n8k64")],
    ("m16n8k64", "s4", "s4", ".satfinite"), ("m16n8k64", "u4", "u4", ""),
]  # fmt: skip


@pytest.mark.parametrize(("shape", "a", "b", "sat"), INTEGERS)
def test_integers(shape: str, a: str, b: str, sat: str) -> None:
    m, n, k = sizes(shape)
    rng = np.random.default_rng(5)
    bits = int(a[1:])
    left, right = (_random(rng, each, s) for each, s in ((a, (m, k)), (b, (k, n))))
    add = rng.choice([-(2**31), 2**31 - 1, 0, -5, 2**31 - 1000], (m, n)).astype(np.int64)
    row, column = result_places(m)
    text = f"mma.sync.aligned.{shape}.row.col{sat}.s32.{a}.{b}.s32 {{d}}, {{0}}, {{1}}, {{2}};"
    registers = [
        held(left, bits, m),
        held(right.T, bits, 8),
        add[row, column].astype(np.int32).view(np.uint32),
    ]
    found = warp(text, registers, np.zeros_like(registers[2])).view(np.int32)
    wanted = left @ right + add
    wanted = np.clip(wanted, -(2**31), 2**31 - 1) if sat else wanted
    assert np.array_equal(found, wanted[row, column].astype(np.int64).astype(np.int32))


def _random(rng: np.random.Generator, kind: str, shape: tuple[int, int]) -> Array:
    bits = int(kind[1:])
    least = -(1 << bits - 1) if kind[0] == "s" else 0
    return rng.integers(least, least + (1 << bits), shape)


@pytest.mark.parametrize("op", ["xor", "and"])
@pytest.mark.parametrize("shape", ["m8n8k128", "m16n8k128", "m16n8k256"])
def test_bits(shape: str, op: str) -> None:
    m, n, k = sizes(shape)
    rng = np.random.default_rng(6)
    left, right, add = (
        rng.integers(0, 2, (m, k)),
        rng.integers(0, 2, (k, n)),
        rng.integers(-9, 9, (m, n)),
    )
    row, column = result_places(m)
    text = f"mma.sync.aligned.{shape}.row.col.s32.b1.b1.s32.{op}.popc {{d}}, {{0}}, {{1}}, {{2}};"
    registers = [
        held(left, 1, m),
        held(right.T, 1, 8),
        add[row, column].astype(np.int32).view(np.uint32),
    ]
    found = warp(text, registers, np.zeros_like(registers[2])).view(np.int32)
    both = left[:, :, None] ^ right[None] if op == "xor" else left[:, :, None] & right[None]
    assert np.array_equal(found, (both.sum(1) + add)[row, column])


@pytest.mark.parametrize("name", [
    "m8n8k4.row.col.f32.f16.f16.f32", "m16n8k16.row.col.f32.f16.bf16.f32",
    "m16n8k16.col.row.f32.f16.f16.f32", "m16n8k32.row.col.kind::f8f6f4.f32.e2m1.e2m1.f32",
    "m16n8k8.row.col.f16.f16.f16.f32",
])  # fmt: skip
def test_other_forms_are_refused_by_name(name: str) -> None:
    word = np.zeros((1, 32), np.uint32)
    with pytest.raises(PtxError, match=re.escape(f"mma.sync.aligned.{name} is not emulated")):
        warp(f"mma.sync.aligned.{name} {{d}}, {{0}}, {{0}}, {{0}};", [word], word)


FRAGMENTS = {
    # (shape, bits): row of a_i (0: g, 1: g + 8), column of a_i; by the manual, for g, t and i.
    ("m16n8k8", 16): (lambda i: i >= 2, lambda t, i: t * 2 + i % 2),
    ("m16n8k16", 16): (
        lambda i: not (i < 2 or 4 <= i < 6), lambda t, i: t * 2 + i % 2 + (8 if i >= 4 else 0)
    ),
    ("m16n8k4", 32): (lambda i: i == 1, lambda t, i: t),
    ("m16n8k8", 32): (lambda i: i in (1, 3), lambda t, i: t if i < 2 else t + 4),
    ("m16n8k16", 64): (
        lambda i: i % 2 == 1, lambda t, i: i * 2 + t if i % 2 == 0 else i * 2 - 2 + t
    ),
    ("m8n8k16", 8): (lambda i: False, lambda t, i: t * 4 + i),
    ("m16n8k16", 8): (lambda i: i >= 4, lambda t, i: t * 4 + i % 4),
    ("m16n8k32", 8): (
        lambda i: not (i < 4 or 8 <= i < 12), lambda t, i: t * 4 + i % 4 + (16 if i >= 8 else 0)
    ),
    ("m16n8k64", 4): (
        lambda i: not (i < 8 or 16 <= i < 24), lambda t, i: t * 8 + i % 8 + (32 if i >= 16 else 0)
    ),
    ("m16n8k256", 1): (
        lambda i: not (i < 32 or 64 <= i < 96),
        lambda t, i: t * 32 + i % 32 + (128 if i >= 64 else 0)
    ),
}  # fmt: skip


@pytest.mark.parametrize(("shape", "bits"), FRAGMENTS)
def test_fragments_are_those_of_the_manual(shape: str, bits: int) -> None:
    """The rule that these tests use for all shapes gives what each table says."""
    m, _, k = sizes(shape)
    each = max(1, 32 // bits)
    count = k // each // 4 * (m // 8)
    row, column = places(m, k, each, count)
    lower, at = FRAGMENTS[shape, bits]
    for lane in range(32):
        for i in range(count * each):
            where = row[i // each, lane, i % each], column[i // each, lane, i % each]
            assert where == (lane // 4 + 8 * lower(i), at(lane % 4, i))


def test_a_part_of_a_warp_is_named() -> None:
    words = "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f0,%f1,%f2,%f3}, {%r1,%r2}, {%r3},"
    ptx = kernel(f"{words} {{%f0,%f1,%f2,%f3}}; ret;")
    with pytest.raises(Fault, match="all 32 threads of a warp.*0xffff;") as caught:
        launch(ptx, [], block=(16, 1, 1))
    assert caught.value.kind == "sync"
