"""A function's body: declarations, labels and instructions, with names of their scopes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Final, Protocol

from ferrule.emulator.ptx.cursor import BYTES
from ferrule.emulator.ptx.module import (
    Address,
    FloatImmediate,
    Group,
    Guard,
    Immediate,
    Instruction,
    Label,
    Negated,
    Operand,
    Part,
    Place,
    Prototype,
    PtxError,
    Register,
    Symbol,
    Variable,
)
from ferrule.emulator.ptx.tokens import Token

_LOC: Final = re.compile(
    r"\.loc\s+(\d+)\s+(\d+)\s+(\d+)(?=\s|,|$)(?:.*inlined_at\s+(\d+)\s+(\d+)\s+(\d+))?"
)
_FILE: Final = re.compile(r'\.file\s+(\d+)\s+"((?:\\.|[^"\\])*)"')


def files(tokens: Iterable[Token]) -> dict[int, str]:
    """The names of all files by their numbers, wherever in the text they stand."""
    return {
        int(found[1]): found[2]
        for token in tokens
        if token.kind == "file" and (found := _FILE.match(token.text))
    }


class Places:
    """The places that the `.loc`s of a function say.

    One that was inlined names the place of the call, of which an own `.loc` before it says where
    that is inlined.
    """

    def __init__(self, names: Mapping[int, str]) -> None:
        self._names = names
        self._known: dict[tuple[int, ...], Place] = {}

    def of(self, text: str) -> Place | None:
        """The place of a `.loc`; none for line 0, which is no line."""
        found = _LOC.match(text)
        if found is None or not int(found[2]):
            return None
        at = tuple(map(int, found.groups()[:3]))
        caller = None
        if found[4] is not None:
            caller = self._at(tuple(map(int, found.groups()[3:])))
        self._known[at] = made = Place(self._name(at), at[1], caller)
        return made

    def _at(self, at: tuple[int, ...]) -> Place | None:
        return self._known.get(at) or (Place(self._name(at), at[1]) if at[1] else None)

    def _name(self, at: tuple[int, ...]) -> str:
        return self._names.get(at[0], "?")


_MOST_REGISTERS = 1 << 20
_NAMED = {"WARP_SZ": 32}
"""Constants that PTX has."""


_DEEPEST: Final = 200
"""Blocks in blocks."""


class Reader(Protocol):
    """What a body needs of the parser."""

    @property
    def next(self) -> Token: ...
    @property
    def after(self) -> Token: ...
    def take(self) -> Token: ...
    def taken(self, text: str) -> bool: ...
    def expect(self, text: str) -> Token: ...
    def word(self, what: str) -> Token: ...
    def more(self, closes: str) -> bool: ...
    def integer(self) -> int: ...
    def constant(self) -> Immediate | FloatImmediate: ...
    def pragma(self) -> None: ...
    def parameters(self) -> tuple[Variable, ...]: ...
    def variables(self, declare: Callable[[str], str], extern: bool = False) -> list[Variable]: ...


class _Scope:
    """Names that are declared between braces, each with its name in the function."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.names: dict[str, str] = {}
        self.labels: dict[str, str] = {}

    def own(self, name: str) -> str:
        return f"{name}@{self.number}" if self.number else name

    def declare(self, name: str, line: int) -> str:
        if name in self.names:
            raise PtxError(f"{name} is defined twice", line)
        self.names[name] = self.own(name)
        return self.names[name]

    def label(self, name: str, line: int) -> str:
        if name in self.labels:
            raise PtxError(f"the label {name} is defined twice", line)
        self.labels[name] = self.own(name)
        return self.labels[name]


class Body:
    """A function's body while it is read."""

    def __init__(self, parser: Reader, files: Mapping[int, str]) -> None:
        self._parser = parser
        self._places = Places(files)
        self._scopes: list[_Scope] = []
        self._count = 0
        self._place: Place | None = None
        self.registers: dict[str, str] = {}
        self._wide: dict[str, Group] = {}
        """Registers of 128 bits, and the two that each is."""
        self.variables: list[Variable] = []
        self.items: list[Instruction | Label] = []
        self.tables: dict[str, tuple[str, ...]] = {}
        self.prototypes: dict[str, Prototype] = {}
        self.has_text = False

    def read(self) -> None:
        self.has_text = True
        self._parser.expect("{")
        self._block()

    def _block(self) -> None:
        scope = _Scope(self._count)
        self._count += 1
        self._scopes.append(scope)
        start, tables = len(self.items), set(self.tables)
        if len(self._scopes) > _DEEPEST:
            raise PtxError(
                f"more than {_DEEPEST} blocks inside of each other", self._parser.next.line
            )
        while not self._parser.taken("}"):
            self._statement(scope)
        self._scopes.pop()
        if scope.number:
            self.items[start:] = [_renamed(item, scope.labels) for item in self.items[start:]]
            for each in self.tables.keys() - tables:
                self.tables[each] = tuple(scope.labels.get(n, n) for n in self.tables[each])

    def _statement(self, scope: _Scope) -> None:
        parser = self._parser
        token = parser.next
        if token.kind == "end":
            raise PtxError("the text ends inside of a function", token.line)
        if token.kind == "loc":
            self._place = self._places.of(parser.take().text)
        elif token.kind == "file" or token.text == ";":
            parser.take()
        elif parser.taken("{"):
            self._block()
        elif token.kind == "directive":
            self._declaration(scope)
        elif token.kind == "word" and parser.after.text == ":":
            parser.take(), parser.take()
            self._label(token, scope)
        else:
            self._instruction()

    def _label(self, token: Token, scope: _Scope) -> None:
        parser = self._parser
        name = scope.label(token.text, token.line)
        if parser.taken(".branchtargets"):
            self.tables[name] = self._list("a label")
        elif parser.taken(".calltargets"):
            self.tables[name] = self._list("a function")
        elif parser.taken(".callprototype"):
            self.prototypes[name] = self._prototype()
        else:
            self.items.append(Label(name, token.line))

    def _list(self, what: str) -> tuple[str, ...]:
        names = [self._parser.word(what).text]
        while self._parser.more(";"):
            names.append(self._parser.word(what).text)
        return tuple(names)

    def _prototype(self) -> Prototype:
        """`(.param .b32 _) _ (.param .b64 _, .param .b32 _);`"""
        parser = self._parser
        results = parser.parameters() if parser.next.text == "(" else ()
        parser.word("_")
        parameters = parser.parameters() if parser.next.text == "(" else ()
        parser.taken(".noreturn")
        parser.expect(";")
        return Prototype(tuple(v.size for v in results), tuple(v.size for v in parameters))

    def _declaration(self, scope: _Scope) -> None:
        parser = self._parser
        token = parser.next
        if token.text == ".reg":
            parser.take()
            self._registers(scope)
        elif token.text in (".shared", ".local", ".param", ".global", ".const"):
            self.variables += parser.variables(self._declared(scope))
        elif token.text == ".pragma":
            parser.pragma()
        elif token.text == ".extern":
            parser.take()
            self.variables += parser.variables(self._declared(scope), True)
        else:
            raise PtxError(f"{token.text!r} is not emulated inside of functions", token.line)

    def _declared(self, scope: _Scope) -> Callable[[str], str]:
        return lambda name: scope.declare(name, self._parser.next.line)

    def _registers(self, scope: _Scope) -> None:
        parser = self._parser
        token = parser.take()
        kind = token.text[1:]
        if kind != "pred" and kind not in BYTES:
            raise PtxError(f"registers of {token.text} are not emulated", token.line)
        while True:
            for each in self._numbered():
                self._register(scope.declare(each, token.line), kind)
            if not parser.more(";"):
                break

    def _register(self, name: str, kind: str) -> None:
        """One of 128 bits is two of 64, and stands for both where it is an operand."""
        if kind != "b128":
            self.registers[name] = kind
            return
        halves = Register(f"{name}:low"), Register(f"{name}:high")
        self._wide[name] = Group("{", halves)
        self.registers |= {each.name: "b64" for each in halves}

    def _numbered(self) -> list[str]:
        """`%r` or `%r<8>`."""
        parser = self._parser
        name = parser.word("a register").text
        if not parser.taken("<"):
            return [name]
        line = parser.next.line
        count = parser.integer()
        if not 0 <= count <= _MOST_REGISTERS:
            raise PtxError(f"{count} registers {name}", line)
        parser.expect(">")
        return [f"{name}{i}" for i in range(count)]

    def _instruction(self) -> None:
        parser = self._parser
        guard = self._guard()
        token = parser.word("an instruction")
        opcode, *modifiers = token.text.split(".")
        operands: list[Operand] = []
        if not parser.taken(";"):
            operands.append(self._operand())
            while parser.more(";"):
                operands.append(self._operand())
        self.items.append(
            Instruction(opcode, tuple(modifiers), tuple(operands), guard, token.line, self._place)
        )

    def _guard(self) -> Guard | None:
        parser = self._parser
        if not parser.taken("@"):
            return None
        negated = parser.taken("!")
        token = parser.word("a predicate")
        name = self._resolved(token.text)
        if self.registers.get(name) != "pred":
            raise PtxError(f"there is no predicate {token.text}", token.line)
        return Guard(name, negated)

    def _resolved(self, name: str) -> str:
        for scope in reversed(self._scopes):
            if name in scope.names:
                return scope.names[name]
        return name

    def _operand(self) -> Operand:
        first = self._single()
        if self._parser.taken("|"):
            return Group("|", (first, self._single()))
        return first

    def _single(self) -> Operand:
        parser = self._parser
        token = parser.next
        if parser.taken("["):
            return self._address()
        if parser.taken("{"):
            return self._group("{", "}")
        if parser.taken("("):
            return self._group("(", ")")
        if parser.taken("!"):
            return Negated(self._resolved(parser.word("a predicate").text))
        if token.text == "-" and parser.after.kind == "word":
            return self._negative()
        if token.kind == "number" or token.text == "-":
            return parser.constant()
        if token.text in _NAMED:
            return Immediate(_NAMED[parser.take().text])
        return self._name()

    def _negative(self) -> Part:
        self._parser.expect("-")
        found = self._part(self._parser.word("a register").text)
        return Part(found.name, found.selector, negated=True)

    def _part(self, word: str) -> Part:
        """`%r1.h0`, of video instructions."""
        name, _, selector = word.partition(".")
        return Part(self._resolved(name), selector)

    def _name(self) -> Register | Symbol | Group | Part:
        parser = self._parser
        word = parser.word("an operand").text
        if "." in word:
            part = self._part(word)
            if part.name in self.registers:
                return part
        name = self._resolved(word)
        if name in self._wide:
            return self._wide[name]
        if name in self.registers or name.startswith("%") or name == "_":
            return Register(name)
        if parser.taken("+"):
            return Symbol(name, parser.integer())
        return Symbol(name)

    def _group(self, opens: str, closes: str) -> Group:
        parser = self._parser
        if parser.taken(closes):
            return Group(opens, ())
        items = [self._operand()]
        while parser.more(closes):
            items.append(self._operand())
        return Group(opens, tuple(items))

    def _address(self) -> Operand:
        """Behind `[`: an address, or several operands as tensor copies and textures have."""
        parser = self._parser
        address = self._based()
        items: list[Operand] = [address]
        while parser.more("]"):
            items.append(self._operand())
        return Group("[", tuple(items)) if len(items) > 1 else address

    def _based(self) -> Address:
        parser = self._parser
        if parser.next.kind == "number" or parser.next.text == "-":
            return Address(None, parser.integer())
        line = parser.next.line
        base, offset = self._name(), 0
        if isinstance(base, Group):
            raise PtxError("an address has 128 bits", line)
        if isinstance(base, Part):
            raise PtxError(f"an address is a part of {base.name}", line)
        if isinstance(base, Symbol):
            base, offset = Symbol(base.name), base.offset
        if parser.taken("+") or parser.next.text == "-":
            offset += parser.integer()
        return Address(base, offset)


def _renamed(item: Instruction | Label, labels: Mapping[str, str]) -> Instruction | Label:
    """An instruction of a scope, with the labels of that scope."""
    if isinstance(item, Label) or item.opcode not in ("bra", "brx", "call"):
        return item
    operands = tuple(
        Symbol(labels.get(each.name, each.name), each.offset) if isinstance(each, Symbol) else each
        for each in item.operands
    )
    return replace(item, operands=operands)
