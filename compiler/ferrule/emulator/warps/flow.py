"""A kernel as basic blocks: calls are copied in, waiting instructions stand alone.

Blocks are numbered in reverse post-order, of two successors that which stands first in the text
first: lanes meet again behind what they did apart, because the smallest number goes first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from ferrule.emulator.ptx.module import (
    Address,
    Function,
    Group,
    Guard,
    Instruction,
    Label,
    Module,
    Operand,
    PtxError,
    Register,
    Symbol,
    Variable,
)
from ferrule.emulator.ptx.module import Negated as NegatedPredicate

WAITING: Final = frozenset(
    {"bar", "barrier", "shfl", "vote", "match", "redux", "elect", "mma", "ldmatrix", "stmatrix",
     "movmatrix", "wgmma"}
)  # fmt: skip
"""Opcodes whose lanes may have to wait for others."""

_ENDS: Final = frozenset({"exit", "trap", "ret"})
_DEEPEST: Final = 64
_LONGEST: Final = 200_000

EXTERNAL: Final = frozenset({"vprintf", "__assertfail"})
"""Functions of the system, which the emulator has itself."""


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


def flow(module: Module, kernel: Function) -> Flow:
    """The blocks of a kernel.  PtxError for calls that cannot be copied in, and lost labels."""
    inliner = _Inliner({each.name: each for each in module.functions if each.body is not None})
    items = inliner.body(kernel, "", None, {})
    return Flow(
        _blocks(_without_guards(items), inliner.tables),
        inliner.registers,
        tuple(inliner.variables),
    )


class _Inliner:
    def __init__(self, functions: Mapping[str, Function]) -> None:
        self._functions = functions
        self._calls: list[str] = []
        self._count = 0
        self._length = 0
        self.registers: dict[str, str] = {}
        self.variables: list[Variable] = []
        self.tables: dict[str, tuple[str, ...]] = {}

    def body(
        self, function: Function, prefix: str, leave: str | None, outer: Mapping[str, str]
    ) -> list[Instruction | Label]:
        """A function's text with names of its own, its parameters those of the caller."""
        assert function.body is not None
        names = dict(outer)
        for name, kind in function.registers.items():
            names[name] = prefix + name
            self.registers[prefix + name] = kind
        for each in function.variables:
            if each.space in ("local", "param") or prefix:
                names[each.name] = prefix + each.name
            own = names.get(each.name, each.name)
            if each.space == "shared":
                own = names[each.name] = each.name + "@" + function.name
            if not any(other.name == own for other in self.variables):
                self.variables.append(replace(each, name=own))
        for item in function.body:
            if isinstance(item, Label):
                names[item.name] = prefix + item.name
        for table, labels in function.tables.items():
            names[table] = prefix + table
            self.tables[prefix + table] = tuple(names.get(each, each) for each in labels)
        found: list[Instruction | Label] = []
        for item in function.body:
            found += self._item(item, names, leave)
        self._length += len(found)
        if self._length > _LONGEST:
            raise PtxError("with its calls copied in the kernel is too long", function.line)
        return found

    def _item(
        self, item: Instruction | Label, names: Mapping[str, str], leave: str | None
    ) -> list[Instruction | Label]:
        if isinstance(item, Label):
            return [Label(names[item.name], item.line)]
        item = _with_names(item, names)
        if item.opcode == "call":
            return self._call(item)
        if item.opcode == "ret":
            if leave is None:
                return [replace(item, opcode="exit", modifiers=())]
            return [replace(item, opcode="bra", modifiers=(), operands=(Symbol(leave),))]
        return [item]

    def _call(self, call: Instruction) -> list[Instruction | Label]:
        if call.modifiers not in ((), ("uni",)):
            raise PtxError(f"{call.name} is not emulated", call.line)
        parts = list(call.operands)
        results = parts.pop(0) if isinstance(parts[0], Group) else Group("(", ())
        callee, *rest = parts
        arguments = rest[0] if rest else Group("(", ())
        if not isinstance(callee, Symbol) or len(rest) > 1:
            raise PtxError("indirect calls are not emulated", call.line)
        assert isinstance(results, Group) and isinstance(arguments, Group)
        if callee.name in EXTERNAL:
            return _external(call, callee.name, results, arguments)
        function = self._functions.get(callee.name)
        if function is None:
            raise PtxError(f"{callee.name} is called and has no body in this text", call.line)
        if callee.name in self._calls or len(self._calls) > _DEEPEST:
            raise PtxError(f"{callee.name} calls itself: recursion is not emulated", call.line)
        return self._copied(call, function, results, arguments)

    def _copied(
        self, call: Instruction, function: Function, results: Group, arguments: Group
    ) -> list[Instruction | Label]:
        self._count += 1
        prefix = f"{function.name}#{self._count}:"
        leave = prefix + "return"
        given = [*_names(arguments, call), *_names(results, call)]
        wanted = [each.name for each in (*function.parameters, *function.results)]
        if len(given) != len(wanted):
            raise PtxError(f"{function.name} is called with other parameters than it has", call.line)
        self._calls.append(function.name)
        body = self.body(function, prefix, leave, dict(zip(wanted, given, strict=True)))
        self._calls.pop()
        copied = [*body, Label(leave, call.line)]
        if call.guard is None:
            return copied
        skip = Label(prefix + "skip", call.line)
        return [_jump_around(call, skip.name), *copied, skip]


def _external(
    call: Instruction, name: str, results: Group, arguments: Group
) -> list[Instruction | Label]:
    """A call of the system, as an instruction of that name: result variables, then arguments."""
    operands = tuple(Symbol(each) for each in (*_names(results, call), *_names(arguments, call)))
    return [replace(call, opcode=name, modifiers=(), operands=operands)]


def _names(group: Group, call: Instruction) -> list[str]:
    """The variables of a call; registers as parameters are of PTX before 2.0."""
    if not all(isinstance(each, Symbol) for each in group.items):
        raise PtxError("calls with registers as parameters are not emulated", call.line)
    return [each.name for each in group.items if isinstance(each, Symbol)]


def _with_names(item: Instruction, names: Mapping[str, str]) -> Instruction:
    guard = item.guard
    if guard is not None:
        guard = Guard(names.get(guard.name, guard.name), guard.negated)
    return replace(item, operands=tuple(_named(each, names) for each in item.operands), guard=guard)


def _named(operand: Operand, names: Mapping[str, str]) -> Operand:
    if isinstance(operand, Register):
        return Register(names.get(operand.name, operand.name))
    if isinstance(operand, NegatedPredicate):
        return NegatedPredicate(names.get(operand.name, operand.name))
    if isinstance(operand, Symbol):
        return Symbol(names.get(operand.name, operand.name), operand.offset)
    if isinstance(operand, Group):
        return Group(operand.kind, tuple(_named(each, names) for each in operand.items))
    if isinstance(operand, Address) and operand.base is not None:
        base = _named(operand.base, names)
        assert isinstance(base, (Register, Symbol))
        return Address(base, operand.offset)
    return operand


def _jump_around(item: Instruction, label: str) -> Instruction:
    assert item.guard is not None
    guard = Guard(item.guard.name, not item.guard.negated)
    return Instruction("bra", (), (Symbol(label),), guard, item.line, item.place)


def _without_guards(items: list[Instruction | Label]) -> list[Instruction | Label]:
    """Where lanes wait or end, the guard becomes a branch around it."""
    found: list[Instruction | Label] = []
    for number, item in enumerate(items):
        alone = isinstance(item, Instruction) and (
            item.opcode in WAITING or item.opcode in _ENDS or item.opcode in EXTERNAL
        )
        if alone and isinstance(item, Instruction) and item.guard is not None:
            label = Label(f"around#{number}", item.line)
            found += [_jump_around(item, label.name), replace(item, guard=None), label]
        else:
            found.append(item)
    return found


@dataclass(slots=True)
class _Draft:
    instructions: list[Instruction]
    branch: Instruction | None = None
    targets: tuple[int, ...] | None = None


def _blocks(
    items: list[Instruction | Label], tables: Mapping[str, tuple[str, ...]]
) -> tuple[Block, ...]:
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


def _cut(items: list[Instruction | Label]) -> tuple[list[_Draft], dict[str, int]]:
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
            if last.instructions:
                drafts.append(_Draft([]))
            drafts[-1].instructions.append(item)
            drafts.append(_Draft([]))
        else:
            last.instructions.append(item)
    return drafts, labels


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
    target = branch.operands[0]
    if branch.modifiers not in ((), ("uni",)) or not isinstance(target, Symbol):
        raise PtxError(f"{branch.name} to anything but a label is not emulated", branch.line)
    found = (_label(target.name, labels, branch),)
    return found + following if branch.guard is not None else found


def _table(branch: Instruction, tables: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    table = branch.operands[-1]
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
