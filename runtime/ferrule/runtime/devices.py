"""The GPUs of this machine, as the CUDA driver reports them."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Final, NamedTuple

_LIBRARY: Final = "libcuda.so.1"
EMULATE: Final = (
    "a GPU can be emulated: with fe.emulated_gpu('sm_90a'), or FERRULE_GPU=emulated:sm_90a in the "
    "environment"
)
"""What an error says where there is no GPU."""

_EMULATED: Final[list[str]] = []

_MAJOR, _MINOR = 75, 76
"""CUdevice_attribute: the two parts of the compute capability (CUDA Driver API, `cuda.h`)."""


class ComputeCapability(NamedTuple):
    """What a GPU can do: (9, 0) for Hopper."""

    major: int
    minor: int


@cache
def cuda_devices() -> tuple[ComputeCapability, ...]:
    """The compute capability of each CUDA device, in the driver's order; none without a driver.

    Asked once in a process: the driver's list does not change while it runs.
    """
    try:
        driver = ctypes.CDLL(_LIBRARY)
        count = ctypes.c_int()
        if driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count)):
            return ()
        return tuple(_capability(driver, ordinal) for ordinal in range(count.value))
    except (OSError, AttributeError):
        return ()


def emulated_arch() -> str | None:
    """The architecture of the GPUs that this process emulates; None where it emulates none.

    Emulated GPUs execute PTX and no cubins: compilers of this process keep the PTX for them.
    """
    return _EMULATED[0] if _EMULATED else None


def note_emulated(arch: str | None) -> None:
    """GPUs of an architecture are emulated from now on, or none: what was asked is forgotten."""
    _EMULATED[:] = [] if arch is None else [arch]
    cuda_devices.cache_clear()


def attribute(ordinal: int, number: int) -> int:
    """An attribute of a GPU of `cuda_devices`, by its number as a CUdevice_attribute."""
    if not 0 <= ordinal < len(cuda_devices()):
        raise ValueError(f"there is no GPU {ordinal}: this machine has {len(cuda_devices())}")
    return _attribute(ctypes.CDLL(_LIBRARY), ordinal, number)


def _capability(driver: ctypes.CDLL, ordinal: int) -> ComputeCapability:
    return ComputeCapability(*(_attribute(driver, ordinal, part) for part in (_MAJOR, _MINOR)))


def _attribute(driver: ctypes.CDLL, ordinal: int, number: int) -> int:
    device, value = ctypes.c_int(), ctypes.c_int()
    driver.cuDeviceGet(ctypes.byref(device), ordinal)
    driver.cuDeviceGetAttribute(ctypes.byref(value), number, device)
    return value.value
