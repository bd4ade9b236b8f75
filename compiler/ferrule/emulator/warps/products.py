"""Registers that a product of wgmma writes later than other instructions use them.

A program must wait for a product before it uses the registers of the result. ptxas waits by itself
where a program does not, and warns that this is slow; so does the emulator.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ferrule.emulator.ptx.module import Immediate, Instruction
from ferrule.emulator.warps.flow import Block
from ferrule.emulator.warps.liveness import reads_and_writes

_ALL_DONE: Final = 1 << 20

Flight = dict[str, int]
"""Of each register that a product may still write: how many groups were committed since."""


def early_uses(blocks: Sequence[Block]) -> set[tuple[int, int]]:
    """Block and place of each instruction that uses a register before its product must be done."""
    begins: list[Flight] = [{} for _ in blocks]
    found: set[tuple[int, int]] = set()
    if not any(_is_product(item) for block in blocks for item in block.instructions):
        return found
    waiting = list(range(len(blocks)))
    while waiting:
        number = waiting.pop(0)
        flight = dict(begins[number])
        for place, item in enumerate(_items(blocks[number])):
            if _used(item) & flight.keys():
                found.add((number, place))
                flight = {}
            _advance(item, flight)
        for target in blocks[number].targets:
            if _merge(begins[target], flight) and target not in waiting:
                waiting.append(target)
    return found


def _items(block: Block) -> tuple[Instruction, ...]:
    return (*block.instructions, *((block.branch,) if block.branch is not None else ()))


def _is_product(item: Instruction) -> bool:
    return item.opcode == "wgmma" and item.modifiers[:1] == ("mma_async",)


def _results(item: Instruction) -> set[str]:
    return reads_and_writes(Instruction("st", (), item.operands[:1], None, 0, None))[0]


def _used(item: Instruction) -> set[str]:
    """The registers that must be known: a product adds to its result when its turn comes."""
    reads, writes = reads_and_writes(item)
    return (reads - _results(item)) if _is_product(item) else reads | writes


def _advance(item: Instruction, flight: Flight) -> None:
    """Change the products that are under way as an instruction does."""
    if _is_product(item):
        flight.update(dict.fromkeys(_results(item), 0))
    elif item.opcode == "wgmma" and "commit_group" in item.modifiers:
        for name in flight:
            flight[name] = min(flight[name] + 1, _ALL_DONE)
    elif item.opcode == "wgmma" and "wait_group" in item.modifiers:
        left = item.operands[0]
        most = left.value if isinstance(left, Immediate) else 0
        for name in [each for each, since in flight.items() if since > most]:
            del flight[name]


def _merge(into: Flight, flight: Flight) -> bool:
    """Put together what two ways have under way; whether that is news."""
    news = {name: since for name, since in flight.items() if into.get(name, _ALL_DONE + 1) > since}
    into.update(news)
    return bool(news)
