"""Blocks on several threads of the host: which kernels, with which results and errors."""

from __future__ import annotations

import _thread
import ctypes
import threading
import time

import numpy as np
import pytest
from ptx_programs import Array, kernel, machine, pointers

from ferrule.emulator.machine import Fault, Machine, running
from ferrule.emulator.machine.running import independent
from ferrule.emulator.ptx.parser import parse
from ferrule.emulator.warps.flow import flow

BLOCKS = 400
START = """ld.param.u64 %rd1, [a0]; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %tid.x;
mov.u32 %r3, %ntid.x; mad.lo.u32 %r4, %r1, %r3, %r2; mul.wide.u32 %rd2, %r4, 4;
add.u64 %rd3, %rd1, %rd2;\n"""


@pytest.fixture
def three(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three threads, as soon as a few blocks are done."""
    monkeypatch.setenv("FERRULE_NUM_THREADS", "3")
    monkeypatch.setattr(running, "WORTH", 0)
    monkeypatch.setattr(running, "_FIRST_THREADS", 64)
    monkeypatch.setattr(running, "_LEAST", 0)
    monkeypatch.setattr(running, "_SECONDS_AN_INSTRUCTION", 0)


def run(gpu: Machine, body: str, size: int = 64) -> tuple[Array, int]:
    """What the threads leave, and how many more threads of the host there were."""
    chosen = gpu.load(kernel(START + body + "\nret;", pointers(1))).kernels["k"]
    place = gpu.memory.allocate(4 * BLOCKS * size)
    ctypes.memset(place, 0, 4 * BLOCKS * size)
    if gpu.memory.written is not None:
        gpu.memory.written(place, 4 * BLOCKS * size)
    data = place.to_bytes(8, "little")
    chosen.launch((BLOCKS, 1, 1), (size, 1, 1), smem=0, parameters=data)
    held = (ctypes.c_uint32 * (BLOCKS * size)).from_address(place)
    return np.frombuffer(held, np.uint32).copy(), len(chosen._runner._more)


SQUARES = """.shared .b32 s[64]; mov.u32 %r5, s; mad.lo.u32 %r5, %r2, 4, %r5;
mul.lo.u32 %r6, %r4, %r4; st.shared.u32 [%r5], %r6; bar.sync 0;
xor.b32 %r7, %r2, 63; mov.u32 %r5, s; mad.lo.u32 %r5, %r7, 4, %r5; ld.shared.u32 %r8, [%r5];
st.global.u32 [%rd3], %r8;"""


def test_blocks_run_on_all_threads(three: None) -> None:
    found, more = run(machine(), SQUARES)
    numbers = np.arange(64 * BLOCKS, dtype=np.uint32).reshape(-1, 64)
    assert (found.reshape(-1, 64) == (numbers * numbers)[:, ::-1]).all()
    assert more == 2


@pytest.mark.parametrize(
    ("checks", "schedule"), [("memory,race", None), ("memory,init", None), ("memory", "random:3")]
)
def test_what_is_noted_needs_one_thread(three: None, checks: str, schedule: str | None) -> None:
    assert run(machine(checks, schedule), SQUARES)[1] == 0


def test_sums_of_integers(three: None) -> None:
    found, more = run(machine(), "red.global.add.u32 [%rd1], %r4;")
    assert found[0] == sum(range(64 * BLOCKS)) % 2**32
    assert more == 2


def test_the_first_error_is_told(three: None) -> None:
    """Whichever thread comes to one first."""
    body = "setp.eq.u32 %p1, %r1, 77; setp.ge.u32 %p2, %r1, 78; or.pred %p1, %p1, %p2;\n@%p1 trap;"
    for _ in range(5):
        with pytest.raises(Fault, match=r"block \(77, 0, 0\)"):
            run(machine(), body)


def test_a_launch_after_an_error(three: None) -> None:
    gpu = machine()
    body = "ld.global.u32 %r9, [%rd3]; setp.eq.u32 %p1, %r9, 1; @%p1 trap; st.global.u32 [%rd3], 1;"
    chosen = gpu.load(kernel(START + body + "\nret;", pointers(1))).kernels["k"]
    place = gpu.memory.allocate(256 * BLOCKS)
    for value in (0, 1, 0):
        held = np.frombuffer((ctypes.c_uint32 * (64 * BLOCKS)).from_address(place), np.uint32)
        held[:] = value
        try:
            data = place.to_bytes(8, "little")
            chosen.launch((BLOCKS, 1, 1), (64, 1, 1), smem=0, parameters=data)
        except Fault:
            assert value == 1
        else:
            assert value == 0
            assert (held == 1).all()


def test_blocks_that_wait_for_others_all_the_same(three: None) -> None:
    """With plain loads, half of them for the block behind it: they go on side by side."""
    body = """add.u32 %r5, %r1, 1; setp.eq.u32 %p1, %r5, 400; setp.lt.u32 %p2, %r1, 200;
or.pred %p1, %p1, %p2; @%p1 bra DONE;
WAIT: ld.global.u32 %r6, [%rd3+4]; setp.eq.u32 %p2, %r6, 0; @%p2 bra WAIT;
DONE: st.global.u32 [%rd3], 1;"""
    found, more = run(machine(), body, size=1)
    assert (found == 1).all()
    assert more == 2


def test_ctrl_c_ends_all_threads(three: None, interruptible: None) -> None:
    body = "setp.eq.u32 %p1, %r1, 399; FOREVER: @%p1 bra FOREVER;"
    timer = threading.Timer(0.5, _thread.interrupt_main)
    timer.start()
    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        run(machine(), body)
    timer.join()
    until = time.monotonic() + 5
    while threading.active_count() >= before and time.monotonic() < until:
        time.sleep(0.01)
    assert threading.active_count() < before


def alone(body: str) -> bool:
    module = parse(kernel(body + "\nret;"))
    return independent(flow(module, module.functions[-1]))


@pytest.mark.parametrize(
    "body",
    [
        "st.global.u32 [%rd1], 1; bar.sync 0; ld.global.nc.u32 %r1, [%rd1];",
        "red.global.add.u32 [%rd1], 1;",
        "atom.global.max.s32 %r1, [%rd1], 5;",
        "atom.shared.cas.b32 %r1, [%r2], 1, 2; mov.u32 %r3, %r1;",
        "ld.volatile.shared.u32 %r1, [%r2];",
        "membar.cta;",
    ],
)
def test_kernels_that_may(body: str) -> None:
    assert alone(body)


@pytest.mark.parametrize(
    "body",
    [
        "atom.global.add.u32 %r1, [%rd1], 1; st.global.u32 [%rd2], %r1;",
        "red.global.add.f32 [%rd1], 0f3F800000;",
        "atom.global.add.noftz.f16 %h1, [%rd1], %h2;",
        "red.global.add.noftz.bf16x2 [%rd1], %r2;",
        "atom.add.f64 %fd1, [%rd1], %fd2;",
        "atom.global.cas.b32 %r1, [%rd1], 1, 2;",
        "atom.global.exch.b32 %r1, [%rd1], 1;",
        "atom.global.inc.u32 %r1, [%rd1], 1;",
        "ld.volatile.global.u32 %r1, [%rd1];",
        "ld.acquire.gpu.u32 %r1, [%rd1];",
        "st.release.sys.global.u32 [%rd1], 1;",
        "membar.gl;",
        "fence.acq_rel.gpu;",
    ],
)
def test_kernels_that_may_not(body: str) -> None:
    assert not alone(body)
