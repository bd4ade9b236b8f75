"""Device types: DLPack's codes by the names that users write and messages show."""

from __future__ import annotations

from typing import Final

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


def as_device_type(value: str) -> str:
    """The device type with this name.  Raises ValueError naming the known ones."""
    if not isinstance(value, str):
        raise TypeError(f"expected the name of a device type such as 'cpu', but got {value!r}")
    if value not in DEVICE_CODES:
        raise ValueError(f"{value!r} is no device type; known are {', '.join(DEVICE_CODES)}")
    return value
