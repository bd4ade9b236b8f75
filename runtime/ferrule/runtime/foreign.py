"""Values of other packages as what tvm-ffi takes, without importing those packages.

Each function gives a value for tvm-ffi's generic call, or `OTHER` for an object that is none of
its kind.
"""

from __future__ import annotations

import ctypes
import sys
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import Any, Final

import numpy as np
import tvm_ffi

from ferrule import specs
from ferrule.specs.dtypes import BY_NAME


class _Other(Enum):
    OTHER = "other"


OTHER: Final = _Other.OTHER
"""Stands for "not of this kind"."""


@dataclass(frozen=True, slots=True)
class DataTypeValue:
    """A DLDataType, passed as such; tvm-ffi's own class knows no complex numbers."""

    code: int
    bits: int
    lanes: int = 1

    def __dlpack_data_type__(self) -> tuple[int, int, int]:
        return self.code, self.bits, self.lanes


_PACKED: Final = DataTypeValue(specs.Float4E2M1FN.code, 4, 2)
_TORCH_PACKED: Final = "float4_e2m1fn_x2"

_TORCH_DEVICES: Final = {"mps": "metal", "xpu": "oneapi"}
"""Names of torch's device types that are not DLPack's."""


_CHANGES: Final = {"conj": "conjugates", "neg": "negates"}


def number(value: object) -> bool | int | float | _Other:
    """A number of Python, NumPy, ml_dtypes, Warp or a DSL, or of an IntEnum, as Python's own.

    Of a subclass it is the number that it holds, whatever its `__int__` or `__float__` says.
    """
    match value:
        case bool():
            return value
        case int():
            return int.__pos__(value)
        case float():
            return float.__pos__(value)
        case specs.Numeric():
            return value.value
        case np.generic():
            return _numpy_number(value)
    return _c_number(value)


def _c_number(value: object) -> bool | int | float | _Other:
    """That of an object with a C type and a value, as Warp's numbers are."""
    kind = getattr(type(value), "_type_", None)
    if not isinstance(kind, type) or not issubclass(kind, ctypes._SimpleCData):
        return OTHER
    found = getattr(value, "value", None)
    return found if isinstance(found, (bool, int, float)) else OTHER


def _numpy_number(value: np.generic[Any]) -> bool | int | float | _Other:
    if isinstance(value, np.floating):
        return float(value)
    dtype = BY_NAME.get(value.dtype.name)
    match dtype.kind if dtype is not None else None:
        case "bool":
            return bool(value)
        case "int" | "uint":
            return int(value)
        case "float":
            return float(value)
    return OTHER


def is_read_only(value: object) -> bool:
    """Whether this is a tensor that nobody may write to: an array of NumPy, or any of JAX."""
    if isinstance(value, np.ndarray):
        return not value.flags.writeable
    return is_jax_array(value)


def is_jax_array(value: object) -> bool:
    """Whether this is a jax.Array: none may be written to, though DLPack gives them all out."""
    root = type(value).__module__.partition(".")[0]
    return root in ("jax", "jaxlib") and hasattr(type(value), "__dlpack__")


def hidden_elements(value: object) -> str | None:
    """What kind of tensor of torch this is, if one without elements in memory; None for others."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(value, torch.Tensor):
        return None
    if value.is_nested:
        return "a nested tensor, which is none to DLPack"
    if value.layout is not torch.strided:
        return f"a tensor of layout {value.layout}: call to_dense()"
    if value.is_meta:
        return "a tensor of the meta device, which has no elements"
    if value.is_quantized:
        return "a quantized tensor: call dequantize() or int_repr()"
    return None


def lazy_change(value: object) -> str | None:
    """What torch does with a tensor's elements as it reads them, which DLPack cannot say, if so."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(value, torch.Tensor):
        return None
    for flag in _CHANGES:
        if getattr(value, f"is_{flag}")():
            return f"a tensor that torch {_CHANGES[flag]} lazily: call resolve_{flag}()"
    return None


def hidden_mask(value: object) -> str | None:
    """What an array of NumPy is that hides some of its elements; None for others."""
    masked = sys.modules.get("numpy.ma")
    if masked is None or not isinstance(value, masked.MaskedArray) or not masked.is_masked(value):
        return None
    return "a masked array, and a Tensor has no mask: call filled(), or give its data"


def data_type(value: object) -> DataTypeValue | _Other:
    """A DSL dtype, a dtype or scalar type of NumPy, ml_dtypes or JAX, or a dtype of torch."""
    name = _dtype_name(value)
    if name in BY_NAME:
        return DataTypeValue(BY_NAME[name].code, BY_NAME[name].bits)
    return _PACKED if name == _TORCH_PACKED else OTHER


def _dtype_name(value: object) -> str:
    torch = sys.modules.get("torch")
    match value:
        case specs.DType():
            return value.name
        case np.dtype():
            return str(value.name) if value.isnative else ""
        case type() if issubclass(value, np.generic):
            return str(np.dtype(value).name)
        case type() if isinstance(dtype := getattr(value, "dtype", None), np.dtype):
            return str(dtype.name)  # of jax.numpy.float32
    if torch is not None and isinstance(value, torch.dtype):
        return str(value).removeprefix("torch.")
    return ""


def is_dtype(value: object) -> bool:
    """Whether this is a dtype of NumPy or torch, one without a DLDataType too."""
    torch = sys.modules.get("torch")
    return isinstance(value, np.dtype) or (torch is not None and isinstance(value, torch.dtype))


def device(value: object) -> Any:
    """A torch.device; without an index it is torch's current one."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(value, torch.device):
        return OTHER
    kind, index = value.type, value.index
    if kind == "cuda" and index is None and torch.cuda.is_available():
        index = torch.cuda.current_device()
    if kind == "cuda" and torch.version.hip:
        kind = "rocm"
    code = specs.DEVICE_CODES.get(_TORCH_DEVICES.get(kind, kind))
    return OTHER if code is None else tvm_ffi.Device(code, index or 0)


def pointer(value: object) -> ctypes.c_void_p | int | None | _Other:
    """An address: c_void_p, an int, None, or an object that says that it is one."""
    if value is None or isinstance(value, ctypes.c_void_p):
        return value
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        found = number(value)
        return found if isinstance(found, int) else OTHER
    if hasattr(type(value), "__tvm_ffi_opaque_ptr__"):
        return ctypes.c_void_p(value.__tvm_ffi_opaque_ptr__())  # type: ignore[attr-defined]
    if _is_cuda_handle(value):
        return ctypes.c_void_p(int(value))  # type: ignore[call-overload]
    return OTHER


def stream(value: object) -> ctypes.c_void_p | int | None | _Other:
    """A stream's handle: of an object with the CUDA stream protocol, or what `pointer` takes."""
    if hasattr(type(value), "__cuda_stream__"):
        return ctypes.c_void_p(int(value.__cuda_stream__()[1]))  # type: ignore[attr-defined]
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.cuda.Stream):
        return ctypes.c_void_p(value.cuda_stream)
    return pointer(value)


def _is_cuda_handle(value: object) -> bool:
    """Whether this is a handle of cuda-python: CUstream, CUdeviceptr, …"""
    kind = type(value)
    return kind.__module__.partition(".")[0] == "cuda" and hasattr(kind, "__int__")


@cache
def has_big_ints() -> bool:
    """Whether this tvm-ffi passes ints that 64 bits with a sign cannot hold."""
    try:
        tvm_ffi.get_global_func("ffi.Array")(1 << 63)
    except OverflowError:
        return False
    return True
