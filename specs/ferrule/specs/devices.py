"""Device types: DLPack's codes by the names that users write and messages show."""

from __future__ import annotations

from typing import Final

# `DLDeviceType` of dlpack.h, whose names are kDLCPU, kDLCUDA and so on.
DEVICE_CODES: Final[dict[str, int]] = {
    "cpu": 1,
    "cuda": 2,
    "cuda_host": 3,
    "opencl": 4,
    "vulkan": 7,
    "metal": 8,
    "vpi": 9,
    "rocm": 10,
    "rocm_host": 11,
    "ext_dev": 12,
    "cuda_managed": 13,
    "oneapi": 14,
    "webgpu": 15,
    "hexagon": 16,
    "maia": 17,
    "trn": 18,
}
DEVICE_NAMES: Final[dict[int, str]] = {code: name for name, code in DEVICE_CODES.items()}

HOST_DEVICES: Final = ("cpu", "cuda_host", "rocm_host")
"""Memory of the host, ordinary or pinned: its index names no device that a call must be on."""

ALSO_TAKEN: Final[dict[str, tuple[str, ...]]] = {
    "cpu": ("cuda_host", "rocm_host"),
    "cuda": ("cuda_managed",),
}
"""Other device types that a parameter of a device type takes, because its code can use the memory
as it stands.  Managed memory is none for the CPU: a GPU may still be writing there, and nobody has
waited; a parameter says `cuda_managed` itself."""

STREAM_DEVICES: Final[dict[str, str]] = {"cuda_managed": "cuda"}
"""Device types whose streams are those of another one."""


def as_device_type(value: str) -> str:
    """The device type with this name.  Raises ValueError naming the known ones."""
    if not isinstance(value, str):
        raise TypeError(f"expected the name of a device type such as 'cpu', but got {value!r}")
    if value not in DEVICE_CODES:
        raise ValueError(f"{value!r} is no device type; known are {', '.join(DEVICE_CODES)}")
    return value
