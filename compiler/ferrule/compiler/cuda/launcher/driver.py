"""libcuda for generated code: functions, a struct and numbers.

All of it is from the reference of the CUDA Driver API; a test compares it with `cuda.h` if there is
one.  Names are those of the library's symbols: `cuda.h` maps `cuCtxPushCurrent` to
`cuCtxPushCurrent_v2`.  A device is its ordinal.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import Final

from llvmlite import ir

from ferrule.runtime.llvm.launches import LAUNCH
from ferrule.runtime.llvm.layouts import I32, I64, PTR, Field, Layout

LIBRARY: Final = "libcuda.so.1"
SINCE: Final = "12.0"
"""The first version of CUDA whose driver has all of `CALLS`."""
VERSION: Final = "cuDriverGetVersion"
"""The function of every driver that returns its version: 12040 is that of CUDA 12.4."""
SHARED_BY_DEFAULT: Final = 48 << 10
"""The bytes of shared memory that a block may use without an attribute of its kernel."""


class Result(IntEnum):
    """The values of `CUresult` that are used here."""

    SUCCESS = 0
    INVALID_VALUE = 1
    """Also the result of a launch whose sizes the device does not support."""
    NOT_INITIALIZED = 3
    """After cuInit: in a process that was forked from one that had called it."""
    INVALID_DEVICE = 101
    INVALID_CONTEXT = 201
    """No context is current."""
    NO_BINARY_FOR_GPU = 209
    """The image is not for this device, or not for another device that has a context."""
    UNSUPPORTED_PTX_VERSION = 222
    """The PTX is newer than the driver."""
    INVALID_HANDLE = 400
    """Also the result for kernels whose library was destroyed with a context."""
    LAUNCH_OUT_OF_RESOURCES = 701
    CONTEXT_IS_DESTROYED = 709


class Attribute(IntEnum):
    """Attributes of kernels and devices, of `CUfunction_attribute` and `CUdevice_attribute`."""

    MAX_THREADS_PER_BLOCK = 0
    """Of a kernel: the largest number of threads of a block that its registers allow."""
    SHARED_SIZE_BYTES = 1
    """Of a kernel: the static shared memory of a block."""
    COMPUTE_CAPABILITY_MAJOR = 75
    """Of a device."""
    COMPUTE_CAPABILITY_MINOR = 76
    MAX_DYNAMIC_SHARED_SIZE_BYTES = 8
    """Of a kernel: the limit for the dynamic shared memory of a launch; 48 KiB at first."""
    NON_PORTABLE_CLUSTER_SIZE_ALLOWED = 14
    """Of a kernel: whether its clusters may have more than 8 blocks."""
    MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97
    """Of a device: the largest value of that limit, together with the static shared memory."""


class JitOption(IntEnum):
    """`CUjit_option`: how the driver assembles PTX."""

    OPTIMIZATION_LEVEL = 7
    GENERATE_LINE_INFO = 13


class Capture(IntEnum):
    """`CUstreamCaptureMode`."""

    MODE_RELAXED = 2
    """The thread may make calls that would otherwise end captures, its own and other threads'."""


class LaunchAttribute(IntEnum):
    """`CUlaunchAttributeID`: attributes of a launch besides its sizes."""

    COOPERATIVE = 2
    CLUSTER_DIMENSION = 4
    CLUSTER_SCHEDULING_POLICY_PREFERENCE = 5
    PROGRAMMATIC_STREAM_SERIALIZATION = 6
    PROGRAMMATIC_EVENT = 7
    PRIORITY = 8
    LAUNCH_COMPLETION_EVENT = 12
    PREFERRED_SHARED_MEMORY_CARVEOUT = 14


class ClusterScheduling(IntEnum):
    """`CUclusterSchedulingPolicy`: the placement of a cluster's blocks."""

    DEFAULT = 0
    SPREAD = 1
    LOAD_BALANCING = 2


def _call(*arguments: ir.Type) -> ir.FunctionType:
    return ir.FunctionType(I32, arguments)


CALLS: Final[Mapping[str, ir.FunctionType]] = MappingProxyType(
    {
        "cuInit": _call(I32),
        "cuDriverGetVersion": _call(PTR),
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
        "cuLaunchKernelEx": LAUNCH,
        "cuDeviceGetCount": _call(PTR),
        "cuDeviceGetAttribute": _call(PTR, I32, I32),
        "cuKernelGetAttribute": _call(PTR, I32, PTR, I32),
        "cuKernelSetAttribute": _call(I32, I32, PTR, I32),
        "cuThreadExchangeStreamCaptureMode": _call(PTR),
    }
)
"""The driver's functions in use, by symbol.  Handles are pointers."""

ATTRIBUTE: Final = Layout(
    "CUlaunchAttribute", [Field("id", I32), Field("pad", I32), Field("value", ir.ArrayType(I64, 8))]
)
"""`value` is a union: a number, or one of the structs below."""

CLUSTER: Final = Layout("clusterDim", [Field("x", I32), Field("y", I32), Field("z", I32)])
EVENT: Final = Layout(
    "programmaticEvent",
    [Field("event", PTR), Field("flags", I32), Field("triggerAtBlockStart", I32)],
)
"""LAUNCH_COMPLETION_EVENT has the same struct without its last field."""
