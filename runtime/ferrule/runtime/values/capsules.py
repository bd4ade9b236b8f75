"""Objects with `__dlpack__`: this module checks their capsules before tvm-ffi reads them.

tvm-ffi reports each value that is not a capsule as a capsule that was consumed; this module reports
the actual value. tvm-ffi asks for no version of DLPack, but some producers give a capsule only if a
version is asked for; this module accepts both.
"""

from __future__ import annotations

import ctypes
import sys
from enum import IntFlag
from typing import Any, Final, NamedTuple

import numpy as np
import tvm_ffi

_VERSIONED: Final = b"dltensor_versioned"
_NAMES: Final = (b"dltensor", _VERSIONED)
_C_FUNCTIONS: Final = "__dlpack_c_exchange_api__"
_OWN_WAY: Final = (
    _C_FUNCTIONS,
    "__tvm_ffi_object__",
    "__tvm_ffi_env_stream__",
)
_KNOWN: Final = frozenset({"torch", "cupy", "jax", "jaxlib", "tvm_ffi"})

# PYFUNCTYPE, because these functions need the GIL.
_is_capsule: Final = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_IsValid", ctypes.pythonapi)
)
_name_of: Final = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(
    ("PyCapsule_GetName", ctypes.pythonapi)
)
_CAPSULE: Final = type(np.zeros(1).__dlpack__())


_pointer_of: Final = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
_VERSION: Final = (1, 0)
"""The version of DLPack to ask for; all versions with this major number can be read."""


class _Versioned(ctypes.Structure):
    """The start of DLPack's DLManagedTensorVersioned."""

    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager_ctx", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
    ]


class Flags(IntFlag):
    """The producer's statements about the memory of a tensor."""

    READ_ONLY = 1
    IS_COPIED = 2
    IS_SUBBYTE_TYPE_PADDED = 4


class Exported(NamedTuple):
    """A tensor of tvm-ffi that uses the memory of another package's tensor, and the flags of it."""

    tensor: Any
    flags: Flags

    @property
    def unwritable(self) -> str | None:
        """The description, for messages, of memory that must not be written; None if writable.

        To write to a copy is useless: nobody sees the change.
        """
        if Flags.READ_ONLY in self.flags:
            return "a read-only one"
        return "a copy, whose changes nobody sees" if Flags.IS_COPIED in self.flags else None


def exported(tensor: Any, described: str = "{}") -> Exported:
    """The tensor that an object of an unknown class exports through `__dlpack__`.

    Raises TypeError with the text `described` if the capsule is wrong. Errors that `__dlpack__`
    itself raises are passed on.
    """
    try:
        capsule = tensor.__dlpack__(max_version=_VERSION)
    except TypeError:  # a producer from before DLPack had versions
        capsule = tensor.__dlpack__()
    wrong, flags = _wrong(capsule), Flags(0)
    if wrong is None and _is_capsule(capsule, _VERSIONED):
        held = _Versioned.from_address(_pointer_of(capsule, _VERSIONED))
        wrong, flags = _unknown(held), Flags(held.flags & sum(Flags))
    if wrong is not None:
        kind = type(tensor).__qualname__
        raise TypeError(described.format(f"{kind}, whose __dlpack__ gives {wrong}"))
    return Exported(tvm_ffi.from_dlpack(capsule), flags)


def _unknown(held: _Versioned) -> str | None:
    """The property of a versioned tensor that this module cannot read; None if there is none."""
    if held.major != _VERSION[0]:
        known = f"{_VERSION[0]}.x is known"
        return f"a tensor of version {held.major}.{held.minor} of DLPack, of which {known}"
    if held.flags & Flags.IS_SUBBYTE_TYPE_PADDED:
        return "elements of less than a byte, each in a byte of its own"
    return None


def is_unknown(value: object) -> bool:
    """Whether a value must be read through `__dlpack__`, and its class may implement it wrong."""
    kind = type(value)
    if not hasattr(kind, "__dlpack__") or isinstance(value, (type, np.ndarray, tvm_ffi.Object)):
        return False
    known = any(each.__module__.partition(".")[0] in _KNOWN for each in kind.__mro__)
    if not known:
        return not any(hasattr(kind, name) for name in _OWN_WAY)
    return _overrides_torch(kind)


def _overrides_torch(kind: type[Any]) -> bool:
    """Whether a subclass of torch.Tensor has a `__dlpack__` of its own and inherits the C functions
    that would read the memory of torch instead, or has none."""
    tensor = getattr(sys.modules.get("torch"), "Tensor", None)
    if tensor is None or not issubclass(kind, tensor) or kind.__dlpack__ is tensor.__dlpack__:
        return False
    functions = getattr(kind, _C_FUNCTIONS, None)
    return functions is None or functions is getattr(tensor, _C_FUNCTIONS, None)


def _wrong(found: object) -> str | None:
    """Why a value that `__dlpack__` returned is not a usable capsule; None if it is one."""
    if not isinstance(found, _CAPSULE):
        return f"no capsule, but {type(found).__name__}"
    if any(_is_capsule(found, name) for name in _NAMES):
        return None
    name = (_name_of(found) or b"").decode(errors="replace")
    if name.startswith("used_dltensor"):
        return "a capsule that was used before; each call must give a new one"
    return f"a capsule named {name!r}, but not one of a tensor"
