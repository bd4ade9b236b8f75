"""Loads and stores of a whole warp at places in rows, which have ways of their own in the code."""

from __future__ import annotations

import numpy as np
import pytest
from ptx_programs import Array, kernel, launch, machine, pointers

from ferrule.emulator.machine import Fault

FORMS = [(1, 1), (2, 2), (4, 1), (4, 4), (8, 1), (8, 2)]
"""Bytes of an element, and elements."""
PLACES = {"global": "%rd1", "shared": "%rd5", "generic": "%rd6"}
WHOLE = 64


def patterns() -> dict[str, Array]:
    """The element that each lane is at: rows, halves of a warp in rows or at one place, others."""
    lane = np.arange(32)
    rng = np.random.default_rng(3)
    return {
        "row": lane + 7, "two rows": lane % 16 + lane // 16 * 20 + 3, "one row twice": lane % 16,
        "same": 0 * lane + 5, "two places": lane // 16 * 9 + 2, "turned": 31 - lane,
        "spread": rng.permutation(WHOLE)[:32], "nearly a row": np.where(lane == 30, 40, lane),
        "nearly the same": np.where(lane == 15, 40, 6),
    }  # fmt: skip


def text(what: str, place: str, size: int, many: int) -> str:
    """A warp loads or stores what lies at the byte offsets of `a1`."""
    bits, register = 8 * size, {1: "%h", 2: "%h", 4: "%r", 8: "%rd"}[size]
    vector = f".v{many}" if many > 1 else ""
    names = [f"{register}{13 + i}" for i in range(many)]
    group = names[0] if many == 1 else "{" + ", ".join(names) + "}"
    body = f"""ld.param.u64 %rd1, [a0]; ld.param.u64 %rd2, [a1]; ld.param.u64 %rd3, [a2];
    .shared .align 16 .b8 s[{WHOLE * 16}]; mov.u64 %rd5, s; cvta.shared.u64 %rd6, %rd5;
    mov.u32 %r1, %tid.x; mul.wide.u32 %rd7, %r1, 8; add.u64 %rd7, %rd7, %rd2;
    ld.global.u64 %rd8, [%rd7]; mul.wide.u32 %rd9, %r1, {size * many};
    add.u64 %rd3, %rd3, %rd9; mov.u32 %r2, %r1;
    FILL: setp.ge.u32 %p1, %r2, {WHOLE * size * many}; @%p1 bra FULL;
    cvt.u64.u32 %rd10, %r2; add.u64 %rd11, %rd1, %rd10; ld.global.u8 %h1, [%rd11];
    add.u64 %rd11, %rd5, %rd10; st.shared.u8 [%rd11], %h1; add.u32 %r2, %r2, 32; bra FILL;
    FULL: bar.sync 0; add.u64 %rd12, {PLACES[place]}, %rd8;
    """
    space = "" if place == "generic" else f".{place}"
    if what == "ld":
        body += f"ld{space}{vector}.b{bits} {group}, [%rd12];"
        body += f"st.global{vector}.b{bits} [%rd3], {group};"
    else:
        body += f"ld.global{vector}.b{bits} {group}, [%rd3];"
        body += f"st{space}{vector}.b{bits} [%rd12], {group};"
        body += f"""bar.sync 0; mov.u32 %r2, %r1;
    BACK: setp.ge.u32 %p1, %r2, {WHOLE * size * many}; @%p1 bra DONE; cvt.u64.u32 %rd10, %r2;
    add.u64 %rd11, {PLACES[place]}, %rd10; ld.u8 %h1, [%rd11]; add.u64 %rd11, %rd1, %rd10;
    st.global.u8 [%rd11], %h1; add.u32 %r2, %r2, 32; bra BACK; DONE:""".replace(
            "ld.u8", "ld.shared.u8" if place == "shared" else "ld.u8"
        )
    return kernel(body + " ret;", pointers(3))


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("what", ["ld", "st"])
@pytest.mark.parametrize("checks", ["", "memory"])
def test_every_pattern(place: str, what: str, checks: str) -> None:
    rng = np.random.default_rng(1)
    gpu = machine(checks)
    for size, many in FORMS:
        each = size * many
        ptx = text(what, place, size, many)
        for name, at in patterns().items():
            memory = rng.integers(0, 256, (WHOLE, each)).astype(np.uint8)
            values = rng.integers(0, 256, (32, each)).astype(np.uint8)
            given = [memory, (at * each).astype(np.uint64), values]
            left, _, found = launch(ptx, given, on=gpu)
            if what == "ld":
                assert np.array_equal(found, memory[at]), (name, size, many)
            else:
                wanted = memory.copy()
                for lane, where in enumerate(at):  # the last lane of those at one place counts
                    wanted[where] = values[lane]
                assert np.array_equal(left, wanted), (name, size, many)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("what", ["ld", "st"])
def test_every_lane_is_looked_at(place: str, what: str) -> None:
    """One lane behind the end, or at an odd place, in each way of moving."""
    size, many = 4, 2
    each, gpu = size * many, machine("memory")
    ptx = text(what, place, size, many)
    for name, at in patterns().items():
        for lane in (0, 15, 16, 31):
            for wrong in (WHOLE * 16 * each, at[lane] * each + 4, -each):
                offsets = (at * each).astype(np.int64)
                moved = "row" in name and "nearly" not in name
                half = offsets[lane // 16 * 16 :][:16] if moved else offsets[lane : lane + 1]
                half += wrong - offsets[lane]  # with the whole half, so that rows stay rows
                given = [np.zeros((WHOLE, each), np.uint8), offsets, np.zeros((32, each), np.uint8)]
                with pytest.raises(Fault):
                    launch(ptx, given, on=gpu)
