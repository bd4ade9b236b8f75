"""Blocks that wait for each other, and the order in which blocks begin."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ptx_programs import machine

COUNTED = """
.version 8.0
.target sm_90a
.address_size 64
.visible .entry meet(.param .u64 counter, .param .u32 blocks) {
    .reg .pred %p, %q;
    .reg .b32 %n, %t, %seen;
    .reg .b64 %a;
    ld.param.u64 %a, [counter];
    ld.param.u32 %n, [blocks];
    mov.u32 %t, %tid.x;
    setp.ne.u32 %q, %t, 0;
    @%q bra MET;
    atom.global.add.u32 %seen, [%a], 1;
LOOK:
    ld.volatile.global.u32 %seen, [%a];
    setp.lt.u32 %p, %seen, %n;
    @%p bra LOOK;
MET:
    bar.sync 0;
    ret;
}
.visible .entry places(.param .u64 counter, .param .u64 order) {
    .reg .b32 %i, %b;
    .reg .b64 %a, %o, %at;
    ld.param.u64 %a, [counter];
    ld.param.u64 %o, [order];
    mov.u32 %b, %ctaid.x;
    atom.global.add.u32 %i, [%a], 1;
    mul.wide.u32 %at, %i, 4;
    add.s64 %at, %at, %o;
    st.global.u32 [%at], %b;
    ret;
}
"""


def words(gpu: Any, count: int) -> tuple[int, Any]:
    """Zeros on the GPU: the address, and a view."""
    import ctypes

    place = gpu.memory.allocate(4 * count)
    found = np.ctypeslib.as_array((ctypes.c_uint32 * count).from_address(place))
    found[:] = 0
    return place, found


@pytest.mark.parametrize("schedule", [None, "random:5"])
@pytest.mark.parametrize("blocks", [2, 40, 300])
def test_all_blocks_meet(blocks: int, schedule: str | None) -> None:
    gpu = machine(schedule=schedule)
    place, found = words(gpu, 1)
    kernel = gpu.load(COUNTED).kernels["meet"]
    data = place.to_bytes(8, "little") + blocks.to_bytes(4, "little")
    kernel.launch((blocks, 1, 1), (64, 1, 1), smem=0, parameters=data)
    assert found.tolist() == [blocks]


def order(schedule: str | None) -> list[int]:
    gpu = machine(schedule=schedule)
    (counter, _), (places, found) = words(gpu, 1), words(gpu, 60)
    kernel = gpu.load(COUNTED).kernels["places"]
    data = counter.to_bytes(8, "little") + places.to_bytes(8, "little")
    kernel.launch((60, 1, 1), (1, 1, 1), smem=0, parameters=data)
    return [int(each) for each in found]


def test_random_schedules_order_blocks() -> None:
    assert order(None) == list(range(60))
    orders = [order(f"random:{seed}") for seed in range(1, 6)]
    assert all(sorted(each) == list(range(60)) for each in orders)
    assert len({*map(tuple, orders)}) == 5
    assert order("random:3") == orders[2]
