"""A kernel as basic blocks: calls are copied in, waiting instructions stand alone.

Blocks are numbered in reverse post-order, of two successors that which stands first in the text
first: lanes meet again behind what they did apart, because the smallest number goes first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from ferrule.emulator.ptx.module import (
    Function,
    Instruction,
    Label,
    Module,
    PtxError,
    Symbol,
    Variable,
)
from ferrule.emulator.warps.calls import EXTERNAL, REDUCED, Inliner, Items, jump_around
from ferrule.emulator.warps.fragments import REGISTERS, expanded
from ferrule.emulator.warps.liveness import CARRY
from ferrule.specs.deferred import dataclass

WAITING: Final = frozenset(
    {"bar", "barrier", "shfl", "vote", "match", "redux", "elect", "mma", "ldmatrix", "stmatrix",
     "movmatrix", "wgmma", "wmma"}
)  # fmt: skip
"""Opcodes whose lanes may have to wait for others."""

_TOGETHER: Final = frozenset({"mma", "ldmatrix", "stmatrix", "movmatrix", "wmma"})
"""Of them those that all lanes of a warp execute, and none is held up by another warp."""

_ENDS: Final = frozenset({"exit", "trap", "ret"})


@dataclass(frozen=True, slots=True)
class Block:
    """Instructions without a jump, then where lanes go: `targets[0]`, and of a branch
    `targets[1]` where its predicate does not hold. No target: lanes end here."""

    instructions: tuple[Instruction, ...]
    branch: Instruction | None
    targets: tuple[int, ...]

    @property
    def waits(self) -> bool:
        """Whether it is one instruction that may wait."""
        return bool(self.instructions) and self.instructions[0].opcode in WAITING


@dataclass(frozen=True, slots=True)
class Flow:
    """A kernel's blocks by number, 0 the first; its registers and variables, also of calls."""

    blocks: tuple[Block, ...]
    registers: Mapping[str, str]
    variables: tuple[Variable, ...]
    parameters: tuple[str, ...]
    """The names of the kernel's parameters."""
    has_stack: bool
    """Whether threads need memory for calls and `alloca`."""


def flow(module: Module, kernel: Function) -> Flow:
    """The blocks of a kernel.  PtxError for calls that cannot be copied in, and lost labels."""
    inliner = Inliner(module, kernel)
    items = _without_guards(inliner.items)
    registers = {**inliner.registers, CARRY: "pred"}
    if any(isinstance(each, Instruction) and each.opcode == "wmma" for each in items):
        items = expanded(items, registers)
        registers |= REGISTERS
    return Flow(
        _blocks(items, inliner.tables),
        registers,
        tuple(inliner.variables),
        inliner.parameters,
        inliner.has_stack,
    )


def _halved(item: Instruction) -> list[Instruction]:
    """`bar.red` as two instructions: the first arrives and waits, the second gives the result."""
    if item.opcode not in ("bar", "barrier") or "red" not in item.modifiers:
        return [item]
    if len(item.operands) < 3:
        raise PtxError(f"{item.name} has {len(item.operands)} operands", item.line)
    how = tuple(each for each in item.modifiers if each in ("popc", "and", "or", "u32", "pred"))
    result = replace(item, opcode=REDUCED, modifiers=how, operands=item.operands[:1])
    return [replace(item, operands=item.operands[1:]), result]


def _without_debugger(item: Instruction | Label) -> Instruction | Label:
    """Where a debugger would stop the thread, it ends."""
    if isinstance(item, Label) or item.opcode != "brkpt":
        return item
    return replace(item, opcode="trap", modifiers=(), part_of=item)


def _without_guards(items: Items) -> Items:
    """Where lanes wait or end, the guard becomes a branch around it."""
    found: Items = []
    for number, each in enumerate(items):
        item = _without_debugger(each)
        alone = isinstance(item, Instruction) and (
            item.opcode in WAITING or item.opcode in _ENDS or item.opcode in EXTERNAL
        )
        if alone and isinstance(item, Instruction):
            halves = _halved(item)
            if item.guard is None:
                found += halves
                continue
            label = Label(f"around#{number}", item.line)
            found.append(jump_around(item, label.name))
            found += [*(replace(each, guard=None) for each in halves), label]
        else:
            found.append(item)
    return found


@dataclass(slots=True)
class _Draft:
    instructions: list[Instruction]
    branch: Instruction | None = None
    targets: tuple[int, ...] | None = None


def _blocks(items: Items, tables: Mapping[str, tuple[str, ...]]) -> tuple[Block, ...]:
    drafts, labels = _cut(items)
    for number, draft in enumerate(drafts):
        draft.targets = _targets(draft, number, labels, tables, len(drafts))
    order = _order(drafts)
    place = {old: new for new, old in enumerate(order)}
    return tuple(
        Block(
            tuple(drafts[old].instructions),
            drafts[old].branch,
            tuple(place[each] for each in drafts[old].targets or ()),
        )
        for old in order
    )


def _cut(items: Items) -> tuple[list[_Draft], dict[str, int]]:
    drafts = [_Draft([])]
    labels: dict[str, int] = {}
    for item in items:
        last = drafts[-1]
        if isinstance(item, Label):
            if last.instructions or last.branch:
                drafts.append(_Draft([]))
            labels[item.name] = len(drafts) - 1
        elif item.opcode in ("bra", "brx", "exit", "trap"):
            last.branch = item
            drafts.append(_Draft([]))
        elif item.opcode in WAITING:
            if last.instructions and not _met_before(last, item):
                drafts.append(_Draft([]))
            drafts[-1].instructions.append(item)
            if item.opcode not in _TOGETHER:
                drafts.append(_Draft([]))
        else:
            last.instructions.append(item)
    return drafts, labels


def _met_before(draft: _Draft, item: Instruction) -> bool:
    """Whether all lanes have met at the block's first instruction, and stay together."""
    return item.opcode in _TOGETHER and draft.instructions[0].opcode in _TOGETHER


def _targets(
    draft: _Draft,
    number: int,
    labels: Mapping[str, int],
    tables: Mapping[str, tuple[str, ...]],
    count: int,
) -> tuple[int, ...]:
    branch = draft.branch
    following = (number + 1,) if number + 1 < count else ()
    if branch is None:
        return following
    if branch.opcode in ("exit", "trap"):
        return ()
    if branch.opcode == "brx":
        return tuple(_label(each, labels, branch) for each in _table(branch, tables))
    target = branch.operands[0] if len(branch.operands) == 1 else None
    if branch.modifiers not in ((), ("uni",)) or not isinstance(target, Symbol):
        raise PtxError(f"{branch.name} to anything but a label is not emulated", branch.line)
    found = (_label(target.name, labels, branch),)
    return found + following if branch.guard is not None else found


def _table(branch: Instruction, tables: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    table = branch.operands[-1] if len(branch.operands) == 2 else None
    known = isinstance(table, Symbol) and table.name in tables
    if branch.modifiers not in (("idx",), ("idx", "uni")) or not known or branch.guard is not None:
        raise PtxError(f"{branch.name} of this form is not emulated", branch.line)
    assert isinstance(table, Symbol)
    return tables[table.name]


def _label(name: str, labels: Mapping[str, int], branch: Instruction) -> int:
    if name not in labels:
        raise PtxError(f"there is no label {name}", branch.line)
    return labels[name]


def _order(drafts: list[_Draft]) -> list[int]:
    """The blocks that can be reached, in reverse post-order."""
    done: list[int] = []
    seen = {0}
    stack = [(0, iter(sorted(set(drafts[0].targets or ()), reverse=True)))]
    while stack:
        at, rest = stack[-1]
        for each in rest:
            if each not in seen:
                seen.add(each)
                stack.append((each, iter(sorted(set(drafts[each].targets or ()), reverse=True))))
                break
        else:
            done.append(at)
            stack.pop()
    return done[::-1]
