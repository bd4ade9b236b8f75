"""The dtypes and device types of torch: its numbers and names, and the words of DLPack for them."""

from __future__ import annotations

import sys
from functools import cache
from typing import Any, Final

from ferrule import specs
from ferrule.runtime.abi import DeviceType, DTypeCode

NAMES: Final[dict[int, str]] = {
    0: "uint8",
    1: "int8",
    2: "int16",
    3: "int32",
    4: "int64",
    5: "float16",
    6: "float32",
    7: "float64",
    8: "complex32",
    9: "complex64",
    10: "complex128",
    11: "bool",
    15: "bfloat16",
    23: "float8_e5m2",
    24: "float8_e4m3fn",
    25: "float8_e5m2fnuz",
    26: "float8_e4m3fnuz",
    27: "uint16",
    28: "uint32",
    29: "uint64",
    44: "float8_e8m0fnu",
    45: "float4_e2m1fn_x2",
}
"""The dtypes of torch by number (`c10::ScalarType`)."""

_OTHERS: Final = {
    "complex32": DTypeCode.COMPLEX | 32 << 8 | 1 << 16,
    "float4_e2m1fn_x2": specs.Float4E2M1FN.code | 4 << 8 | 2 << 16,
}

SCALAR_TYPES: Final[dict[int, int]] = {
    number: _OTHERS[name] if name in _OTHERS else specs.as_dtype(name).dlpack
    for number, name in NAMES.items()
}
"""The dtypes of torch by number, as words of `DLDataType`."""

DEVICES: Final[dict[int, DeviceType]] = {
    0: DeviceType.CPU,
    1: DeviceType.CUDA,
    6: DeviceType.ROCM,
    12: DeviceType.ONE_API,
}
"""The device types of torch by number (`c10::DeviceType`)."""

DEVICE_NAMES: Final = {
    "cpu": DeviceType.CPU,
    "cuda": DeviceType.CUDA,
    "xpu": DeviceType.ONE_API,
}
"""The device types of torch by name."""


def scalar_type_of(dtype: specs.DType) -> int | None:
    """torch's number of a dtype; None if torch does not have it."""
    return next((n for n, word in SCALAR_TYPES.items() if word == dtype.dlpack), None)


def torch_dtype(dtype: specs.DType) -> Any:
    """torch's dtype.  Raises ValueError for one that this torch does not have."""
    number = scalar_type_of(dtype)
    found = None if number is None else getattr(sys.modules["torch"], NAMES[number], None)
    if found is None:
        raise ValueError(f"torch has no dtype {dtype.name}, so it cannot make a tensor of it")
    return found


def dlpack_word(dtype: Any) -> int:
    """The word of a torch dtype; 0, which no parameter takes, for one that DLPack does not have."""
    return _words().get(dtype, 0)


@cache
def _words() -> dict[Any, int]:
    torch = sys.modules["torch"]
    known = {number: getattr(torch, name, None) for number, name in NAMES.items()}
    return {dtype: SCALAR_TYPES[n] for n, dtype in known.items() if dtype is not None}


def device_name(device: str | None) -> str:
    """torch's name of a device type of `specs`; a name that torch does not have stays."""
    return _TORCH_NAMES.get(device or "cpu", device or "cpu")


_TORCH_NAMES: Final = {
    "cuda_managed": "cuda",
    "cuda_host": "cpu",
    "rocm": "cuda",
    "rocm_host": "cpu",
    "oneapi": "xpu",
    "metal": "mps",
}
