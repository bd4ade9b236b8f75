"""Snapshots of compile-time values, for a comparison with their later state.

Numbers, strings, dtypes and Python containers are compared by value, including types and the signs
of zeros; functions, classes, modules and all other objects by identity.  A snapshot is compared at
each direct call, so what is large costs time there, but is never taken for what it was.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import marshal
import struct
import types
from collections import deque
from typing import Any, Final

import numpy as np

from ferrule.specs import DType, Numeric

DIGESTED: Final = 4096
"""The bytes from which on a digest is kept: not a copy for each compilation."""
_MARSHALLED: Final = 64
"""The items from which on a container is compared as `marshal` writes it, fifty times as fast."""

_PLAIN: Final = (type(None), bool, int, str, bytes, type(Ellipsis))
_MAPPINGS: Final = (dict, types.MappingProxyType)
_CHANGING: Final = (list, *_MAPPINGS, set, bytearray, deque)
_CONTAINERS: Final = (tuple, frozenset, *_CHANGING)


class Same:
    """Equal only for the same object, which it keeps alive."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


def snapshot(value: Any, depth: int = 0) -> Any:
    """A hashable value that is equal for values that compile to the same code."""
    kind = type(value)
    if kind in _PLAIN:
        return kind, value
    if kind is float:
        return kind, struct.pack("d", value)  # a NaN equals itself, and -0.0 is not 0.0
    if kind is complex:
        return kind, struct.pack("2d", value.real, value.imag)
    if isinstance(value, (DType, type)):
        return Same(value)
    if isinstance(value, Numeric):
        return kind, snapshot(value.value)
    if isinstance(value, (np.generic, np.ndarray)):
        return _array(value)
    if isinstance(value, types.MethodType):
        return kind, Same(value.__self__), Same(value.__func__)
    if isinstance(value, functools.partial):
        parts = value.func, value.args, value.keywords, vars(value)
        return kind, *(snapshot(each, depth + 1) for each in parts)
    return _inside(value, depth)


def _array(value: Any) -> Any:
    how = value.dtype, value.shape, value.strides, value.flags.writeable
    if value.dtype.hasobject:
        return type(value), how, tuple(snapshot(each, 1) for each in value.flat)
    return type(value), how, _digest(value.tobytes())


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=32).digest() if len(data) > DIGESTED else data


def _inside(value: Any, depth: int) -> Any:
    """The contents of a container, of a set in its order, or of a dataclass; beyond a depth, which
    cycles reach, only the identity."""
    kind = type(value)
    is_record = dataclasses.is_dataclass(kind)
    if depth > 8 or not (is_record or isinstance(value, _CONTAINERS)):
        return Same(value)
    if is_record:
        named = (getattr(value, each.name, None) for each in dataclasses.fields(value))
        return kind, tuple(snapshot(each, depth + 1) for each in named)
    if isinstance(value, bytearray):
        return kind, _digest(bytes(value))
    if kind in (list, tuple, dict) and len(value) > _MARSHALLED:
        try:
            # A later format tells which objects are shared.  What it cannot write is no plain data.
            return kind, _digest(marshal.dumps(value, 2))
        except ValueError:
            pass
    if isinstance(value, _MAPPINGS):
        return kind, tuple((snapshot(k, 9), snapshot(v, depth + 1)) for k, v in value.items())
    inner = tuple(snapshot(each, depth + 1) for each in value)
    return (kind, value.maxlen, inner) if isinstance(value, deque) else (kind, inner)


def may_change(value: Any) -> bool:
    """Whether the contents of a value, and so its compiled form, can change while its identity
    stays."""
    if isinstance(value, (*_CHANGING, np.ndarray, functools.partial)):
        return True
    if isinstance(value, (tuple, frozenset)):
        return any(map(may_change, value))
    return dataclasses.is_dataclass(type(value)) and not isinstance(value, (DType, Numeric))
