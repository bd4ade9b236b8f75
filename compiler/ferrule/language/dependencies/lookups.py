"""Attributes as Python looks them up: in classes and their bases, and how guards watch them."""

from __future__ import annotations

import functools
import gc
import types
from typing import TYPE_CHECKING, Any, Final

from ferrule.language.marks import Marked

if TYPE_CHECKING:
    from ferrule.language.dependencies.guards import Guard

ABSENT: Final = object()
"""The value, for a guard, of a missing name or an empty cell."""
MISSING: Final = object()
"""What reading gives where there is nothing."""
HEAP_TYPE: Final = 1 << 9
"""Py_TPFLAGS_HEAPTYPE of object.h: a class made by a class statement."""
_IMMUTABLE_TYPE: Final = 1 << 8  # Py_TPFLAGS_IMMUTABLETYPE


def is_changeable(cls: type) -> bool:
    """Whether a program can set attributes of a class."""
    return cls.__flags__ & (HEAP_TYPE | _IMMUTABLE_TYPE) == HEAP_TYPE


def is_sealed(value: Any, name: str) -> bool:
    """Whether an object, beside its class, always has what it has under this name."""
    cls = type(value)
    if name in getattr(value, "__dict__", ()):
        known = member(cls, name)
        return isinstance(known, functools.cached_property) or (
            _is_frozen(cls) and name in cls.__dataclass_fields__
        )
    return _is_frozen(cls)


def _is_frozen(cls: Any) -> bool:
    """Whether this is a dataclass whose fields cannot be set."""
    return bool(getattr(getattr(cls, "__dataclass_params__", None), "frozen", False))


def member(cls: type, name: str) -> Any:
    """The definition of a name in a class or the first of its bases, as written there."""
    return next((vars(base)[name] for base in cls.__mro__ if name in vars(base)), MISSING)


def namespace_of(cls: type) -> dict[str, Any]:
    """The dict behind the read-only view of a class."""
    (found,) = gc.get_referents(vars(cls))
    return found  # type: ignore[no-any-return]


def watch_member(cls: type, name: str, guard: Guard, value: Any) -> bool:
    """Add the condition that a class or the first of its bases defines this name so to a guard."""
    guard.add_class(cls)
    for base in cls.__mro__:
        namespace = namespace_of(base)
        found = namespace.get(name, ABSENT)
        if not guard.add_name(namespace, name, found):
            return False
        if found is not ABSENT:
            return found is value
    return value is MISSING


def watch_attribute(owner: Any, name: str, guard: Guard, value: Any) -> bool:
    """Add the condition that an attribute has this value to a guard, if possible."""
    if type(owner) is types.FunctionType and name in ("__defaults__", "__kwdefaults__"):
        if name == "__kwdefaults__":
            guard.add_keyword_defaults(owner, value)
        return True  # the guard includes the code and the defaults of all functions
    if isinstance(owner, Marked) and name == "function":
        guard.add_class(owner)
        return guard.add_slot(owner, value)
    if type(owner) not in (types.ModuleType, type) or hasattr(type(owner), name):
        return False
    guard.add_class(owner)
    if type(owner) is types.ModuleType:
        found = vars(owner).get(name, MISSING)
        return found is value and found is not MISSING and guard.add_name(vars(owner), name, found)
    return _watch_class(guard, owner, name, value)


def _watch_class(guard: Guard, owner: type, name: str, value: Any) -> bool:
    for base in owner.__mro__:
        namespace = namespace_of(base)
        found = namespace.get(name, ABSENT)
        if not guard.add_name(namespace, name, found):
            return False
        if found is not ABSENT:
            plain = found.__func__ if type(found) is staticmethod else found
            return plain is value and _is_plain(plain)
    return False


def _is_plain(value: Any) -> bool:
    """Whether a class returns this attribute unchanged, and always will."""
    kind = type(value)
    of_python = not kind.__flags__ & HEAP_TYPE
    return kind is types.FunctionType or (of_python and not hasattr(kind, "__get__"))
