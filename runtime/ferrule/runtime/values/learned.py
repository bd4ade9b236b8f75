"""Classes whose values machine code reads, once Python has read one of them.

Python decides what a value of somebody's own class means: a dataclass is its fields, a stream the
handle that its method gives.  It writes the class and the way into a table here; a direct entry
finds the class there the next time.  The value is asked through its own attributes at each call, so
what a class does later is seen.  A table holds its latest classes, and keeps them alive.
"""

from __future__ import annotations

import ctypes
import sys
from enum import IntEnum
from typing import Any, Final

from ferrule.runtime.calls.interpreter import read
from ferrule.runtime.entry.readers import Key
from ferrule.specs.deferred import dataclass

CLASSES: Final = 8
"""How many classes a table holds; the next one takes the place of the oldest."""

HEAD: Final = 2
"""Words before the classes: where the names are, and how many."""


class Way(IntEnum):
    """How machine code reads a value; 0 stands for a class that is not in the table."""

    ITEMS = 1
    """The items of a tuple."""

    ATTRIBUTES = 2
    """One attribute for each name."""

    ADDRESS = 3
    """The word in the memory of an object of ctypes."""

    OPAQUE = 4
    """What `__tvm_ffi_opaque_ptr__()` gives."""

    STREAM = 5
    """The second item of what `__cuda_stream__()` gives."""

    INNER = 6
    """The tensor in a slot of the object."""

    BUFFER = 7
    """The buffer that the object gives to readers."""


@dataclass(slots=True, eq=False)
class Learned:
    """One table in C memory: `HEAD`, then a class and its way in turn.

    The upper half of a way is an offset in the object, for `INNER`.
    """

    words: ctypes.Array[ctypes.c_uint64]
    names: tuple[str, ...]
    memory: object
    kinds: list[type[Any]]
    following: int = 0

    def learn(self, kind: type[Any], way: Way, offset: int = 0) -> None:
        """Read the values of this class in machine code from now on."""
        if kind in self.kinds:
            return
        place, self.following = self.following, (self.following + 1) % CLASSES
        former = self.kinds[place : place + 1]  # lives until the words name another
        word = HEAD + 2 * place
        # No class in between: another thread may read the table while the way is the new one
        # already.
        self.words[word] = 0
        self.words[word + 1] = way | offset << 32
        self.words[word] = id(kind)
        self.kinds[place : place + 1] = [kind]
        del former

    @property
    def address(self) -> int:
        """Where the table is."""
        return ctypes.addressof(self.words)


BUFFERS: Final[Key] = ("buffers",)
"""The table of the classes of arrays that are read through the buffer protocol."""

_TABLES: Final[dict[Key, Learned]] = {}


def table(key: Key) -> Learned:
    """The table of this process for a purpose."""
    found = _TABLES.get(key)
    return _TABLES.setdefault(key, _new(key)) if found is None else found


def _new(key: Key) -> Learned:
    names = tuple(map(sys.intern, key[1:])) if key[0] == "fields" else ()
    memory = (ctypes.c_uint64 * len(names))(*map(id, names))
    words = (ctypes.c_uint64 * (HEAD + 2 * CLASSES))(ctypes.addressof(memory), len(names))
    return Learned(words, names, memory, [])


def learn_adapter(value: Any) -> None:
    """Read the tensors of an adapter's class in machine code: what `value.tensor` is."""
    words = range(object.__basicsize__, type(value).__basicsize__, 8)
    places = [at for at in words if read(value, at) == id(value.tensor)]
    if len(places) == 1:
        table(("tensor",)).learn(type(value), Way.INNER, places[0])
