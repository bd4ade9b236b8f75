"""Plain reads that begin a loop around a compare-and-swap.

Compilers write atomics that a GPU has not as such loops, and the first read of the place is plain.
What it misses the swap finds out, so it takes part in no race.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ferrule.emulator.ptx.module import Address, Immediate, Instruction, Operand, Register, Symbol
from ferrule.specs.deferred import dataclass

if TYPE_CHECKING:
    from ferrule.emulator.warps.flow import Flow

_ROUNDING = (-4, (1 << 64) - 4, (1 << 32) - 4)
_WORD = 4


@dataclass(frozen=True, slots=True)
class _Place:
    base: str
    offset: int


class Swaps:
    """The places of a kernel that are compared and swapped."""

    def __init__(self, flow: Flow) -> None:
        items = [item for block in flow.blocks for item in block.instructions]
        self._made = _definitions(items)
        self._places = [
            place
            for item in items
            if item.opcode == "atom" and "cas" in item.modifiers and len(item.operands) > 1
            if (place := self._place(item.operands[1])) is not None
        ]

    def begins(self, address: Operand) -> bool:
        """Whether an address is in a word that some instruction swaps."""
        place = self._place(address)
        return place is not None and any(
            each.base == place.base and abs(each.offset - place.offset) < _WORD
            for each in self._places
        )

    def _place(self, address: Operand) -> _Place | None:
        if not isinstance(address, Address) or address.base is None:
            return None
        base, offset = address.base, address.offset
        for _ in range(16):
            made = self._made.get(base.name) if isinstance(base, Register) else None
            if made is None:
                break
            source, more = made
            base, offset = source, offset + more
        return _Place(base.name, offset)


def _definitions(items: list[Instruction]) -> dict[str, tuple[Register | Symbol, int]]:
    """Registers that are another one and a number, or another one rounded down to a word."""
    found: dict[str, tuple[Register | Symbol, int]] = {}
    count: dict[str, int] = {}
    for item in items:
        if not item.operands or not isinstance(item.operands[0], Register):
            continue
        name = item.operands[0].name
        count[name] = count.get(name, 0) + 1
        made = _sum(item)
        if made is not None:
            found[name] = made
    return {name: made for name, made in found.items() if count[name] == 1}


def _sum(item: Instruction) -> tuple[Register | Symbol, int] | None:
    if item.guard is not None:
        return None
    source = item.operands[1] if len(item.operands) > 1 else None
    if not isinstance(source, (Register, Symbol)):
        return None
    if item.opcode == "mov" and len(item.operands) == 2:
        return source, 0
    last = item.operands[-1]
    if len(item.operands) != 3 or not isinstance(last, Immediate):
        return None
    if item.opcode == "add":
        return source, last.value
    if item.opcode == "and" and last.value in _ROUNDING:
        return source, 0
    return None
