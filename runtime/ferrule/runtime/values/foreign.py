"""Converts values of other packages for tvm-ffi, without importing these packages.

Each function returns a value for tvm-ffi's generic call, or `OTHER` for an object of another kind.
"""

from __future__ import annotations

import ctypes
import sys
from array import array
from enum import Enum
from functools import cache
from typing import Any, Final

import numpy as np
import tvm_ffi

from ferrule import specs
from ferrule.specs.deferred import dataclass
from ferrule.specs.dtypes import BY_NAME


class _Other(Enum):
    OTHER = "other"


OTHER: Final = _Other.OTHER
"""The result for an object that is not of the function's kind."""


@dataclass(frozen=True, slots=True)
class DataTypeValue:
    """A dtype that is passed as a DLDataType; tvm-ffi's own class has no complex dtypes."""

    code: int
    bits: int
    lanes: int = 1

    def __dlpack_data_type__(self) -> tuple[int, int, int]:
        return self.code, self.bits, self.lanes


_PACKED: Final = DataTypeValue(specs.Float4E2M1FN.code, 4, 2)
_TORCH_PACKED: Final = "float4_e2m1fn_x2"

_TORCH_DEVICES: Final = {"mps": "metal", "xpu": "oneapi"}
"""DLPack's names of the device types that torch names differently."""


_CHANGES: Final = {"conj": "conjugates", "neg": "negates"}


def number(value: object) -> bool | int | float | _Other:
    """A number of Python, NumPy, ml_dtypes, Warp, a DSL or an IntEnum, as a plain Python number.

    For a subclass of int or float it is the stored number; `__int__` and `__float__` are ignored.
    """
    match value:
        case bool():
            return value
        case int():
            return int.__pos__(value)
        case float():
            return float.__pos__(value)
        case specs.Numeric() if not isinstance(value.value, complex):
            known: bool | int | float = value.value
            return known
        case np.generic():
            return _numpy_number(value)
    return _c_number(value)


def _c_number(value: object) -> bool | int | float | _Other:
    """The number in an object with a C type and a value, such as Warp's numbers."""
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
    """Whether this is a read-only tensor: a read-only NumPy array, or any JAX array."""
    if isinstance(value, np.ndarray):
        return not value.flags.writeable
    return is_jax_array(value)


def is_jax_array(value: object) -> bool:
    """Whether this is a jax.Array; all are read-only, although DLPack exports them as writable."""
    root = type(value).__module__.partition(".")[0]
    return root in ("jax", "jaxlib") and hasattr(type(value), "__dlpack__")


def hidden_elements(value: object) -> str | None:
    """The description of a torch tensor without plain elements in memory; None for other values."""
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
    return _traced(torch, value)


def is_fake(value: object) -> bool:
    """Whether this is a fake tensor of torch: one with sizes and without elements."""
    module = sys.modules.get("torch._subclasses.fake_tensor")
    return module is not None and isinstance(value, module.FakeTensor)


def _traced(torch: Any, value: Any) -> str | None:
    """The description of a tensor that stands for others while torch traces or transforms code."""
    if is_fake(value):
        return f"a fake tensor of torch, which has no elements: {_AS_OPERATOR}"
    functorch = getattr(torch._C, "_functorch", None)
    if functorch is not None and functorch.is_functorch_wrapped_tensor(value):
        return f"a tensor of torch.func (vmap, grad, jvp) that stands for others: {_AS_OPERATOR}"
    if torch._is_functional_tensor(value):
        return f"a tensor that torch functionalizes: {_AS_OPERATOR}"
    return None


_AS_OPERATOR: Final = "torch traces operators, so make one of the function, fe.torch_op"


def lazy_change(value: object) -> str | None:
    """The description of a torch tensor with a lazy conjugation or negation; None for others.

    DLPack cannot express such a pending change of the elements.
    """
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(value, torch.Tensor):
        return None
    for flag in _CHANGES:
        if getattr(value, f"is_{flag}")():
            return f"a tensor that torch {_CHANGES[flag]} lazily: call resolve_{flag}()"
    return None


def hidden_mask(value: object) -> str | None:
    """The description of a NumPy array whose mask hides elements; None for other values."""
    masked = sys.modules.get("numpy.ma")
    if masked is None or not isinstance(value, masked.MaskedArray) or not masked.is_masked(value):
        return None
    return "a masked array, and a Tensor has no mask: call filled(), or give its data"


def array_inside(value: object) -> str | None:
    """The description of a value that is no tensor and has an array to pass; None for others."""
    kind = type(value)
    root = kind.__module__.partition(".")[0]
    named = kind.__qualname__ if root == "builtins" else f"{kind.__qualname__} of {root}"
    if isinstance(value, (bytes, bytearray)):
        return f"{named}, which has no dtype: pass numpy.frombuffer(value, dtype)"
    if isinstance(value, (memoryview, array)):
        return f"a {kind.__name__} of Python: pass numpy.asarray(value)"
    for name, way in _WAYS.items():
        if hasattr(kind, name):
            return f"{named}: pass its array, {way}"
    return None


_WAYS: Final = {
    "to_numpy": "value.to_numpy()",
    "__cuda_array_interface__": "cupy.asarray(value) or torch.as_tensor(value)",
    "__array_interface__": "numpy.asarray(value)",
    "__array__": "numpy.asarray(value)",
}


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
    """Whether this is a dtype of NumPy or torch, also if DLPack has no such dtype."""
    torch = sys.modules.get("torch")
    return isinstance(value, np.dtype) or (torch is not None and isinstance(value, torch.dtype))


def device(value: object) -> Any:
    """A torch.device; one without an index means torch's current device of this type."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(value, torch.device):
        return OTHER
    kind, index = value.type, value.index
    if kind == "cuda" and index is None and torch.cuda.is_available():
        index = torch.cuda.current_device()
    # PyTorch for ROCm calls its GPUs cuda, too.
    if kind == "cuda" and torch.version.hip:
        kind = "rocm"
    code = specs.DEVICE_CODES.get(_TORCH_DEVICES.get(kind, kind))
    return OTHER if code is None else tvm_ffi.Device(code, index or 0)


def pointer(value: object) -> ctypes.c_void_p | int | None | _Other:
    """An address: c_void_p, an int, None, or an object with a protocol for addresses."""
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
    """Whether this version of tvm-ffi can pass ints that do not fit in a signed 64-bit word."""
    try:
        tvm_ffi.get_global_func("ffi.Array")(1 << 63)
    except OverflowError:
        return False
    return True


# ---- where NumPy's arrays have the fields that machine code reads, tried on live arrays ----

NUMPY_FLAGS_OFFSET: Final = 64
"""The offset of `PyArrayObject.flags` in every numpy since 1.0; tested before it is used."""

NUMPY_DESCR_OFFSET: Final = 56
"""The offset of `PyArrayObject.descr`, and in it of `byteorder` and `type_num`; also tested."""
NUMPY_BYTEORDER_OFFSET: Final = 26
NUMPY_TYPE_NUM_OFFSET: Final = 28

NUMPY_WRITEABLE: Final = 0x0400


@cache
def numpy_fields_found() -> bool:
    """Test that an array's flags and its dtype's byte order and number are at these offsets."""
    array = np.zeros(2)
    readonly = np.zeros(2, ">i4")
    readonly.flags.writeable = False
    found = [_raw_flags(array), _raw_flags(readonly)]
    return (
        found == [array.flags.num, readonly.flags.num]
        and bool(found[0] & NUMPY_WRITEABLE)
        and not found[1] & NUMPY_WRITEABLE
        and all(_raw_dtype(each) == _order_and_number(each.dtype) for each in (array, readonly))
    )


def _raw_flags(array: np.ndarray[Any, Any]) -> int:
    return ctypes.c_int32.from_address(id(array) + NUMPY_FLAGS_OFFSET).value


def _raw_dtype(array: np.ndarray[Any, Any]) -> tuple[bytes, int] | None:
    descr = ctypes.c_void_p.from_address(id(array) + NUMPY_DESCR_OFFSET).value
    if descr != id(array.dtype):
        return None
    order = ctypes.c_char.from_address(descr + NUMPY_BYTEORDER_OFFSET).value
    return order, ctypes.c_int32.from_address(descr + NUMPY_TYPE_NUM_OFFSET).value


def _order_and_number(dtype: np.dtype[Any]) -> tuple[bytes, int]:
    return dtype.byteorder.encode(), dtype.num
