"""The memory of an emulated GPU: one range of addresses of this process, and what in it is alive.

Its first part is global memory; behind it lies what blocks and threads have to themselves. For each
256 bytes a *shadow* has how many of them, from the first, belong to an allocation. Allocations
begin at 256 bytes and have at least 256 free bytes behind them: an access of at most 16 aligned
bytes is inside of one exactly if it ends before what the shadow says.
"""

from __future__ import annotations

import ctypes
import mmap
from bisect import bisect_right, insort
from collections import deque
from collections.abc import Callable
from typing import Final

UNIT: Final = 256
FILL: Final = 0xCD
"""What fresh memory is filled with."""

_SIZES: Final = tuple(1 << n for n in (38, 36, 34, 32, 30))
"""Bytes to reserve, the first that the system gives: nothing is used before it is written."""
# MAP_NORESERVE of Linux, which the module mmap does not name: without it the system may refuse to
# promise so much.
_NO_RESERVE: Final = 0x4000
_QUARANTINE: Final = 1024
"""Pieces that stay unused after they were freed, so that a late access finds nothing there."""
_PRIVATE: Final = 4
"""The part of all behind global memory is one of so many."""


def _reserve(size: int) -> mmap.mmap:
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NO_RESERVE
    return mmap.mmap(-1, size, flags=flags, prot=mmap.PROT_READ | mmap.PROT_WRITE)


class Memory:
    """The memory of a machine. Addresses are those of the process."""

    def __init__(self) -> None:
        self._map, size = _largest()
        self._shadow_map = _reserve(size // UNIT * 2)
        self.base: Final = ctypes.addressof(ctypes.c_char.from_buffer(self._map))
        self.shadow: Final = ctypes.addressof(ctypes.c_char.from_buffer(self._shadow_map))
        self.size: Final = size
        self.global_size: Final = size - size // _PRIVATE
        self._global: Final = _Region(self.base, self.base + self.global_size)
        self._private: Final = _Region(self.base + self.global_size, self.base + size)
        self.written: Callable[[int, int], None] | None = None
        """What is told of each write of the host."""
        self.fresh: Callable[[int, int], None] | None = None
        """What is told of each new allocation."""

    def allocate(self, size: int) -> int:
        """The address of bytes of global memory, filled with 0xCD; MemoryError if full."""
        return self._take(self._global, size, FILL)

    def allocate_private(self, size: int, align: int = UNIT) -> int:
        """The same for the memory of blocks and threads, filled with zeros."""
        return self._take(self._private, size, 0, align)

    def _take(self, region: _Region, size: int, fill: int, align: int = UNIT) -> int:
        if size < 0:
            raise ValueError(f"the size must not be negative, but is {size}")
        address = region.take(size, align)
        ctypes.memset(address, fill, size)
        self._mark(address, size)
        if self.fresh is not None:
            self.fresh(address, size)
        return address

    def free(self, address: int) -> None:
        """Give an allocation back; ValueError for an address where none begins."""
        region = self._global if address in self._global.sizes else self._private
        size = region.give(address)
        ctypes.memset(self._shadow_of(address), 0, 2 * _units(size))
        self._forget(address, size)

    def find(self, address: int) -> tuple[int, int] | None:
        """The allocation that an address is in: its start and size."""
        return self._global.find(address)

    def freed(self, address: int) -> tuple[int, int] | None:
        """The allocation that an address was in, if that was freed lately."""
        return self._global.freed(address)

    def private(self, address: int) -> bool:
        """Whether an address is in memory of blocks and threads."""
        return self._private.find(address) is not None

    def _shadow_of(self, address: int) -> int:
        return self.shadow + (address - self.base) // UNIT * 2

    def _mark(self, address: int, size: int) -> None:
        place, full = self._shadow_of(address), size // UNIT
        words = (ctypes.c_uint16 * _units(size)).from_address(place)
        whole = (UNIT).to_bytes(2, "little") * full
        ctypes.memmove(words, whole, 2 * full)
        if size % UNIT:
            words[full] = size % UNIT

    def _forget(self, address: int, size: int) -> None:
        """Give whole pages back to the system: they are zeros from now on."""
        first = -(-(address - self.base) // mmap.PAGESIZE) * mmap.PAGESIZE
        last = (address - self.base + size) // mmap.PAGESIZE * mmap.PAGESIZE
        if last > first:
            self._map.madvise(mmap.MADV_DONTNEED, first, last - first)


def _largest() -> tuple[mmap.mmap, int]:
    for size in _SIZES:
        try:
            return _reserve(size), size
        except OSError:
            continue
    raise MemoryError("the system gives no addresses for the memory of an emulated GPU")


def _units(size: int) -> int:
    return -(-size // UNIT)


class _Region:
    """Addresses that are given away and taken back."""

    def __init__(self, start: int, end: int) -> None:
        # A gap of one unit before all: an address just below an allocation is in none.
        self._next = start + UNIT
        self._end = end
        self.sizes: dict[int, int] = {}
        self._starts: list[int] = []
        self._waiting: deque[tuple[int, int, int]] = deque()
        self._free: dict[int, list[int]] = {}

    def take(self, size: int, align: int) -> int:
        need = (max(1, _units(size)) + 1) * UNIT
        free = [each for each in self._free.get(need, ())[-1:] if each % align == 0]
        if align > UNIT:
            self._next = -(-self._next // align) * align
        if free:
            address = self._free[need].pop()
        elif self._next + need <= self._end:
            address = self._next
            self._next += need
        else:
            raise MemoryError(f"the emulated GPU has no {size} bytes left")
        self.sizes[address] = size
        insort(self._starts, address)
        return address

    def give(self, address: int) -> int:
        if address not in self.sizes:
            raise ValueError(f"no allocation begins at {address:#x}")
        size = self.sizes.pop(address)
        del self._starts[bisect_right(self._starts, address) - 1]
        self._waiting.append((address, (max(1, _units(size)) + 1) * UNIT, size))
        if len(self._waiting) > _QUARANTINE:
            old, need, _ = self._waiting.popleft()
            self._free.setdefault(need, []).append(old)
        return size

    def find(self, address: int) -> tuple[int, int] | None:
        place = bisect_right(self._starts, address)
        if not place:
            return None
        start = self._starts[place - 1]
        size = self.sizes[start]
        return (start, size) if address < start + max(size, 1) else None

    def freed(self, address: int) -> tuple[int, int] | None:
        """The freed block that held an address and was not used again yet; of several the one that
        was freed last."""
        for start, _, size in reversed(self._waiting):
            if start <= address < start + max(size, 1):
                return start, size
        return None
