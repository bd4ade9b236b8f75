"""Ctrl-C ends a kernel that waits for what nobody does, however it waits."""

from __future__ import annotations

import ctypes
import signal
import struct
import threading
import time
from _thread import interrupt_main
from typing import Any, cast

import pytest
from ptx_programs import kernel, machine, pointers

from ferrule.emulator.driver.library.exports import Export, Needs, callback, defer, restore

LOOKS = {
    "plain": "ld.global.u32 %r1, [%rd1];",
    "store": "st.release.gpu.global.u32 [%rd1+4], 1; ld.volatile.global.u32 %r1, [%rd1];",
    "warp": "bar.warp.sync -1; ld.volatile.global.u32 %r1, [%rd1];",
    "barrier": "bar.sync 0; ld.volatile.global.u32 %r1, [%rd1];",
}


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize(
    ("look", "checks", "blocks"),
    [
        ("plain", "memory,sync,race,init", 1),
        ("store", "memory,sync,race", 1),
        ("warp", "memory,sync,race", 3),
        ("barrier", "memory,sync,race,init", 1),
        ("barrier", "memory,sync", 3),
        ("barrier", "", 3),
    ],
)
def test_an_interrupt_ends_a_loop(look: str, checks: str, blocks: int) -> None:
    body = (
        f"ld.param.u64 %rd1, [a0];\nLOOP:\n{LOOKS[look]}\n"
        "setp.eq.u32 %p1, %r1, 0;\n@%p1 bra LOOP;\nret;"
    )
    gpu = machine(checks)
    waiting = gpu.load(kernel(body, pointers(1))).kernels["k"]
    place = gpu.memory.allocate(8)
    if gpu.memory.written is not None:
        gpu.memory.written(place, 8)

    def launch(flag: int) -> None:
        ctypes.memmove(place, struct.pack("<II", flag, 0), 8)
        given = struct.pack("<Q", place)
        waiting.launch((blocks, 1, 1), (64, 1, 1), smem=0, parameters=given)

    launch(1)
    again = threading.Timer(0.2, interrupt_main)
    with pytest.raises(KeyboardInterrupt):
        again.start()
        launch(0)
    launch(1)
    gpu.memory.free(place)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_waits_until_c_has_its_result() -> None:
    """One that comes where C has called Python was printed, and C got any number as the result."""

    class Refusing(int):
        """A number of a signal in place of the driver: what is called with it raises that."""

    export = Export("cuAny", "", Needs.NOTHING, signal.raise_signal)
    called = callback(cast("Any", Refusing(signal.SIGINT)), export)
    defer()
    try:
        with pytest.raises(KeyboardInterrupt):
            assert called() == 0
            time.sleep(5)
        assert signal.getsignal(signal.SIGINT) is not signal.default_int_handler
    finally:
        restore()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
