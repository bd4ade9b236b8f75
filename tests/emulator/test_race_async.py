"""Races of asynchronous copies, of mbarriers and of clusters."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from ptx_programs import HEADER, Array, launch, machine

from ferrule.emulator.machine import Fault, Machine
from ferrule.emulator.tensormaps import TensorMap


def run(
    body: str,
    block: int = 64,
    schedule: str | None = None,
    first: Array | None = None,
    gpu: Machine | None = None,
    **more: Any,
) -> list[Array]:
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
    arrays[0] = arrays[0] if first is None else first
    gpu = gpu or machine("memory,sync,race", schedule)
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
    run(bulk(after="fence.proxy.async; bar.sync 0;"))


def test_a_fence_behind_the_initialisation_of_an_mbarrier_is_missed() -> None:
    """By a warning: the manual asks for it, and Triton does not write it."""
    said = r"without a fence.mbarrier_init .* behind its mbarrier.init.shared.b64, PTX line"
    with pytest.warns(RuntimeWarning, match=said):
        run(bulk(after="bar.sync 0;"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(bulk())


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


STORE = """
st.shared.u32 [%r3], %r0; fence.proxy.async.shared::cta; bar.sync 0;
@!%p0 bra N;
cp{reduce}.async.bulk.global.shared::cta.bulk_group{how} [%rd1], [%r2], 256;
cp.async.bulk.commit_group; {wait}
N: {after}
"""
READ = "cp.async.bulk.wait_group.read 0;"
DONE = "cp.async.bulk.wait_group 0;"


def store(wait: str, after: str, reduce: str = "", how: str = "") -> str:
    return STORE.format(wait=wait, after=after, reduce=reduce, how=how)


@pytest.mark.parametrize("after", ["bar.sync 0; st.shared.u32 [%r3], 1;",
                                   "bar.sync 0; @!%p0 st.shared.u32 [%r3], 1;"])  # fmt: skip
def test_what_a_bulk_copy_reads_may_change_after_the_wait(after: str) -> None:
    for wait in (READ, DONE):
        assert run(store(wait, after))[1][:64].tolist() == list(range(64))
    text = race(store("", after))
    assert "writes what another thread read" in text and "the copy may not be done" in text
    assert "a barrier" not in race(store(DONE, after[11:]))


def test_what_a_bulk_copy_writes_of_global_memory() -> None:
    take = "bar.sync 0; ld.global.u32 %r6, [%rd4]; st.global.u32 [%rd3], %r6;"
    assert run(store(DONE, take))[0][:64].tolist() == list(range(64))
    assert "the copy may not be done" in race(store(READ, take))
    race(store(DONE, take[11:]))
    over = "st.global.u32 [%rd4], 3;"
    assert "writes what another thread wrote" in race(store("", "bar.sync 0;" + over))
    run(store(DONE, "bar.sync 0;" + over))


def test_blocks_that_write_one_place_by_bulk_copies() -> None:
    more: dict[str, Any] = {"grid": (2, 1, 1)}
    text = race(store(DONE, ""), **more)
    assert "block (1, 0, 0)" in text and "block (0, 0, 0)" in text
    run(store(DONE, "", ".reduce", ".add.u32"), **more)
    plain = "@%p0 st.global.u32 [%rd4], 3;"
    race(store(DONE, "", ".reduce", ".add.u32") + plain, **more)
    atomic = "bar.sync 0; @%p0 red.global.add.u32 [%rd4], 3;"
    run(store(DONE, "", ".reduce", ".add.u32") + atomic, **more)


def test_a_bulk_copy_reads_global_memory_behind_a_proxy_fence() -> None:
    writes = "st.global.u32 [%rd3], %r0; {fence} bar.sync 0;"
    run(bulk(before=writes.format(fence="fence.proxy.async;")))
    text = race(bulk(before=writes.format(fence="")))
    assert "byte 0 of the 1024 bytes" in text and "without a fence.proxy.async" in text
    late = "@!%p0 st.global.u32 [%rd3], 5;"
    race(bulk(wait="") + late)
    run(bulk() + late)


CAST = """
mov.u32 %r9, %cluster_ctarank; .reg .b16 %h<2>; mov.b16 %h0, 3;
@%p0 mbarrier.init.shared.b64 [%r1], 1;
@%p0 mbarrier.arrive.expect_tx.shared.b64 _, [%r1], 256;
fence.mbarrier_init.release.cluster; barrier.cluster.arrive; barrier.cluster.wait;
setp.eq.u32 %p1, %r9, 0; and.pred %p1, %p1, %p0;
@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster
 [%r2], [%rd0], 256, [%r1], %h0;
{wait}
ld.shared.u32 %r6, [%r5]; st.global.u32 [%rd4], 9; {last}
barrier.cluster.arrive; barrier.cluster.wait;
"""


def test_multicasts() -> None:
    more: dict[str, Any] = {"grid": (2, 1, 1), "cluster": (2, 1, 1)}
    wait = WAIT.format(n=0, how="")
    run(CAST.format(wait=wait, last=""), **more)
    text = race(CAST.format(wait="", last=""), **more)
    assert "multicast" in text
    only_first = "setp.ne.u32 %p3, %r9, 0; @%p3 bra SKIP;" + wait + "SKIP:"
    assert "block (1, 0, 0)" in race(CAST.format(wait=only_first, last=""), **more)


PRODUCT = """
.reg .f32 %f<4>;
st.shared.u32 [%r3], %r0; {fence} bar.sync 0;
cvt.u64.u32 %rd10, %r2; shr.u64 %rd10, %rd10, 4;
add.u64 %rd11, %rd10, {a}; add.u64 %rd12, %rd10, {b};
wgmma.fence.sync.aligned;
wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {{%f0,%f1,%f2,%f3}}, %rd11, %rd12, 0, 1, 1, 0, 0;
wgmma.commit_group.sync.aligned;
{wait} st.shared.u32 [%r3{at}], 1;
wgmma.wait_group.sync.aligned 0;
"""


def multiplied(wait: str, fence: str = "fence.proxy.async;", at: str = "") -> str:
    a, b = 64 << 16 | 8 << 32, 128 | 8 << 16 | 8 << 32
    return PRODUCT.format(wait=wait, fence=fence, a=a, b=b, at=at)


def test_products_read_shared_memory_until_the_wait() -> None:
    """A lies in the first 2048 bytes, of which the threads have written 512; B behind it."""
    waits = "wgmma.wait_group.sync.aligned 0;"
    for at in ("", "+2048"):
        run(multiplied(waits + "bar.sync 0;", at=at), block=128)
        text = race(multiplied("bar.sync 0;", at=at), block=128)
        assert "the product may not be done" in text and "wgmma.mma_async" in text
    run(multiplied("bar.sync 0;", at="+2560"), block=128)
    run(multiplied(waits + "bar.sync 0;"), block=128, schedule="random:4")
    race(multiplied(waits, at="+2048"), block=128)
    race(multiplied("wgmma.wait_group.sync.aligned 1; bar.sync 0;"), block=128)
    text = race(multiplied(waits + "bar.sync 0;", fence=""), block=128)
    assert "reads by the asynchronous proxy" in text


def told(lane: int, but: int) -> str:
    """A lane of each warp but one arrives at an mbarrier; who has waited overwrites B."""
    count = 4 - (but < 4)
    return f"@%p0 mbarrier.init.shared.b64 [%r1], {count}; bar.sync 0;" + multiplied(
        f"""wgmma.wait_group.sync.aligned 0; and.b32 %r12, %r0, 31; setp.eq.u32 %p3, %r12, {lane};
        and.b32 %r13, %r0, 96; setp.eq.u32 %p4, %r13, {32 * but}; @%p4 bra NO;
        @%p3 mbarrier.arrive.shared.b64 _, [%r1];
        NO: {WAIT.format(n=0, how="")}""",
        at="+2048",
    )


def test_any_lane_may_tell_that_a_product_is_done() -> None:
    for lane in (0, 7):
        run(told(lane, 4), block=128)
    for warp in (0, 1):
        assert "wgmma" in race(told(0, warp), block=128)


BOX = """
st.shared.u32 [%r3], %r0; fence.proxy.async.shared::cta; bar.sync 0;
mov.u32 %r7, %ctaid.x; mul.lo.u32 %r7, %r7, {step};
@%p0 cp{reduce}.async.bulk.tensor.2d.global.shared::cta{how}.tile.bulk_group
 [%rd0, {{%r7, %r8}}], [%r2];
@%p0 cp.async.bulk.commit_group; @%p0 cp.async.bulk.wait_group 0;
"""


@pytest.mark.parametrize(("step", "reduce", "how", "races"), [
    (16, "", "", False), (15, "", "", True), (15, ".reduce", ".add", False),
])  # fmt: skip
def test_boxes_of_blocks_that_overlap(step: int, reduce: str, how: str, races: bool) -> None:
    """Each block writes a box of 16 by 4, the second to the right of the first."""
    gpu = machine("memory,sync,race")
    address = gpu.memory.allocate(4 * 8 * 64)
    box = TensorMap(2, address, (64, 8), (256,), (16, 4), (1, 1)).encoded()
    body = "mov.u32 %r8, 1;" + BOX.format(step=step, reduce=reduce, how=how)
    more: dict[str, Any] = {"grid": (2, 1, 1), "first": np.frombuffer(box, np.uint8), "gpu": gpu}
    if races:
        assert f"byte {256 + 4 * step} of the 2048 bytes" in race(body, **more)
    else:
        run(body, **more)
