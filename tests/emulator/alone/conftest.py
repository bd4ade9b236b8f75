"""An emulated GPU whose machine is a test's own, and libcuda called by ctypes.

A process finds one libcuda, and other tests have a stand-in of their own: so these files run in
processes of their own, from tests/emulator/test_alone.py. By hand:

    FERRULE_ALONE=1 python -m pytest tests/emulator/alone
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
from emulated_cuda import KERNELS, Cuda
from fake_machine import FakeMachine

import ferrule as fe

collect_ignore_glob = [] if os.environ.get("FERRULE_ALONE") else ["test_*.py"]


@pytest.fixture
def emulated() -> Iterator[Any]:
    """Two emulated GPUs, initialised, with nothing current."""
    gpu = fe.emulated_gpu("sm_90a", devices=2)
    with gpu:
        gpu.driver.__dict__["machine"] = machine = FakeMachine()
        cuda = Cuda(machine)
        cuda.cuInit(0)
        yield cuda


@pytest.fixture
def cuda(emulated: Any) -> Any:
    """The same, with the primary context of device 0 current."""
    context = emulated.handle("cuDevicePrimaryCtxRetain", 0)
    emulated.cuCtxPushCurrent_v2(context)
    yield emulated
    emulated.library.cuCtxSetCurrent(None)


@pytest.fixture
def module(cuda: Any) -> Any:
    """A module of KERNELS."""
    return cuda.handle("cuModuleLoadData", KERNELS.encode())
