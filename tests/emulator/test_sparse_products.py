"""mma.sp of the emulated GPU: matrices of which half is 0, multiplied whole in exact arithmetic."""

from __future__ import annotations

import re
from fractions import Fraction

import numpy as np
import pytest
from ptx_fragments import bits_of, drawn, held, packed, result_places, sizes
from ptx_programs import Array
from ptx_tensors import DTYPES, summed, warp

from ferrule.emulator.machine import Fault, PtxError

WHERE = {
    # (shape, bits of an element): the columns of A that the metadata of a thread is about, and per
    # part of these columns the thread of four and the lowest bit for the rows 0-7 and 8-15.
    ("m16n8k16", 16): (16, [((0, 0), (0, 16))]),
    ("m16n8k32", 16): (16, [((0, 0), (0, 16)), ((1, 0), (1, 16))]),
    ("m16n8k8", 32): (8, [((0, 0), (0, 16))]),
    ("m16n8k16", 32): (8, [((0, 0), (0, 16)), ((1, 0), (1, 16))]),
    ("m16n8k32", 8): (32, [((0, 0), (1, 0))]),
    ("m16n8k64", 8): (32, [((0, 0), (1, 0)), ((2, 0), (3, 0))]),
    ("m16n8k64", 4): (64, [((0, 0), (1, 0))]),
    ("m16n8k128", 4): (64, [((0, 0), (1, 0)), ((2, 0), (3, 0))]),
}
THREADS = {("m16n8k16", 16): 1, ("m16n8k8", 32): 1, ("m16n8k64", 8): 4, ("m16n8k128", 4): 4}
"""The threads of four whose metadata counts, where it is not two."""
FORMS = [
    *[(shape, t, t, c) for shape in ("m16n8k16", "m16n8k32")
      for t, c in (("f16", "f32"), ("f16", "f16"), ("bf16", "f32"))],
    ("m16n8k8", "tf32", "tf32", "f32"), ("m16n8k16", "tf32", "tf32", "f32"),
    ("m16n8k64", "e4m3", "e5m2", "f32"), ("m16n8k64", "e5m2", "e4m3", "f32"),
    ("m16n8k32", "s8", "u8", "s32"), ("m16n8k64", "u8", "s8", "s32"),
    ("m16n8k64", "s4", "s4", "s32"), ("m16n8k128", "u4", "s4", "s32"),
]  # fmt: skip


def width(t: str) -> int:
    return {"f16": 16, "bf16": 16, "tf32": 32}.get(t) or (8 if t[0] == "e" else int(t[1:]))


def halved(rng: np.random.Generator, depth: int, bits: int) -> tuple[Array, Array]:
    """The columns of each row that are there, and the indices of each group as they are stored."""
    group, few = {32: (2, 1), 4: (4, 2)}.get(bits, (4, 2))
    each = 2 if bits == 4 else 1
    groups = depth // (group * each)
    chosen = np.sort(np.argsort(rng.random((16, groups, group)), 2)[..., :few], 2)
    columns = (np.arange(groups)[:, None] * group + chosen) * each
    columns = (columns[..., None] + np.arange(each)).reshape(16, -1)
    stored = chosen[..., 0] * 10 + 4 if bits == 32 else chosen[..., 0] | chosen[..., 1] << 2
    return columns, stored


def metadata(shape: str, bits: int, stored: Array, selector: int) -> Array:
    """Of all threads: those that do not count have other numbers."""
    words = np.random.default_rng(9).integers(0, 1 << 32, 32, np.uint64)
    first = selector * THREADS.get((shape, bits), 2)
    _, parts = WHERE[shape, bits]
    each = stored.shape[1] // len(parts)
    for g in range(8):
        for thread in {at for part in parts for at, _ in part}:
            words[4 * g + first + thread] = 0
        for number, part in enumerate(parts):
            for half, (thread, low) in enumerate(part):
                for i, two in enumerate(stored[g + 8 * half, number * each :][:each]):
                    words[4 * g + first + thread] |= np.uint64(int(two) << low + 4 * i)
    return words.astype(np.uint32)[None]


def elements(t: str, shape: tuple[int, int], seed: int) -> Array:
    if t[0] in "su":
        bits = width(t)
        least = -(1 << bits - 1) if t[0] == "s" else 0
        return np.random.default_rng(seed).integers(least, least + (1 << bits), shape)
    found = drawn(t, shape, seed)
    if t == "tf32":
        found = (found.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)
    return found


def registers(t: str, matrix: Array) -> Array:
    rows = matrix.shape[0]
    return held(matrix if t[0] in "su" else bits_of(matrix), width(t), rows)


def multiplied(
    name: str, kept: Array, right: Array, add: Array, words: Array, selector: int, kinds: list[str]
) -> Array:
    """D, of the elements of A that are there."""
    row, column = result_places(16)
    given = bits_of(add)[row, column]
    if kinds[2] == "f16":
        given = packed(given.reshape(-1, 2, 32).transpose(0, 2, 1), 16)
    text = f"{name} {{d}}, {{0}}, {{1}}, {{2}}, {{3}}, {selector};"
    factors = registers(kinds[0], kept), registers(kinds[1], right.T.copy())
    found = warp(text, [*factors, given, words], np.zeros_like(given))
    if kinds[2] == "f16":
        found = np.stack([found & 0xFFFF, found >> 16], 1).astype(np.uint16).reshape(-1, 32)
    whole = np.empty((16, 8), found.dtype)
    whole[row, column] = found
    return whole.view(DTYPES[kinds[2]])


@pytest.mark.parametrize(("shape", "a", "b", "c"), FORMS)
def test_products(shape: str, a: str, b: str, c: str) -> None:
    depth, bits = sizes(shape)[2], width(a)
    columns, stored = halved(np.random.default_rng(4), depth, bits)
    kept, right = elements(a, (16, depth // 2), 1), elements(b, (depth, 8), 2)
    whole = np.zeros((16, depth), kept.dtype)
    np.put_along_axis(whole, columns, kept, 1)
    add = elements(c, (16, 8), 3).astype(DTYPES[c])
    selector = 4 // THREADS.get((shape, bits), 2) - 1
    ordered = "::ordered_metadata" if depth % 32 else ""
    name = f"mma.sp{ordered}.sync.aligned.{shape}.row.col.{c}.{a}.{b}.{c}"
    words = metadata(shape, bits, stored, selector)
    found = multiplied(name, kept, right, add, words, selector, [a, b, c])
    if c == "s32":
        wanted = whole @ right + add.astype(np.int64)
        assert np.array_equal(found, wanted.astype(np.int64).astype(np.int32))
        return
    exact = summed(whole, right, add)
    if c == "f16":
        rounded = [np.float16(np.float32(float(x))) for x in exact.ravel()]
        assert np.array_equal(found.ravel(), np.array(rounded))
    else:
        assert [Fraction(float(x)) for x in found.ravel()] == list(exact.ravel())


def test_what_is_not_there_is_not_multiplied() -> None:
    """Infinity in B beside an element of A that is not there."""
    kept, add = np.ones((16, 8), np.float16), np.zeros((16, 8), np.float32)
    right = np.full((16, 8), np.inf, np.float16)
    right[[0, 1, 4, 5, 8, 9, 12, 13]] = 2  # the first two of each four
    words = metadata("m16n8k16", 16, np.full((16, 4), 0b0100), 0)
    name = "mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
    found = multiplied(name, kept, right, add, words, 0, ["f16", "f16", "f32"])
    assert (found == 16).all()


@pytest.mark.parametrize(
    ("two", "ordered", "wrong"),
    [(0b0101, "", True), (0b0001, "", False), (0b0001, "::ordered_metadata", True)],
)
def test_metadata_that_is_no_choice_of_two(two: int, ordered: str, wrong: bool) -> None:
    ones, add = np.ones((16, 8), np.float16), np.zeros((16, 8), np.float32)
    right = np.ones((16, 8), np.float16)
    words = metadata("m16n8k16", 16, np.full((16, 4), two), 2)
    name = f"mma.sp{ordered}.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
    if wrong:
        said = rf"{re.escape(name)}: the metadata 0x\w+ names no two different elements"
        with pytest.raises(Fault, match=said):
            multiplied(name, ones, right, add, words, 2, ["f16", "f16", "f32"])
    else:
        found = multiplied(name, ones, right, add, words, 2, ["f16", "f16", "f32"])
        assert (found == 8).all()


def test_selectors_that_there_are() -> None:
    word = np.zeros((1, 32), np.uint32)
    for shape, kinds, selector, most in (
        ("m16n8k16", "f32.f16.f16.f32", 4, 3), ("m16n8k32", "f32.bf16.bf16.f32", 2, 1),
        ("m16n8k64", "s32.s8.s8.s32", 1, 0),
    ):  # fmt: skip
        text = f"mma.sp.sync.aligned.{shape}.row.col.{kinds} {{d}}, {{0}}, {{0}}, {{0}}, {{0}}, "
        with pytest.raises(PtxError, match=f"the selector must be a number from 0 to {most}"):
            warp(text + f"{selector};", [word], word)
