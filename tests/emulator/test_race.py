"""Races: each kind of order between threads holds, and each one that is missing is named."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ptx_programs import Array, kernel, launch, machine, pointers

from ferrule.emulator.machine import Fault

SHARED = ".shared .align 4 .b8 s[4096];"
BEGIN = """
mov.u32 %r0, %tid.x; mov.u32 %r9, %ctaid.x; shl.b32 %r1, %r0, 2; mov.u32 %r2, s;
add.u32 %r3, %r2, %r1; ld.param.u64 %rd1, [a0]; ld.param.u64 %rd2, [a1];
cvt.u64.u32 %rd3, %r1; add.u64 %rd4, %rd1, %rd3; setp.eq.u32 %p1, %r0, 0;
"""


def run(
    body: str, grid: int = 1, block: int = 64, schedule: str | None = None, **more: Any
) -> list[Array]:
    """Two arrays of 64 zeros after a kernel: %r3 is the thread's own word in shared memory, %rd1
    and %rd2 are the arrays, %rd4 is the thread's word in the first, %p1 holds in thread 0."""
    text = kernel(BEGIN + body + "\nret;", pointers(2), before=SHARED)
    arrays = [np.zeros(64, np.uint32), np.zeros(64, np.uint32)]
    gpu = machine("memory,race", schedule)
    return launch(text, arrays, grid=(grid, 1, 1), block=(block, 1, 1), on=gpu, **more)


def race(body: str, grid: int = 1, block: int = 64) -> str:
    """What is said of its race."""
    with pytest.raises(Fault) as caught:
        run(body, grid, block)
    assert caught.value.kind == "race", caught.value.text
    return caught.value.text


EXCHANGE = """
st.shared.u32 [%r3], %r0;
{order}
xor.b32 %r4, %r1, {distance}; add.u32 %r4, %r2, %r4; ld.shared.u32 %r5, [%r4];
st.global.u32 [%rd4], %r5;
"""


@pytest.mark.parametrize("distance", [4, 128])
def test_a_barrier_of_the_block_orders_its_threads(distance: int) -> None:
    found = run(EXCHANGE.format(order="bar.sync 0;", distance=distance))[0]
    assert found.tolist() == [i ^ (distance // 4) for i in range(64)]
    assert "barrier" in race(EXCHANGE.format(order="", distance=distance))


def test_lanes_that_meet_order_their_warp_alone() -> None:
    run(EXCHANGE.format(order="bar.warp.sync -1;", distance=4))
    assert "a barrier of the block" in race(
        EXCHANGE.format(order="bar.warp.sync -1;", distance=128)
    )
    half = "setp.lt.u32 %p2, %r0, 8; @%p2 bar.warp.sync 0xff; @!%p2 bra E;"
    run(half + EXCHANGE.format(order="bar.warp.sync 0xff;", distance=4) + "E:", block=32)


def test_a_shuffle_orders_nothing() -> None:
    text = race(EXCHANGE.format(order="shfl.sync.idx.b32 %r8, %r0, 0, 31, -1;", distance=4))
    assert "bar.warp.sync" in text


def test_the_text_names_both_accesses() -> None:
    text = race('.file 1 "mine.py"\n.loc 1 7 0\n' + EXCHANGE.format(order="", distance=4))
    assert text.startswith("k: race in shared memory, s+4: ld.shared.u32 by block (0, 0, 0), ")
    assert "thread (0, 0, 0), PTX line" in text and "thread (1, 0, 0), PTX line" in text
    assert "st.shared.u32 by block" in text and text.count("mine.py:7") == 2


def test_a_read_before_a_write() -> None:
    body = "ld.shared.u32 %r5, [s]; {order} setp.eq.u32 %p2, %r0, 33; @%p2 st.shared.u32 [s], 5;"
    run(body.format(order="bar.sync 0;"))
    assert "writes what another thread read" in race(body.format(order=""))


def test_named_barriers_order_those_who_take_part() -> None:
    """Warp 0 writes and arrives, warp 1 waits and reads; the other way orders nothing."""
    ways = """
setp.lt.u32 %p2, %r0, 32; @!%p2 bra R;
st.shared.u32 [%r3], %r0; {writer} bra E;
R: {reader} ld.shared.u32 %r5, [%r3+-128]; st.global.u32 [%rd4], %r5;
E:
"""
    found = run(ways.format(writer="bar.arrive 3, 64;", reader="bar.sync 3, 64;"))[0]
    assert found[32:].tolist() == list(range(32))
    assert "race" in race(ways.format(writer="bar.sync 3, 64;", reader="bar.arrive 3, 64;"))


@pytest.mark.parametrize("schedule", [None, "random:1", "random:5"])
@pytest.mark.parametrize("barrier", ["bar.sync 3, 32;", "bar.sync 0;"])
def test_a_barrier_does_not_order_threads_that_have_ended(
    barrier: str, schedule: str | None
) -> None:
    """Warp 1 writes and ends, warp 0 reads behind a barrier in which only its threads take part."""
    body = """
setp.lt.u32 %p2, %r0, 32; setp.eq.u32 %p3, %r0, 40; @%p3 st.shared.u32 [s], 2; {before}
@!%p2 bra E; {barrier}
ld.shared.u32 %r5, [s]; st.shared.u32 [%r3+512], %r5; {barrier}
xor.b32 %r4, %r1, 4; add.u32 %r4, %r2, %r4; ld.shared.u32 %r6, [%r4+512];
st.global.u32 [%rd4], %r6;
E:
"""
    found = run(body.format(before="bar.sync 1;", barrier=barrier), schedule=schedule)
    assert found[0].tolist() == [2] * 32 + [0] * 32
    with pytest.raises(Fault) as caught:
        run(body.format(before="", barrier=barrier), schedule=schedule)
    assert caught.value.kind == "race" and "thread (40, 0, 0)" in caught.value.text


def test_a_loop_with_barriers() -> None:
    """Each round reads what the round before wrote; a double buffer needs one barrier a round."""
    loop = """
mov.u32 %r7, 0; st.shared.u32 [%r3], %r0; st.shared.u32 [%r3+256], %r0;
L: {first}
and.b32 %r8, %r7, 1; shl.b32 %r8, %r8, 8; add.u32 %r10, %r2, %r8; xor.b32 %r11, %r8, 256;
xor.b32 %r4, %r1, 128; add.u32 %r4, %r10, %r4; ld.shared.u32 %r5, [%r4];
add.u32 %r11, %r3, %r11; add.u32 %r5, %r5, 1; st.shared.u32 [%r11], %r5;
add.u32 %r7, %r7, 1; setp.lt.u32 %p2, %r7, 10; @%p2 bra L;
"""
    run(loop.format(first="bar.sync 0;"))
    run(loop.format(first="bar.sync 0;"), schedule="random:3")
    race(loop.format(first=""))


def test_blocks_that_write_the_same_place() -> None:
    text = race("st.global.u32 [%rd4], %r9;", grid=2)
    assert "byte 0 of the 256 bytes" in text and "block (1, 0, 0)" in text


def test_the_same_value_is_no_race() -> None:
    assert run("st.global.u32 [%rd1], 7;", grid=3)[0][0] == 7
    assert "race" in race("st.global.u32 [%rd1], %r0;")


def test_neighbours_of_a_word() -> None:
    body = "cvt.u64.u32 %rd5, %r0; add.u64 %rd5, %rd1, %rd5; st.global.u8 [%rd5], %r0;"
    assert run(body)[0].view(np.uint8)[:64].tolist() == list(range(64))


def test_atomics_do_not_race() -> None:
    assert run("red.global.add.u32 [%rd1], 1;", grid=4)[0][0] == 256
    run("st.relaxed.gpu.global.u32 [%rd1], %r0; ld.volatile.global.u32 %r5, [%rd1];", grid=2)
    assert ".gpu is needed" in race("red.relaxed.cta.global.add.u32 [%rd1], 1;", grid=2)
    run("red.relaxed.cta.global.add.u32 [%rd1], 1;")
    race("red.global.add.u32 [%rd1], 1; @%p1 st.global.u32 [%rd1], 0;")
    race("red.shared.add.u32 [s], 1; ld.shared.u32 %r5, [s];")


def test_a_compare_and_swap_begins_with_a_plain_read() -> None:
    """Compilers write floating-point atomics so, and the swap finds out what the read missed."""
    body = """
ld.global.u32 %r5, [%rd1];
L: add.u32 %r6, %r5, 1; atom.global.cas.b32 %r7, [%rd1], %r5, %r6;
setp.ne.u32 %p2, %r7, %r5; mov.u32 %r5, %r7; @%p2 bra L;
"""
    assert run(body, grid=2)[0][0] == 128


def test_other_plain_reads_of_a_place_that_is_swapped() -> None:
    body = "@%p1 st.global.u32 [%rd1], 5; {swap} ld.global.u32 %r5, [%rd1];"
    for swap in ("", "setp.ne.u32 %p2, %r9, 0; @%p2 atom.global.cas.b32 %r7, [%rd1], %r9, 2;"):
        assert "race" in race(body.format(swap=swap))


def test_bytes_that_a_load_brings_along() -> None:
    """LLVM joins loads of three numbers to one of four, of which nobody uses the last."""
    body = "@%p1 st.shared.u32 [s+{at}], 5; ld.shared.v4.u32 {{%r5,%r6,%r7,%r8}}, [s]; {use}"
    use = "add.u32 %r5, %r5, %r6; add.u32 %r5, %r5, %r7; st.global.u32 [%rd4], %r5;"
    run(body.format(at=12, use=use))
    assert "s+8" in race(body.format(at=8, use=use))
    assert "s+12" in race(body.format(at=12, use=use + "st.global.u32 [%rd4], %r8;"))


FLAG = """
setp.eq.u32 %p3, %r9, 0; @!%p3 bra R;
@%p1 st.global.u32 [%rd1], 42; {release} bra E;
R: @!%p1 bra E;
L: {acquire} setp.eq.u32 %p2, %r5, 0; @%p2 bra L; {after}
ld.global.u32 %r6, [%rd1]; st.global.u32 [%rd2+8], %r6;
E:
"""
RELEASES = {
    "release": "@%p1 st.release.gpu.global.u32 [%rd2], 1;",
    "fence": "fence.acq_rel.gpu; @%p1 st.relaxed.gpu.global.u32 [%rd2], 1;",
    "membar": "membar.gl; @%p1 st.volatile.global.u32 [%rd2], 1;",
    "atomic": "@%p1 atom.release.gpu.global.exch.b32 %r8, [%rd2], 1;",
}
ACQUIRES = {
    "acquire": ("ld.acquire.gpu.global.u32 %r5, [%rd2];", ""),
    "fence": ("ld.relaxed.gpu.global.u32 %r5, [%rd2];", "fence.acq_rel.gpu;"),
    "atomic": ("atom.acquire.gpu.global.add.u32 %r5, [%rd2], 0;", ""),
}


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("acquire", ACQUIRES)
def test_a_flag_between_blocks(release: str, acquire: str) -> None:
    looks, after = ACQUIRES[acquire]
    found = run(FLAG.format(release=RELEASES[release], acquire=looks, after=after), grid=2)
    assert found[1][2] == 42


@pytest.mark.parametrize(
    ("release", "acquire", "after"),
    [
        ("@%p1 st.relaxed.gpu.global.u32 [%rd2], 1;", *ACQUIRES["acquire"]),
        (RELEASES["release"], "ld.relaxed.gpu.global.u32 %r5, [%rd2];", ""),
        ("fence.acq_rel.cta; @%p1 st.relaxed.gpu.global.u32 [%rd2], 1;", *ACQUIRES["acquire"]),
        ("@%p1 st.release.cta.global.u32 [%rd2], 1;", "ld.acquire.gpu.global.u32 %r5, [%rd2];", ""),
    ],
)
def test_half_of_an_order_is_none(release: str, acquire: str, after: str) -> None:
    text = race(FLAG.format(release=release, acquire=acquire, after=after), grid=2)
    assert "release of the first" in text or ".gpu is needed" in text


LAST = """
st.global.u32 [%rd4], %r9; {before}
@!%p1 bra W; {fence} atom.global.add.u32 %r5, [%rd2], 1; {fence} st.shared.u32 [s], %r5;
W: {after} ld.shared.u32 %r6, [s]; setp.ne.u32 %p2, %r6, 3; @%p2 bra E;
ld.global.u32 %r7, [%rd4]; add.u32 %r7, %r7, 1; st.global.u32 [%rd4], %r7;
E:
"""


def last(before: str = "bar.sync 0;", fence: str = "fence.acq_rel.gpu;") -> str:
    """Each block writes a part; the block that comes last goes over all of them."""
    part = (
        "mul.lo.u32 %r12, %r9, 16; setp.ge.u32 %p4, %r0, 16; @%p4 bra B;\nadd.u32 %r13, %r12, %r0;"
    )
    part += "mul.wide.u32 %rd5, %r13, 4; add.u64 %rd5, %rd1, %rd5; st.global.u32 [%rd5], %r9;\nB:"
    text = LAST.format(before=before, fence=fence, after="bar.sync 0;")
    return text.replace("st.global.u32 [%rd4], %r9;", part, 1)


def test_the_last_block_reads_what_all_wrote() -> None:
    found = run(last(), grid=4)[0]
    assert found.tolist() == [i // 16 + 1 for i in range(64)]


def test_the_last_block_needs_its_barrier_and_its_fence() -> None:
    assert "release of the first" in race(last(fence=""), grid=4)
    race(last(before=""), grid=4)


def test_launches_are_one_after_the_other() -> None:
    gpu = machine("memory,race")
    body = (
        BEGIN + "ld.global.u32 %r5, [%rd4]; add.u32 %r5, %r5, %r0; st.global.u32 [%rd4], %r5; ret;"
    )
    module = gpu.load(kernel(body, pointers(2), before=SHARED))
    place = gpu.memory.allocate(256)
    data = place.to_bytes(8, "little") * 2
    for _ in range(3):
        module.kernels["k"].launch((1, 1, 1), (64, 1, 1), smem=0, parameters=data)


def test_threads_that_leave_early() -> None:
    body = "setp.ge.u32 %p2, %r0, 48; @%p2 ret;" + EXCHANGE.format(order="bar.sync 0;", distance=4)
    run(body)


def test_the_same_window_for_the_next_block() -> None:
    run("st.shared.u32 [%r3], %r9; ld.shared.u32 %r5, [%r3];", grid=3)


def test_nothing_is_called_where_it_is_not_asked_for() -> None:
    body = BEGIN + EXCHANGE.format(order="", distance=4) + "ret;"
    module = machine("memory").load(kernel(body, pointers(2), before=SHARED))
    assert not any("race" in each for each in module.kernels["k"]._translation.helpers)


WAITS = """
setp.lt.u32 %p2, %r0, 32; @!%p2 bra WAITER;
st.shared.u32 [%r3], %r0; bar.warp.sync -1; @!%p1 bra END;
st.release.cta.shared.u32 [s+1024], 1; bra END;
WAITER: setp.eq.u32 %p3, %r0, 32; @!%p3 bra TOLD;
AGAIN: ld.acquire.cta.shared.u32 %r5, [s+1024]; setp.ne.u32 %p4, %r5, 1; @%p4 bra AGAIN;
TOLD: {order}
ld.shared.u32 %r6, [%r3+-128]; st.global.u32 [%rd4], %r6;
{after}
END:
"""


def test_what_one_lane_has_waited_for_is_told_by_a_shuffle() -> None:
    """As groups of several warps do in cooperative groups; of each other lanes learn nothing."""
    begin = "st.shared.u32 [s+1024], 0; bar.sync 0;" + WAITS
    told = "shfl.sync.idx.b32 %r8, %r0, 0, 31, -1;"
    assert run(begin.format(order=told, after=""))[0].tolist()[32:] == list(range(32))
    assert "reads what another thread wrote" in race(begin.format(order="", after=""))
    own = "st.shared.u32 [%r3], %r0; " + told + " ld.shared.u32 %r7, [%r3+-4];"
    assert "reads what another thread wrote" in race(begin.format(order=told, after=own))


def test_a_lane_ends_an_mbarrier_for_its_warp() -> None:
    """As libcu++'s pipelines do."""
    begin = """@%p1 mbarrier.init.shared.b64 [s+1024], 64; bar.sync 0;
    mbarrier.arrive.shared.b64 %rd5, [s+1024];
    W: mbarrier.test_wait.shared.b64 %p2, [s+1024], %rd5; @!%p2 bra W;
    shfl.sync.idx.b32 %r8, %r0, 0, 31, -1; mov.u32 %r5, 1; setp.eq.u32 %p3, %r8, %r0;
    @!%p3 bra END; atom.acq_rel.cta.shared.add.u32 %r6, [s+1040], 1; setp.eq.u32 %p4, %r6, 1;
    @%p4 mbarrier.inval.shared.b64 [s+1024];
    END:"""
    run("@%p1 st.shared.u32 [s+1040], 0; bar.sync 0;" + begin)
