"""Objects with `__dlpack__` whose capsules are looked at before anything reads them.

tvm-ffi says of whatever is no capsule that it was consumed; here it is said what came instead.
"""

from __future__ import annotations

import ctypes
from typing import Any, Final

import numpy as np
import tvm_ffi

_NAMES: Final = (b"dltensor", b"dltensor_versioned")
_OWN_WAY: Final = (
    "__dlpack_c_exchange_api__",
    "__tvm_ffi_object__",
    "__tvm_ffi_env_stream__",
)
_KNOWN: Final = frozenset({"torch", "cupy", "jax", "jaxlib", "tvm_ffi"})

_is_capsule: Final = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_IsValid", ctypes.pythonapi)
)
_name_of: Final = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(
    ("PyCapsule_GetName", ctypes.pythonapi)
)
_CAPSULE: Final = type(np.zeros(1).__dlpack__())


class Exporter:
    """A tensor of an unknown class; `described` says what it is where its capsule is none."""

    __slots__ = ("_described", "_tensor")

    def __init__(self, tensor: Any, described: str = "{}") -> None:
        self._tensor = tensor
        self._described = described

    def __dlpack__(self, **options: Any) -> Any:
        found = self._tensor.__dlpack__(**options)
        wrong = _wrong(found)
        if wrong is not None:
            kind = type(self._tensor).__qualname__
            raise TypeError(self._described.format(f"{kind}, whose __dlpack__ gives {wrong}"))
        return found

    def __dlpack_device__(self) -> Any:
        return self._tensor.__dlpack_device__()


def is_unknown(value: object) -> bool:
    """Whether a value has `__dlpack__` alone, and is of no class that is known to have it right."""
    kind = type(value)
    if not hasattr(kind, "__dlpack__") or isinstance(value, (type, np.ndarray, tvm_ffi.Object)):
        return False
    known = any(each.__module__.partition(".")[0] in _KNOWN for each in kind.__mro__)
    return not known and not any(hasattr(kind, name) for name in _OWN_WAY)


def _wrong(found: object) -> str | None:
    """What is wrong with what `__dlpack__` gave, if anything is."""
    if not isinstance(found, _CAPSULE):
        return f"no capsule, but {type(found).__name__}"
    if any(_is_capsule(found, name) for name in _NAMES):
        return None
    name = (_name_of(found) or b"").decode(errors="replace")
    if name.startswith("used_dltensor"):
        return "a capsule that was used before; each call must give a new one"
    return f"a capsule named {name!r}, but not one of a tensor"
