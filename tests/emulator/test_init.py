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


def test_memory_checks_come_first() -> None:
    with pytest.raises(Fault) as caught:
        run("ld.global.u32 %r5, [%rd3+256];")
    assert caught.value.kind == "memory"
