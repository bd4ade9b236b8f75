"""Barriers of a whole grid: the memory that a cooperative launch has for them, and what they order.

The kernel is what the headers of cooperative groups make of `grid.sync()`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ptx_programs import kernel, machine, pointers

from ferrule.emulator.machine import Fault

BLOCKS, THREADS = 5, 32
BEGIN = """
ld.param.u64 %rd1, [a0]; mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %nctaid.x;
mov.u32 %r3, %envreg2; mov.u32 %r4, %envreg1; mov.b64 %rd2, {%r3, %r4};
setp.eq.u32 %p1, %r0, 0; mad.lo.u32 %r5, %r1, 32, %r0; mul.wide.u32 %rd3, %r5, 4;
add.u64 %rd3, %rd1, %rd3;
"""
SYNC = """
bar.sync 0; @!%p1 bra W;
setp.eq.u32 %p2, %r1, 0; sub.u32 %r6, 0x80000001, %r2; selp.u32 %r6, %r6, 1, %p2;
atom.add{release}.gpu.u32 %r7, [%rd2+4], %r6;
L: ld.acquire.gpu.u32 %r8, [%rd2+4]; xor.b32 %r8, %r8, %r7; setp.ge.s32 %p3, %r8, 0; @%p3 bra L;
W: bar.sync 0;
"""
TURN = """
st.global.u32 [%rd3], %r5; {sync}
sub.u32 %r9, 159, %r5; mul.wide.u32 %rd4, %r9, 4; add.u64 %rd4, %rd1, %rd4;
ld.global.u32 %r10, [%rd4]; st.global.u32 [%rd3+640], %r10;
"""


def run(body: str, checks: str = "memory,sync,race,init", cooperative: bool = True) -> Any:
    """What is behind the first 160 words of memory, after two launches."""
    gpu = machine(checks)
    loaded = gpu.load(kernel(BEGIN + body + "ret;", pointers(1)))
    place = gpu.memory.allocate(8 * BLOCKS * THREADS)
    for _ in range(2):
        loaded.kernels["k"].launch(
            (BLOCKS, 1, 1), (THREADS, 1, 1), smem=0, parameters=place.to_bytes(8, "little"),
            cooperative=cooperative,
        )  # fmt: skip
    found = (np.ctypeslib.ctypes.c_uint32 * (2 * BLOCKS * THREADS)).from_address(place)
    values = np.array(found)[BLOCKS * THREADS :]
    gpu.memory.free(place)
    return values


def test_blocks_read_what_others_wrote_before() -> None:
    found = run(TURN.format(sync=SYNC.format(release=".release")))
    assert found.tolist() == list(range(BLOCKS * THREADS))[::-1]


@pytest.mark.parametrize("sync", ["bar.sync 0;", SYNC.format(release=".relaxed")])
def test_what_is_no_barrier_of_the_grid(sync: str) -> None:
    with pytest.raises(Fault, match="race") as caught:
        run(TURN.format(sync=sync), "memory,race")
    assert caught.value.kind == "race"


def test_the_memory_of_a_barrier() -> None:
    """Each launch begins with a counter of 0; it is no address where blocks may not wait."""
    count = "@%p1 ld.global.u32 %r6, [%rd2+4]; @%p1 st.global.u32 [%rd3+640], %r6;"
    count += "@%p1 red.relaxed.gpu.global.add.u32 [%rd2+4], 0;"
    assert not run(count, "memory,init")[::THREADS].any()
    for cooperative in (False, True):
        found = run("st.global.u64 [%rd1+640], %rd2;", "", cooperative)
        assert bool(found[:2].any()) is cooperative
    with pytest.raises(Fault, match="0x4"):
        run(count, "memory,init", cooperative=False)
