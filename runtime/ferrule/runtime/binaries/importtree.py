"""The import tree of a library: the bytes at `__tvm_ffi__library_bin`, in tvm-ffi's format.

    u64 nbytes                        the bytes that follow; every number is little-endian
    u64 count, u64 × count            indptr: the children of module i are children[indptr[i] :
                                      indptr[i + 1]], so there is one more than there are modules
    u64 count, u64 × count            children: the positions of modules
    for each module: u64 size, kind; unless the kind is "_lib": u64 size, its bytes

The module at position 0 is the result of loading. `_lib` is the library that defines the symbol.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import Final

from ferrule.runtime.abi import SYMBOL_PREFIX
from ferrule.runtime.binaries.elf import ObjectFileError
from ferrule.specs.deferred import dataclass

SYMBOL: Final = f"{SYMBOL_PREFIX}_library_bin"
LIBRARY: Final = "_lib"

_WORD: Final = struct.Struct("<Q")


@dataclass(frozen=True, slots=True)
class Node:
    """A module: its kind, its bytes, and the positions of the modules that it imports.

    The library itself, of kind `_lib`, has no bytes. In this process a node can be a module of
    tvm-ffi that there is, `live`; its bytes then only tell it from others.
    """

    kind: str
    data: bytes
    children: tuple[int, ...]
    live: object | None = None


def check_kind(kind: str) -> None:
    """ValueError for a kind that no module of bytes can have in a tree."""
    if not kind or kind == LIBRARY or "\0" in kind:
        raise ValueError(f"a module of bytes cannot be of kind {kind!r}")


def write_import_tree(nodes: Iterable[Node]) -> bytes:
    """The bytes of the symbol for these modules; the first one is the root."""
    indptr, modules = [0], []
    children: list[int] = []
    for node in nodes:
        children += node.children
        indptr.append(len(children))
        modules.append(_sized(node.kind.encode()))
        if node.kind != LIBRARY:
            modules.append(_sized(node.data))
    data = _words(indptr) + _words(children) + b"".join(modules)
    return _sized(data)


def _words(numbers: list[int]) -> bytes:
    return b"".join(map(_WORD.pack, (len(numbers), *numbers)))


def _sized(data: bytes) -> bytes:
    return _WORD.pack(len(data)) + data


def read_import_tree(data: bytes) -> tuple[Node, ...]:
    """The modules of an import tree; ObjectFileError if it is damaged or has a cycle."""
    reader = _Reader(data)
    reader.end = reader.word() + reader.position
    if reader.end > len(data):
        raise _damaged(f"it says that it has {reader.end} bytes, but there are {len(data)}")
    indptr, children = reader.words(), reader.words()
    if not indptr or indptr[0] != 0 or indptr != sorted(indptr) or indptr[-1] != len(children):
        raise _damaged("its modules have no proper list of children")
    count = len(indptr) - 1
    if not count or any(child >= count for child in children):
        raise _damaged(f"a module imports one that is not among its {count}")
    nodes = []
    for first, last in zip(indptr, indptr[1:], strict=False):
        kind = _kind(reader.take())
        data_of = b"" if kind == LIBRARY else reader.take()
        nodes.append(Node(kind, data_of, tuple(children[first:last])))
    order(nodes)
    return tuple(nodes)


def _kind(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise _damaged(f"a module is of the kind {data!r}") from None


def order(nodes: Sequence[Node]) -> list[int]:
    """The positions of the modules in topological order: each comes after its imports.

    ObjectFileError if the imports have a cycle.
    """
    waiting = [len(node.children) for node in nodes]
    parents: list[list[int]] = [[] for _ in nodes]
    for at, node in enumerate(nodes):
        for child in node.children:
            parents[child].append(at)
    found = [at for at, count in enumerate(waiting) if count == 0]
    for at in found:
        for parent in parents[at]:
            waiting[parent] -= 1
            if waiting[parent] == 0:
                found.append(parent)
    if len(found) < len(nodes):
        at = next(at for at, count in enumerate(waiting) if count)
        raise _damaged(f"module {at}, of kind {nodes[at].kind!r}, is in a circle of imports")
    return found


def _damaged(why: str) -> ObjectFileError:
    return ObjectFileError(f"the import tree in {SYMBOL} is damaged: {why}")


class _Reader:
    """Reads numbers and byte strings one after the other."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.position = 0
        self.end = len(data)

    def word(self) -> int:
        """The next number."""
        return int(_WORD.unpack(self._bytes(_WORD.size))[0])

    def words(self) -> list[int]:
        """The next list of numbers."""
        count = self.word()
        if count > (self.end - self.position) // _WORD.size:
            raise _damaged(f"a list of {count} numbers reaches past its end")
        return [self.word() for _ in range(count)]

    def take(self) -> bytes:
        """The next byte string."""
        return self._bytes(self.word())

    def _bytes(self, size: int) -> bytes:
        if size > self.end - self.position:
            raise _damaged(f"a part of {size} bytes reaches past its end")
        self.position += size
        return self.data[self.position - size : self.position]
