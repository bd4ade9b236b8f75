"""Clusters of the emulated GPU: registers, distributed shared memory, barriers, multicast."""

from __future__ import annotations

import numpy as np
import pytest
from ptx_programs import HEADER, Array, launch, machine

from ferrule.emulator.machine import Fault

SCHEDULES = [None, "random:3"]


def program(body: str, parameters: int, shared: int = 4096) -> str:
    """%r0 is the thread, %r3 the rank, %r4 the number of blocks, %r5 the block of the grid."""
    names = ", ".join(f".param .u64 a{i}" for i in range(parameters))
    loads = "\n".join(f"ld.param.u64 %rd{i}, [a{i}];" for i in range(parameters))
    return f"""{HEADER}
    .visible .entry k({names}) {{
    .reg .pred %p<10>; .reg .b32 %r<40>; .reg .b64 %rd<40>; .reg .b16 %h<4>; .reg .f32 %f<9>;
    .shared .align 1024 .b8 data[{shared}];
    .shared .align 8 .b64 bar;
    {loads}
    mov.u32 %r0, %tid.x; mov.u32 %r1, bar; mov.u32 %r2, data;
    mov.u32 %r3, %cluster_ctarank; mov.u32 %r4, %cluster_nctarank;
    mov.u32 %r5, %ctaid.x;
    setp.eq.u32 %p0, %r0, 0;
    {body}
    ret; }}"""


def own(number: int, register: str = "%rd20", size: int = 4) -> str:
    """The element of block and thread of an array."""
    return (
        f"mov.u32 %r30, %ntid.x; mad.lo.u32 %r31, %r5, %r30, %r0; mul.wide.u32 %rd30, %r31, {size};"
        f"add.u64 {register}, %rd{number}, %rd30;"
    )


MEET = "barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;"


def test_registers() -> None:
    names = ("clusterid", "nclusterid", "cluster_ctaid", "cluster_nctaid", "ctaid")
    body = """
    mov.u32 %r6, %ctaid.y; mov.u32 %r7, %ctaid.z; mov.u32 %r8, %nctaid.x; mov.u32 %r9, %nctaid.y;
    mad.lo.u32 %r7, %r7, %r9, %r6; mad.lo.u32 %r7, %r7, %r8, %r5;
    mul.wide.u32 %rd1, %r7, 68; add.u64 %rd0, %rd0, %rd1;
    """
    for i, name in enumerate(names):
        for j, axis in enumerate("xyz"):
            body += f"mov.u32 %r10, %{name}.{axis}; st.global.u32 [%rd0+{12 * i + 4 * j}], %r10;\n"
    body += "st.global.u32 [%rd0+60], %r3; st.global.u32 [%rd0+64], %r4;"
    grid, cluster = (4, 6, 2), (2, 3, 1)
    found = launch(program(body, 1), [np.zeros((48, 17), np.uint32)], grid=grid, cluster=cluster)[0]
    for x, y, z in np.ndindex(4, 6, 2):
        row = found[x + 4 * (y + 6 * z)].reshape(-1)
        assert list(row[:3]) == [x // 2, y // 3, z]
        assert list(row[3:6]) == [2, 2, 2]
        assert list(row[6:9]) == [x % 2, y % 3, 0]
        assert list(row[9:12]) == [2, 3, 1]
        assert list(row[12:15]) == [x, y, z]
        assert list(row[15:]) == [x % 2 + 2 * (y % 3), 6]


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("how", ["shared::cluster", "generic", "generic from mapa", "cvta"])
def test_shared_memory_of_others(how: str, schedule: str | None) -> None:
    """Each block reads what the next one wrote, twice, between barriers."""
    reach = {
        "shared::cluster": "mapa.shared::cluster.u32 %r8, %r7, %r6;"
        "ld.shared::cluster.u32 %r9, [%r8];",
        "generic": "cvt.u64.u32 %rd5, %r7; mapa.shared::cluster.u64 %rd5, %rd5, %r6;"
        "cvta.shared::cluster.u64 %rd6, %rd5; ld.u32 %r9, [%rd6];",
        "generic from mapa": "cvt.u64.u32 %rd5, %r7; cvta.shared.u64 %rd5, %rd5;"
        "mapa.u64 %rd6, %rd5, %r6; ld.u32 %r9, [%rd6];",
        "cvta": "cvt.u64.u32 %rd5, %r7; cvta.shared.u64 %rd5, %rd5; mapa.u64 %rd6, %rd5, %r6;"
        "cvta.to.shared::cluster.u64 %rd6, %rd6; ld.shared::cluster.u32 %r9, [%rd6];",
    }[how]
    body = f"""
    mad.lo.u32 %r7, %r0, 4, %r2; mov.u32 %r20, 0; mov.u32 %r21, 0;
    add.u32 %r6, %r3, 1; rem.u32 %r6, %r6, %r4;
    L: mad.lo.u32 %r8, %r5, 100, %r0; add.u32 %r8, %r8, %r21; st.shared.u32 [%r7], %r8;
    {MEET}
    {reach}
    add.u32 %r20, %r20, %r9;
    {MEET}
    add.u32 %r21, %r21, 1; setp.lt.u32 %p1, %r21, 2; @%p1 bra L;
    {own(0)} st.global.u32 [%rd20], %r20;"""
    (found,) = launch(program(body, 1), [np.zeros((8, 64), np.uint32)], grid=(8, 1, 1),
                      block=(64, 1, 1),
                      cluster=(4, 1, 1), on=machine(schedule=schedule))  # fmt: skip
    block = np.arange(8)
    after = block // 4 * 4 + (block + 1) % 4
    assert np.array_equal(found, 2 * (after[:, None] * 100 + np.arange(64)) + 1)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_stores_and_atomics_at_others(schedule: str | None) -> None:
    body = f"""
    @%p0 st.shared.u32 [%r2], 0;
    {MEET}
    mapa.shared::cluster.u32 %r8, %r2, 0;
    atom.shared::cluster.add.u32 %r9, [%r8], 1;
    red.relaxed.cluster.shared::cluster.add.u32 [%r8], 2;
    add.u32 %r10, %r8, 16; mad.lo.u32 %r11, %r3, 4, %r10;
    @%p0 st.shared::cluster.u32 [%r11], %r5;
    {MEET}
    ld.shared.u32 %r12, [%r2]; mad.lo.u32 %r13, %r0, 4, %r2;
    setp.lt.u32 %p1, %r0, 4; @%p1 ld.shared.u32 %r12, [%r13+16];
    {own(0)} st.global.u32 [%rd20], %r12;"""
    (found,) = launch(program(body, 1), [np.zeros((8, 32), np.uint32)], grid=(8, 1, 1),
                      cluster=(4, 1, 1), on=machine(schedule=schedule))  # fmt: skip
    for leader in (0, 4):
        assert list(found[leader, :5]) == [leader, leader + 1, leader + 2, leader + 3, 4 * 32 * 3]


def test_ranks_and_spaces_of_addresses() -> None:
    body = f"""
    xor.b32 %r6, %r3, 1; mapa.shared::cluster.u32 %r7, %r2, %r6;
    getctarank.shared::cluster.u32 %r8, %r7; getctarank.shared::cluster.u32 %r9, %r2;
    cvt.u64.u32 %rd5, %r7; cvta.shared::cluster.u64 %rd6, %rd5; getctarank.u64 %r10, %rd6;
    isspacep.shared::cluster %p1, %rd6; isspacep.shared::cta %p2, %rd6; isspacep.global %p3, %rd6;
    selp.u32 %r11, 1, 0, %p1; selp.u32 %r12, 1, 0, %p2; selp.u32 %r13, 1, 0, %p3;
    mul.wide.u32 %rd7, %r5, 24; add.u64 %rd0, %rd0, %rd7;
    st.global.v2.u32 [%rd0], {{%r8,%r9}}; st.global.v2.u32 [%rd0+8], {{%r10,%r11}};
    st.global.v2.u32 [%rd0+16], {{%r12,%r13}}; {MEET}"""
    (found,) = launch(
        program(body, 1), [np.zeros((2, 6), np.uint32)], grid=(2, 1, 1), cluster=(2, 1, 1)
    )
    assert [list(row) for row in found] == [[1, 0, 1, 1, 0, 0], [0, 1, 0, 1, 0, 0]]


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_arrivals_at_the_mbarrier_of_another(schedule: str | None) -> None:
    """All blocks but the first write into the first, and arrive there."""
    body = f"""
    @%p0 mbarrier.init.shared.b64 [%r1], 96;
    fence.mbarrier_init.release.cluster;
    {MEET}
    mapa.shared::cluster.u32 %r8, %r1, 0; mapa.shared::cluster.u32 %r9, %r2, 0;
    mad.lo.u32 %r10, %r3, 32, %r0; mad.lo.u32 %r10, %r10, 4, %r9;
    setp.eq.u32 %p1, %r3, 0; @%p1 bra FIRST;
    st.shared::cluster.u32 [%r10], %r10;
    mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r8];
    bra END;
    FIRST: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [%r1], 0; @!%p2 bra FIRST;
    mad.lo.u32 %r11, %r0, 4, %r2; ld.shared.u32 %r12, [%r11+256];
    and.b32 %r12, %r12, 0xffffff; {own(0)} st.global.u32 [%rd20], %r12;
    END: {MEET}"""
    (found,) = launch(program(body, 1), [np.zeros((4, 32), np.uint32)], grid=(4, 1, 1),
                      cluster=(4, 1, 1), on=machine(schedule=schedule))  # fmt: skip
    assert np.array_equal(found[0], found[0, 0] + 4 * np.arange(32))
    assert found[0, 0] % 1024 == 256


def load(mask: bool, size: int) -> str:
    multicast = ".multicast::cluster" if mask else ""
    return (
        f"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes{multicast} "
        f"[%r7], [%rd1], {size}, [%r8]"
    )


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_multicast(schedule: str | None) -> None:
    """Block 1 sends to blocks 0, 1 and 3, each of which waits at its own mbarrier."""
    body = f"""
    mov.u32 %r7, %r2; mov.u32 %r8, %r1; mov.b16 %h0, 11;
    @%p0 mbarrier.init.shared.b64 [%r1], 1; @%p0 mbarrier.arrive.expect_tx.shared.b64 _, [%r1], 128;
    {MEET}
    setp.eq.u32 %p1, %r3, 1; and.pred %p1, %p1, %p0;
    @%p1 {load(True, 128)}, %h0;
    setp.eq.u32 %p3, %r3, 2; @%p3 bra OUT;
    W: mbarrier.try_wait.parity.shared.b64 %p2, [%r1], 0; @!%p2 bra W;
    OUT: mad.lo.u32 %r9, %r0, 4, %r2; ld.shared.u32 %r10, [%r9];
    {own(0)} st.global.u32 [%rd20], %r10; {MEET}"""
    data = np.arange(32, dtype=np.uint32) + 5
    found = launch(program(body, 2), [np.zeros((4, 32), np.uint32), data], grid=(4, 1, 1),
                   cluster=(4, 1, 1), on=machine(schedule=schedule))[0]  # fmt: skip
    for rank in range(4):
        assert np.array_equal(found[rank], np.full(32, 0xCDCDCDCD) if rank == 2 else data)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_copies_into_others(schedule: str | None) -> None:
    """From the shared memory of each block to the next, whose mbarrier counts the bytes."""
    body = f"""
    mad.lo.u32 %r9, %r0, 4, %r2; mad.lo.u32 %r10, %r5, 100, %r0; st.shared.u32 [%r9], %r10;
    @%p0 mbarrier.init.shared.b64 [%r1], 1; @%p0 mbarrier.arrive.expect_tx.shared.b64 _, [%r1], 128;
    {MEET}
    xor.b32 %r6, %r3, 1; mapa.shared::cluster.u32 %r7, %r2, %r6; add.u32 %r7, %r7, 128;
    mapa.shared::cluster.u32 %r8, %r1, %r6;
    @%p0 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes
        [%r7], [%r2], 128, [%r8];
    W: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [%r1], 0; @!%p2 bra W;
    ld.shared.u32 %r11, [%r9+128]; {own(0)} st.global.u32 [%rd20], %r11; {MEET}"""
    (found,) = launch(program(body, 1), [np.zeros((4, 32), np.uint32)], grid=(4, 1, 1),
                      cluster=(2, 1, 1), on=machine(schedule=schedule))  # fmt: skip
    assert np.array_equal(found, np.array([1, 0, 3, 2])[:, None] * 100 + np.arange(32))


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(("start", "end", "value", "size", "wanted"), [
    ("st.async.weak", ".u32", "%r11", 4, (5, 100)),
    ("st.async", ".v4.b32", "{%r11,%r11,%r11,%r11}", 16, (5, 5)),
    ("red.async.relaxed.cluster", ".add.u32", "%r11", 4, (105, 100)),
    ("red.async", ".max.s32", "%r11", 4, (100, 100)),
])  # fmt: skip
def test_asynchronous_stores(
    start: str, end: str, value: str, size: int, wanted: tuple[int, int], schedule: str | None
) -> None:
    """Into the other block, one lane for each 16 bytes."""
    name = f"{start}.shared::cluster.mbarrier::complete_tx::bytes{end}"
    text = f"{name} [%r7], {value}, [%r8];"
    body = f"""
    mad.lo.u32 %r9, %r0, 16, %r2; mov.u32 %r10, 100; mov.u32 %r11, 5;
    st.shared.v4.b32 [%r9], {{%r10,%r10,%r10,%r10}};
    @%p0 mbarrier.init.shared.b64 [%r1], 1;
    @%p0 mbarrier.arrive.expect_tx.shared.b64 _, [%r1], {32 * size};
    {MEET}
    xor.b32 %r6, %r3, 1; mapa.shared::cluster.u32 %r7, %r9, %r6;
    mapa.shared::cluster.u32 %r8, %r1, %r6;
    {text}
    W: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [%r1], 0; @!%p2 bra W;
    ld.shared.v2.u32 {{%r12,%r13}}, [%r9]; {own(0, size=8)}
    st.global.v2.u32 [%rd20], {{%r12,%r13}}; {MEET}"""
    for checks in ("memory", "memory,race,init"):
        (found,) = launch(program(body, 1), [np.zeros((2, 32, 2), np.uint32)], grid=(2, 1, 1),
                          cluster=(2, 1, 1), on=machine(checks, schedule=schedule))  # fmt: skip
        assert set(map(tuple, found.reshape(-1, 2).tolist())) == {wanted}
    early = body.replace("W: mbarrier", "ld.shared.u32 %r14, [%r9]; W: mbarrier")
    with pytest.raises(Fault, match=r"race in .*async"):
        launch(program(early, 1), [np.zeros((2, 32, 2), np.uint32)], grid=(2, 1, 1),
               cluster=(2, 1, 1), on=machine("memory,race", schedule=schedule))  # fmt: skip


def test_blocks_that_end_count_as_arrived() -> None:
    body = f"""setp.ne.u32 %p1, %r3, 0; @%p1 bra OUT; {MEET} {MEET}
    {own(0)} st.global.u32 [%rd20], %r4; OUT:"""
    (found,) = launch(
        program(body, 1), [np.zeros((2, 32), np.uint32)], grid=(2, 1, 1), cluster=(2, 1, 1)
    )
    assert set(found[0]) == {2}


@pytest.mark.parametrize(("body", "words", "kind"), [
    ("barrier.cluster.arrive; barrier.cluster.arrive;", "has not waited", "sync"),
    ("barrier.cluster.wait;", "has not arrived", "sync"),
    ("mapa.shared::cluster.u32 %r6, %r2, 4;", "mapa", "space"),
    ("mapa.shared::cluster.u32 %r6, %r2, 1; ld.shared::cluster.u32 %r7, [%r6+8192];",
     "ld.shared::cluster", "space"),
    ("setp.eq.u32 %p1, %r3, 1; @%p1 bra L; barrier.cluster.arrive; barrier.cluster.wait; bra E;"
     "L: bar.sync 0, 64; E:", r"barrier of the cluster.*barrier 0", "deadlock"),
])  # fmt: skip
def test_misuse_is_named(body: str, words: str, kind: str) -> None:
    with pytest.raises(Fault, match=words) as caught:
        launch(program(body, 0), [], grid=(2, 1, 1), block=(32, 1, 1), cluster=(2, 1, 1))
    assert caught.value.kind == kind


LATE = {
    "shared::cluster": "ld.shared::cluster.u32 %r9, [%r8];",
    "a store": "st.shared::cluster.u32 [%r8], %r0;",
    "generic": "cvt.u64.u32 %rd5, %r2; cvta.shared.u64 %rd5, %rd5; mapa.u64 %rd6, %rd5, 0;"
    "ld.u32 %r9, [%rd6];",
    "an atomic": "atom.shared::cluster.add.u32 %r9, [%r8], 1;",
    "an mbarrier": "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r8];",
    "a bulk copy": "fence.proxy.async;"
    "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r8], [%r2], 16, "
    "[%r8];",
    "a multicast": "mbarrier.init.shared.b64 [%r1], 1; mov.u16 %h1, 3;"
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
    "[%r2], [%rd0], 16, [%r1], %h1;",
}


@pytest.mark.parametrize("how", LATE)
def test_shared_memory_of_a_block_that_has_ended(how: str) -> None:
    """Block 0 ends at once; block 1 reaches for it behind the cluster's barrier."""
    body = f"""setp.eq.u32 %p1, %r3, 0; @%p1 bra OUT;
    {MEET} mapa.shared::cluster.u32 %r8, %r2, 0; @!%p0 bra OUT;
    {LATE[how]}
    OUT:"""
    with pytest.raises(Fault) as caught:
        launch(program(body, 1), [np.zeros(64, np.uint32)], grid=(2, 1, 1), cluster=(2, 1, 1))
    assert caught.value.kind == "sync"
    text = caught.value.text
    assert "the block of rank 0 of the cluster, which has ended" in text, text
    assert "block (1, 0, 0), thread (0, 0, 0)" in text
    safe = body.replace("bra OUT", "bra WAIT", 1) + f"bra END; WAIT: {MEET} {MEET} END:"
    safe = safe.replace("OUT:", f"OUT: {MEET}")
    if how in ("an mbarrier", "a bulk copy"):
        safe = safe.replace("WAIT:", "WAIT: mbarrier.init.shared.b64 [%r2], 100;")
    launch(program(safe, 1), [np.zeros(64, np.uint32)], grid=(2, 1, 1), cluster=(2, 1, 1))


@pytest.mark.parametrize(("grid", "cluster", "words"), [
    ((3, 1, 1), (2, 1, 1), "not made of clusters"), ((32, 1, 1), (32, 1, 1), "at most 16"),
])  # fmt: skip
def test_wrong_sizes(grid: tuple[int, int, int], cluster: tuple[int, int, int], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        launch(program("", 0), [], grid=grid, cluster=cluster)


def test_many_clusters() -> None:
    """Each cluster begins anew."""
    body = f"""
    mad.lo.u32 %r7, %r0, 4, %r2; st.shared.u32 [%r7], %r5; {MEET}
    xor.b32 %r6, %r3, 1; mapa.shared::cluster.u32 %r8, %r7, %r6; ld.shared::cluster.u32 %r9, [%r8];
    {own(0)} st.global.u32 [%rd20], %r9; {MEET}"""
    found: list[Array] = launch(
        program(body, 1), [np.zeros((200, 32), np.uint32)], grid=(200, 1, 1), cluster=(2, 1, 1)
    )
    assert np.array_equal(found[0][:, 0], np.arange(200) ^ 1)


def test_clusters_that_wait_for_each_other() -> None:
    """The first cluster spins on a flag that the last one sets."""
    body = f"""
    {MEET}
    setp.ne.u32 %p1, %r5, 0; @%p1 bra OTHER;
    L: ld.volatile.global.u32 %r6, [%rd1]; setp.eq.u32 %p2, %r6, 0; @%p2 bra L; bra OUT;
    OTHER: setp.ne.u32 %p1, %r5, 7; @%p1 bra OUT;
    mov.u32 %r6, 5; st.volatile.global.u32 [%rd1], %r6;
    OUT: {MEET} {own(0)} st.global.u32 [%rd20], %r5;"""
    given = [np.zeros((8, 32), np.uint32), np.zeros(1, np.uint32)]
    found = launch(program(body, 2), given, grid=(8, 1, 1), cluster=(2, 1, 1))
    assert np.array_equal(found[0][:, 0], np.arange(8)) and found[1][0] == 5
