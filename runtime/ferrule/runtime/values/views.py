"""Views of tensors through DLPack: dtype, shape, strides, device, address, and whether writable.

No data is copied. A view can also be of a read-only array, or of an array with a dtype that NumPy
does not export. The user of the view must not write to read-only memory.
"""

from __future__ import annotations

import ctypes
from dataclasses import field
from typing import Any, Final

import numpy as np
import tvm_ffi

from ferrule import specs
from ferrule.runtime.values import foreign
from ferrule.runtime.values.capsules import Flags, exported, is_unknown
from ferrule.specs.deferred import dataclass
from ferrule.specs.dtypes import BY_NAME
from ferrule.specs.params import row_major_strides

OBJECT_HEADER: Final = 24
"""Bytes before the DLTensor of a tensor object."""

_PACKED: Final = specs.Float4E2M1FN.code | 4 << 8 | 2 << 16
"""The DLDataType of two 4-bit floats in a byte."""

NUMPY_TYPES: Final = 256
"""Numbers from here on are dtypes of other packages, which NumPy does not export through DLPack."""

DLPACK_TYPES: Final = sum(1 << np.dtype(each).num for each in "?bhilqBHILQefdFD")
"""The numbers of NumPy's own dtypes that DLPack has: a bit for each."""


class DLTensor(ctypes.Structure):
    """DLPack's struct of this name."""

    _fields_ = [
        ("data", ctypes.c_uint64),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("dtype", ctypes.c_uint32),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


@dataclass(frozen=True, slots=True)
class View:
    """DLPack's description of a tensor; sizes and strides count elements, even if it is packed.

    `tensor` keeps the memory alive.
    """

    tensor: Any = field(repr=False)
    dtype: specs.DType
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    device: str
    address: int
    packed: bool
    read_only: bool

    def spec(self, name: str) -> specs.Tensor:
        """The parameter for exactly this layout."""
        return specs.Tensor(
            name,
            self.shape,
            self.dtype,
            strides=self.strides,
            device=self.device,
            read_only=self.read_only,
            packed=self.packed,
        )

    def check_align(self, align: int) -> None:
        """ValueError unless the address of the data is a multiple of `align`."""
        if 0 not in self.shape and self.address % align:
            raise ValueError(
                f"the tensor's data lies at {self.address:#x}, which is no multiple of "
                f"{align} bytes"
            )


class _Writable:
    """The memory of an array, declared as writable in NumPy's array interface."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        interface = dict(array.__array_interface__)
        self.__array_interface__ = {**interface, "data": (interface["data"][0], False)}
        self.array = array


def writable_alias(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """An array of the same memory that DLPack exports; its user must not write to it."""
    return np.asarray(_Writable(array))


def typed_tensor(array: np.ndarray[Any, Any]) -> Any:
    """A tvm-ffi tensor for an array with a dtype of another package (bfloat16, float8_e4m3fn, …).

    NumPy cannot export such an array, so it exports the elements as unsigned integers, and the
    tensor then gets the dtype. TypeError for a dtype that DLPack does not have, or that has less
    than a byte for an element.
    """
    dtype = BY_NAME.get(array.dtype.name)
    if dtype is None or dtype.bits != 8 * array.itemsize:
        raise TypeError(f"an array of {array.dtype}, which DLPack does not have in this form")
    plain = array if array.flags.writeable else _writable_bytes(array)
    held = tvm_ffi.from_dlpack(plain.view(f"u{array.itemsize}"))
    DLTensor.from_address(held.__chandle__() + OBJECT_HEADER).dtype = dtype.dlpack
    return held


def _writable_bytes(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return writable_alias(array.view(f"u{array.itemsize}"))


def has_own_dtype(value: Any) -> bool:
    """Whether this is an array with a dtype of another package."""
    return isinstance(value, np.ndarray) and not 0 <= value.dtype.num < NUMPY_TYPES


def has_dlpack_dtype(array: np.ndarray[Any, Any]) -> bool:
    """Whether NumPy exports arrays with this dtype through DLPack."""
    number = array.dtype.num
    return 0 <= number < 64 and bool(DLPACK_TYPES >> number & 1) and array.dtype.isnative


def view_of(tensor: Any) -> View:
    """The view of a tensor. TypeError if DLPack does not export it, or for an unknown dtype."""
    if (masked := foreign.hidden_mask(tensor)) is not None:
        raise TypeError(f"expected a Tensor that DLPack gives out, but got {masked}")
    read_only = foreign.is_read_only(tensor)
    if has_own_dtype(tensor):
        held = typed_tensor(tensor)
    else:
        aliased = read_only and isinstance(tensor, np.ndarray)
        held, marked = _taken(writable_alias(tensor) if aliased else tensor)
        read_only = read_only or marked
    raw = DLTensor.from_address(held.__chandle__() + OBJECT_HEADER)
    shape = tuple(raw.shape[: raw.ndim]) if raw.ndim else ()
    row_major = row_major_strides(shape)
    # Strides have no meaning in a tensor without elements.
    given = tuple(raw.strides[: raw.ndim]) if raw.ndim and raw.strides and 0 not in shape else None
    strides = tuple(map(int, row_major)) if given is None else given
    packed = raw.dtype == _PACKED
    if packed:
        shape, strides = _logical(shape, strides)
    return View(
        held,
        _dtype_of(raw.dtype),
        shape,
        strides,
        specs.DEVICE_NAMES[raw.device_type],
        raw.data + raw.byte_offset,
        packed,
        read_only,
    )


def fake_view(tensor: Any) -> View:
    """The view of a fake tensor of torch, whose address is 0.  TypeError for sizes that torch has
    as symbols, and for an unknown dtype."""
    shape, strides = tuple(tensor.shape), tuple(tensor.stride())
    dtype = BY_NAME.get(str(tensor.dtype).removeprefix("torch."))
    if dtype is None or not all(type(size) is int for size in (*shape, *strides)):
        raise TypeError(
            f"expected a fake tensor of torch with sizes that are ints and a known dtype, but got "
            f"{tuple(shape)} of {tensor.dtype}"
        )
    return View(None, dtype, shape, strides, tensor.device.type, 0, packed=False, read_only=False)


def address_of(tensor: Any) -> int:
    """The address of the first element of a tensor that DLPack exports."""
    held = tvm_ffi.from_dlpack(tensor)
    raw = DLTensor.from_address(held.__chandle__() + OBJECT_HEADER)
    return int(raw.data + raw.byte_offset)


def _taken(tensor: Any) -> tuple[Any, bool]:
    """The tvm-ffi tensor, and whether its producer marks it as read-only."""
    unfit = foreign.hidden_elements(tensor) or foreign.lazy_change(tensor)
    if unfit is not None:
        raise TypeError(f"expected a Tensor that DLPack gives out, but got {unfit}")
    try:
        if not is_unknown(tensor):
            return tvm_ffi.from_dlpack(tensor), False
        found = exported(tensor)
        return found.tensor, Flags.READ_ONLY in found.flags
    except Exception as error:
        kind = type(tensor).__qualname__
        raise TypeError(f"a {kind} that DLPack does not give out: {error}") from error


def _dtype_of(word: int) -> specs.DType:
    if word == _PACKED:
        return specs.Float4E2M1FN
    if word not in specs.BY_DLPACK:
        code, bits, lanes = word & 0xFF, word >> 8 & 0xFF, word >> 16
        raise TypeError(f"the DLPack dtype (code={code}, bits={bits}, lanes={lanes}) is unknown")
    return specs.BY_DLPACK[word]


def _logical(
    shape: tuple[int, ...], strides: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Sizes and strides, in elements, of a tensor with two elements in each byte."""
    unit = [axis for axis, stride in enumerate(strides) if stride == 1]
    long = [axis for axis in unit if shape[axis] != 1] or unit
    if not long:
        raise ValueError(f"a packed tensor needs a dim of stride 1, but its strides are {strides}")
    inner = long[0]
    return (
        tuple(size * 2 if axis == inner else size for axis, size in enumerate(shape)),
        tuple(1 if axis == inner else stride * 2 for axis, stride in enumerate(strides)),
    )
