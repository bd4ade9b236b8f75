"""Reads PTX text.  What it does not know is refused with its line, and never skipped over.

From the PTX ISA: "Directives", "State Spaces, Types, and Variables", "Instruction Operands".
"""

from __future__ import annotations

import re
from collections.abc import Callable
from math import prod
from typing import Final

from ferrule.emulator.ptx.body import Body, files
from ferrule.emulator.ptx.cursor import BYTES, Cursor
from ferrule.emulator.ptx.initial import Initial, References
from ferrule.emulator.ptx.module import Function, Module, PtxError, Variable
from ferrule.emulator.ptx.tokens import Token

_LARGEST: Final = 1 << 40
_LINKING: Final = (".visible", ".extern", ".weak", ".common")
_NUMBERS: Final = (
    "maxntid", "reqntid", "minnctapersm", "maxnctapersm", "maxnreg", "reqnctapercluster",
    "maxclusterrank",
)  # fmt: skip
_BARE: Final = ("noreturn", "explicitcluster", "blocksareclusters")


def parse(text: str) -> Module:
    """The module in a text. PtxError for a text that is no PTX, or that this parser cannot read."""
    return _Parser(text).module()


class _Parser(Cursor):
    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._files = files(self.tokens)

    # ---- the module ----

    def module(self) -> Module:
        version, target = self._header()
        variables: list[Variable] = []
        functions: list[Function] = []
        while self.next.kind != "end":
            self._top(variables, functions)
        _once([(each.name, each.line) for each in variables if not each.extern])
        _once([(each.name, each.line) for each in functions if each.body is not None])
        return Module(version, target, tuple(variables), tuple(functions))

    def _header(self) -> tuple[tuple[int, int], str]:
        token = self.take()
        number = self.take()
        if token.text != ".version" or not re.fullmatch(r"\d+\.\d+", number.text):
            raise PtxError(f"wanted .version, got {token.text!r}: is it PTX?", token.line)
        major, minor = number.text.split(".")
        self.expect(".target")
        target = self.word("an architecture").text
        while self.taken(","):
            option = self.word("an option of .target")
            if option.text not in ("texmode_independent", "texmode_unified", "debug"):
                raise PtxError(f"the target option {option.text!r} is not emulated", option.line)
        if self.taken(".address_size"):
            line = self.next.line
            if self.integer() != 64:
                raise PtxError("only addresses of 64 bits are emulated", line)
        return (int(major), int(minor)), target

    def _top(self, variables: list[Variable], functions: list[Function]) -> None:
        token = self.next
        if token.kind in ("file", "loc") or token.text == ";":
            self.take()
            return
        if token.text == ".pragma":
            self.pragma()
            return
        if token.text == ".section":
            self._section()
            return
        linking = set()
        while self.next.text in _LINKING:
            linking.add(self.take().text)
        token = self.next
        if token.text in (".entry", ".func"):
            self.take()
            functions.append(self._function(token.text == ".entry"))
        elif token.text in (".global", ".const", ".shared"):
            variables += self.variables(lambda name: name, ".extern" in linking)
        elif token.text == ".alias":
            raise PtxError(".alias is not emulated", token.line)
        else:
            raise PtxError(f"{token.text!r} is not emulated outside of functions", token.line)

    def pragma(self, *, begun: bool = False) -> None:
        """A hint for the assembler, of no meaning here."""
        if not begun:
            self.take()
        while not self.taken(";"):
            token = self.take()
            if token.kind == "end":
                raise PtxError("the text ends inside of a .pragma", token.line)

    def _section(self) -> None:
        """Debug information: of no meaning here."""
        start = self.take()
        while not self.taken("{"):
            if self.take().kind == "end":
                raise PtxError("the text ends before the section's {", start.line)
        while not self.taken("}"):
            if self.take().kind == "end":
                raise PtxError("the text ends inside of a .section", start.line)

    # ---- variables ----

    def variables(self, declare: Callable[[str], str], extern: bool = False) -> list[Variable]:
        """`.space .align 16 .b8 name[8] = {…}, other;`"""
        found = [self._variable(declare, extern)]
        first = found[0]
        while self.taken(","):
            found.append(self._named(first.space, first.type, first.align, declare, extern))
        self.expect(";")
        return found

    def _variable(self, declare: Callable[[str], str], extern: bool = False) -> Variable:
        space = self.take().text[1:]
        align, kind, vector = 0, "", 1
        while self.next.kind == "directive":
            token = self.take()
            word = token.text[1:]
            if word == "align":
                align = self._alignment()
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
            raise PtxError("a variable without a type", self.next.line)
        if vector > 1:
            raise PtxError(f"variables of .v{vector} are not emulated", self.next.line)
        return self._named(space, kind, align or BYTES[kind], declare, extern)

    def _alignment(self) -> int:
        line = self.next.line
        align = self.integer()
        if align < 1 or align & align - 1:
            raise PtxError(f"the alignment {align} is no power of two", line)
        return align

    def _pointer(self, align: int) -> int:
        """`.ptr .global .align 16`: says what the pointer points to, which changes nothing."""
        if self.next.text in (".global", ".const", ".shared", ".local"):
            self.take()
        if self.taken(".align"):
            self._alignment()
        return align

    def _attribute(self) -> None:
        self.expect("(")
        token = self.take()
        if token.text != ".managed":
            raise PtxError(f"the attribute {token.text} is not emulated", token.line)
        self.expect(")")

    def _named(
        self, space: str, kind: str, align: int, declare: Callable[[str], str], extern: bool
    ) -> Variable:
        name = self.word("a variable's name")
        sizes = self._sizes(name)
        data: bytes | None = None
        references: References = ()
        if self.taken("="):
            if space not in ("global", "const"):
                raise PtxError(f".{space} variables begin with nothing: {name.text}", name.line)
            data, references = Initial(self, kind).value(sizes, name)
        count = prod(each or 0 for each in sizes)
        size = len(data) if data is not None else count * BYTES[kind]
        if size > _LARGEST:
            raise PtxError(f"{name.text} has {size} bytes", name.line)
        own = declare(name.text)
        return Variable(space, own, kind, size, align, name.line, data, references, extern)

    def _sizes(self, name: Token) -> list[int | None]:
        """The sizes of an array's dimensions; the first may be left out, and is None then."""
        found: list[int | None] = []
        while self.taken("["):
            if self.taken("]"):
                if found:
                    raise PtxError(f"{name.text}: only the first size may be left out", name.line)
                found.append(None)
                continue
            found.append(self.integer())
            self.expect("]")
            if found[-1] is not None and found[-1] < 0:
                raise PtxError(f"{name.text} has the size {found[-1]}", name.line)
        return found

    # ---- functions ----

    def _function(self, entry: bool) -> Function:
        results: tuple[Variable, ...] = ()
        if not entry and self.next.text == "(":
            results = self.parameters()
        name = self.word("a function's name")
        parameters = self.parameters() if self.next.text == "(" else ()
        directives: dict[str, tuple[int, ...]] = {}
        while self.next.text not in ("{", ";"):
            self._directive(directives)
        body = Body(self, self._files)
        if not self.taken(";"):
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
            body.prototypes,
            name.line,
        )

    def parameters(self) -> tuple[Variable, ...]:
        self.expect("(")
        found: list[Variable] = []
        if self.taken(")"):
            return ()
        while True:
            token = self.next
            if token.text != ".param":
                raise PtxError(f"wanted .param, got {token.text!r}", token.line)
            found.append(self._variable(lambda name: name))
            if not self.more(")"):
                break
        _once([(each.name, each.line) for each in found])
        return tuple(found)

    def _directive(self, found: dict[str, tuple[int, ...]]) -> None:
        token = self.take()
        word = token.text[1:]
        if token.kind in ("loc", "file"):
            return
        if token.text == ".pragma":
            self.pragma(begun=True)
        elif token.kind == "directive" and word in _NUMBERS:
            numbers = [self.integer()]
            while self.taken(","):
                numbers.append(self.integer())
            found[word] = tuple(numbers)
        elif token.kind == "directive" and word in _BARE:
            found[word] = ()
        else:
            raise PtxError(f"{token.text!r} is not emulated on a function", token.line)


def _once(names: list[tuple[str, int]]) -> None:
    """PtxError where one of these names stands twice; `_` is none."""
    seen: set[str] = set()
    for name, line in names:
        if name in seen and name != "_":
            raise PtxError(f"{name} is defined twice", line)
        seen.add(name)
