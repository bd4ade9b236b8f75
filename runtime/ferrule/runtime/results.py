"""What a call gives back in Python: containers of tvm-ffi as tuples and lists, at any depth.

Tensors in them are of the kind that tvm-ffi makes of a Tensor that a call returns: of the caller's
framework where an argument was.
"""

from __future__ import annotations

from typing import Any, Final

import tvm_ffi

from ferrule import specs
from ferrule.specs import params

_CONTAINERS: Final = (params.Tuple, params.Array, params.List)


def holds_containers(result: specs.Param | None) -> bool:
    """Whether what a function gives back has to be unpacked."""
    return isinstance(result, _CONTAINERS)


_ARRAY: Final[type[Any]] = tvm_ffi.Array
_LIST: Final[type[Any] | None] = getattr(tvm_ffi, "List", None)
"""Since apache-tvm-ffi 0.1.9."""

_array_size: Final = tvm_ffi.get_global_func("ffi.ArraySize")
_array_item: Final = tvm_ffi.get_global_func("ffi.ArrayGetItem")


def unpack(value: Any) -> Any:
    """An Array as a tuple, a List as a list, with all in them; anything else as it is."""
    kind = type(value)
    if kind is _ARRAY:
        items = [_array_item(value, i) for i in range(_array_size(value))]
        return tuple([unpack(item) if type(item) in (_ARRAY, _LIST) else item for item in items])
    if kind is _LIST:
        return [unpack(item) for item in value]
    return value
