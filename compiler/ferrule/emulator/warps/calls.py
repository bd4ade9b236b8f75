"""Calls become part of their kernel: functions are copied in, with names of their own.

Names of a copy have what it is a copy of before them. Variables of a function in `.global`,
`.const` and `.shared` are one for all of its copies. Functions have numbers as addresses: a call
through an address compares it with those of all functions that it can mean.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from ferrule.emulator.ptx.module import (
    Address,
    Function,
    Group,
    Guard,
    Immediate,
    Instruction,
    Label,
    Module,
    Negated,
    Operand,
    Part,
    Prototype,
    PtxError,
    Register,
    Symbol,
    Variable,
)

Items = list["Instruction | Label"]

_DEEPEST: Final = 64
_LONGEST: Final = 200_000
_FIRST_ADDRESS: Final = 0x1000
_ADDRESS_STEP: Final = 16

EXTERNAL: Final = frozenset({"vprintf", "__assertfail"})
"""Functions of the system, which the emulator has itself."""


REDUCED: Final = "barrier_result"
"""The opcode of the second half of a barrier that reduces: its result, once all have come."""

NO_FUNCTION: Final = "call of an address that no function has"
RECURSION: Final = "call of a function that has not returned, which is not emulated"
"""Why a thread ends at a call."""


def static(variable: str, function: str) -> str:
    """The name of a variable that all copies of a function share."""
    return f"{variable}@{function}"


def function_addresses(module: Module) -> dict[str, int]:
    """The number that stands for each function of a text; no memory has such addresses."""
    names = dict.fromkeys(each.name for each in module.functions)
    return {name: _FIRST_ADDRESS + _ADDRESS_STEP * i for i, name in enumerate(names)}


class Inliner:
    """One kernel with all that it calls: its items, registers, variables and tables of labels."""

    def __init__(self, module: Module, kernel: Function) -> None:
        self._functions = {each.name: each for each in module.functions if each.body is not None}
        self._addresses = function_addresses(module)
        self._taken = _addressed(module) & self._functions.keys()
        self._calls: list[str] = []
        self._count = 0
        self._length = 0
        self._sizes: dict[str, int] = {}
        self.registers: dict[str, str] = {}
        self.variables: list[Variable] = []
        self.tables: dict[str, tuple[str, ...]] = {}
        self.parameters: Final = tuple(f"{kernel.name}#0:{v.name}" for v in kernel.parameters)
        outer = dict(zip((v.name for v in kernel.parameters), self.parameters, strict=True))
        self._sizes.update((outer[v.name], v.size) for v in kernel.parameters)
        self.items: Final = self._body(kernel, f"{kernel.name}#0:", None, outer)

    # ---- bodies ----

    def _body(
        self, function: Function, prefix: str, leave: str | None, outer: Mapping[str, str]
    ) -> Items:
        """A function's text with names of its own, its parameters those of the caller."""
        assert function.body is not None
        names = dict(outer)
        for name, kind in function.registers.items():
            own = names[name] = prefix + name if leave is not None else name
            self.registers[own] = kind
        for each in function.variables:
            self._variable(function, each, prefix, names)
        for name in _labels(function):
            names[name] = prefix + name
        for table, labels in function.tables.items():
            self.tables[prefix + table] = tuple(names.get(each, each) for each in labels)
        found: Items = []
        for item in function.body:
            found += self._item(function, item, names, leave)
        self._length += len(found)
        if self._length > _LONGEST:
            raise PtxError("with its calls copied in the kernel is too long", function.line)
        return found

    def _variable(
        self, function: Function, each: Variable, prefix: str, names: dict[str, str]
    ) -> None:
        own = prefix + each.name
        if each.space not in ("local", "param"):
            own = static(each.name, function.name)
        names[each.name] = own
        if own not in self._sizes:
            self._sizes[own] = each.size
            self.variables.append(replace(each, name=own))

    def _item(
        self,
        function: Function,
        item: Instruction | Label,
        names: Mapping[str, str],
        leave: str | None,
    ) -> Items:
        if isinstance(item, Label):
            return [Label(names[item.name], item.line)]
        if item.opcode in EXTERNAL or item.opcode == REDUCED:
            raise PtxError(f"{item.name} is not emulated", item.line)
        plain = item
        item = _with_names(item, names)
        if item.opcode == "call":
            return self._call(function, item, plain)
        if item.opcode == "ret":
            if item.modifiers not in ((), ("uni",)):
                raise PtxError(f"{item.name} is not emulated", item.line)
            if leave is None:
                return [replace(item, opcode="exit", modifiers=())]
            return [replace(item, opcode="bra", modifiers=(), operands=(Symbol(leave),))]
        return [item]

    # ---- calls ----

    def _call(self, caller: Function, call: Instruction, plain: Instruction) -> Items:
        if call.modifiers not in ((), ("uni",)) or not call.operands:
            raise PtxError(f"{call.name} is not emulated", call.line)
        parts = list(call.operands)
        results = parts.pop(0) if isinstance(parts[0], Group) else Group("(", ())
        if not parts:
            raise PtxError("a call of nothing", call.line)
        callee, *rest = parts
        arguments = rest.pop(0) if rest and isinstance(rest[0], Group) else Group("(", ())
        assert isinstance(results, Group) and isinstance(arguments, Group)
        self._count += 1
        end = Label(f"call#{self._count}:end", call.line)
        if isinstance(callee, Symbol) and not rest:
            found = self._named(call, callee.name, results, arguments)
        elif isinstance(callee, Register) and len(rest) == 1:
            table = plain.operands[-1]
            assert isinstance(table, Symbol)
            found = self._indirect(caller, call, callee, table.name, results, arguments)
        else:
            raise PtxError("a call of this form is not emulated", call.line)
        if call.guard is None:
            return found
        return [jump_around(call, end.name), *found, end]

    def _named(self, call: Instruction, name: str, results: Group, arguments: Group) -> Items:
        if name in EXTERNAL:
            return [_external(call, name, results, arguments)]
        function = self._functions.get(name)
        if function is None or function.entry:
            raise PtxError(f"{name} is called and has no body in this text", call.line)
        if name in self._calls or len(self._calls) > _DEEPEST:
            raise PtxError(f"{name} calls itself: recursion is not emulated", call.line)
        return self._copied(call, function, results, arguments)

    def _copied(
        self, call: Instruction, function: Function, results: Group, arguments: Group
    ) -> Items:
        self._count += 1
        prefix = f"{function.name}#{self._count}:"
        leave = prefix + "return"
        handed, got = _names(arguments, call), _names(results, call)
        self._compare(call, function, handed, got)
        own = {name: prefix + "result:" + name for name in got if name in handed}
        after = self._moves(call, {copy: name for name, copy in own.items()})
        given = [*handed, *(own.get(name, name) for name in got)]
        wanted = [each.name for each in (*function.parameters, *function.results)]
        self._calls.append(function.name)
        body = self._body(function, prefix, leave, dict(zip(wanted, given, strict=True)))
        self._calls.pop()
        return [*body, Label(leave, call.line), *after]

    def _compare(
        self, call: Instruction, function: Function, handed: Sequence[str], got: Sequence[str]
    ) -> None:
        for what, formal, actual in (
            ("parameters", function.parameters, handed),
            ("results", function.results, got),
        ):
            wanted = [each.size for each in formal]
            sizes = [self._size(call, name) for name in actual]
            if wanted != sizes:
                raise PtxError(
                    f"{function.name} has {what} of {wanted} bytes, and is called with {sizes}",
                    call.line,
                )

    def _size(self, call: Instruction, name: str) -> int:
        if name not in self._sizes:
            raise PtxError(f"there is no parameter {name.rpartition(':')[2]}", call.line)
        return self._sizes[name]

    def _moves(self, call: Instruction, pairs: Mapping[str, str]) -> Items:
        """Copies of parameters, for results that are arguments at the same time."""
        found: Items = []
        for source, target in pairs.items():
            size = self._sizes[source] = self._sizes[target]
            self.variables.append(Variable("param", source, "b8", size, 16, call.line))
            for at in range(size):
                register = f"{source}:{at}"
                self.registers[register] = "b16"
                load = (Register(register), Address(Symbol(source), at))
                store = (Address(Symbol(target), at), Register(register))
                for opcode, operands in (("ld", load), ("st", store)):
                    found.append(
                        replace(call, opcode=opcode, modifiers=("param", "b8"), operands=operands,
                                guard=None)
                    )  # fmt: skip
        return found

    # ---- calls through addresses ----

    def _indirect(
        self,
        caller: Function,
        call: Instruction,
        callee: Register,
        table: str,
        results: Group,
        arguments: Group,
    ) -> Items:
        """One function after the other: is it the one whose address the register holds?"""
        prefix = f"call#{self._count}:"
        known = [self._functions[name] for name in self._targets(caller, call, table)]
        test = prefix + "same"
        self.registers[test] = "pred"
        end = prefix + "called"
        found: Items = []
        for each in known:
            skip = f"{prefix}not:{each.name}"
            address = Immediate(self._addresses[each.name])
            operands = (Register(test), callee, address)
            found.append(_new(call, "setp", ("eq", "u64"), operands))
            guard = Guard(test, True)
            found.append(replace(_new(call, "bra", (), (Symbol(skip),)), guard=guard))
            if each.name in self._calls:
                found.append(_new(call, "trap", (RECURSION,), ()))
            else:
                found += self._copied(call, each, results, arguments)
            found += [_new(call, "bra", (), (Symbol(end),)), Label(skip, call.line)]
        return [*found, _new(call, "trap", (NO_FUNCTION,), ()), Label(end, call.line)]

    def _targets(self, caller: Function, call: Instruction, table: str) -> list[str]:
        """The functions that the call can mean: those it names, or all that fit its prototype."""
        if table in caller.tables:
            return [name for name in caller.tables[table] if name in self._functions]
        wanted = caller.prototypes.get(table)
        if wanted is None:
            raise PtxError(f"{table} is no prototype and no list of functions", call.line)
        return sorted(name for name in self._taken if _prototype(self._functions[name]) == wanted)


def _prototype(function: Function) -> Prototype:
    results = tuple(each.size for each in function.results)
    return Prototype(results, tuple(each.size for each in function.parameters))


def _addressed(module: Module) -> set[str]:
    """All names that stand where an address is taken."""
    found = {symbol.name for each in module.variables for _, _, symbol in each.references}
    for function in module.functions:
        found |= {symbol.name for each in function.variables for _, _, symbol in each.references}
        for item in function.body or ():
            if isinstance(item, Instruction) and item.opcode != "call":
                found |= {name for each in item.operands for name in symbols(each)}
    return found


def symbols(operand: Operand) -> Iterator[str]:
    """The names of variables and functions in an operand."""
    if isinstance(operand, Symbol):
        yield operand.name
    elif isinstance(operand, Address) and isinstance(operand.base, Symbol):
        yield operand.base.name
    elif isinstance(operand, Group):
        for each in operand.items:
            yield from symbols(each)


def _labels(function: Function) -> Iterator[str]:
    yield from (item.name for item in function.body or () if isinstance(item, Label))
    yield from function.tables


def _new(
    call: Instruction, opcode: str, modifiers: tuple[str, ...], operands: tuple[Operand, ...]
) -> Instruction:
    return Instruction(opcode, modifiers, operands, None, call.line, call.place)


def _external(call: Instruction, name: str, results: Group, arguments: Group) -> Instruction:
    """A call of the system, as an instruction of that name: result variables, then arguments."""
    operands = tuple(Symbol(each) for each in (*_names(results, call), *_names(arguments, call)))
    return replace(call, opcode=name, modifiers=(), operands=operands, guard=None)


def _names(group: Group, call: Instruction) -> list[str]:
    """The variables of a call; registers as parameters are of PTX before 2.0."""
    if not all(isinstance(each, Symbol) for each in group.items):
        raise PtxError("calls with registers as parameters are not emulated", call.line)
    return [each.name for each in group.items if isinstance(each, Symbol)]


def _with_names(item: Instruction, names: Mapping[str, str]) -> Instruction:
    guard = item.guard
    if guard is not None:
        guard = Guard(names.get(guard.name, guard.name), guard.negated)
    return replace(
        item, operands=tuple(_renamed(each, names) for each in item.operands), guard=guard
    )


def _renamed(operand: Operand, names: Mapping[str, str]) -> Operand:
    if isinstance(operand, Register):
        return Register(names.get(operand.name, operand.name))
    if isinstance(operand, Negated):
        return Negated(names.get(operand.name, operand.name))
    if isinstance(operand, Part):
        return replace(operand, name=names.get(operand.name, operand.name))
    if isinstance(operand, Symbol):
        return Symbol(names.get(operand.name, operand.name), operand.offset)
    if isinstance(operand, Group):
        return Group(operand.kind, tuple(_renamed(each, names) for each in operand.items))
    if isinstance(operand, Address) and operand.base is not None:
        base = _renamed(operand.base, names)
        assert isinstance(base, (Register, Symbol))
        return Address(base, operand.offset)
    return operand


def jump_around(item: Instruction, label: str) -> Instruction:
    """A branch to a label for the lanes that do not execute a guarded instruction."""
    assert item.guard is not None
    guard = Guard(item.guard.name, not item.guard.negated)
    return Instruction("bra", (), (Symbol(label),), guard, item.line, item.place)
