"""What the blocks of a launch work with: a block's facts, frames of its warps, its own memory."""

from __future__ import annotations

import ctypes
import mmap
import struct
from math import prod
from typing import Final

from ferrule.emulator.machine import printing
from ferrule.emulator.machine.memory import UNIT, Memory
from ferrule.emulator.machine.scheduler_calls import prepare
from ferrule.emulator.warps import layout

WINDOW_ALIGN: Final = 1024
"""Swizzles are of the bits of addresses, so a window begins at the address 0 of all of them."""


class Work:
    """Memory for one block at a time, of `key`: the block's sizes, and bytes of its window."""

    def __init__(
        self,
        memory: Memory,
        block: tuple[int, int, int],
        shared: int,
        warp_bytes: int,
        local: int,
        parameters: int,
    ) -> None:
        self.key: Final = (block, shared)
        self._memory = memory
        self.threads: Final = prod(block)
        count = -(-self.threads // layout.LANES)
        self._frames = mmap.mmap(-1, layout.BLOCK_BYTES + count * warp_bytes)
        self.block: Final = ctypes.addressof(ctypes.c_char.from_buffer(self._frames))
        first = self.block + layout.BLOCK_BYTES
        self.warps: Final = [first + i * warp_bytes for i in range(count)]
        self.stale = False
        self._local_bytes = local
        stride = -(-local // UNIT) * UNIT
        self._window = memory.allocate_private(shared, WINDOW_ALIGN)
        self._local = memory.allocate_private(stride * self.threads) if local else 0
        self._parameters = memory.allocate_private(parameters)
        self._size = parameters
        self._set_block(block, shared, count, warp_bytes)
        for number, warp in enumerate(self.warps):
            self._set_warp(warp, number, stride)
        prepare(self.block)

    def _set_block(
        self, block: tuple[int, int, int], shared: int, count: int, warp_bytes: int
    ) -> None:
        memory = self._memory
        self._put(layout.NTID, "<3I", *block)
        self._put(layout.SHARED_BASE, "<QQI", self._window, shared, count)
        self._put(layout.FIRST_WARP, "<QQ", self.warps[0], warp_bytes)
        self._put(
            layout.SHADOW, "<QQQQ", memory.shadow, memory.base, memory.global_size, memory.size
        )
        self._put(layout.ALL_THREADS, "<I", self.threads)
        self._put(layout.TOTAL_SHARED, "<I", shared)
        self._put(layout.PRINT, "<Q", printing.callback())
        self._put(layout.PARAMETER_SIZE, "<Q", self._size)

    def _set_warp(self, warp: int, number: int, stride: int) -> None:
        struct.pack_into("<I", self._frames, warp - self.block + layout.WARP_ID, number)
        local = self._local + number * layout.LANES * stride
        struct.pack_into(
            "<QQQQQQ",
            self._frames,
            warp - self.block + layout.BLOCK,
            self.block,
            self._window,
            self._parameters,
            local,
            stride,
            self._local_bytes,
        )

    def _put(self, offset: int, kind: str, *values: int) -> None:
        struct.pack_into(kind, self._frames, offset, *values)

    def _word(self, offset: int, kind: str) -> int:
        return int(struct.unpack_from(kind, self._frames, offset)[0])

    def start(self, grid: tuple[int, int, int], smem: int, parameters: bytes, random: int) -> None:
        """What is new for each launch."""
        ctypes.memmove(self._parameters, parameters, self._size)
        self._put(layout.NCTAID, "<3I", *grid)
        self._put(layout.DYNAMIC_SHARED, "<I", smem)
        self._put(layout.RANDOM, "<Q", random)
        if self.stale:
            for warp in self.warps:
                struct.pack_into("<I", self._frames, warp - self.block + layout.FAULT, 0)
            self.stale = False

    def blocks(self, first: int, end: int, *, keep: bool = False) -> None:
        """The numbers of the blocks to execute; `keep` goes on with the one that has begun."""
        self._put(layout.NEXT, "<QQ", first, end)
        if not keep:
            self._put(layout.BEGUN, "<I", 0)

    @property
    def next(self) -> int:
        """The number of the first block that has not begun."""
        return self._word(layout.NEXT, "<Q")

    @property
    def cursor(self) -> int:
        """The warp that failed."""
        return self._word(layout.CURSOR, "<I")

    @property
    def random(self) -> int:
        """Where the random numbers are."""
        return self._word(layout.RANDOM, "<Q")

    def close(self) -> None:
        """Give the memory back."""
        for each in (self._window, self._local, self._parameters):
            if each:
                self._memory.free(each)
