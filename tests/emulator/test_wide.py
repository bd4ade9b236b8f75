"""Values of 128 bits: moved, loaded, stored and exchanged, against whole numbers of Python."""

from __future__ import annotations

import numpy as np
import pytest
from ptx_programs import Array, kernel, launch, machine, pointers

from ferrule.emulator.machine import Fault, PtxError

THREADS = 32
WIDE = ".reg .b128 %q<4>; .reg .b128 named;"
START = """ld.param.u64 %rd1, [a0]; ld.param.u64 %rd2, [a1]; mov.u32 %r1, %tid.x;
mul.wide.u32 %rd3, %r1, 16; add.u64 %rd4, %rd1, %rd3; add.u64 %rd5, %rd2, %rd3;
.shared .align 16 .b8 s[512]; mov.u64 %rd6, s; add.u64 %rd7, %rd6, %rd3; cvta.shared.u64 %rd8, %rd7;
"""


def wide(values: Array) -> list[int]:
    """Rows of two words of 64 bits as numbers, the lower word first."""
    return [int(low) | int(high) << 64 for low, high in values.reshape(-1, 2)]


def given() -> Array:
    rng = np.random.default_rng(5)
    return rng.integers(0, 1 << 64, (THREADS, 2), dtype=np.uint64)


def run(body: str, *arrays: Array, checks: str = "memory,sync", **more: object) -> list[Array]:
    text = kernel(START + body + "ret;", pointers(2), WIDE)
    return launch(text, arrays, on=machine(checks, **more))  # type: ignore[arg-type]


@pytest.mark.parametrize("how", [
    "ld.global.b128 %q0, [%rd4]; st.global.b128 [%rd5], %q0;",
    "ld.b128 named, [%rd4]; mov.b128 %q1, named; st.relaxed.sys.global.b128 [%rd5], %q1;",
    "ld.volatile.global.b128 %q0, [%rd4]; st.shared.b128 [%rd7], %q0; ld.b128 %q2, [%rd8];"
    "mov.b128 {%rd10, %rd11}, %q2; mov.b128 %q3, {%rd10, %rd11}; st.b128 [%rd5], %q3;",
    "ld.global.v2.b64 {%rd10, %rd11}, [%rd4]; mov.b128 %q0, {%rd10, %rd11};"
    "mov.b128 {%rd12, %rd13}, %q0; st.global.v2.u64 [%rd5], {%rd12, %rd13};",
])  # fmt: skip
def test_moves(how: str) -> None:
    for checks in ("", "memory,sync,race"):
        source, found = run(how, given(), np.zeros((THREADS, 2), np.uint64), checks=checks)
        assert wide(found) == wide(source) == wide(given())


def test_some_lanes_and_swapped_halves() -> None:
    """A guard keeps lanes from a whole value, and both halves are read before one is written."""
    body = """ld.global.b128 %q0, [%rd4]; mov.b128 %q1, %q0; setp.lt.u32 %p1, %r1, 9;
    mov.b128 {%rd10, %rd11}, %q0; @%p1 mov.b128 %q1, {%rd11, %rd10};
    mov.b128 {%rd10, %rd11}, %q1; mov.b128 {%rd11, %rd10}, {%rd10, %rd11};
    mov.b128 %q1, {%rd11, %rd10}; st.global.b128 [%rd5], %q1;"""
    source, found = run(body, given(), np.zeros((THREADS, 2), np.uint64))
    assert wide(found) == wide(np.where(np.arange(THREADS)[:, None] < 9, source[:, ::-1], source))


PLACES = {"global": "%rd1", "shared": "%rd6", "": "%rd9"}


@pytest.mark.parametrize("space", PLACES)
@pytest.mark.parametrize("order", [".relaxed.gpu", ""])
def test_exchanges(space: str, order: str) -> None:
    """Each thread in turn leaves its number and takes that of the thread before."""
    where = f".{space}" if space else ""
    body = f"""ld.global.b128 %q0, [%rd1]; st.shared.b128 [%rd6], %q0; cvta.shared.u64 %rd9, %rd6;
    bar.sync 0; cvt.u64.u32 %rd10, %r1; not.b64 %rd11, %rd10; mov.b128 %q1, {{%rd10, %rd11}};
    atom{order}{where}.exch.b128 %q2, [{PLACES[space]}], %q1; st.global.b128 [%rd5], %q2;"""
    first = given()
    _, found = run(body, first, np.zeros((THREADS, 2), np.uint64))
    mine = [i | ((1 << 64) - 1 - i) << 64 for i in range(THREADS)]
    assert wide(found) == [wide(first)[0], *mine[:-1]]


def test_compare_and_swap() -> None:
    """A sum of 128 bits by a loop, which carries; and only who finds both halves swaps."""
    body = """mov.u64 %rd10, 0xffffffffffffffff; cvt.u64.u32 %rd11, %r1;
    ld.relaxed.gpu.global.b128 %q0, [%rd1];
    L: mov.b128 {%rd12, %rd13}, %q0; add.cc.u64 %rd14, %rd12, %rd10; addc.u64 %rd15, %rd13, %rd11;
    mov.b128 %q1, {%rd14, %rd15}; atom.relaxed.gpu.global.cas.b128 %q2, [%rd1], %q0, %q1;
    mov.b128 {%rd16, %rd17}, %q2; xor.b64 %rd16, %rd16, %rd12; xor.b64 %rd17, %rd17, %rd13;
    or.b64 %rd16, %rd16, %rd17; setp.ne.u64 %p1, %rd16, 0; mov.b128 %q0, %q2; @%p1 bra L;
    st.global.b128 [%rd5], %q2;"""
    for schedule in (None, "random:2"):
        left, found = run(body, given(), np.zeros((THREADS, 2), np.uint64),
                          schedule=schedule, checks="memory,sync,race")  # fmt: skip
        added = [(1 << 64) - 1 + (i << 64) for i in range(THREADS)]
        assert wide(left)[0] == (wide(given())[0] + sum(added)) % (1 << 128)
        assert len({*wide(found)}) == THREADS


def test_half_is_not_enough_to_swap() -> None:
    body = """ld.global.b128 %q0, [%rd4]; mov.b128 {%rd10, %rd11}, %q0; and.b32 %r2, %r1, 3;
    setp.eq.u32 %p1, %r2, 1; setp.eq.u32 %p2, %r2, 2;
    @%p1 add.u64 %rd10, %rd10, 1; @%p2 add.u64 %rd11, %rd11, 1; mov.b128 %q1, {%rd10, %rd11};
    mov.u64 %rd12, 7; mov.b128 %q2, {%rd12, %rd12};
    atom.global.cas.b128 %q3, [%rd4], %q1, %q2; st.global.b128 [%rd5], %q3;"""
    left, found = run(body, given(), np.zeros((THREADS, 2), np.uint64))
    assert wide(found) == wide(given())
    swapped = [i % 4 in (0, 3) for i in range(THREADS)]
    assert wide(left) == [
        7 | 7 << 64 if yes else old for yes, old in zip(swapped, wide(given()), strict=True)
    ]


@pytest.mark.parametrize(("body", "words"), [
    ("ld.global.b128 %q0, [%rd4+8];", "is no multiple of 16"),
    ("atom.global.exch.b128 %q1, [%rd4+8], %q0;", "is no multiple of 16"),
    ("ld.global.b128 %q0, [%rd4+16];", "of 16 bytes at"),
    ("st.shared.b128 [%rd7+512], %q0;", "of 16 bytes at"),
])  # fmt: skip
def test_wrong_places(body: str, words: str) -> None:
    with pytest.raises(Fault, match=words):
        run(body, given(), given())


@pytest.mark.parametrize(("body", "words"), [
    ("ld.global.b128 %rd10, [%rd4];", "the number of registers is another"),
    ("mov.b128 %q0, %rd10;", "wanted a register of 128 bits"),
    ("mov.b64 %q0, %rd10;", "mov.b64 is not emulated"),
    ("ld.global.b128 %q0, [%q1];", "an address has 128 bits"),
    ("add.u64 %rd10, %q0, %rd11;", "the operand"),
    ("atom.global.cas.b128 %q0, [%rd1], %rd10, %q1;", "wanted registers of 128 bits"),
])  # fmt: skip
def test_wrong_registers(body: str, words: str) -> None:
    with pytest.raises(PtxError, match=words):
        run(body, given(), given())
