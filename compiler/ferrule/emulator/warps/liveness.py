"""Which registers a block's lanes need that another block wrote: only these are kept in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from ferrule.emulator.ptx.module import (
    Address,
    Group,
    Instruction,
    Label,
    Negated,
    Operand,
    Part,
    Register,
    Symbol,
)

if TYPE_CHECKING:
    from ferrule.emulator.warps.flow import Block


CARRY: Final = "CC.CF"


_USES_CARRY = frozenset({"addc", "subc", "madc"})

NO_RESULT = frozenset(
    {"st", "red", "bar", "barrier", "exit", "trap", "bra", "brx", "membar", "fence", "prefetch",
     "prefetchu", "nanosleep", "brkpt", "stmatrix", "discard", "applypriority", "vprintf",
     "__assertfail", "pmevent", "cp",
     "wgmma", "wmma"}
)  # fmt: skip
"""Opcodes whose first operand is none that they write."""


def reads_and_writes(item: Instruction) -> tuple[set[str], set[str]]:
    """The registers that an instruction reads, and those that it writes."""
    operands = item.operands
    writes: set[str] = set()
    # Products write when a thread waits for them, directly into the frame.
    if item.opcode not in NO_RESULT and operands:
        writes = set(_registers(operands[0]))
        reads = {name for each in operands[1:] for name in _registers(each)}
        if isinstance(operands[0], Address):
            reads, writes = reads | writes, set()
    else:
        reads = {name for each in operands for name in _registers(each)}
    if "cc" in item.modifiers:
        writes.add(CARRY)
    if item.opcode in _USES_CARRY:
        reads.add(CARRY)
    if item.guard is not None:
        reads |= {item.guard.name, *writes}
    return reads, writes


def _registers(operand: Operand) -> Iterator[str]:
    if isinstance(operand, (Register, Negated, Part)):
        yield operand.name
    elif isinstance(operand, Address) and isinstance(operand.base, Register):
        yield operand.base.name
    elif isinstance(operand, Group):
        for each in operand.items:
            yield from _registers(each)


def outliving(blocks: tuple[Block, ...]) -> set[str]:
    """The registers that some block reads before it has written them itself."""
    found: set[str] = set()
    for block in blocks:
        written: set[str] = set()
        branch = (block.branch,) if block.branch is not None else ()
        for item in (*block.instructions, *branch):
            reads, writes = reads_and_writes(item)
            found |= reads - written
            written |= writes
    return found


Items = Sequence["Instruction | Label"]


def live_at(
    items: Items, tables: Mapping[str, Sequence[str]], goes_on: Callable[[Instruction], bool]
) -> list[set[str]]:
    """The registers that are read before they are written, from each item on.

    `goes_on` says of which jumps the next item follows, whatever they name.
    """
    labels = {each.name: i for i, each in enumerate(items) if isinstance(each, Label)}
    following = [_following(items, i, labels, tables, goes_on) for i in range(len(items))]
    live: list[set[str]] = [set() for _ in range(len(items) + 1)]
    changed = True
    while changed:
        changed = False
        for i in range(len(items) - 1, -1, -1):
            now = set().union(*(live[each] for each in following[i]))
            item = items[i]
            if isinstance(item, Instruction):
                reads, writes = reads_and_writes(item)
                now = now - writes | reads
            if now != live[i]:
                live[i], changed = now, True
    return live


def _following(
    items: Items,
    at: int,
    labels: Mapping[str, int],
    tables: Mapping[str, Sequence[str]],
    goes_on: Callable[[Instruction], bool],
) -> list[int]:
    """The items that can come next; those behind the end have no registers."""
    item = items[at]
    if isinstance(item, Label) or item.opcode not in ("bra", "brx", "exit", "trap", "ret"):
        return [at + 1]
    names: Sequence[str] = ()
    table = item.operands[-1] if item.operands else None
    if isinstance(table, Symbol) and not goes_on(item):
        names = (table.name,) if item.opcode == "bra" else tables.get(table.name, ())
    found = [labels[each] for each in names if each in labels]
    return [*found, at + 1] if item.guard is not None or goes_on(item) else found
