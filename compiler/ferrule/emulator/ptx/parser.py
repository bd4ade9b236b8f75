"""Reads PTX text.  What it does not know is refused with its line, and never skipped over.

From the PTX ISA: "Directives", "State Spaces, Types, and Variables", "Instruction Operands".
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from ferrule.emulator.ptx.module import (
    Address,
    FloatImmediate,
    Function,
    Group,
    Guard,
    Immediate,
    Instruction,
    Label,
    Module,
    Negated,
    Operand,
    Place,
    PtxError,
    Register,
    Symbol,
    Variable,
)
from ferrule.emulator.ptx.tokens import Token, tokens

BYTES: Final = {
    **{f"{kind}{bits}": bits // 8 for kind in "bsu" for bits in (8, 16, 32, 64)},
    "b128": 16, "f16": 2, "f16x2": 4, "bf16": 2, "bf16x2": 4, "f32": 4, "f64": 8,
}  # fmt: skip
"""The bytes of each type that memory can have."""

_LINKING: Final = (".visible", ".extern", ".weak", ".common")
_NUMBERS: Final = (
    "maxntid", "reqntid", "minnctapersm", "maxnctapersm", "maxnreg", "reqnctapercluster",
    "maxclusterrank",
)  # fmt: skip
_BARE: Final = ("noreturn", "explicitcluster", "blocksareclusters")
_LOC: Final = re.compile(r"\.loc\s+(\d+)\s+(\d+)\s+\d+(?=\s|,|$)")
_FILE: Final = re.compile(r'\.file\s+(\d+)\s+"((?:\\.|[^"\\])*)"')


def parse(text: str) -> Module:
    """The module that a text is.  PtxError for what is no PTX, or is beyond what can be read."""
    return _Parser(text).module()


class _Scope:
    """Names that are declared between braces, each with its name in the function."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.names: dict[str, str] = {}

    def declare(self, name: str) -> str:
        self.names[name] = f"{name}@{self.number}" if self.number else name
        return self.names[name]


class _Parser:
    def __init__(self, text: str) -> None:
        self._tokens = tokens(text)
        self._at = 0
        self._files = {
            int(found[1]): found[2]
            for token in self._tokens
            if token.kind == "file" and (found := _FILE.match(token.text))
        }

    # ---- tokens ----

    @property
    def _next(self) -> Token:
        return self._tokens[self._at]

    def _take(self) -> Token:
        token = self._tokens[self._at]
        self._at += token.kind != "end"
        return token

    def _taken(self, text: str) -> bool:
        """Whether the next token is this one, which is then taken."""
        if self._next.text != text:
            return False
        self._at += 1
        return True

    def _expect(self, text: str) -> Token:
        token = self._take()
        if token.text != text:
            raise PtxError(f"wanted {text!r}, got {token.text!r}", token.line)
        return token

    def _word(self, what: str) -> Token:
        token = self._take()
        if token.kind != "word":
            raise PtxError(f"wanted {what}, got {token.text!r}", token.line)
        return token

    def _integer(self) -> int:
        negative = self._taken("-")
        token = self._take()
        if token.kind != "number":
            raise PtxError(f"wanted an integer, got {token.text!r}", token.line)
        value = _number(token)
        if not isinstance(value, Immediate):
            raise PtxError(f"wanted an integer, got {token.text!r}", token.line)
        return -value.value if negative else value.value

    # ---- the module ----

    def module(self) -> Module:
        version, target = self._header()
        variables: list[Variable] = []
        functions: list[Function] = []
        while self._next.kind != "end":
            self._top(variables, functions)
        return Module(version, target, tuple(variables), tuple(functions))

    def _header(self) -> tuple[tuple[int, int], str]:
        token = self._take()
        number = self._take()
        if token.text != ".version" or not re.fullmatch(r"\d+\.\d+", number.text):
            raise PtxError(f"wanted .version, got {token.text!r}: is it PTX?", token.line)
        major, minor = number.text.split(".")
        self._expect(".target")
        target = self._word("an architecture").text
        while self._taken(","):
            option = self._word("an option of .target")
            if option.text not in ("texmode_independent", "texmode_unified", "debug"):
                raise PtxError(f"the target option {option.text!r} is not emulated", option.line)
        if self._taken(".address_size"):
            line = self._next.line
            if self._integer() != 64:
                raise PtxError("only addresses of 64 bits are emulated", line)
        return (int(major), int(minor)), target

    def _top(self, variables: list[Variable], functions: list[Function]) -> None:
        token = self._next
        if token.kind in ("file", "loc") or token.text == ";":
            self._take()
            return
        if token.text == ".pragma":
            self._pragma()
            return
        if token.text == ".section":
            self._section()
            return
        linking = set()
        while self._next.text in _LINKING:
            linking.add(self._take().text)
        token = self._next
        if token.text in (".entry", ".func"):
            self._take()
            functions.append(self._function(token.text == ".entry"))
        elif token.text in (".global", ".const", ".shared"):
            variables += self._variables(lambda name: name, ".extern" in linking)
        elif token.text == ".alias":
            raise PtxError(".alias is not emulated", token.line)
        else:
            raise PtxError(f"{token.text!r} is not emulated outside of functions", token.line)

    def _pragma(self) -> None:
        self._take()
        while not self._taken(";"):
            token = self._take()
            if token.kind == "end":
                raise PtxError("the text ends inside of a .pragma", token.line)

    def _section(self) -> None:
        """Debug information: of no meaning here."""
        start = self._take()
        while not self._taken("{"):
            if self._take().kind == "end":
                raise PtxError("the text ends before the section's {", start.line)
        while not self._taken("}"):
            if self._take().kind == "end":
                raise PtxError("the text ends inside of a .section", start.line)

    # ---- variables ----

    def _variables(self, declare: Callable[[str], str], extern: bool = False) -> list[Variable]:
        """`.space .align 16 .b8 name[8] = {…}, other;`"""
        found = [self._variable(declare, extern)]
        first = found[0]
        while self._taken(","):
            found.append(self._named(first.space, first.type, first.align, declare, extern))
        self._expect(";")
        return found

    def _variable(self, declare: Callable[[str], str], extern: bool = False) -> Variable:
        space = self._take().text[1:]
        align, kind, vector = 0, "", 1
        while self._next.kind == "directive":
            token = self._take()
            word = token.text[1:]
            if word == "align":
                align = self._integer()
            elif word == "ptr":
                align, kind = self._pointer(align), kind
            elif word in ("v2", "v4"):
                vector = int(word[1])
            elif word in BYTES:
                kind = word
            elif word == "attribute":
                self._attribute()
            else:
                raise PtxError(f"the attribute .{word} is not emulated", token.line)
        if not kind:
            raise PtxError("a variable without a type", self._next.line)
        if vector > 1:
            raise PtxError(f"variables of .v{vector} are not emulated", self._next.line)
        return self._named(space, kind, align or BYTES[kind], declare, extern)

    def _pointer(self, align: int) -> int:
        """`.ptr .global .align 16`: says what the pointer points to, which changes nothing."""
        if self._next.text in (".global", ".const", ".shared", ".local"):
            self._take()
        if self._taken(".align"):
            self._integer()
        return align

    def _attribute(self) -> None:
        self._expect("(")
        token = self._take()
        if token.text != ".managed":
            raise PtxError(f"the attribute {token.text} is not emulated", token.line)
        self._expect(")")

    def _named(
        self, space: str, kind: str, align: int, declare: Callable[[str], str], extern: bool
    ) -> Variable:
        name = self._word("a variable's name")
        count, known = 1, True
        while self._taken("["):
            if self._taken("]"):
                known = False
                continue
            count *= self._integer()
            self._expect("]")
        data: bytes | None = None
        references: tuple[tuple[int, int, Symbol], ...] = ()
        if self._taken("="):
            data, references = self._initial(kind)
            if not known:
                count, known = len(data) // BYTES[kind], True
        size = count * BYTES[kind] if known else 0
        if data is not None:
            data = data.ljust(size, b"\0")
        if data is not None and len(data) > size:
            raise PtxError(f"{name.text} begins with more than it holds", name.line)
        own = declare(name.text)
        return Variable(space, own, kind, size, align, name.line, data, references, extern)

    def _initial(self, kind: str) -> tuple[bytes, tuple[tuple[int, int, Symbol], ...]]:
        data = bytearray()
        references: list[tuple[int, int, Symbol]] = []

        def value() -> None:
            if self._taken("{"):
                while not self._taken("}"):
                    value()
                    self._taken(",")
                return
            token = self._next
            if token.kind == "word":
                references.append((len(data), BYTES[kind], self._reference()))
                data.extend(bytes(BYTES[kind]))
                return
            data.extend(_encoded(self._constant(), kind, token.line))

        value()
        return bytes(data), tuple(references)

    def _reference(self) -> Symbol:
        token = self._take()
        if token.text == "generic":
            self._expect("(")
            found = self._reference()
            self._expect(")")
        elif "(" in self._next.text:
            raise PtxError(f"{token.text}(…) is not emulated here", token.line)
        else:
            found = Symbol(token.text)
        if self._taken("+"):
            return Symbol(found.name, found.offset + self._integer())
        return found

    def _constant(self) -> Immediate | FloatImmediate:
        negative = self._taken("-")
        token = self._take()
        if token.kind != "number":
            raise PtxError(f"wanted a number, got {token.text!r}", token.line)
        value = _number(token)
        if not negative:
            return value
        if isinstance(value, Immediate):
            return Immediate(-value.value)
        return FloatImmediate(value.bits ^ 1 << value.width - 1, value.width)

    # ---- functions ----

    def _function(self, entry: bool) -> Function:
        results: tuple[Variable, ...] = ()
        if not entry and self._next.text == "(":
            results = self._parameters()
        name = self._word("a function's name")
        parameters = self._parameters() if self._next.text == "(" else ()
        directives: dict[str, tuple[int, ...]] = {}
        while self._next.text not in ("{", ";"):
            self._directive(directives)
        body = _Body(self, parameters, results)
        if not self._taken(";"):
            body.read()
        return Function(
            name.text,
            entry,
            parameters,
            results,
            body.registers,
            tuple(body.variables),
            tuple(body.items) if body.has_text else None,
            directives,
            body.tables,
            name.line,
        )

    def _parameters(self) -> tuple[Variable, ...]:
        self._expect("(")
        found: list[Variable] = []
        while not self._taken(")"):
            token = self._next
            if token.text != ".param":
                raise PtxError(f"wanted .param, got {token.text!r}", token.line)
            found.append(self._variable(lambda name: name))
            self._taken(",")
        return tuple(found)

    def _directive(self, found: dict[str, tuple[int, ...]]) -> None:
        token = self._take()
        word = token.text[1:]
        if token.kind in ("loc", "file"):
            return
        if token.text == ".pragma":
            self._at -= 1
            self._pragma()
        elif token.kind == "directive" and word in _NUMBERS:
            numbers = [self._integer()]
            while self._taken(","):
                numbers.append(self._integer())
            found[word] = tuple(numbers)
        elif token.kind == "directive" and word in _BARE:
            found[word] = ()
        else:
            raise PtxError(f"{token.text!r} is not emulated on a function", token.line)

    def place(self, text: str) -> Place | None:
        """The place that a `.loc` says; none for line 0, which is no line."""
        found = _LOC.match(text)
        if found is None or not int(found[2]):
            return None
        return Place(self._files.get(int(found[1]), "?"), int(found[2]))


class _Body:
    """A function's body while it is read."""

    def __init__(
        self, parser: _Parser, parameters: tuple[Variable, ...], results: tuple[Variable, ...]
    ) -> None:
        self._parser = parser
        self._scopes: list[_Scope] = []
        self._count = 0
        self._place: Place | None = None
        self.registers: dict[str, str] = {}
        self.variables: list[Variable] = []
        self.items: list[Instruction | Label] = []
        self.tables: dict[str, tuple[str, ...]] = {}
        self.has_text = False

    def read(self) -> None:
        self.has_text = True
        self._parser._expect("{")
        self._block()

    def _block(self) -> None:
        scope = _Scope(self._count)
        self._count += 1
        self._scopes.append(scope)
        start = len(self.items)
        labels: dict[str, str] = {}
        while not self._parser._taken("}"):
            self._statement(scope, labels)
        self._scopes.pop()
        if scope.number:
            self.items[start:] = [_renamed(item, labels) for item in self.items[start:]]

    def _statement(self, scope: _Scope, labels: dict[str, str]) -> None:
        parser = self._parser
        token = parser._next
        if token.kind == "end":
            raise PtxError("the text ends inside of a function", token.line)
        if token.kind == "loc":
            self._place = parser.place(parser._take().text)
        elif token.kind == "file" or token.text == ";":
            parser._take()
        elif parser._taken("{"):
            self._block()
        elif token.kind == "directive":
            self._declaration(scope)
        elif token.kind == "word" and parser._tokens[parser._at + 1].text == ":":
            parser._at += 2
            self._label(token, labels, scope)
        else:
            self._instruction()

    def _label(self, token: Token, labels: dict[str, str], scope: _Scope) -> None:
        parser = self._parser
        if parser._taken(".branchtargets"):
            names = [parser._word("a label").text]
            while parser._taken(","):
                names.append(parser._word("a label").text)
            parser._expect(";")
            self.tables[token.text] = tuple(names)
            return
        if parser._next.text in (".callprototype", ".calltargets"):
            raise PtxError(f"indirect calls ({parser._next.text}) are not emulated", token.line)
        name = labels[token.text] = (
            f"{token.text}@{scope.number}" if scope.number else token.text
        )
        self.items.append(Label(name, token.line))

    def _declaration(self, scope: _Scope) -> None:
        parser = self._parser
        token = parser._next
        if token.text == ".reg":
            parser._take()
            self._registers(scope)
        elif token.text in (".shared", ".local", ".param", ".global", ".const"):
            self.variables += parser._variables(scope.declare)
        elif token.text == ".pragma":
            parser._pragma()
        elif token.text == ".extern":
            parser._take()
            self.variables += parser._variables(scope.declare, True)
        else:
            raise PtxError(f"{token.text!r} is not emulated inside of functions", token.line)

    def _registers(self, scope: _Scope) -> None:
        parser = self._parser
        token = parser._take()
        kind = token.text[1:]
        if kind != "pred" and (kind not in BYTES or kind == "b128"):
            raise PtxError(f"registers of {token.text} are not emulated", token.line)
        while True:
            name = parser._word("a register").text
            names = [name]
            if parser._taken("<"):
                names = [f"{name}{i}" for i in range(parser._integer())]
                parser._expect(">")
            for each in names:
                self.registers[scope.declare(each)] = kind
            if not parser._taken(","):
                break
        parser._expect(";")

    def _instruction(self) -> None:
        parser = self._parser
        guard = self._guard()
        token = parser._word("an instruction")
        opcode, *modifiers = token.text.split(".")
        operands: list[Operand] = []
        if not parser._taken(";"):
            operands.append(self._operand())
            while parser._taken(","):
                operands.append(self._operand())
            parser._expect(";")
        self.items.append(
            Instruction(
                opcode, tuple(modifiers), tuple(operands), guard, token.line, self._place
            )
        )

    def _guard(self) -> Guard | None:
        parser = self._parser
        if not parser._taken("@"):
            return None
        negated = parser._taken("!")
        return Guard(self._resolved(parser._word("a predicate").text), negated)

    def _resolved(self, name: str) -> str:
        for scope in reversed(self._scopes):
            if name in scope.names:
                return scope.names[name]
        return name

    def _operand(self) -> Operand:
        first = self._single()
        if self._parser._taken("|"):
            return Group("|", (first, self._single()))
        return first

    def _single(self) -> Operand:
        parser = self._parser
        token = parser._next
        if parser._taken("["):
            return self._address()
        if parser._taken("{"):
            return self._group("{", "}")
        if parser._taken("("):
            return self._group("(", ")")
        if parser._taken("!"):
            return Negated(self._resolved(parser._word("a predicate").text))
        if token.kind == "number" or token.text == "-":
            return parser._constant()
        return self._name()

    def _name(self) -> Register | Symbol:
        parser = self._parser
        name = self._resolved(parser._word("an operand").text)
        if name in self.registers or name.startswith("%") or name == "_":
            return Register(name)
        if parser._taken("+"):
            return Symbol(name, parser._integer())
        return Symbol(name)

    def _group(self, opens: str, closes: str) -> Group:
        items: list[Operand] = []
        while not self._parser._taken(closes):
            items.append(self._operand())
            self._parser._taken(",")
        return Group(opens, tuple(items))

    def _address(self) -> Operand:
        parser = self._parser
        if parser._next.kind == "number" or parser._next.text == "-":
            address = Address(None, parser._integer())
        else:
            base = self._name()
            if isinstance(base, Symbol):
                base, offset = Symbol(base.name), base.offset
            else:
                offset = 0
            if parser._taken("+"):
                offset += parser._integer()
            elif parser._next.text == "-":
                offset += parser._integer()
            address = Address(base, offset)
        if parser._taken(","):
            items: list[Operand] = [address, self._operand()]
            while parser._taken(","):
                items.append(self._operand())
            parser._expect("]")
            return Group("[", tuple(items))
        parser._expect("]")
        return address


def _renamed(item: Instruction | Label, labels: dict[str, str]) -> Instruction | Label:
    """An instruction of a scope, with the labels of that scope."""
    if isinstance(item, Label) or item.opcode not in ("bra", "brx"):
        return item
    operands = tuple(
        Symbol(labels.get(each.name, each.name), each.offset) if isinstance(each, Symbol) else each
        for each in item.operands
    )
    return replace(item, operands=operands)


def _number(token: Token) -> Immediate | FloatImmediate:
    text = token.text
    if text[:2] in ("0f", "0F"):
        return FloatImmediate(int(text[2:], 16), 32)
    if text[:2] in ("0d", "0D"):
        return FloatImmediate(int(text[2:], 16), 64)
    if "." in text or ("e" in text.lower() and "x" not in text.lower()):
        return FloatImmediate(struct.unpack("<Q", struct.pack("<d", float(text)))[0], 64)
    plain = text.rstrip("U")
    if len(plain) > 1 and plain[0] == "0" and plain.isdigit():
        return Immediate(int(plain, 8))
    return Immediate(int(plain, 0))


def _encoded(value: Immediate | FloatImmediate, kind: str, line: int) -> bytes:
    size = BYTES[kind]
    if isinstance(value, FloatImmediate):
        if value.width == 64 and kind == "f32":
            number = struct.unpack("<d", value.bits.to_bytes(8, "little"))[0]
            return struct.pack("<f", number)
        if value.width != size * 8 or kind[0] != "f":
            raise PtxError(f"a float of {value.width} bits does not begin .{kind}", line)
        return value.bits.to_bytes(size, "little")
    if not -(1 << 8 * size - 1) <= value.value < 1 << 8 * size:
        raise PtxError(f"{value.value} does not fit .{kind}", line)
    if kind[0] == "f":
        raise PtxError(f"an integer does not begin .{kind}", line)
    return (value.value & (1 << 8 * size) - 1).to_bytes(size, "little")
