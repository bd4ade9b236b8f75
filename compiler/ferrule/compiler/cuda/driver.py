"""libcuda as generated code calls it: functions, a struct and numbers.

All of it is from the reference of the CUDA Driver API; a test compares it with `cuda.h` where there
is one.  Names are those of the library's symbols: `cuda.h` maps `cuCtxPushCurrent` to
`cuCtxPushCurrent_v2`.  A device is its ordinal.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import Final

from llvmlite import ir

from ferrule.runtime.llvm.layouts import I32, PTR, Field, Layout

LIBRARY: Final = "libcuda.so.1"
SINCE: Final = "12.0"
"""The first version of CUDA whose driver has all of `CALLS`."""


class Result(IntEnum):
    """The values of `CUresult` that mean something here."""

    SUCCESS = 0
    INVALID_CONTEXT = 201
    """No context is current."""


def _call(*arguments: ir.Type) -> ir.FunctionType:
    return ir.FunctionType(I32, arguments)


CALLS: Final[Mapping[str, ir.FunctionType]] = MappingProxyType(
    {
        "cuInit": _call(I32),
        "cuGetErrorName": _call(I32, PTR),
        "cuGetErrorString": _call(I32, PTR),
        "cuLibraryLoadData": _call(PTR, PTR, PTR, PTR, I32, PTR, PTR, I32),
        "cuLibraryUnload": _call(PTR),
        "cuLibraryGetKernel": _call(PTR, PTR, PTR),
        "cuDevicePrimaryCtxRetain": _call(PTR, I32),
        "cuDevicePrimaryCtxRelease_v2": _call(I32),
        "cuCtxGetDevice": _call(PTR),
        "cuCtxPushCurrent_v2": _call(PTR),
        "cuCtxPopCurrent_v2": _call(PTR),
        "cuLaunchKernelEx": _call(PTR, PTR, PTR, PTR),
    }
)
"""The driver's functions in use, by symbol.  Handles are pointers."""

LAUNCH_CONFIG: Final = Layout(
    "CUlaunchConfig",
    [
        *(Field(f"{size}Dim{axis}", I32) for size in ("grid", "block") for axis in "XYZ"),
        Field("sharedMemBytes", I32),
        Field("hStream", PTR),
        Field("attrs", PTR),
        Field("numAttrs", I32),
    ],
)
