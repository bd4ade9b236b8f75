"""The check of reads of memory that nobody has written: where kernels call it, and its bits."""

from __future__ import annotations

import ctypes
import mmap
import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from ferrule.emulator.checks.init_source import (
    AROUND,
    CONSTANTS,
    I_BYTES,
    IN_SHARED,
    INDEX_SHIFT,
    OFFSET_SHIFT,
    SOURCE,
)
from ferrule.emulator.checks.watch import call, number
from ferrule.emulator.instructions.helpers import helper
from ferrule.emulator.native.language import functions, helper_text
from ferrule.emulator.ptx.cursor import BYTES
from ferrule.emulator.warps import layout
from ferrule.emulator.warps.frames import handed

if TYPE_CHECKING:
    from ferrule.emulator.checks.reads import Reads
    from ferrule.emulator.machine.memory import Memory
    from ferrule.emulator.machine.work import Work
    from ferrule.emulator.ptx.module import Instruction
    from ferrule.emulator.warps.emitter import Emitter

# MAP_NORESERVE of Linux, as for the memory of the GPU itself.
_NO_RESERVE: Final = 0x4000
_MULTICAST: Final = 1 << 20
"""Where a value of all lanes follows the one before it, for helpers with many."""
_HANDED: Final = frozenset({"param", "param::entry", "param::func", "const"})


@helper("init")
def _init(name: str, entry: str) -> str:
    pointers = len(functions(SOURCE)[entry].args.args) - 2
    return helper_text(name, SOURCE, entry, pointers, CONSTANTS)


class InitWatch:
    """Calls of the check in one kernel."""

    def __init__(self) -> None:
        self._reads: Reads | None = None

    def started(self, reads: Reads) -> None:
        self._reads = reads

    def before(self, e: Emitter, name: str, places: Sequence[str], mask: str) -> None:
        """Memory checks come first: their words are the better ones."""

    def after(self, e: Emitter, name: str, places: Sequence[str], mask: str) -> None:
        what, *rest = name.split(":")
        if what in ("load", "store") and e.item.opcode in ("ld", "ldu", "st"):
            self._move(e, what, int(rest[1]) * int(rest[2]), rest[0], places[0], mask)
        elif what == "atomic":
            # It has changed the place, but nobody has noted that: old values are still fresh.
            self._read(e, BYTES[rest[2]], rest[1], places[0], mask)
            self._call(e, "writes", BYTES[rest[2]], rest[1], places[0], mask)
        elif what == "matrix" and rest[0] in ("load", "store"):
            rows = e.op(f"and i32 {mask}, {(1 << 8 * int(rest[2])) - 1}")
            entry = "reads" if rest[0] == "load" else "writes"
            self._call(e, entry, 16, rest[1], places[0], rows)
        elif what == "async":
            self._asynchronous(e, rest[0], set(rest), places, mask)

    def executed(self, e: Emitter, item: Instruction) -> None:
        """All is checked where helpers are called."""

    def _move(self, e: Emitter, what: str, size: int, space: str, place: str, mask: str) -> None:
        if what == "store":
            self._call(e, "writes", size, space, place, mask)
        elif not set(e.item.modifiers) & _HANDED and not handed(e.item):
            assert self._reads is not None
            for offset, many in self._reads.uses.runs(e.item):
                self._read(e, many | offset << OFFSET_SHIFT, space, place, mask)

    def _read(self, e: Emitter, size: int, space: str, place: str, mask: str) -> None:
        assert self._reads is not None
        around = e.item.opcode in ("ld", "atom") and self._reads.swaps.reads_around(e.item)
        self._call(e, "reads", size | (AROUND if around else 0), space, place, mask)

    def _call(self, e: Emitter, entry: str, size: int, space: str, place: str, mask: str) -> None:
        how = size | (IN_SHARED if space in ("shared", "cluster") else 0)
        call(e, f"init:{entry}", [place, number(how | e.index << INDEX_SHIFT)], mask)

    def _asynchronous(
        self, e: Emitter, entry: str, settings: set[str], places: Sequence[str], mask: str
    ) -> None:
        cast = _MULTICAST if "MULTICAST=1" in settings else 0
        if entry in ("init", "inval"):
            space = "generic" if "GENERIC=1" in settings else "shared"
            self._call(e, "writes", 8, space, places[0], mask)
        elif entry == "store_async":
            numbers = {key: value for key, _, value in (each.partition("=") for each in settings)}
            size = int(numbers["SIZE"]) * int(numbers["VALUES"])
            what = "reads" if numbers.get("HOW", "0") != "0" else "writes"
            self._call(e, what, size, "shared", places[0], mask)
        elif entry == "issue":
            size = next(int(each[5:]) for each in settings if each.startswith("SIZE="))
            call(e, "init:copies", [*places[:3], number(size | IN_SHARED)], mask)
        elif entry == "bulk_load":
            given = [places[0], "null", places[2], number(IN_SHARED | cast)]
            call(e, "init:receives", given, mask)
        elif entry == "tensor_load":
            given = [places[-3], places[0], "null", number(IN_SHARED | cast)]
            call(e, "init:receives", given, mask)
        elif entry == "bulk_store":
            call(e, "init:sends", [places[0], places[2]], mask)
        elif entry == "tensor_store":
            call(e, "init:sends_box", [places[0], places[1]], mask)


class Init:
    """The bits of a machine's memory."""

    def __init__(self, memory: Memory) -> None:
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NO_RESERVE
        self._map = mmap.mmap(-1, memory.size // 8 + 64, flags=flags)
        self._bits = ctypes.addressof(ctypes.c_char.from_buffer(self._map))
        self._launches = ctypes.c_uint32(0)
        self._memory = memory
        memory.written, memory.fresh = self.written, self.fresh

    def written(self, address: int, size: int) -> None:
        """The host has written there."""
        first, end = address - self._memory.base, address - self._memory.base + size
        while first < end and first % 8:
            self._one(first)
            first += 1
        while end > first and end % 8:
            end -= 1
            self._one(end)
        # A byte of bits stands for 8 bytes; the loops above set bits of bytes that are not whole.
        ctypes.memset(self._bits + first // 8, 255, (end - first) // 8)

    def _one(self, offset: int) -> None:
        place = ctypes.c_uint8.from_address(self._bits + offset // 8)
        place.value |= 1 << offset % 8

    def fresh(self, address: int, size: int) -> None:
        """Nobody has written there."""
        ctypes.memset(self._bits + (address - self._memory.base) // 8, 0, -(-size // 8))

    def begin(self) -> None:
        """A launch: blocks begin with memory that nobody has written."""
        self._launches.value += 1

    def attach(self, work: Work) -> None:
        """Give the blocks of a launch their bits."""
        for place, block in enumerate(work.blocks_of_cluster):
            if len(work.initialised) <= place:
                kept = mmap.mmap(-1, I_BYTES)
                work.initialised.append(kept)
                struct.pack_into("<4QII", kept, 0, self._bits, self._memory.base,
                                 self._memory.size, ctypes.addressof(self._launches),
                                 0xFFFFFFFF, 0)  # fmt: skip
                struct.pack_into("<4Q", kept, 40, *work.own_memory(place))
                address = ctypes.addressof(ctypes.c_char.from_buffer(kept))
                ctypes.c_uint64.from_address(block + layout.INITIALISED).value = address
