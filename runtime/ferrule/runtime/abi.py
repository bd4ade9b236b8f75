"""Numbers of the C ABI: type indices of TVM-FFI (of `specs`), device types of DLPack.

Plain integers that need no LLVM. The struct layouts that go with them are in `llvm.layouts`; one
test pins both against the installed C headers.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from ferrule.specs.typeindex import TypeIndex as TypeIndex

SYMBOL_PREFIX = "__tvm_ffi_"
"""The prefix of the C symbols of TVM-FFI functions."""

LIBRARY_CONTEXT = f"{SYMBOL_PREFIX}_library_ctx"
"""A variable of a library, which tvm-ffi sets to the library's module: code looks up imports in it.
"""

LOAD_FROM_BYTES: Final = "ffi.Module.load_from_bytes."
"""With a kind behind it: the global function that makes a module of bytes."""

PTX: Final = "ferrule.ptx"
"""The kind of a module of kernels as PTX or as images."""


def system_lib_symbol(prefix: str, symbol: str) -> str:
    """The name under which a symbol is registered for `tvm_ffi.system_lib(prefix)`."""
    name = symbol.removeprefix(SYMBOL_PREFIX)
    return f"{prefix}{symbol}" if name.startswith("_") else f"{SYMBOL_PREFIX}{prefix}{name}"


class DeviceType(IntEnum):
    """The kind of device whose memory holds a `DLTensor`."""

    CPU = 1
    CUDA = 2
    CUDA_HOST = 3
    OPENCL = 4
    VULKAN = 7
    METAL = 8
    VPI = 9
    ROCM = 10
    ROCM_HOST = 11
    EXT_DEV = 12
    CUDA_MANAGED = 13
    ONE_API = 14
    WEBGPU = 15
    HEXAGON = 16
    MAIA = 17
    TRN = 18


class DTypeCode(IntEnum):
    """The first byte of a `DLDataType`."""

    INT = 0
    UINT = 1
    FLOAT = 2
    OPAQUE_HANDLE = 3
    BFLOAT = 4
    COMPLEX = 5
    BOOL = 6
    FLOAT8_E3M4 = 7
    FLOAT8_E4M3 = 8
    FLOAT8_E4M3B11FNUZ = 9
    FLOAT8_E4M3FN = 10
    FLOAT8_E4M3FNUZ = 11
    FLOAT8_E5M2 = 12
    FLOAT8_E5M2FNUZ = 13
    FLOAT8_E8M0FNU = 14
    FLOAT6_E2M3FN = 15
    FLOAT6_E3M2FN = 16
    FLOAT4_E2M1FN = 17


LAUNCH_CONFIG = (
    *((f"{size}Dim{axis}", "i32") for size in ("grid", "block") for axis in "XYZ"),
    ("sharedMemBytes", "i32"),
    ("hStream", "ptr"),
    ("attrs", "ptr"),
    ("numAttrs", "i32"),
)
"""The fields of the CUDA driver's CUlaunchConfig.  It stands here since Python launches kernels
too, without LLVM."""
