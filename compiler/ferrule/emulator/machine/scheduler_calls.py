"""Calls of the scheduler's functions from Python."""

from __future__ import annotations

import ctypes

from ferrule.emulator.machine.jit import scheduler_code

_PREPARE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


def prepare(block: int) -> None:
    """Number the threads of a block's warps."""
    _PREPARE(scheduler_code().addresses["prepare"])(block)
