"""Pointers of ctypes: `POINTER(c_float)`, `byref(x)`, arrays, `c_char_p`."""

from __future__ import annotations

import ctypes
from typing import Any, Final

import numpy as np

from ferrule import specs

_REFERENCE: Final = type(ctypes.byref(ctypes.c_int()))


def target(value: object) -> type[Any] | None:
    """The class to whose objects a pointer of ctypes points; None for another object.

    An array stands for the address of its first element, as in C.
    """
    if isinstance(value, (ctypes._Pointer, ctypes.Array)):
        return value._type_
    if isinstance(value, _REFERENCE):
        return type(value._obj)  # type: ignore[attr-defined]
    return ctypes.c_char if isinstance(value, ctypes.c_char_p) else None


def other_element(kind: type[Any], dtype: specs.DType | None) -> str | None:
    """The description of a pointer to elements that are not of this dtype; None if they may be.

    `c_char` is memory of any kind, as in C; what a struct begins with is the caller's business.
    """
    if dtype is None or not issubclass(kind, ctypes._SimpleCData) or kind is ctypes.c_char:
        return None
    try:
        found = np.dtype(kind)
    except (TypeError, NotImplementedError):
        return None  # such as c_void_p, whose pointer is void**
    same = found.name == dtype.name or (found.itemsize * 8, found.kind) == (dtype.bits, "V")
    return None if same else f"a pointer to {kind.__name__}"
