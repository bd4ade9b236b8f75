"""Where NumPy's arrays have the fields that machine code reads, tried on live arrays."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any, Final

import numpy as np

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
