"""Plain reads that begin a loop around a compare-and-swap.

Compilers write atomics that a GPU has not as such loops: they read the place, compute, and swap if
the place still has what was read. The first read is plain. What it misses the swap finds out, so it
takes part in no race. Others of that place are reads like all.

An atomic of fewer than 4 bytes is a loop around a swap of the word that they are in. Of the bytes
around them it needs no value, so it may read those before anybody has written them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from ferrule.emulator.ptx.module import (
    Address,
    Group,
    Immediate,
    Instruction,
    Operand,
    Register,
    Symbol,
)
from ferrule.specs.deferred import dataclass

if TYPE_CHECKING:
    from ferrule.emulator.warps.flow import Flow

_ROUNDING: Final = (-4, (1 << 64) - 4, (1 << 32) - 4)
_WORD: Final = 4
_JOINS: Final = frozenset({"or", "lop3", "prmt", "bfi"})
"""What puts a word together from parts."""
_KEEPS: Final = _JOINS | {"mov", "and", "shl", "shr", "cvt", "selp", "bfe"}
"""What moves a value that was read into the one that a swap expects."""


@dataclass(frozen=True, slots=True)
class _Place:
    base: str
    offset: int
    rounded: bool
    """Whether it is the word that a place is in."""


@dataclass(frozen=True, slots=True)
class _Swap:
    place: _Place
    begun_by: frozenset[Instruction]
    """The loads whose values it expects to find."""
    in_parts: bool
    """Whether it changes a part of a word."""


class Swaps:
    """The compare-and-swaps of a kernel, and the loads that begin loops around them."""

    def __init__(self, flow: Flow) -> None:
        items = [item for block in flow.blocks for item in block.instructions]
        self._written = _written(items)
        self._swaps = {item: made for item in items if (made := self._swap(item)) is not None}

    def begins(self, load: Instruction) -> bool:
        """Whether a load's value is what a swap of its word expects."""
        return any(True for _ in self._begun(load))

    def reads_around(self, item: Instruction) -> bool:
        """Whether a load or a swap takes a whole word for the sake of a part of it."""
        if item in self._swaps:
            return self._swaps[item].in_parts
        place = self._place(item.operands[1])
        # The part itself is read without rounding its address, where swaps round it.
        return any(
            each.in_parts and (place is None or place.rounded or not each.place.rounded)
            for each in self._begun(item)
        )

    def _begun(self, load: Instruction) -> Iterator[_Swap]:
        place = self._place(load.operands[1])
        if place is not None:
            for each in self._swaps.values():
                near = abs(each.place.offset - place.offset) < _WORD
                if each.place.base == place.base and near and load in each.begun_by:
                    yield each

    def _swap(self, item: Instruction) -> _Swap | None:
        if item.opcode != "atom" or "cas" not in item.modifiers or len(item.operands) < 4:
            return None
        place = self._place(item.operands[1])
        if place is None:
            return None
        made_by = self._made_by(item.operands[2])
        joins = any(each.opcode in _JOINS or _packs(each) for each in made_by)
        loads = frozenset(each for each in made_by if each.opcode == "ld")
        return _Swap(place, loads, place.rounded or joins)

    def _made_by(self, operand: Operand) -> set[Instruction]:
        """The instructions that a value comes from, back to its loads."""
        found: set[Instruction] = set()
        waiting = [operand]
        while waiting:
            for name in _names(waiting.pop()):
                for each in self._written.get(name, ()):
                    if each not in found and each.opcode in _KEEPS | {"ld"}:
                        found.add(each)
                        waiting += each.operands[1:] if each.opcode != "ld" else ()
        return found

    def _place(self, address: Operand) -> _Place | None:
        if not isinstance(address, Address) or address.base is None:
            return None
        base, offset, rounded = address.base, address.offset, False
        for _ in range(16):
            made = self._written.get(base.name, ()) if isinstance(base, Register) else ()
            found = _sum(made[0]) if len(made) == 1 else None
            if found is None:
                break
            base, more = found
            rounded |= made[0].opcode == "and"
            offset += more
        return _Place(base.name, offset, rounded)


def _names(operand: Operand) -> Iterator[str]:
    for each in operand.items if isinstance(operand, Group) else (operand,):
        if isinstance(each, Register):
            yield each.name


def _packs(item: Instruction) -> bool:
    return item.opcode == "mov" and isinstance(item.operands[-1], Group)


def _written(items: Iterable[Instruction]) -> dict[str, tuple[Instruction, ...]]:
    """Who writes each register."""
    found: dict[str, tuple[Instruction, ...]] = {}
    for item in items:
        for name in _names(item.operands[0]) if item.operands else ():
            found[name] = (*found.get(name, ()), item)
    return found


def _sum(item: Instruction) -> tuple[Register | Symbol, int] | None:
    """What a register is besides a number, or rounded down to a word, and the number."""
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
