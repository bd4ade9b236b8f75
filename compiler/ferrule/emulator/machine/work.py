"""What the blocks of a launch work with: a block's facts, frames of its warps, its own memory;
and the calls of the scheduler's functions."""

from __future__ import annotations

import ctypes
import mmap
import struct
from math import gcd, prod
from typing import Final

from ferrule.emulator.machine import printing
from ferrule.emulator.machine.jit import scheduler_code
from ferrule.emulator.machine.memory import UNIT, Memory
from ferrule.emulator.warps import layout

WINDOW_ALIGN: Final = 1024
"""Swizzles are of the bits of addresses, so a window begins at the address 0 of all of them."""
ALONE: Final = 64
"""The patience of a block while no other waits for a turn."""
_MOST_ORDERED: Final = 1 << 31
"""Blocks of a launch whose order can be random: products of two numbers fit 64 bits."""

_MIXER: Final = 0x9E3779B97F4A7C15
"""2**64 divided by the golden ratio: neighbouring seeds become far apart."""


def _order(count: int, random: int) -> tuple[int, int, int]:
    """Step, start and count of the order of blocks, see `layout.ORDER_COUNT`."""
    if not random or count > _MOST_ORDERED:
        return 0, 0, 0
    mixed = random * _MIXER % (1 << 64)
    step = mixed % count
    # Only with a step that has no factor in common with the count does each block come once.
    while gcd(step, count) != 1:
        step += 1
    return step, (mixed >> 32) % count, count


class Work:
    """Memory for one block at a time, of `key`: the block's sizes, bytes of its window, the
    cluster's sizes, and bytes of each thread's own memory."""

    def __init__(
        self,
        memory: Memory,
        block: tuple[int, int, int],
        shared: int,
        warp_bytes: int,
        local: int,
        parameters: int,
        asynchronous: int = 0,
        cluster: tuple[int, int, int] = (1, 1, 1),
        reserved: tuple[int, int] = (0, 0),
    ) -> None:
        self.key: Final = (block, shared, cluster, local)
        self._memory = memory
        self.threads: Final = prod(block)
        count = -(-self.threads // layout.LANES)
        blocks = prod(cluster)
        # Warps begin at a multiple of 256 bytes, behind blocks and cluster.
        head = -(-(blocks * layout.BLOCK_BYTES + layout.CLUSTER_BYTES) // 256) * 256
        self._frames = mmap.mmap(-1, head + blocks * count * warp_bytes)
        self.block: Final = ctypes.addressof(ctypes.c_char.from_buffer(self._frames))
        self._cluster: Final = self.block + blocks * layout.BLOCK_BYTES
        self.warps: Final = [self.block + head + i * warp_bytes for i in range(blocks * count)]
        self.stale = False
        self.watched: Final[list[mmap.mmap]] = []
        """What the race check keeps for each block."""
        self.initialised: Final[list[mmap.mmap]] = []
        """The same of the check of reads of fresh memory."""
        self._local_bytes = local
        stride = -(-local // UNIT) * UNIT
        self._windows = [memory.allocate_private(shared, WINDOW_ALIGN) for _ in range(blocks)]
        self._local = memory.allocate_private(stride * self.threads * blocks) if local else 0
        self._parameters = memory.allocate_private(parameters)
        self._size = parameters
        self._set_cluster(cluster, blocks)
        for rank in range(blocks):
            self._set_block(block, shared, count, warp_bytes, rank, cluster)
            at = rank * layout.BLOCK_BYTES
            self._put(at + layout.RESERVED_START, "<II", *reserved)
            for number in range(count):
                self._set_warp(rank, rank * count + number, number, stride, asynchronous)
            prepare(self.block + rank * layout.BLOCK_BYTES)

    def _set_cluster(self, cluster: tuple[int, int, int], blocks: int) -> None:
        at = self._cluster - self.block
        self._put(at + layout.C_SIZE, "<4I", blocks, *cluster)
        self._put(at + layout.C_EXPLICIT, "<I", int(blocks > 1))
        places = (self.block + i * layout.BLOCK_BYTES for i in range(blocks))
        self._put(at + layout.C_BLOCKS, f"<{blocks}Q", *places)

    def _set_block(
        self,
        block: tuple[int, int, int],
        shared: int,
        count: int,
        warp_bytes: int,
        rank: int,
        cluster: tuple[int, int, int],
    ) -> None:
        memory, at = self._memory, rank * layout.BLOCK_BYTES
        self._put(at + layout.NTID, "<3I", *block)
        self._put(at + layout.SHARED_BASE, "<QQI", self._windows[rank], shared, count)
        self._put(at + layout.FIRST_WARP, "<QQ", self.warps[rank * count], warp_bytes)
        self._put(
            at + layout.SHADOW, "<QQQQ", memory.shadow, memory.base, memory.global_size, memory.size
        )
        self._put(at + layout.ALL_THREADS, "<I", self.threads)
        self._put(at + layout.TOTAL_SHARED, "<I", shared)
        self._put(at + layout.PRINT, "<Q", printing.callback())
        self._put(at + layout.PARAMETER_SIZE, "<Q", self._size)
        x, rest = rank % cluster[0], rank // cluster[0]
        place = x, rest % cluster[1], rest // cluster[1]
        self._put(at + layout.CLUSTER, "<Q4I", self._cluster, rank, *place)
        self._put(at + layout.ALL_WARPS, "<I", len(self.warps))

    def _set_warp(self, rank: int, place: int, number: int, stride: int, asynchronous: int) -> None:
        warp = self.warps[place]
        at = warp - self.block
        self._put(at + layout.WARP_ID, "<I", number)
        thread = rank * self.threads + number * layout.LANES
        self._put(
            at + layout.BLOCK,
            "<QQQQQQ",
            self.block + rank * layout.BLOCK_BYTES,
            self._windows[rank],
            self._parameters,
            self._local + thread * stride,
            stride,
            self._local_bytes,
        )
        self._put(at + layout.ASYNC, "<Q", warp + asynchronous if asynchronous else 0)

    def _put(self, offset: int, kind: str, *values: int) -> None:
        struct.pack_into(kind, self._frames, offset, *values)

    def _word(self, offset: int, kind: str) -> int:
        return int(struct.unpack_from(kind, self._frames, offset)[0])

    def start(
        self,
        grid: tuple[int, int, int],
        smem: int,
        parameters: bytes,
        random: int,
        workspace: int = 0,
    ) -> None:
        """What is new for each launch."""
        ctypes.memmove(self._parameters, parameters, self._size)
        cluster = self.key[2]
        for at in range(0, self._cluster - self.block, layout.BLOCK_BYTES):
            self._put(at + layout.NCTAID, "<3I", *grid)
            self._put(at + layout.DYNAMIC_SHARED, "<I", smem)
            self._put(at + layout.GRID_WORKSPACE, "<Q", workspace)
        counts = grid
        if cluster != (1, 1, 1):
            counts = grid[0] // cluster[0], grid[1] // cluster[1], grid[2] // cluster[2]
        self._put(self._cluster - self.block + layout.C_COUNTS, "<3I", *counts)
        self._put(layout.RANDOM, "<Q", random)
        self._put(layout.ORDER_STEP, "<QQQ", *_order(prod(counts), random))
        self.set_patience(ALONE)
        if self.stale:
            for warp in self.warps:
                self._put(warp - self.block + layout.FAULT, "<I", 0)
                self._put(warp - self.block + layout.FAULT_SIZE, "<I", 0)
            self.stale = False

    def set_patience(self, turns: int) -> None:
        """How often warps may end their turn in a loop before other blocks have theirs."""
        self._put(layout.PATIENCE, "<I", turns)

    def set_turns(self, turns: int) -> None:
        """How many turns warps have until the scheduler returns, `RESTED`."""
        self._put(layout.TURNS, "<I", turns)

    @property
    def blocks_of_cluster(self) -> list[int]:
        """The addresses of the blocks that execute together."""
        return [self.block + i * layout.BLOCK_BYTES for i in range(prod(self.key[2]))]

    def own_memory(self, rank: int) -> tuple[int, int, int, int]:
        """Shared and local memory of a block of the cluster: where, and how many bytes."""
        local = -(-self._local_bytes // UNIT) * UNIT * self.threads
        return self._windows[rank], self.key[1], self._local + rank * local, local

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
    def rest(self) -> range:
        """The numbers of the blocks that have not begun."""
        return range(self.next, self._word(layout.END, "<Q"))

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
        for each in (*self._windows, self._local, self._parameters):
            if each:
                self._memory.free(each)


_PREPARE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


def prepare(block: int) -> None:
    """Number the threads of a block's warps."""
    _PREPARE(scheduler_code().addresses["prepare"])(block)
