"""mbarriers and cp.async of the emulated GPU, with schedules of several seeds."""

from __future__ import annotations

import numpy as np
import pytest
from ptx_programs import Array, kernel, launch, machine, pointers

from ferrule.emulator.machine import Fault

SHARED = ".shared .align 128 .b8 data[4096];\n.shared .align 8 .b64 bars[4];"
SCHEDULES = [None, "random:2"]
INDEX = "mov.u32 %r0, %tid.x; mov.u32 %r1, bars; mov.u32 %r2, data;"
BEGIN = "setp.eq.u32 %p0, %r0, 0;"


def place(number: int, register: str = "%rd0", size: int = 4) -> str:
    """The address of the thread's own element of an array."""
    return (
        f"ld.param.u64 {register}, [a{number}]; mul.wide.u32 %rd30, %r0, {size}; "
        f"add.u64 {register}, {register}, %rd30;"
    )


def wait(parity: str, bar: str = "%r1", name: str = "W", kind: str = "try_wait") -> str:
    return (
        f"{name}: mbarrier.{kind}.parity.shared::cta.b64 %p9, [{bar}], {parity};\n@!%p9 bra {name};"
    )


def run(body: str, arrays: list[Array], threads: int = 64, schedule: str | None = None,
        checks: str = "memory") -> list[Array]:  # fmt: skip
    ptx = kernel(INDEX + BEGIN + body + "\nret;", pointers(len(arrays)), before=SHARED)
    return launch(ptx, arrays, block=(threads, 1, 1), on=machine(checks, schedule))


@pytest.mark.parametrize("kind", ["try_wait", "test_wait"])
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_arrivals_order_stores(schedule: str | None, kind: str) -> None:
    """Each thread reads what another of the next warp wrote, in three phases."""
    body = """
    @%p0 mbarrier.init.shared::cta.b64 [%r1], 64;
    bar.sync 0;
    mov.u32 %r10, 0; mov.u32 %r11, 0;
    LOOP:
    mad.lo.u32 %r3, %r0, 4, %r2;
    add.u32 %r4, %r0, %r10; st.shared.u32 [%r3], %r4;
    mbarrier.arrive.release.cta.shared::cta.b64 %rd1, [%r1];
    """ + wait("%r10", kind=kind) + """
    add.u32 %r5, %r0, 32; and.b32 %r5, %r5, 63; mad.lo.u32 %r5, %r5, 4, %r2;
    ld.shared.u32 %r6, [%r5]; add.u32 %r11, %r11, %r6;
    bar.sync 0;
    xor.b32 %r10, %r10, 1; add.u32 %r12, %r12, 1;
    setp.lt.u32 %p1, %r12, 3; @%p1 bra LOOP;
    """ + place(0) + "st.global.u32 [%rd0], %r11;"  # fmt: skip
    body = body.replace("mov.u32 %r10, 0;", "mov.u32 %r10, 0; mov.u32 %r12, 0;")
    (found,) = run(body, [np.zeros(64, np.uint32)], schedule=schedule)
    assert np.array_equal(found, (np.arange(64) + 32) % 64 * 3 + 1)


def test_states_and_counts() -> None:
    """State by arrive, pending_count, drops, counts, no completion, and test_wait by state."""
    body = """
    @!%p0 bra DONE;
    mbarrier.init.shared.b64 [%r1], 10;
    mbarrier.arrive.shared.b64 %rd1, [%r1];
    mbarrier.arrive.shared.b64 %rd2, [%r1], 3;
    mbarrier.arrive.noComplete.release.cta.shared::cta.b64 %rd3, [%r1], 2;
    mbarrier.arrive_drop.shared.b64 %rd4, [%r1];
    mbarrier.test_wait.shared.b64 %p1, [%r1], %rd1;
    mbarrier.arrive_drop.noComplete.shared.b64 %rd5, [%r1], 2;
    mbarrier.arrive.shared.b64 %rd6, [%r1], 1;
    mbarrier.test_wait.shared.b64 %p2, [%r1], %rd1;
    mbarrier.arrive.shared.b64 %rd7, [%r1];
    mbarrier.test_wait.acquire.cta.shared.b64 %p3, [%r1], %rd7;
    mbarrier.test_wait.parity.shared.b64 %p4, [%r1], 0;
    mbarrier.test_wait.parity.shared.b64 %p5, [%r1], 1;
    """
    states = range(1, 8)
    body += place(0) + "".join(
        f"mbarrier.pending_count.b64 %r5, %rd{i}; st.global.u32 [%rd0+{4 * (i - 1)}], %r5;"
        for i in states
    )
    body += "".join(
        f"selp.u32 %r5, 1, 0, %p{i}; st.global.u32 [%rd0+{28 + 4 * (i - 1)}], %r5;"
        for i in range(1, 6)
    )
    (found,) = run(body + "DONE:", [np.zeros(12, np.uint32)], threads=32)
    # After 10 - 3 drops, the second phase expects 7.
    assert list(found) == [10, 9, 6, 4, 3, 1, 7, 0, 1, 0, 1, 0]


def test_bytes_and_threads_complete_together() -> None:
    body = """
    @!%p0 bra DONE;
    mbarrier.init.shared.b64 [%r1], 1;
    mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%r1], 16;
    mbarrier.test_wait.parity.shared.b64 %p1, [%r1], 0;
    mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r1], 16;
    mbarrier.test_wait.parity.shared.b64 %p2, [%r1], 0;
    mbarrier.arrive.expect_tx.shared.b64 _, [%r1], 32;
    mbarrier.test_wait.parity.shared.b64 %p3, [%r1], 0;
    mbarrier.complete_tx.shared::cluster.b64 [%r1], 32;
    mbarrier.test_wait.parity.shared.b64 %p4, [%r1], 0;
    """ + place(0) + "".join(
        f"selp.u32 %r5, 1, 0, %p{i}; st.global.u32 [%rd0+{4 * (i - 1)}], %r5;" for i in range(1, 5)
    )  # fmt: skip
    (found,) = run(body + "DONE:", [np.zeros(4, np.uint32)], threads=32)
    assert list(found) == [0, 0, 0, 1]


@pytest.mark.parametrize(("text", "words"), [
    ("mbarrier.arrive.shared.b64 _, [%r1];", "not initialised"),
    ("mbarrier.init.shared.b64 [%r1], 0;", "count"),
    ("mbarrier.init.shared.b64 [%r1], 1; mbarrier.arrive.shared.b64 _, [%r1], 2;", "more threads"),
    ("mbarrier.init.shared.b64 [%r1], 1; mbarrier.arrive.noComplete.shared.b64 _, [%r1], 1;",
     "completes"),
    ("mbarrier.init.shared.b64 [%r1], 1; mbarrier.inval.shared.b64 [%r1];"
     "mbarrier.test_wait.parity.shared.b64 %p1, [%r1], 0;", "not initialised"),
    ("mbarrier.init.shared.b64 [%r1], 1; mbarrier.expect_tx.shared.b64 [%r1], 1048576;", "bytes"),
])  # fmt: skip
def test_misuse_is_named(text: str, words: str) -> None:
    with pytest.raises(Fault, match=words) as caught:
        run(f"@!%p0 bra DONE;\n{text}\nDONE:", [], threads=32)
    assert caught.value.kind == "sync"
    assert "thread (0, 0, 0)" in str(caught.value)


def test_a_deadlock_names_the_mbarrier() -> None:
    body = """
    @%p0 mbarrier.init.shared.b64 [%r1], 65;
    bar.sync 0;
    mbarrier.arrive.shared.b64 _, [%r1];
    """ + wait("0")
    with pytest.raises(Fault, match=r"64 threads wait at mbarrier.try_wait\S*, PTX line") as caught:
        run(body, [])
    assert caught.value.kind == "deadlock"


# ---- cp.async ----

LOADED = np.arange(64 * 4, dtype=np.uint32) + 1000


def copied(size: int, more: str = "", how: str = "ca") -> str:
    """A copy into the thread's place, which holds 0xEE before."""
    return (
        place(0, "%rd0", 16)
        + "mad.lo.u32 %r3, %r0, 16, %r2; mov.u32 %r4, 0xEEEEEEEE;"
        + "".join(f"st.shared.u32 [%r3+{4 * i}], %r4;" for i in range(4))
        + f"cp.async.{how}.shared.global [%r3], [%rd0], {size}{more};"
    )


OUT = (
    place(1, "%rd2", 16)
    + "ld.shared.v4.b32 {%r5,%r6,%r7,%r8}, [%r3]; st.global.v4.b32 [%rd2], {%r5,%r6,%r7,%r8};"
)


@pytest.mark.parametrize(
    "end", ["cp.async.wait_all;", "cp.async.commit_group; cp.async.wait_group 0;"]
)
@pytest.mark.parametrize(("size", "more", "read"), [
    (4, "", 4), (8, "", 8), (16, "", 16), (16, ", 8", 8), (16, ", 0", 0), (8, ", 3", 3),
    (16, ", %p1", 16), (16, ", %p0", None),
])  # fmt: skip
def test_copies(size: int, more: str, read: int | None, end: str) -> None:
    body = "setp.eq.u32 %p1, %r0, 1000;" + copied(size, more) + end + OUT
    found = run(body, [LOADED, np.zeros_like(LOADED)])[1].reshape(64, 4).view(np.uint8)
    source = LOADED.reshape(64, 4).view(np.uint8)
    wanted = np.full_like(source, 0xEE)
    wanted[:, :size] = 0
    for thread in range(64):
        count = read if read is not None else (0 if thread == 0 else size)
        wanted[thread, :count] = source[thread, :count]
    assert np.array_equal(found, wanted)


def test_nothing_is_copied_before_the_wait() -> None:
    """Neither without a wait, nor by a wait for other groups, nor by a commit."""
    for end in ("", "cp.async.commit_group;", "cp.async.commit_group; cp.async.wait_group 1;",
                "cp.async.wait_group 0;"):  # fmt: skip
        found = run(copied(16) + end + OUT, [LOADED, np.zeros_like(LOADED)])[1]
        assert set(found) == {0xEEEEEEEE}


def test_random_schedules_copy_at_any_time() -> None:
    """Without a wait, some schedules have some threads' data and others not."""
    seen = set()
    for seed in range(12):
        body = copied(16) + "cp.async.commit_group;" * 3 + OUT
        found = run(body, [LOADED, np.zeros_like(LOADED)], schedule=f"random:{seed}")[1]
        seen |= set((found.reshape(64, 4)[:, 0] == 0xEEEEEEEE).tolist())
    assert seen == {True, False}


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_groups_end_in_their_order(schedule: str | None) -> None:
    """A pipeline of three stages over 8 tiles, each tile read after a wait for all but two."""
    body = """
    mad.lo.u32 %r3, %r0, 4, %r2; mov.u32 %r10, 0; mov.u32 %r20, 0;
    """ + place(0) + """
    FILL: shl.b32 %r11, %r10, 8; add.u32 %r12, %r3, %r11;
    cp.async.ca.shared.global [%r12], [%rd0], 4; cp.async.commit_group;
    add.u64 %rd0, %rd0, 256; add.u32 %r10, %r10, 1; setp.lt.u32 %p1, %r10, 3; @%p1 bra FILL;
    mov.u32 %r10, 0;
    LOOP: cp.async.wait_group 2; bar.sync 0;
    rem.u32 %r11, %r10, 3; shl.b32 %r11, %r11, 8;
    add.u32 %r13, %r0, 33; and.b32 %r13, %r13, 63;
    mad.lo.u32 %r13, %r13, 4, %r2; add.u32 %r13, %r13, %r11;
    ld.shared.u32 %r14, [%r13]; mad.lo.u32 %r20, %r20, 3, %r14;
    bar.sync 0;
    add.u32 %r12, %r3, %r11; setp.lt.u32 %p2, %r10, 5;
    @%p2 cp.async.ca.shared.global [%r12], [%rd0], 4;
    cp.async.commit_group; add.u64 %rd0, %rd0, 256;
    add.u32 %r10, %r10, 1; setp.lt.u32 %p1, %r10, 8; @%p1 bra LOOP;
    """ + place(1, "%rd2") + "st.global.u32 [%rd2], %r20;"  # fmt: skip
    tiles = np.random.default_rng(1).integers(0, 1 << 16, (8, 64), dtype=np.uint32)
    wanted = np.zeros(64, np.uint32)
    for tile in tiles:
        wanted = wanted * np.uint32(3) + np.roll(tile, -33)
    found = run(body, [tiles, np.zeros(64, np.uint32)], schedule=schedule)[1]
    assert np.array_equal(found, wanted)


@pytest.mark.parametrize("noinc", ["", ".noinc"])
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_copies_arrive_at_mbarriers(schedule: str | None, noinc: str) -> None:
    body = (
        f"""
    @%p0 mbarrier.init.shared.b64 [%r1], 64;
    bar.sync 0;
    {copied(16, how="cg")}
    cp.async.mbarrier.arrive{noinc}.shared.b64 [%r1];
    {"" if noinc else "mbarrier.arrive.shared.b64 _, [%r1];"}
    {wait("0")}
    xor.b32 %r9, %r0, 32; mad.lo.u32 %r3, %r9, 16, %r2;
    """
        + OUT
    )
    found = run(body, [LOADED, np.zeros_like(LOADED)], schedule=schedule)[1].reshape(2, 32, 4)
    assert np.array_equal(found, LOADED.reshape(2, 32, 4)[::-1])


@pytest.mark.parametrize(("size", "shift", "kind"), [(16, 8, "misaligned"), (16, 4096, "memory")])
def test_copies_are_checked(size: int, shift: int, kind: str) -> None:
    body = (
        place(0, "%rd0", 16)
        + f"add.u64 %rd0, %rd0, {shift}; cp.async.ca.shared.global [%r2], [%rd0], {size};"
    )
    with pytest.raises(Fault, match="cp.async.ca.shared.global") as caught:
        run(body, [LOADED])
    assert caught.value.kind == kind
