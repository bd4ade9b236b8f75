"""Memory for machine code: never writable and executable at once, and shared among small objects.

A `Block` has three parts: code, constants and variables. `allocate` finds addresses for them, so
that the code can be relocated, and `Block.fill` writes them once; afterwards code can be executed
and not written, constants can be neither, and variables can be written.

Small blocks share an *arena*. Its code and constants are pages of an anonymous file, which are
mapped twice: once for execution, and once for `fill` to write, inaccessible meanwhile. Variables
are private memory. A place of an arena is used once, and only by the process that made the arena:
after a fork parent and child have the same pages. An arena goes with its last block. Where the
system has no such files, and for large blocks, each block is mapped alone.
"""

from __future__ import annotations

import ctypes
import mmap
import os
from functools import cache
from typing import Any, Final

from ferrule.runtime.forks import ForkLock
from ferrule.specs.deferred import dataclass

PAGE: Final = mmap.PAGESIZE
CODE, CONSTANTS, VARIABLES = range(3)

_ARENA: Final = tuple(max(size, PAGE) for size in (1 << 16, 1 << 15, 1 << 13))
"""The bytes of an arena's parts. One block that lives keeps all that was used of its arena."""

_SMALL: Final = tuple(size // 4 for size in _ARENA)
"""The largest parts of a block that goes into an arena."""

# All parts of a block reach each other by 32 bits, signed, with room to spare.
_LARGEST: Final = 1 << 30
_LINE: Final = 64
"""Code begins at a multiple of this: how it lies in cache lines does not depend on its place."""

_NONE, _READ, _WRITE, _EXECUTE = 0, mmap.PROT_READ, mmap.PROT_WRITE, mmap.PROT_EXEC
_PROTECTION: Final = (_READ | _EXECUTE, _READ, _READ | _WRITE)
_PRIVATE: Final = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
# MAP_FIXED of Linux, which the module mmap does not name.
_FIXED: Final = 0x10
_FAILED: Final = ctypes.c_size_t(-1).value

Sizes = tuple[int, int, int]
Parts = tuple["bytes | bytearray", "bytes | bytearray", "bytes | bytearray"]


class NoMemoryError(Exception):
    """The system gives no memory for code like this."""


class Block:
    """Memory of one object: the `addresses` of its parts, in the order code, constants, variables.

    It lives until `release`.
    """

    __slots__ = ("_home", "_sizes", "addresses")

    def __init__(self, home: _Arena | _Own, addresses: Sizes, sizes: Sizes) -> None:
        self._home = home
        self._sizes = sizes
        self.addresses = addresses

    def fill(self, parts: Parts) -> None:
        """Write the parts, once; what is shorter than its part ends with zeros."""
        self._home.fill(self.addresses, parts)
        _show(self.addresses[CODE], self._sizes[CODE])

    def release(self) -> None:
        """Give the memory back; nothing may run or use it any more."""
        self._home.release(self)


class _Own:
    """Memory of a block that is mapped alone, each part in pages of its own."""

    def __init__(self, sizes: Sizes) -> None:
        self._sizes = tuple(map(_pages, sizes))
        self._base = _map(sum(self._sizes), _READ | _WRITE, _PRIVATE)

    def addresses(self) -> Sizes:
        return _starts(self._base, self._sizes)

    def fill(self, addresses: Sizes, parts: Parts) -> None:
        for address, part, size, protection in zip(
            addresses, parts, self._sizes, _PROTECTION, strict=True
        ):
            if part:
                ctypes.memmove(address, bytes(part), len(part))
            _protect(address, size, protection)

    def release(self, _: Block) -> None:
        _unmap(self._base, sum(self._sizes))


class _Arena:
    """Memory that small blocks share."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self._blocks: set[Block | None] = {None}  # None: more may come
        self._used = [0, 0, 0]
        shared = sum(_ARENA[:VARIABLES])
        # One range for all three parts, so that they reach each other. The file takes the place of
        # the first two below.
        self._base = _map(sum(_ARENA), _READ | _WRITE, _PRIVATE)
        self._alias = 0
        file = -1
        try:
            file = os.memfd_create("ferrule")
            os.ftruncate(file, shared)
            self._alias = _map(shared, _NONE, mmap.MAP_SHARED, file)
            _map(shared, _READ, mmap.MAP_SHARED | _FIXED, file, self._base)
            _protect(self._base, _ARENA[CODE], _READ | _EXECUTE)
        except (OSError, AttributeError, NoMemoryError) as error:
            self._unmap()
            raise NoMemoryError(str(error)) from None
        finally:
            # The mappings keep the file alive.
            if file >= 0:
                os.close(file)

    def block(self, sizes: Sizes) -> Block | None:
        """The next places; None where there is no room."""
        starts: list[int] = []
        for used, size, room in zip(self._used, sizes, _ARENA, strict=True):
            at = -(-used // _LINE) * _LINE
            if at + size > room:
                return None
            starts.append(at)
        self._used = [at + size for at, size in zip(starts, sizes, strict=True)]
        bases = _starts(self._base, _ARENA)
        code, constants, variables = map(int.__add__, bases, starts)
        block = Block(self, (code, constants, variables), sizes)
        self._blocks.add(block)
        return block

    def fill(self, addresses: Sizes, parts: Parts) -> None:
        offset, shared = self._alias - self._base, sum(_ARENA[:VARIABLES])
        # The alias is that of the whole arena: another thread would make it inaccessible meanwhile.
        with _LOCK:
            _protect(self._alias, shared, _READ | _WRITE)
            for address, part in zip(addresses[:VARIABLES], parts[:VARIABLES], strict=True):
                ctypes.memmove(address + offset, bytes(part), len(part))
            _protect(self._alias, shared, _NONE)
        ctypes.memmove(addresses[VARIABLES], bytes(parts[VARIABLES]), len(parts[VARIABLES]))

    def close(self) -> None:
        """No more blocks will come."""
        self.release(None)

    def release(self, block: Block | None) -> None:
        with _LOCK:
            if block in self._blocks:
                self._blocks.remove(block)
                if not self._blocks:
                    self._unmap()

    def _unmap(self) -> None:
        _unmap(self._base, sum(_ARENA))
        if self._alias:
            _unmap(self._alias, sum(_ARENA[:VARIABLES]))


_LOCK: Final = ForkLock()  # a finaliser may release a block meanwhile
_CURRENT: Final[list[_Arena]] = []


def allocate(sizes: Sizes, align: int, *, alone: bool = False) -> Block:
    """A block with parts of these sizes, each at a multiple of `align`; `alone`: in anonymous
    memory of its own.  NoMemoryError where there is none."""
    if sum(sizes) > _LARGEST or align > PAGE:
        raise NoMemoryError(f"it takes {sum(sizes)} bytes at a multiple of {align}")
    small = all(size <= most for size, most in zip(sizes, _SMALL, strict=True))
    if small and align <= _LINE and not alone:
        with _LOCK:
            block = _shared(sizes)
        if block is not None:
            return block
    own = _Own(sizes)
    return Block(own, own.addresses(), sizes)


def _shared(sizes: Sizes) -> Block | None:
    """A block of the current arena, or of a new one; None where the system has no arenas."""
    if _CURRENT and _CURRENT[0].process == os.getpid():
        block = _CURRENT[0].block(sizes)
        if block is not None:
            return block
    try:
        arena = _Arena()
    except NoMemoryError:
        return None
    closed, _CURRENT[:] = list(_CURRENT), [arena]
    block = arena.block(sizes)
    for each in closed:
        each.close()
    return block


def _starts(base: int, sizes: tuple[int, ...]) -> Sizes:
    code, constants, _ = sizes
    return base, base + code, base + code + constants


def _pages(size: int) -> int:
    return -(-size // PAGE) * PAGE


@cache
def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None, use_errno=True)
    size, number = ctypes.c_size_t, ctypes.c_int
    libc.mmap.restype = size
    libc.mmap.argtypes = (size, size, number, number, number, ctypes.c_long)
    libc.mprotect.argtypes = (size, size, number)
    libc.munmap.argtypes = (size, size)
    return libc


def _map(size: int, protection: int, kind: int, file: int = -1, at: int = 0) -> int:
    # mmap refuses a size of 0.
    address = int(_libc().mmap(at, max(size, PAGE), protection, kind, file, 0))
    if address == _FAILED:
        raise NoMemoryError(os.strerror(ctypes.get_errno()))
    return address


def _protect(address: int, size: int, protection: int) -> None:
    if size and _libc().mprotect(address, size, protection):
        raise NoMemoryError(os.strerror(ctypes.get_errno()))


def _unmap(address: int, size: int) -> None:
    _libc().munmap(address, max(size, PAGE))


def _show(address: int, size: int) -> None:
    """Let processors see new code: those of x86-64 do by themselves."""
    flush = _cache_flush()
    if flush is not None:
        flush(ctypes.c_void_p(address), ctypes.c_void_p(address + size))


@cache
def _cache_flush() -> Any:
    """libgcc's function that makes new code visible to instruction caches, where one is needed."""
    if os.uname().machine not in ("aarch64", "arm64"):
        return None
    try:
        return ctypes.CDLL("libgcc_s.so.1").__clear_cache
    except (OSError, AttributeError):
        raise NoMemoryError("there is no libgcc, which shows new code to processors") from None


# ---- what profilers and debuggers can be told of code, and how a user asks for it ----

VARIABLE: Final = "FERRULE_JIT_INFO"
"""Asks for information about the code, see `jitinfo`."""

PERF_MAP: Final = "perfmap"
JIT_DUMP: Final = "jitdump"
GDB: Final = "gdb"
"""The conventions that `VARIABLE` names."""


@dataclass(frozen=True, slots=True)
class CodeFunction:
    """A function in memory: `section` and `offset` are its place in the object, `code` its bytes
    there, before relocation."""

    name: str
    address: int
    section: int
    offset: int
    code: bytes
