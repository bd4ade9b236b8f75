"""Type indices of TVM-FFI, the tags of values at a call; a test compares them with the C header."""

from __future__ import annotations

from enum import IntEnum
from typing import Final


class TypeIndex(IntEnum):
    """The tag of a `TVMFFIAny`; from `OBJECT` on the payload is a counted reference."""

    ANY = -1
    NONE = 0
    INT = 1
    BOOL = 2
    FLOAT = 3
    OPAQUE_PTR = 4
    DATA_TYPE = 5
    DEVICE = 6
    DLTENSOR_PTR = 7
    RAW_STR = 8
    BYTE_ARRAY_PTR = 9
    OBJECT_RVALUE_REF = 10
    SMALL_STR = 11
    SMALL_BYTES = 12
    OBJECT = 64
    STR = 65
    BYTES = 66
    ERROR = 67
    FUNCTION = 68
    SHAPE = 69
    TENSOR = 70
    ARRAY = 71
    MAP = 72
    MODULE = 73
    OPAQUE_PY_OBJECT = 74
    LIST = 75
    DICT = 76


BIG_INT: Final = 78
"""The type index of an int that does not fit in a signed 64-bit word, in tvm-ffi from 0.1.14 on.

Integer parameters accept this type; the value is out of range for each dtype but uint64.
"""
DYNAMIC: Final = 128
"""The first type index of registered object types; in a union it represents all of them."""
STRINGS: Final = frozenset({TypeIndex.RAW_STR, TypeIndex.SMALL_STR, TypeIndex.STR})
"""The type indices of strings: a C string, a small one in its value, and an object."""
