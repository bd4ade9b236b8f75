"""`Encoder`: values as bytes; equal bytes compile to the same code.

It has numbers, texts, containers, symbols and ferrule's own records; a subclass adds other kinds.
Any other value makes a compilation uncacheable.
"""

from __future__ import annotations

import dataclasses
import enum
import struct
import types
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, Final

from ferrule.compiler.cache.keys import Uncacheable
from ferrule.specs import DType, Numeric, Sym

MOST_ITEMS: Final = 1 << 16
"""The limit for the items of a container, and 1/256 of that for the bytes of an array."""
# Far below the limit of Python's recursion.
_DEEP: Final = 64


def sized(tag: bytes, data: bytes) -> bytes:
    """Bytes behind their tag and size, so that no two of them run together."""
    return b"%s%d:" % (tag, len(data)) + data


PLAIN: Final[dict[type, Callable[[Any], bytes]]] = {
    type(None): lambda value: b"N",
    bool: lambda value: b"T" if value else b"F",
    int: lambda value: b"i%x;" % value,  # Python limits the decimal digits that it writes
    float: lambda value: b"f" + struct.pack("<d", value),  # with the sign of a NaN
    complex: lambda value: b"c" + struct.pack("<2d", value.real, value.imag),
    str: lambda value: sized(b"s", value.encode("utf-8", "surrogatepass")),
    bytes: lambda value: sized(b"b", value),
    bytearray: lambda value: sized(b"a", bytes(value)),
    type(Ellipsis): lambda value: b"E",
    type(NotImplemented): lambda value: b"I",
}
"""Kinds of values without others inside."""
_SHARED: Final = (list, deque, dict, OrderedDict, set)
"""Containers that `is` tells apart although they are equal."""
_ORDERED: Final = frozenset({int, float, bool, complex})
"""Kinds of items whose order in a set is the same in each process."""


class Encoder:
    """Encodes the values of one key; an object that occurs again is encoded as its number."""

    def __init__(self) -> None:
        self._numbers: Final[dict[int, int]] = {}
        self._kept: Final[list[object]] = []
        self._active: Final[set[int]] = set()

    def encode(self, value: Any) -> bytes:
        """The bytes of a value.  Uncacheable for one of an unknown kind."""
        kind = type(value)
        plain = PLAIN.get(kind)
        if plain is not None:
            return plain(value)
        if isinstance(value, type):
            return self.encode_class(value)
        if id(value) in self._active:
            raise Uncacheable(f"a {kind.__name__} holds itself")
        if len(self._active) > _DEEP:
            raise Uncacheable("it is nested too deeply")
        self._active.add(id(value))
        try:
            return self._compound(value, kind)
        finally:
            self._active.discard(id(value))

    def encode_class(self, value: type) -> bytes:
        """A class, by its name if the name determines it."""
        if isinstance(value, DType) or value.__module__ in ("builtins",):
            return b"class" + self.encode(named(value))
        raise Uncacheable(f"it names the class {named(value)}")

    def special(self, value: Any) -> bytes:
        """A value of another kind."""
        raise Uncacheable(f"it holds a {named(type(value))}, which nothing tells")

    def items(self, name: str, values: Iterable[Any]) -> bytes:
        """Several values in their order."""
        inner = list(values)
        if len(inner) > MOST_ITEMS:
            raise Uncacheable(f"a {name} has {len(inner)} items")
        return b"%s(%d:" % (name.encode(), len(inner)) + b"".join(map(self.encode, inner)) + b")"

    def number(self, value: object) -> tuple[int, bool]:
        """The number of an object in the order in which they are met, and whether it is new."""
        known = self._numbers.get(id(value))
        if known is not None:
            return known, False
        # Alive, so that no other object gets its `id`.
        self._kept.append(value)
        self._numbers[id(value)] = len(self._numbers)
        return len(self._numbers) - 1, True

    def _compound(self, value: Any, kind: type) -> bytes:
        if kind in _SHARED:
            number, new = self.number(value)
            if not new:
                return b"again#%d" % number
        if kind in (tuple, list):
            return self.items(kind.__name__, value)
        if kind is deque:
            return self.items("deque", [value.maxlen, *value])
        if kind in (dict, types.MappingProxyType, OrderedDict):
            return self.items(kind.__name__, [part for pair in value.items() for part in pair])
        if kind in (set, frozenset):
            return self._set(value, kind)
        if isinstance(value, Sym):
            return self._symbol(value)
        if is_ours(kind.__module__):
            return self._ours(value, kind)
        return self.special(value)

    def _set(self, value: Any, kind: type) -> bytes:
        """A set: in its order, which a loop over it has, unless each process has another one."""
        inner = [self.encode(each) for each in value]
        if not has_order(value):
            inner.sort()
        return sized(kind.__name__.encode(), b"".join(inner))

    def _ours(self, value: Any, kind: type) -> bytes:
        """A value of one of ferrule's own classes."""
        name = sized(b"ours", named(kind).encode())
        if isinstance(value, enum.Enum):
            return name + self.encode(value.name)
        if isinstance(value, Numeric):
            return name + self.encode(value.value)
        if dataclasses.is_dataclass(value):
            return name + self.items("", [getattr(value, each) for each in _fields(kind)])
        return self.special(value)

    def _symbol(self, value: Sym) -> bytes:
        """A symbol: those with equal keys are one, whatever objects they are."""
        key = value.key
        if type(key) is str or dataclasses.is_dataclass(key):
            known = self.encode(key)
        else:
            known = b"#%d" % self.number(key)[0]
        return b"Sym" + known + self.items("", [value.name, *value.facts])


@cache
def _fields(kind: type) -> tuple[str, ...]:
    """The names of a dataclass's fields."""
    return tuple(each.name for each in dataclasses.fields(kind))


def has_order(value: Iterable[Any]) -> bool:
    """Whether a set made in the same way has the same order in each process."""
    return _ORDERED.issuperset(map(type, value))


def is_ours(module: str) -> bool:
    """Whether a module is one of ferrule's."""
    return module.startswith("ferrule.")


def named(value: Any) -> str:
    """A function, class or module with its module's name."""
    if isinstance(value, types.ModuleType):
        return value.__name__
    name = getattr(value, "__qualname__", getattr(value, "__name__", type(value).__name__))
    return f"{module_of(value)}.{name}"


def module_of(value: Any) -> str:
    """The name of a value's module; a program's own has another one in processes that it starts."""
    name = str(getattr(value, "__module__", None))
    return "__main__" if name == "__mp_main__" else name
