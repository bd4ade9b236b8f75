"""What a call gives back in Python: containers of tvm-ffi as tuples and lists, at any depth.

Tensors in them are of the kind that tvm-ffi makes of a Tensor that a call returns: of the caller's
framework where an argument was.
"""

from __future__ import annotations

import ctypes
from typing import Any, Final

import tvm_ffi

from ferrule import specs
from ferrule.specs import params

_CONTAINERS: Final = (params.Tuple, params.Array, params.List, params.AnyValue)

ARRAY: Final[type[Any]] = tvm_ffi.Array
"""What a tuple is to tvm-ffi."""

_LIST: Final[type[Any] | None] = getattr(tvm_ffi, "List", None)
"""Since apache-tvm-ffi 0.1.9."""

_WORD: Final = 8

_array_size: Final = tvm_ffi.get_global_func("ffi.ArraySize")
_array_item: Final = tvm_ffi.get_global_func("ffi.ArrayGetItem")


def holds_containers(result: specs.Param | None) -> bool:
    """Whether what a function gives back has to be unpacked."""
    return isinstance(result, _CONTAINERS)


def unpack(value: Any) -> Any:
    """An Array as a tuple, a List as a list, with all in them; anything else as it is."""
    kind = type(value)
    if kind is ARRAY:
        return tuple([item_of(value, i) for i in range(_array_size(value))])
    if kind is _LIST:
        return [unpack(item) for item in value]
    return value


def item_of(array: Any, index: int) -> Any:
    """An item of an Array, unpacked."""
    return unpack(_array_item(array, index))


def array_handle_offset() -> int | None:
    """Where an Array has the handle of its object: found by looking, None where it is not."""
    probe = ARRAY([])
    handle = probe.__chandle__()
    for offset in range(2 * _WORD, ARRAY.__basicsize__ - _WORD + 1, _WORD):
        if ctypes.c_uint64.from_address(id(probe) + offset).value == handle:
            return offset
    return None
