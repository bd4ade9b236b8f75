"""The race check of a machine: its memory, what blocks have of it, and the text of a race."""

from __future__ import annotations

import ctypes
import mmap
import struct
import warnings
from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Final

from ferrule.emulator.checks import cells, clocks, orders
from ferrule.emulator.warps import layout

if TYPE_CHECKING:
    from ferrule.emulator.machine.memory import Memory
    from ferrule.emulator.machine.work import Work
    from ferrule.emulator.ptx.module import Instruction

# MAP_NORESERVE of Linux, as for the memory of the GPU itself.
_NO_RESERVE: Final = 0x4000
_CELLS: Final = 1 << 36
"""Bytes for cells, 16 for each byte that kernels touch; they are there once they are written."""
_MESSAGES: Final = 1 << 28
_LAST_ERA: Final = 1 << 30


def _reserved(size: int) -> tuple[mmap.mmap, int]:
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NO_RESERVE
    found = mmap.mmap(-1, size, flags=flags, prot=mmap.PROT_READ | mmap.PROT_WRITE)
    return found, ctypes.addressof(ctypes.c_char.from_buffer(found))


class Race:
    """What the blocks of a machine have together."""

    def __init__(self, memory: Memory) -> None:
        pages = -(-memory.size >> cells.PAGE_SHIFT) * -8
        sizes = (clocks.WORLD_BYTES, abs(pages), _CELLS, _MESSAGES,
                 orders.O_BYTES << orders.TABLE_BITS, 8 * _LAST_ERA)  # fmt: skip
        kept = [_reserved(size) for size in sizes]
        self._kept: Final = [each[0] for each in kept]
        self._world, self._pages, self._cells, self._messages, self._table, eras = (
            each[1] for each in kept
        )
        self._put(clocks.W_PAGES, "<QQQQ", self._pages, self._cells, self._cells + _CELLS,
                  self._table)  # fmt: skip
        self._put(clocks.W_BASE, "<QQQQ", memory.base, memory.size, memory.global_size,
                  eras)  # fmt: skip
        self._memory = memory

    def _put(self, offset: int, kind: str, *values: int) -> None:
        struct.pack_into(kind, self._kept[0], offset, *values)

    def _get(self, offset: int) -> int:
        return int(struct.unpack_from("<I", self._kept[0], offset)[0])

    def begin(self) -> None:
        """A launch: all that was before is past."""
        era = self._get(clocks.W_ERA) + 1
        if era > _LAST_ERA:
            for each in (self._kept[1], self._kept[2], self._kept[4]):
                each.madvise(mmap.MADV_DONTNEED)
            self._put(clocks.W_PAGE_FREE, "<Q", self._cells)
            era = 1
        end = self._messages + _MESSAGES
        self._put(clocks.W_FREE, "<QQIII", self._messages, end, 0, era, era)
        self._put(clocks.W_UNFENCED, "<I", 0)

    def end(self, kernel: str, instructions: Sequence[Instruction]) -> None:
        """The launch is over; warns where the check had no memory left for it, and of a fence that
        is missing by the PTX manual, and that GPUs do without."""
        if self._get(clocks.W_UNFENCED):
            from ferrule.emulator.machine.faults import where

            init, copy = (instructions[self._get(each)] for each in (clocks.W_INIT, clocks.W_COPY))
            warnings.warn(
                f"{kernel}: {copy.name}, {where(copy)}, completes an mbarrier without a "
                f"fence.mbarrier_init or fence.proxy.async behind its {init.name}, {where(init)}: "
                "the PTX manual asks for one, GPUs are known to work without it",
                RuntimeWarning,
                stacklevel=2,
            )
        if self._get(clocks.W_STOPPED):
            warnings.warn(
                f"{kernel}: the race check stopped before the end of the launch: threads released "
                "or touched more than it has memory for",
                RuntimeWarning,
                stacklevel=2,
            )

    def attach(self, work: Work) -> None:
        """Give the blocks of a launch their clocks."""
        for place, block in enumerate(work.blocks_of_cluster):
            if len(work.watched) <= place:
                kept, address = self._area(work)
                work.watched.append(kept)
                ctypes.c_uint64.from_address(block + layout.WATCHED).value = address

    def _area(self, work: Work) -> tuple[mmap.mmap, int]:
        threads = prod(work.key[0])
        stride = -(-threads // 8) * 8
        parts = (clocks.AREA_BYTES, threads * clocks.STATE_BYTES, threads * stride * 4,
                 clocks.MEETINGS * (clocks.M_ROW + stride * 4), clocks.MEETINGS * 128,
                 threads * clocks.QUEUES * clocks.QUEUE_BYTES)  # fmt: skip
        starts, at = [], 0
        for size in parts:
            starts.append(at)
            at += -(-size // 64) * 64
        kept, base = _reserved(at)
        struct.pack_into("<QI", kept, clocks.R_WORLD, self._world, 0xFFFFFFFF)
        struct.pack_into("<3I", kept, clocks.R_THREADS, threads, stride,
                         len(work.blocks_of_cluster))  # fmt: skip
        struct.pack_into("<4Q", kept, clocks.R_STATES, *(base + each for each in starts[1:5]))
        struct.pack_into("<Q", kept, clocks.R_QUEUES, base + starts[5])
        return kept, base
