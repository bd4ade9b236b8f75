"""Races of asynchronous copies, of mbarriers and of clusters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ptx_programs import HEADER, Array, launch, machine

from ferrule.emulator.machine import Fault


def run(body: str, block: int = 64, schedule: str | None = None, **more: Any) -> list[Array]:
    """Two arrays of 256 words: %rd0 and %rd1. %r3 is the thread's word of shared memory, %r1 an
    mbarrier of `block` arrivals, %p0 holds in thread 0, and %r4 is 4 times the thread."""
    text = f"""{HEADER}
.visible .entry k(.param .u64 a0, .param .u64 a1) {{
.reg .pred %p<10>; .reg .b32 %r<40>; .reg .b64 %rd<40>;
.shared .align 128 .b8 data[4096]; .shared .align 8 .b64 bar;
ld.param.u64 %rd0, [a0]; ld.param.u64 %rd1, [a1];
mov.u32 %r0, %tid.x; mov.u32 %r1, bar; mov.u32 %r2, data; shl.b32 %r4, %r0, 2;
add.u32 %r3, %r2, %r4; cvt.u64.u32 %rd2, %r4; add.u64 %rd3, %rd0, %rd2; add.u64 %rd4, %rd1, %rd2;
xor.b32 %r5, %r4, 128; add.u32 %r5, %r5, %r2; setp.eq.u32 %p0, %r0, 0;
{body}
ret; }}"""
    arrays = [np.arange(256, dtype=np.uint32), np.zeros(256, np.uint32)]
    gpu = machine("memory,sync,race", schedule)
    return launch(text, arrays, block=(block, 1, 1), on=gpu, **more)


def race(body: str, **more: Any) -> str:
    with pytest.raises(Fault) as caught:
        run(body, **more)
    assert caught.value.kind == "race", caught.value.text
    return caught.value.text


COPY = "cp.async.ca.shared.global [{to}], [%rd3], 4; cp.async.commit_group;"
TAKE = "ld.shared.u32 %r6, [{place}]; st.global.u32 [%rd4], %r6;"


def copied(before: str, after: str, place: str = "%r5") -> str:
    return COPY.format(to="%r3") + before + after + TAKE.format(place=place)


def test_a_copy_is_there_for_its_thread_after_the_wait() -> None:
    found = run(copied("cp.async.wait_group 0;", "", "%r3"))[1]
    assert found[:64].tolist() == list(range(64))
    run(copied("cp.async.wait_all;", "", "%r3"))
    assert "the copy may not be done" in race(copied("", "", "%r3"))
    assert "the copy may not be done" in race(copied("cp.async.wait_group 1;", "", "%r3"))


def test_a_copy_is_there_for_others_after_a_barrier_behind_the_wait() -> None:
    found = run(copied("cp.async.wait_group 0;", "bar.sync 0;"))[1]
    assert found[:64].tolist() == [i ^ 32 for i in range(64)]
    assert "a barrier of the block" in race(copied("cp.async.wait_group 0;", ""))
    assert "the copy may not be done" in race(copied("bar.sync 0;", ""))
    assert "race" in race(copied("bar.sync 0; cp.async.wait_group 0;", ""))


STAGES = """
mov.u32 %r10, 0;
cp.async.ca.shared.global [%r3], [%rd3], 4; cp.async.commit_group;
L: and.b32 %r11, %r10, 1; shl.b32 %r11, %r11, 8; xor.b32 %r12, %r11, 256;
add.u32 %r13, %r3, %r12;
cp.async.ca.shared.global [%r13], [%rd3], 4; cp.async.commit_group;
cp.async.wait_group {left}; bar.sync 0;
add.u32 %r14, %r5, %r11; ld.shared.u32 %r6, [%r14]; add.u32 %r7, %r7, %r6;
{last}
add.u32 %r10, %r10, 1; setp.lt.u32 %p1, %r10, 20; @%p1 bra L;
"""


def test_stages_of_copies() -> None:
    run(STAGES.format(left=1, last="bar.sync 0;"))
    run(STAGES.format(left=1, last="bar.sync 0;"), schedule="random:5")
    assert "may not be done" in race(STAGES.format(left=2, last="bar.sync 0;"))
    race(STAGES.format(left=1, last=""))


INIT = "@%p0 mbarrier.init.shared.b64 [%r1], {count};\n{after}\n"
WAIT = "W{n}: mbarrier.try_wait.parity{how}.shared.b64 %p2, [%r1], {n}; @!%p2 bra W{n};\n"


def met(how: str = "", waits: str = "", after: str = "bar.sync 0;") -> str:
    text = INIT.format(count=64, after=after) + "st.shared.u32 [%r3], %r0;\n"
    text += f"mbarrier.arrive{how}.shared.b64 _, [%r1];\n" + WAIT.format(n=0, how=waits)
    return text + TAKE.format(place="%r5")


def test_an_mbarrier_orders_who_arrives_before_who_waits() -> None:
    assert run(met())[1][:64].tolist() == [i ^ 32 for i in range(64)]
    run(met(), schedule="random:2")
    race(met(how=".relaxed.cta"))
    race(met(waits=".relaxed.cta"))
    assert "mbarrier.init" in race(met(after=""))


def test_phases_of_an_mbarrier() -> None:
    """What is read in one phase may be written in the next."""
    more = "mbarrier.arrive.shared.b64 _, [%r1];\n" + WAIT.format(n=1, how="")
    last = "st.shared.u32 [%r3], 7;"
    run(met() + more + last)
    race(met() + last)


def test_copies_that_arrive_at_an_mbarrier() -> None:
    body = INIT.format(count=64, after="bar.sync 0;")
    body += "cp.async.ca.shared.global [%r3], [%rd3], 4;\n"
    arrives = "cp.async.mbarrier.arrive.noinc.shared.b64 [%r1];\n"
    run(body + arrives + WAIT.format(n=0, how="") + TAKE.format(place="%r5"))
    race(body + "mbarrier.arrive.shared.b64 _, [%r1];\n" + WAIT.format(n=0, how="")
         + TAKE.format(place="%r5"))  # fmt: skip


BULK = """
@!%p0 bra N;
mbarrier.arrive.expect_tx.shared.b64 _, [%r1], 1024;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%rd0], 1024, [%r1];
N:
"""


READY = "fence.mbarrier_init.release.cluster; bar.sync 0;"


def bulk(before: str = "", wait: str = WAIT.format(n=0, how=""), after: str = READY) -> str:
    return before + INIT.format(count=1, after=after) + BULK + wait


def test_a_bulk_copy_is_there_for_who_waits_at_its_mbarrier() -> None:
    found = run(bulk() + TAKE.format(place="%r5"))[1]
    assert found[:64].tolist() == [i ^ 32 for i in range(64)]
    race(bulk(wait="") + TAKE.format(place="%r5"))
    assert "asynchronous proxy what mbarrier.init" in race(bulk(after="bar.sync 0;"))
    run(bulk(after="fence.proxy.async; bar.sync 0;"))


def test_a_bulk_copy_comes_after_the_reads_before_it() -> None:
    reads = "st.shared.u32 [%r3], 1; bar.sync 0; ld.shared.u32 %r6, [%r5];\n"
    run(bulk(before=reads))
    late = INIT.format(count=1, after=READY) + reads + BULK
    assert "writes what another thread read" in race(late)


BACK = """
st.shared.u32 [%r3], %r0; {fence} {barrier}
@!%p0 bra N;
cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r2], 256;
cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
N:
"""


def test_a_bulk_copy_reads_behind_a_proxy_fence() -> None:
    fence = "fence.proxy.async.shared::cta;"
    assert run(BACK.format(fence=fence, barrier="bar.sync 0;"))[1][:64].tolist() == list(range(64))
    run(BACK.format(fence="", barrier="bar.sync 0;" + fence))
    assert "fence.proxy.async" in race(BACK.format(fence="", barrier="bar.sync 0;"))
    race(BACK.format(fence=fence, barrier=""))


CLUSTER = """
mov.u32 %r9, %cluster_ctarank; st.shared.u32 [%r3], %r9; {barrier}
xor.b32 %r10, %r9, 1; mapa.shared::cluster.u32 %r11, %r3, %r10;
ld.shared::cluster.u32 %r6, [%r11];
{last}
"""
MEET = "barrier.cluster.arrive; barrier.cluster.wait;"


def test_the_barrier_of_a_cluster() -> None:
    more: dict[str, Any] = {"grid": (4, 1, 1), "cluster": (2, 1, 1)}
    run(CLUSTER.format(barrier=MEET, last=MEET), **more)
    run(CLUSTER.format(barrier=MEET, last=MEET + "st.shared.u32 [%r3], 5;"), **more)
    text = race(CLUSTER.format(barrier="bar.sync 0;", last=MEET), **more)
    assert "block (1, 0, 0)" in text or "block (0, 0, 0)" in text
    race(CLUSTER.format(barrier=MEET, last="st.shared.u32 [%r3], 5;" + MEET), **more)
    relaxed = "barrier.cluster.arrive.relaxed; barrier.cluster.wait;"
    race(CLUSTER.format(barrier=relaxed, last=MEET), **more)
