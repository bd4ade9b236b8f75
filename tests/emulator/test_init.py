"""Reads of memory that nobody has written, to the byte."""

from __future__ import annotations

from typing import Any

import pytest
from ptx_programs import kernel, machine, pointers

from ferrule.emulator.machine import Fault, Machine

BEGIN = """
ld.param.u64 %rd1, [a0]; mov.u32 %r0, %tid.x; mul.wide.u32 %rd2, %r0, 4;
add.u64 %rd3, %rd1, %rd2; mov.u32 %r2, s; shl.b32 %r1, %r0, 2; add.u32 %r3, %r2, %r1;
"""


def gpu() -> Machine:
    return machine("memory,init")


def run(
    body: str,
    written: bool = True,
    grid: tuple[int, int, int] = (1, 1, 1),
    block: tuple[int, int, int] = (32, 1, 1),
) -> None:
    """An array of 64 words: %rd1; %rd3 is the thread's word of it, %r3 that of shared memory."""
    own = gpu()
    text = kernel(BEGIN + body + "\nret;", pointers(1), before=".shared .align 16 .b8 s[512];",
                  registers=".local .align 8 .b8 l[16];")  # fmt: skip
    module = own.load(text)
    place = own.memory.allocate(256)
    if written:
        assert own.memory.written is not None
        own.memory.written(place, 256)
    data = place.to_bytes(8, "little")
    module.kernels["k"].launch(grid, block, smem=0, parameters=data)


def wrong(body: str, **more: Any) -> str:
    with pytest.raises(Fault) as caught:
        run(body, **more)
    assert caught.value.kind == "init", caught.value.text
    return caught.value.text


def test_global_memory() -> None:
    run("ld.global.u32 %r5, [%rd3];")
    text = wrong("ld.global.u32 %r5, [%rd3];", written=False)
    assert "ld.global.u32 of 4 bytes reads byte 0 of the 256 bytes" in text
    assert "block (0, 0, 0), thread (0, 0, 0)" in text and "PTX line" in text
    run("st.global.u32 [%rd3], 1; ld.global.u32 %r5, [%rd3];", written=False)
    text = wrong("st.global.u32 [%rd3], 1; ld.global.u32 %r5, [%rd3+128];", written=False)
    assert "byte 128 of" in text


def test_to_the_byte() -> None:
    store = "st.global.u16 [%rd3], 1; st.global.u8 [%rd3+2], 1;"
    run(store + "ld.global.u16 %r5, [%rd3]; ld.global.u8 %r5, [%rd3+2];", written=False)
    wrong(store + "ld.global.u32 %r5, [%rd3];", written=False)
    wrong(store + "ld.global.u8 %r5, [%rd3+3];", written=False)


def test_vectors() -> None:
    store = "mul.wide.u32 %rd4, %r0, 16; add.u64 %rd4, %rd1, %rd4; setp.lt.u32 %p1, %r0, 8;\n"
    store += "@%p1 st.global.v4.u32 [%rd4], {%r0,%r0,%r0,%r0};\n"
    run(store + "@%p1 ld.global.v4.u32 {%r5,%r6,%r7,%r8}, [%rd4];", written=False)
    wrong(store + "setp.lt.u32 %p1, %r0, 9;@%p1 ld.global.v2.u64 {%rd5,%rd6}, [%rd4];",
          written=False)  # fmt: skip


def test_shared_memory_is_fresh_in_each_block() -> None:
    run("st.shared.u32 [%r3], 1; ld.shared.u32 %r5, [%r3];", grid=(3, 1, 1))
    assert "shared memory, s+128" in wrong("st.shared.u32 [%r3], 1; ld.shared.u32 %r5, [%r3+128];")
    first = "mov.u32 %r9, %ctaid.x; setp.eq.u32 %p1, %r9, 0; @%p1 st.shared.u32 [%r3], 1;"
    assert "block (1, 0, 0)" in wrong(first + "ld.shared.u32 %r5, [%r3];", grid=(2, 1, 1))
    wrong("red.shared.add.u32 [s], 1;")
    run("st.shared.u32 [s], 0; red.shared.add.u32 [s], 1; ld.shared.u32 %r5, [s];")


def test_local_memory() -> None:
    run("st.local.u32 [l], 1; ld.local.u32 %r5, [l];", grid=(2, 1, 1))
    wrong("st.local.u32 [l], 1; ld.local.u32 %r5, [l+4];")
    run("mov.u64 %rd5, l; cvta.local.u64 %rd5, %rd5; st.u32 [%rd5], 1; ld.local.u32 %r5, [l];")


def test_launches_see_what_others_wrote() -> None:
    own = gpu()
    module = own.load(kernel(BEGIN + "ld.global.u32 %r5, [%rd3]; ret;", pointers(1),
                             before=".shared .align 16 .b8 s[512];"))  # fmt: skip
    fill = own.load(kernel(BEGIN + "st.global.u32 [%rd3], 5; ret;", pointers(1),
                           before=".shared .align 16 .b8 s[512];"))  # fmt: skip
    place = own.memory.allocate(128)
    given: dict[str, Any] = {"smem": 0, "parameters": place.to_bytes(8, "little")}
    fill.kernels["k"].launch((1, 1, 1), (32, 1, 1), **given)
    module.kernels["k"].launch((1, 1, 1), (32, 1, 1), **given)
    own.memory.free(place)
    again = own.memory.allocate(128)
    with pytest.raises(Fault, match="nobody has written"):
        module.kernels["k"].launch(
            (1, 1, 1), (32, 1, 1), smem=0, parameters=again.to_bytes(8, "little")
        )


def test_asynchronous_copies_write() -> None:
    copy = "cp.async.ca.shared.global [%r3], [%rd3], 4; cp.async.wait_all;"
    run(copy + "ld.shared.u32 %r5, [%r3];")
    wrong(copy, written=False)


def test_variables_of_modules_are_written() -> None:
    own = gpu()
    text = kernel("ld.global.u32 %r5, [v]; ret;", before=".global .u32 v[4];")
    own.load(text).kernels["k"].launch((1, 1, 1), (32, 1, 1), smem=0, parameters=b"")


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("ld.global.u32 %r5, [%rd3+256];", "just behind"),
        ("atom.global.add.u32 %r5, [%rd3+256], 1;", "just behind"),
        ("red.global.add.u32 [%rd1+256], 1;", "just behind"),
        ("red.global.add.u32 [%rd1+254], 1;", "no multiple of 4"),
        ("atom.global.cas.b32 %r5, [%rd1+2], %r0, 1;", "no multiple of 4"),
        ("red.global.add.v4.f32 [%rd1+256], {%f1,%f1,%f1,%f1};", "just behind"),
    ],
)
def test_memory_checks_come_first(body: str, says: str) -> None:
    with pytest.raises(Fault, match=says) as caught:
        run(body, written=False)
    assert caught.value.kind in ("memory", "misaligned")


STORE_THREE = "st.shared.v2.u32 [s], {1, 2}; st.shared.u32 [s+8], 3;"
SUM_OF_THREE = "add.u32 %r5, %r5, %r6; add.u32 %r5, %r5, %r7; st.global.u32 [%rd3], %r5;"


@pytest.mark.parametrize(
    ("load", "use", "one_more"),
    [
        ("v4.u32 {%r5,%r6,%r7,%r8}, [s]", SUM_OF_THREE, "st.global.u32 [%rd3], %r8;"),
        ("v4.u32 {%r5,%r6,%r7,%r8}, [s]", SUM_OF_THREE, "@%p2 mov.u32 %r5, %r8;"),
        ("v2.u64 {%rd5,%rd6}, [s]", "cvt.u32.u64 %r6, %rd6; st.global.u32 [%rd3], %r6;",
         "shr.u64 %rd6, %rd6, 8; st.global.u32 [%rd3], %rd6;"),
        ("b64 %rd5, [s+8]", "mov.b64 {%r5, _}, %rd5; st.global.u32 [%rd3], %r5;",
         "mov.b64 {_, %r5}, %rd5; st.global.u32 [%rd3], %r5;"),
        ("b64 %rd5, [s+8]", "and.b64 %rd6, %rd5, 0xffff0000; st.global.u64 [%rd1], %rd6;",
         "and.b64 %rd7, %rd5, 0x100000000; st.global.u64 [%rd1], %rd7;"),
        ("b64 %rd5, [s+8]", "st.global.u16 [%rd3], %rd5;", "st.global.u64 [%rd1], %rd5;"),
    ],
)  # fmt: skip
def test_bytes_that_a_load_brings_along(load: str, use: str, one_more: str) -> None:
    """LLVM joins loads; what is between and behind those of a program is not used."""
    run(f"{STORE_THREE} ld.shared.{load}; {use}")
    assert "nobody has written" in wrong(f"{STORE_THREE} ld.shared.{load}; {use} {one_more}")
    wrong(f"st.shared.v2.u32 [s], {{1, 2}}; ld.shared.{load}; {use}")


@pytest.mark.parametrize(
    ("use", "last"),
    [
        ("prmt.b32 %r6, %r5, 0, 0xaaa2;", "prmt.b32 %r6, %r5, 0, 0x7773;"),
        ("shr.u32 %r7, %r5, 8; cvt.u16.u32 %h1, %r7; cvt.u32.u8 %r6, %h1;", "shr.s32 %r6, %r5, 9;"),
        ("cvt.s8.s32 %h1, %r5; cvt.s32.s16 %r6, %h1;", "shr.s32 %r6, %r5, 24;"),
    ],
)  # fmt: skip
def test_bytes_of_a_word_that_a_load_brings_along(use: str, last: str) -> None:
    body = "st.shared.u16 [s], 1; st.shared.u8 [s+2], 1; ld.shared.b32 %r5, [s];"
    run(f"{body} {use} st.global.u32 [%rd3], %r6;")
    wrong(f"{body} {last} st.global.u32 [%rd3], %r6;")


@pytest.mark.parametrize("swap", [
    "", "setp.gt.u32 %p2, %r0, 99; @%p2 atom.global.cas.b32 %r7, [%rd3], %r9, 2;",
])  # fmt: skip
def test_a_swap_excuses_no_other_read(swap: str) -> None:
    body = f"{swap} ld.global.u32 %r5, [%rd3]; st.global.u32 [%rd3], %r5;"
    assert "ld.global.u32 of 4 bytes" in wrong(body, written=False)


@pytest.mark.parametrize(("kind", "old"), [("b16", "%h1"), ("b32", "%r5"), ("b64", "%rd6")])
def test_swaps_read(kind: str, old: str) -> None:
    body = f"atom.global.cas.{kind} {old}, [%rd1], {old}, {old};"
    assert f"atom.global.cas.{kind} of" in wrong(body, written=False, block=(1, 1, 1))
    run(body, block=(1, 1, 1))


def test_a_swap_of_a_part_of_a_word() -> None:
    """An atomic of 2 bytes, as compilers write it, with nothing written in the other 2."""
    body = """
and.b64 %rd5, %rd4, -4; ld.global.u16 %h1, [%rd4]; ld.global.b32 %r5, [%rd5];
cvt.u32.u64 %r6, %rd4; and.b32 %r6, %r6, 2; shl.b32 %r6, %r6, 3; mov.u32 %r7, 0xffff;
shl.b32 %r7, %r7, %r6; not.b32 %r7, %r7; and.b32 %r5, %r5, %r7;
cvt.u32.u16 %r8, %h1; add.u32 %r9, %r8, 1; shl.b32 %r8, %r8, %r6; shl.b32 %r9, %r9, %r6;
L: or.b32 %r10, %r5, %r8; or.b32 %r11, %r5, %r9;
atom.global.cas.b32 %r12, [%rd5], %r10, %r11;
setp.eq.u32 %p2, %r12, %r10; @%p2 bra E; and.b32 %r13, %r12, %r7; setp.ne.u32 %p3, %r13, %r5;
mov.u32 %r5, %r13; @%p3 bra L;
E:
"""
    one = (1, 1, 1)
    place = "add.u64 %rd4, %rd1, 66;"
    run(f"{place} st.global.u16 [%rd4], 7; {body}", written=False, block=one)
    assert "ld.global.u16" in wrong(f"{place} {body}", written=False, block=one)
    without = body.replace("ld.global.u16 %h1, [%rd4];", "mov.u16 %h1, 0;")
    assert "ld.global.b32" in wrong(f"{place} {without}", written=False, block=one)
