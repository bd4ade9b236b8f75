"""Whether the blocks of a kernel have nothing to do with each other, as far as its text says."""

from __future__ import annotations

import re
from collections.abc import Set as AbstractSet
from typing import Final

from ferrule.emulator.ptx.module import Instruction, Register
from ferrule.emulator.warps.flow import Flow
from ferrule.emulator.warps.liveness import reads_and_writes

_STRONG: Final = frozenset({"volatile", "mmio", "relaxed", "acquire", "release", "acq_rel"})
_SHARED: Final = frozenset({"shared", "shared::cta"})
_WIDE: Final = frozenset({"gl", "gpu", "sys"})
_ANY_ORDER: Final = frozenset({"add", "and", "or", "xor", "min", "max"})
"""What gives the same, whichever thread comes first, of integers."""


def independent(flow: Flow) -> bool:
    """Whether blocks may run at the same time, and leave what they leave one after the other.

    False where one could wait for another or see how far it is: strong accesses and fences beyond
    the block, atomics whose order shows, and text that is printed.
    """
    items = [
        item
        for block in flow.blocks
        for item in (*block.instructions, *filter(None, (block.branch,)))
    ]
    read = {name for each in items for name in reads_and_writes(each)[0]}
    return all(_alone(item, read) for item in items)


def _alone(item: Instruction, read: AbstractSet[str]) -> bool:
    words = frozenset(item.modifiers)
    if item.opcode in ("vprintf", "multimem"):
        return False
    if item.opcode in ("membar", "fence"):
        return not words & _WIDE
    if item.opcode in ("atom", "red"):
        return bool(words & _SHARED) or _in_any_order(item, words, read)
    if item.opcode == "cp":
        return "reduce" not in words
    return not words & _STRONG or bool(words & _SHARED) or item.opcode not in ("ld", "st")


def _in_any_order(item: Instruction, words: AbstractSet[str], read: AbstractSet[str]) -> bool:
    """Whether an atomic on global memory has a result that does not depend on the others."""
    result = item.operands[0]
    seen = item.opcode == "atom" and not (isinstance(result, Register) and result.name not in read)
    of_integers = re.fullmatch(r"[bsu]\d+", item.modifiers[-1]) is not None
    return not seen and bool(words & _ANY_ORDER) and of_integers
