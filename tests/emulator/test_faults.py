"""What threads do wrong: each fault names kernel, block, thread, PTX line and source line."""

from __future__ import annotations

import re

import numpy as np
import pytest
from ptx_programs import Array, kernel, launch, machine, pointers

from ferrule.emulator.machine import Fault

INDEX = "ld.param.u64 %rd1, [a0];\nmov.u32 %r1, %tid.x;\nmul.wide.u32 %rd2, %r1, 4;\n"
INDEX += "add.u64 %rd3, %rd1, %rd2;\n"
OUT = np.zeros(32, np.uint32)


def run(body: str, *arrays: Array, checks: str = "memory,sync", **more: object) -> list[Array]:
    before = str(more.pop("before", ""))
    text = kernel(INDEX + body + "\nret;", pointers(max(1, len(arrays))), before=before)
    return launch(text, arrays or [OUT], on=machine(checks), **more)  # type: ignore[arg-type]


def fault(body: str, *arrays: Array, **more: object) -> Fault:
    with pytest.raises(Fault) as error:
        run(body, *arrays, **more)
    return error.value


def test_an_access_behind_an_allocation() -> None:
    body = ".loc 1 17 3\nld.global.u32 %r2, [%rd3];"
    found = fault(body, OUT[:31], before='.file 1 "demo.py"\n', grid=(3, 1, 1))
    assert found.kind == "memory"
    assert re.fullmatch(
        r"k: ld\.global\.u32 of 4 bytes at 0x[0-9a-f]+, just behind the allocation of 124 bytes "
        r"at 0x[0-9a-f]+; "
        r"block \(0, 0, 0\), thread \(31, 0, 0\); PTX line 20, demo\.py:17",
        str(found),
    )


def test_the_line_of_the_kernel_where_a_function_is_inlined() -> None:
    body = """.loc 1 17 3
    .loc 2 5 1, function_name $L, inlined_at 1 17 3
    .loc 2 9 7, function_name $L+4, inlined_at 2 5 1
    ld.global.u32 %r2, [%rd3];"""
    files = '.file 1 "demo.cu"\n.file 2 "header.h"\n'
    found = fault(body, OUT[:31], before=files, grid=(3, 1, 1))
    assert str(found).endswith("PTX line 23, header.h:9, inlined at demo.cu:17")


WIDTHS = {
    "ld.global.b8 %h1": 1, "ld.global.b16 %h1": 2, "ld.global.b64 %rd9": 8,
    "ld.global.v2.b32 {%r2, %r3}": 8, "ld.global.v4.b32 {%r2, %r3, %r4, %r5}": 16,
    "ld.global.v2.b64 {%rd8, %rd9}": 16, "ld.global.v4.b8 {%h1, %h2, %h3, %h4}": 4,
}  # fmt: skip


@pytest.mark.parametrize("name", WIDTHS)
def test_every_byte_counts(name: str) -> None:
    """The last whole access is good; one byte less of the allocation and it is not."""
    size = WIDTHS[name]
    body = f"mul.wide.u32 %rd2, %r1, {size};\nadd.u64 %rd3, %rd1, %rd2;\n{name}, [%rd3];"
    run(body, np.zeros(32 * size, np.uint8))
    assert fault(body, np.zeros(32 * size - 1, np.uint8)).kind == "memory"


FAULTS = {
    "add.u64 %rd3, %rd3, 2; st.global.u32 [%rd3], %r1;": ("misaligned", "is no multiple of 4"),
    "add.u64 %rd3, %rd3, 4; ld.global.v2.u32 {%r2, %r3}, [%rd3];": ("misaligned", "multiple of 8"),
    "ld.global.u32 %r2, [%rd1+-4];": ("memory", "4 bytes before the allocation of"),
    "ld.u32 %r2, [64];": ("memory", "which is in no allocation"),
    "atom.global.add.u32 %r2, [%rd3+128], 1;": ("memory", "atom.global.add.u32 of 4 bytes"),
    "red.global.add.u32 [%rd3+128], 1;": ("memory", "red.global.add.u32 of 4 bytes"),
    ".shared .u32 s[8]; mov.u32 %r2, s; st.shared.u32 [%r2+32], %r1;": (
        "space", "at 0x20 of shared memory, of which the block has 32 bytes"),
    ".shared .u32 s[8]; mov.u64 %rd4, s; cvta.shared.u64 %rd4, %rd4; ld.u32 %r2, [%rd4+32];": (
        "memory", "in no allocation"),
    ".shared .u32 s[8]; mov.u64 %rd4, s; cvta.shared.u64 %rd4, %rd4; ld.global.u32 %r2, [%rd4];": (
        "memory", "in shared or local memory that is not the thread's own"),
    ".local .u32 l[2]; mov.u64 %rd4, l; st.local.u32 [%rd4+8], %r1;": (
        "space", "of the thread's local memory"),
    ".local .u32 l[2]; mov.u64 %rd4, l; cvta.local.u64 %rd4, %rd4; st.u32 [%rd4+8], %r1;": (
        "memory", "in shared or local memory that is not the thread's own"),
    "ld.local.u32 %r2, [%rd1];": ("space", "of the thread's local memory"),
    "mov.b64 %rd4, a0; cvta.param.u64 %rd4, %rd4; ld.u64 %rd5, [%rd4]; st.u64 [%rd4], %rd5;": (
        "memory", "st.u64 of 8 bytes"),
    "mov.b64 %rd4, a0; ld.param.u64 %rd5, [%rd4+8];": ("space", "of the thread's param memory"),
    "trap;": ("trap", "trap was executed"),
    "shfl.sync.idx.b32 %r2, %r1, 0, 31, 2;": ("sync", "is not in its mask of lanes, 0x00000002"),
    "setp.lt.u32 %p1, %r1, 8; @!%p1 bra E; shfl.sync.idx.b32 %r2, %r1, 9, 31, 255; E:": (
        "sync", "reads lane 9 of its warp, which takes no part"),
    "bar.sync 17;": ("sync", "there is no such barrier"),
    "bar.sync 1, 33;": ("sync", "no multiple of 32"),
    "setp.lt.u32 %p1, %r1, 8; @%p1 bra A; bar.sync 0; bra E;\nA: bar.sync 0; E:": (
        "sync", "threads of a warp reach different barriers"),
    "setp.lt.u32 %p1, %r1, 8; @%p1 exit; bar.sync 1, 64;": (
        "deadlock", "24 threads wait at barrier 1: (8, 0, 0), (9, 0, 0), (10, 0, 0) …"),
    "bar.sync 1, 64;": ("deadlock", "32 threads wait at barrier 1"),
}  # fmt: skip


@pytest.mark.parametrize("body", FAULTS)
def test_faults(body: str) -> None:
    kind, words = FAULTS[body]
    found = fault(body)
    assert (found.kind, words in str(found)) == (kind, True), str(found)
    assert "block (0, 0, 0)" in str(found)


def test_use_after_free() -> None:
    gpu = machine()
    module = gpu.load(kernel(INDEX + "ld.global.u32 %r2, [%rd3];\nret;", pointers(1)))
    place = gpu.memory.allocate(128)
    gpu.memory.free(place)
    gpu.memory.allocate(128)
    with pytest.raises(Fault, match="in the allocation of 128 bytes at 0x[0-9a-f]+, freed before"):
        module.kernels["k"].launch(
            (1, 1, 1), (32, 1, 1), smem=0, parameters=place.to_bytes(8, "little")
        )


def test_a_machine_goes_on_after_a_fault() -> None:
    gpu = machine()
    text = kernel(INDEX + "st.global.u32 [%rd3], %r1;\nret;", pointers(1))
    for _ in range(2):
        with pytest.raises(Fault):
            launch(text, [OUT[:20]], on=gpu)
        (found,) = launch(text, [OUT], on=gpu)
        assert (found == np.arange(32)).all()


ASSERT = """
.extern .func __assertfail(.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d,
.param .b64 e);
.global .align 1 .b8 text[6] = {120, 32, 60, 32, 53, 0};
.global .align 1 .b8 file[5] = {97, 46, 112, 121, 0};
.global .align 1 .b8 name[2] = {102, 0};
"""


def test_assertions() -> None:
    body = """setp.lt.u32 %p1, %r1, 5; @%p1 bra E;
    { .param .b64 a; .param .b64 b; .param .b32 c; .param .b64 d; .param .b64 e;
    mov.u64 %rd4, text; st.param.b64 [a], %rd4; mov.u64 %rd4, file; st.param.b64 [b], %rd4;
    st.param.b32 [c], 42; mov.u64 %rd4, name; st.param.b64 [d], %rd4; mov.u64 %rd4, 1;
    st.param.b64 [e], %rd4;
    call __assertfail, (a, b, c, d, e); }
    E:"""
    found = fault(body, before=ASSERT)
    assert found.kind == "assert"
    assert "k: assertion failed: x < 5 (a.py:42 in f); block (0, 0, 0), thread (5, 0, 0)" in str(
        found
    )


def test_lanes_that_exit_are_not_waited_for() -> None:
    (found,) = run(
        "setp.gt.u32 %p1, %r1, 19; @%p1 exit; bar.sync 0;\n"
        "shfl.sync.bfly.b32 %r2, %r1, 1, 31, -1; st.global.u32 [%rd3], %r2;"
    )
    assert (found[:20] == np.arange(20) ^ 1).all()
    assert (found[20:] == 0).all()


def test_without_checks_there_are_none() -> None:
    run("ld.global.u32 %r2, [%rd3];", OUT[:31], checks="")


def test_different_masks_that_nobody_can_satisfy() -> None:
    """Each half waits for one lane of the other."""
    body = """setp.lt.u32 %p1, %r1, 16; selp.b32 %r5, 0x0001ffff, 0xffff0001, %p1;
    shfl.sync.idx.b32 %r2, %r1, 0, 31, %r5;"""
    found = fault(body)
    assert found.kind == "sync"
    assert re.search(
        r"block \(0, 0, 0\) cannot go on: threads of a warp give different masks to "
        r"shfl\.sync\.idx\.b32, PTX line \d+: 0x0001ffff, 0xffff0001; 32 threads wait at shfl",
        found.text,
    )


@pytest.mark.parametrize("opcode", ["vote.sync.ballot.b32 %r2, %p1", "redux.sync.add.u32 %r2, %r1"])
def test_different_masks_of_lanes_that_end(opcode: str) -> None:
    """The first half goes on with its own mask, the others wait for all until it has ended."""
    mixed = f"""setp.lt.u32 %p1, %r1, 16; selp.b32 %r5, 0x0000ffff, 0xffffffff, %p1;
    {opcode}, %r5;"""
    found = fault(mixed)
    assert (found.kind, "waits for the lanes 0xffffffff" in found.text) == ("sync", True)
    assert "thread (16, 0, 0)" in found.text
    run(mixed, checks="memory")


def test_lanes_may_come_again_with_the_mask_of_others() -> None:
    """Turn i is for the lanes 0 to i: the others wait for them at the same instruction."""
    body = """mov.u32 %r4, 0; mov.u32 %r9, 0;
    L: setp.gt.u32 %p1, %r1, %r4; @%p1 bra N;
    shl.b32 %r5, 2, %r4; sub.u32 %r5, %r5, 1; redux.sync.add.u32 %r6, %r1, %r5;
    add.u32 %r9, %r9, %r6;
    N: add.u32 %r4, %r4, 1; setp.lt.u32 %p1, %r4, 32; @%p1 bra L;
    st.global.u32 [%rd3], %r9;"""
    sums = np.cumsum(np.arange(32))
    for schedule in (None, "random:3"):
        found = launch(
            kernel(INDEX + body + "\nret;", pointers(1)), [OUT],
            on=machine("memory,sync", schedule),
        )[0]  # fmt: skip
        assert found.tolist() == [int(sums[i:].sum()) for i in range(32)]
