"""Which bytes of a load a kernel uses.

LLVM joins loads of neighbours into one of a vector, also where a part between or behind them was
not asked for: three numbers of 4 bytes become `ld.v4.b32`. What is read there is thrown away, so
it takes part in no check. A register's bytes are followed from where they are used back to loads,
for a name in all of a kernel; an instruction that is not in the table below uses them all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from ferrule.emulator.ptx.cursor import BYTES
from ferrule.emulator.ptx.module import Address, Group, Immediate, Instruction, Operand, Register
from ferrule.emulator.warps.liveness import CARRY, reads_and_writes

if TYPE_CHECKING:
    from ferrule.emulator.warps.flow import Flow

Use = tuple[Operand, int]
"""An operand, and the bytes of it that are used, a bit for each."""
_ALL: Final = 0xFF
_UNWANTED: Final = "_"


class Uses:
    """The bytes of each register of a kernel that some instruction uses."""

    def __init__(self, flow: Flow) -> None:
        items = [item for block in flow.blocks for item in block.instructions]
        items += [block.branch for block in flow.blocks if block.branch is not None]
        self._bytes: dict[str, int] = {}
        changed = True
        while changed:
            # Backwards, as most registers are written before they are used: two turns are enough
            # for code without loops.
            changed = False
            for item in reversed(items):
                for operand, used in self._followed(item):
                    changed |= self._note(operand, used)

    def runs(self, load: Instruction) -> tuple[tuple[int, int], ...]:
        """(offset, bytes) of each part of a load that is used.

        A load of which nothing is used is one that the program asked for: it counts whole.
        """
        parts = _parts(load.operands[0])
        # A register of 128 bits is two of 64.
        width = min(BYTES[load.modifiers[-1]], 8)
        used = 0
        for place, each in enumerate(parts):
            used |= (self._of(each) & _low(width)) << place * width
        return tuple(_runs(used or _low(width * len(parts))))

    def _of(self, operand: Operand) -> int:
        return self._bytes.get(operand.name, 0) if isinstance(operand, Register) else _ALL

    def _followed(self, item: Instruction) -> list[Use]:
        """What an instruction uses."""
        rule = _RULES.get(item.opcode)
        found = None if rule is None else rule(item, self._of)
        if found is None:
            # What a guard leaves as it was is used where the register is.
            names = reads_and_writes(replace(item, guard=None))[0] - {CARRY}
            found = [(Register(name), _ALL) for name in names]
        if item.guard is not None:
            found.append((Register(item.guard.name), _ALL))
        return found

    def _note(self, operand: Operand, used: int) -> bool:
        """Note that bytes are used; whether that is new."""
        if not isinstance(operand, Register) or operand.name == _UNWANTED:
            return False
        before = self._bytes.get(operand.name, 0)
        self._bytes[operand.name] = before | used
        return before | used != before


def _low(count: int) -> int:
    return (1 << count) - 1


def _parts(operand: Operand) -> tuple[Operand, ...]:
    return operand.items if isinstance(operand, Group) else (operand,)


def _runs(used: int) -> Iterator[tuple[int, int]]:
    at = 0
    while used >> at:
        if used >> at & 1:
            size = (~(used >> at) & (used >> at) + 1).bit_length() - 1
            yield at, size
            at += size
        else:
            at += 1


def _width(item: Instruction) -> int:
    """The bytes of the type that the instruction ends with; all of a register where it has none."""
    return BYTES.get(item.modifiers[-1], 8) if item.modifiers else 8


def _move(item: Instruction, of: Callable[[Operand], int]) -> list[Use] | None:
    """`mov`: the same bytes, also in parts."""
    if len(item.operands) != 2:
        return None
    to, source = (_parts(each) for each in item.operands)
    width = _width(item)
    each_to, each_source = width // len(to), width // len(source)
    used = 0
    for place, part in enumerate(to):
        used |= (of(part) & _low(each_to)) << place * each_to
    return [
        (part, used >> place * each_source & _low(each_source)) for place, part in enumerate(source)
    ]


def _convert(item: Instruction, of: Callable[[Operand], int]) -> list[Use] | None:
    """`cvt`: no more than its type has, and of one integer to another no more than is used."""
    if len(item.operands) != 2:
        return None
    to, source = item.operands
    width = _width(item)
    if len(item.modifiers) == 2 and all(each[0] in "us" for each in item.modifiers):
        return [(source, _narrow(_narrow(of(to), BYTES[item.modifiers[0]]), width))]
    return [(source, _low(width))]


def _narrow(used: int, width: int) -> int:
    """The bytes above `width` repeat the sign of the last one."""
    return used & _low(width) | (used >> width != 0) << width - 1


def _permute(item: Instruction, of: Callable[[Operand], int]) -> list[Use] | None:
    """`prmt`: each byte of the result is one of eight, or the sign of one."""
    if len(item.operands) != 4 or len(item.modifiers) != 1:
        return None
    to, low, high, selector = item.operands
    if not isinstance(selector, Immediate):
        return None
    used = 0
    for place in range(4):
        if of(to) >> place & 1:
            used |= 1 << (selector.value >> 4 * place & 7)
    return [(low, used & 15), (high, used >> 4)]


def _and(item: Instruction, of: Callable[[Operand], int]) -> list[Use] | None:
    """`and` with a number: the bytes in which the number has bits."""
    if len(item.operands) != 3 or item.modifiers[-1:] == ("pred",):
        return None
    to, *sources = item.operands
    mask = next((each.value for each in sources if isinstance(each, Immediate)), -1)
    used = sum(1 << i for i in range(_width(item)) if mask >> 8 * i & 255) & of(to)
    return [(each, used) for each in sources]


def _shift(item: Instruction, of: Callable[[Operand], int]) -> list[Use] | None:
    """`shr` by a number: the bytes whose bits move into those that are used."""
    many = item.operands[-1]
    if len(item.operands) != 3 or not isinstance(many, Immediate):
        return None
    to, source = item.operands[:2]
    used = 0
    for place in range(_width(item)):
        if of(to) >> place & 1:
            first = 8 * place + min(many.value & 0xFFFFFFFF, 64)
            used |= 1 << first // 8 | 1 << (first + 7) // 8
    return [(source, _narrow(used, _width(item)))]


def _store(item: Instruction, of: Callable[[Operand], int]) -> list[Use] | None:
    """`st`: the address, and of each value what is written."""
    if len(item.operands) != 2 or not isinstance(item.operands[0], Address):
        return None
    base = item.operands[0].base
    found = [(each, _low(_width(item))) for each in _parts(item.operands[1])]
    return [*found, (base, _ALL)] if isinstance(base, Register) else found


_RULES: Final[dict[str, Callable[[Instruction, Callable[[Operand], int]], list[Use] | None]]] = {
    "mov": _move, "cvt": _convert, "prmt": _permute, "and": _and, "shr": _shift, "st": _store,
}  # fmt: skip
