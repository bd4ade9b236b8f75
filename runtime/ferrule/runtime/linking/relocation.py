"""What the relocations of every processor have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

I32: Final = 1 << 31
U64: Final = (1 << 64) - 1


class Unlinkable(Exception):
    """This object is beyond ferrule's own linker; the text says why."""


class Site:
    """A place that a relocation changes, and what it needs; addresses are those of the process.

    `code` are the bytes of the part that has the place, `at` is its offset there and `place` its
    address. `slot` is the address of the symbol's entry in the global offset table and `stub` that
    of code that jumps to the symbol, 0 where there is none. `table` is the address of the table.
    """

    __slots__ = ("addend", "at", "code", "place", "slot", "stub", "symbol", "table")

    code: bytearray
    at: int
    place: int
    symbol: int
    addend: int
    slot: int
    stub: int
    table: int

    def write(self, value: int, size: int) -> None:
        """Write the lowest bytes of a value at the place."""
        bits = value & (1 << 8 * size) - 1
        self.code[self.at : self.at + size] = bits.to_bytes(size, "little")

    def write_i32(self, value: int) -> None:
        """Write a value of 32 bits with sign; Unlinkable where it has more."""
        if not -I32 <= value < I32:
            raise Unlinkable("a relocation does not reach its symbol")
        self.write(value, 4)


Rule = Callable[[Site], None]
"""Applies one kind of relocation."""
