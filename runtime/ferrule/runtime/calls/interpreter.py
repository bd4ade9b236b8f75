"""Assumptions of a call's code about the interpreter, each tested on live objects.

`unfit` names the first assumption that fails; then no such code is generated, and all calls use
tvm-ffi's generic call. `entry.surroundings` tests assumptions about single kinds of values; if one
of them fails, only these values go to the gate.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, Final

WORD: Final = 8

# Offsets in objects and types of a 64-bit CPython; `unfit` compares them with live objects.
_COUNT_OFFSET: Final = 0
_TYPE_OFFSET: Final = 8
_SIZE_OFFSET: Final = 16
_VECTORCALL_OFFSET: Final = 56
# Since Python 3.12 (PEP 683) objects such as None have this count, and it is never changed.
_IMMORTAL: Final = (1 << 32) - 1


class Unfit(Exception):
    """This interpreter does not have a property that the code of a call needs; says which."""


def unfit() -> str | None:
    """Why this process cannot use generated code for calls; None if it can."""
    return next((why for why, holds in _ASSUMED.items() if not holds()), None)


@cache
def counts_inline() -> bool:
    """Whether generated code may change reference counts itself, as `entry.python` does.

    It may not in debug builds, which also count all references of the process, and not from 3.14
    on, where reference counting is an internal matter of the interpreter.
    """
    if hasattr(sys, "gettotalrefcount") or sys.version_info >= (3, 14):
        return False
    if sys.version_info >= (3, 12) and read(None, _COUNT_OFFSET) & _IMMORTAL != _IMMORTAL:
        return False
    return _references_are_counted()


def read(value: object, offset: int) -> int:
    """A word of an object; the object must be that long."""
    return ctypes.c_uint64.from_address(id(value) + offset).value


def _is_cpython() -> bool:
    return sys.implementation.name == "cpython"


def _has_gil() -> bool:
    return "t" not in getattr(sys, "abiflags", "")


def _has_words_of_eight_bytes() -> bool:
    return ctypes.sizeof(ctypes.c_void_p) == WORD and sys.byteorder == "little"


def _heads_have_two_words() -> bool:
    return object.__basicsize__ == 2 * WORD


def _types_are_read() -> bool:
    samples = (object(), 5, 1.5, "text", (1,), int, type)
    return all(read(each, _TYPE_OFFSET) == id(type(each)) for each in samples)


def _references_are_counted() -> bool:
    sample = object()
    before = read(sample, _COUNT_OFFSET)
    more = [sample, sample]
    held = read(sample, _COUNT_OFFSET)
    more.clear()
    return held - before == 2 and read(sample, _COUNT_OFFSET) == before


def _items_of_tuples_are_read() -> bool:
    items = (object(), object())
    first = tuple.__basicsize__
    found = tuple(read(items, first + WORD * i) for i in range(2))
    return read(items, _SIZE_OFFSET) == 2 and found == tuple(map(id, items))


_ASSUMED: Final[Mapping[str, Callable[[], bool]]] = MappingProxyType(
    {
        "the interpreter is not CPython": _is_cpython,
        "the interpreter is a free-threaded build": _has_gil,
        "addresses are not little-endian words of 8 bytes": _has_words_of_eight_bytes,
        "objects do not begin with two words": _heads_have_two_words,
        "objects have their type in another place": _types_are_read,
        "tuples have their items in another place": _items_of_tuples_are_read,
    }
)
"""The tests in their order: each is safe to run only if all tests before it have passed."""


def check_type(made: type[Any], size: int, vectorcall_offset: int, weaklist_offset: int) -> None:
    """Raise Unfit unless the words of a type are at the requested offsets."""
    if made.__basicsize__ != size or made.__weakrefoffset__ != weaklist_offset:
        raise Unfit("types are not laid out as asked")
    make: Callable[[type[Any]], object] = getattr(made, "__new__")  # noqa: B009
    instance = make(made)
    place = ctypes.c_uint64.from_address(id(instance) + vectorcall_offset)
    get = _vectorcall_reader()
    seen = []
    for word in (WORD, 2 * WORD, 0):
        place.value = word
        seen.append(get(instance) or 0)
    if seen != [WORD, 2 * WORD, 0]:
        raise Unfit("the interpreter calls objects through another place than asked")


def _vectorcall_reader() -> Callable[[object], int | None]:
    """A function that reads an object's vectorcall pointer where the interpreter reads it."""
    if hasattr(ctypes.pythonapi, "PyVectorcall_Function"):
        prototype = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object)
        return prototype(("PyVectorcall_Function", ctypes.pythonapi))
    # Python 3.10 has it in a header alone, which reads the offset from the type.
    return lambda instance: read(instance, read(type(instance), _VECTORCALL_OFFSET))
