"""Calls become part of their kernel: functions are copied in, with names of their own.

A function that calls itself, also through others, is there once, and each call has a frame of its
own: see `frames`.

Names of a copy have what it is a copy of before them. Variables of a function in `.global`,
`.const` and `.shared` are one for all of its copies. Functions have numbers as addresses: a call
through an address compares it with those of all functions that it can mean.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeGuard

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
from ferrule.emulator.warps.frames import (
    REGISTERS,
    SIZE,
    STACK,
    START,
    Frame,
    begin,
    copy,
    new,
    stack_instruction,
)

Items = list["Instruction | Label"]

_LONGEST: Final = 200_000
_FIRST_ADDRESS: Final = 0x1000
_ADDRESS_STEP: Final = 16

EXTERNAL: Final = frozenset({"vprintf", "__assertfail"})
"""Functions of the system, which the emulator has itself."""


_OF_STACK: Final = ("alloca", "stacksave", "stackrestore")

REDUCED: Final = "barrier_result"
"""The opcode of the second half of a barrier that reduces: its result, once all have come."""

NO_FUNCTION: Final = "call of an address that no function has"
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
        self._recursive: Final = self._that_call_themselves()
        self._frames: dict[str, Frame] = {}
        self._inside: Frame | None = None
        """The frame of the function whose own copy is made."""
        self.has_stack = False
        self._count = 0
        self._length = 0
        self._sizes: dict[str, int] = {}
        self.registers: dict[str, str] = {}
        self.variables: list[Variable] = []
        self.tables: dict[str, tuple[str, ...]] = {}
        self.parameters: Final = tuple(f"{kernel.name}#0:{v.name}" for v in kernel.parameters)
        outer = dict(zip((v.name for v in kernel.parameters), self.parameters, strict=True))
        self._sizes.update((outer[v.name], v.size) for v in kernel.parameters)
        self.items: Final = self._with_stack(
            kernel, self._body(kernel, f"{kernel.name}#0:", None, outer)
        )

    # ---- functions with frames ----

    def _that_call_themselves(self) -> set[str]:
        """The functions that a call can come back to before they have returned."""
        called = {name: self._called(each) for name, each in self._functions.items()}
        return {name for name in called if name in _reached(called, called[name])}

    def _called(self, function: Function) -> set[str]:
        found: set[str] = set()
        for item in function.body or ():
            if isinstance(item, Instruction) and item.opcode == "call":
                parts = [each for each in item.operands if not isinstance(each, Group)]
                if isinstance(parts[0] if parts else None, Register):
                    table = parts[-1]
                    found |= set(self._meant(function, table.name if _named(table) else ""))
                found |= {each.name for each in parts[:1] if isinstance(each, Symbol)}
        return found

    def _with_stack(self, kernel: Function, items: Items) -> Items:
        """All with the functions that have frames behind it, and the stack's start before it."""
        at = Instruction("exit", (), (), None, kernel.line, None)
        texts: Items = []
        done: list[Frame] = []
        while len(done) < len(self._frames):
            frame = list(self._frames.values())[len(done)]
            done.append(frame)
            texts += self._own_text(frame)
        if not self.has_stack:
            return items
        self.registers |= REGISTERS
        self.tables |= {each.table: tuple(each.returns) for each in done}
        self.variables.append(Variable("local", START, "b8", 0, 16, kernel.line))
        sizes = {SIZE + each.function.name: each.bytes for each in done}
        return [_sized(each, sizes) for each in (*begin(at), *items, at, *texts)]

    def _own_text(self, frame: Frame) -> Items:
        function = frame.function
        outer = {
            each.name: frame.prefix + each.name
            for each in (*function.parameters, *function.results)
        }
        self._sizes |= {
            frame.prefix + each.name: each.size
            for each in (*function.parameters, *function.results)
        }
        self._inside = frame
        body = self._body(function, frame.prefix, frame.leave, outer)
        self._inside = None
        return frame.text(body, self.registers, self.tables)

    def _frame(self, function: Function) -> Frame:
        self.has_stack = True
        return self._frames.setdefault(function.name, Frame(function))

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
            self._keep(replace(each, name=own))

    def _keep(self, each: Variable) -> None:
        """A variable of the kernel, or of the frame that its thread's own belong to."""
        if self._inside is not None and each.space in ("local", "param"):
            self._inside.place(each.name, each.size, each.align)
        else:
            self.variables.append(each)

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
        if item.opcode in _OF_STACK:
            return self._of_stack(item)
        if item.opcode == "ret":
            if item.modifiers not in ((), ("uni",)):
                raise PtxError(f"{item.name} is not emulated", item.line)
            if leave is None:
                return [replace(item, opcode="exit", modifiers=())]
            return [replace(item, opcode="bra", modifiers=(), operands=(Symbol(leave),))]
        return [item]

    def _of_stack(self, item: Instruction) -> Items:
        self.has_stack = True
        self._count += 1
        label = f"stack#{self._count}"
        found = stack_instruction(item, label)
        if item.guard is None:
            return found
        end = Label(label + ":end", item.line)
        return [jump_around(item, end.name), *found, end]

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
            return self._of_system(call, name, results, arguments)
        function = self._functions.get(name)
        if function is None or function.entry:
            raise PtxError(f"{name} is called and has no body in this text", call.line)
        return self._called_with(call, function, results, arguments)

    def _of_system(self, call: Instruction, name: str, results: Group, arguments: Group) -> Items:
        """The system's functions take variables that have one place in a thread."""
        if self._inside is None:
            return [_external(call, name, results, arguments)]
        frame, self._inside = self._inside, None
        own: dict[str, str] = {}
        for each in (*_names(results, call), *_names(arguments, call)):
            own[each] = f"{each}#{call.line}"
            self._sizes[own[each]] = self._size(call, each)
            self._keep(Variable("param", own[each], "b8", self._sizes[each], 16, call.line))
        self._inside = frame
        item = _external(call, name, results, arguments)
        found: Items = []
        for each in _names(arguments, call):
            found += copy(call, Symbol(own[each]), Symbol(each), self._sizes[each], 1)
        found.append(_with_names(item, own))
        for each in _names(results, call):
            found += copy(call, Symbol(each), Symbol(own[each]), self._sizes[each], 1)
        return found

    def _called_with(
        self, call: Instruction, function: Function, results: Group, arguments: Group
    ) -> Items:
        """A call of a known function, whose text is copied in or that has a copy of its own."""
        if function.name not in self._recursive:
            return self._copied(call, function, results, arguments)
        handed, got = _names(arguments, call), _names(results, call)
        self._compare(call, function, handed, got)
        return self._frame(function).call(call, handed, got, self._inside is not None)

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
        body = self._body(function, prefix, leave, dict(zip(wanted, given, strict=True)))
        end = Label(leave, call.line)
        if not _allocates(function):
            return [*body, end, *after]
        kept = Register(prefix + "stack")
        self.registers[kept.name] = "b64"
        save, restore = (new(call, "mov", "u64", *o) for o in ((kept, STACK), (STACK, kept)))
        return [save, *body, end, restore, *after]

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
            self._keep(Variable("param", source, "b8", size, 16, call.line))
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
            found.append(new(call, "setp", "eq.u64", *operands))
            guard = Guard(test, True)
            found.append(replace(new(call, "bra", "", Symbol(skip)), guard=guard))
            found += self._called_with(call, each, results, arguments)
            found += [new(call, "bra", "", Symbol(end)), Label(skip, call.line)]
        nobody = replace(new(call, "trap", ""), modifiers=(NO_FUNCTION,))
        return [*found, nobody, Label(end, call.line)]

    def _targets(self, caller: Function, call: Instruction, table: str) -> list[str]:
        if table not in caller.tables and table not in caller.prototypes:
            raise PtxError(f"{table} is no prototype and no list of functions", call.line)
        return self._meant(caller, table)

    def _meant(self, caller: Function, table: str) -> list[str]:
        """The functions that a call can mean: those it names, or all that fit its prototype."""
        if table in caller.tables:
            return [name for name in caller.tables[table] if name in self._functions]
        wanted = caller.prototypes.get(table)
        return sorted(name for name in self._taken if _prototype(self._functions[name]) == wanted)


def _reached(called: Mapping[str, set[str]], first: set[str]) -> set[str]:
    """All functions that some lead to."""
    found: set[str] = set()
    rest = list(first)
    while rest:
        name = rest.pop()
        if name not in found:
            found.add(name)
            rest += called.get(name, ())
    return found


def _named(operand: Operand) -> TypeGuard[Symbol]:
    return isinstance(operand, Symbol)


def _allocates(function: Function) -> bool:
    return any(
        isinstance(item, Instruction) and item.opcode == "alloca" for item in function.body or ()
    )


def _sized(item: Instruction | Label, sizes: Mapping[str, int]) -> Instruction | Label:
    """An instruction with the sizes of frames as numbers."""
    last = item.operands[-1] if isinstance(item, Instruction) and item.operands else None
    if not isinstance(last, Symbol) or last.name not in sizes or isinstance(item, Label):
        return item
    return replace(item, operands=(*item.operands[:-1], Immediate(sizes[last.name])))


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
