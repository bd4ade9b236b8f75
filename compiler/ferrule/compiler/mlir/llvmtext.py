"""Parses parts of LLVM's text: types, values, attributes to skip."""

from __future__ import annotations

import re
import struct
from typing import Final, TypeAlias

from ferrule.compiler.errors import CompileError
from ferrule.specs.deferred import dataclass

_TOKEN: Final = re.compile(
    r'\s*([%@c]"[^"]*"|"[^"]*"|[%@#!][\w.$-]*|\.\.\.|-?\d+\.\d+(?:e[+-]?\d+)?|'
    r"-?\d+|[A-Za-z_][\w.]*|[^\s])"
)
_HEX: Final = re.compile(r"\s*(0x[HRKLM]?[0-9A-Fa-f]+|f0x[0-9A-Fa-f]+)")
_SCALARS: Final = {
    "ptr": "!llvm.ptr",
    "void": "!llvm.void",
    "half": "f16",
    "bfloat": "bf16",
    "float": "f32",
    "double": "f64",
}
FLAGS: Final = (
    *("nuw", "nsw", "exact", "disjoint", "nneg", "samesign", "inbounds", "nusw", "volatile"),
    *("fast", "nnan", "ninf", "nsz", "arcp", "contract", "afn", "reassoc"),
)
"""Words after an opcode that allow assumptions; all of them are dropped."""

_PLAIN: Final = ("null", "undef", "poison", "zeroinitializer", "true", "false")
_ENDS: Final = {"{": "}", "[": "]", "<": ">"}
_EXPRESSIONS: Final = ("getelementptr", "trunc", "sub", "add", "ptrtoint", "inttoptr")
_EXTENSIONS: Final = ("signext", "zeroext")
_IN_MEMORY: Final = ("byval", "sret")
"""Attributes for the passing of a value in memory."""


@dataclass(frozen=True, slots=True)
class Name:
    """A value of the function, `%x`, or a symbol, `@f`."""

    text: str


@dataclass(frozen=True, slots=True)
class Literal:
    """A number as the text has it, or a word such as `null`."""

    text: str


@dataclass(frozen=True, slots=True)
class Aggregate:
    """The members of a struct or array."""

    members: tuple[Typed, ...]


@dataclass(frozen=True, slots=True)
class Bytes:
    """The characters of an array, escaped as in the text."""

    text: str


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant expression; `kind` is its target type, or the element type of its steps."""

    opcode: str
    operands: tuple[Typed, ...]
    kind: str | None


Value: TypeAlias = "Name | Literal | Aggregate | Bytes | Constant"
Typed: TypeAlias = "tuple[str, Value]"


class Reader:
    """A parser of one line of LLVM's text, from left to right; it returns types in MLIR's form."""

    __slots__ = ("at", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def refuse(self, why: str) -> CompileError:
        """The error for text without an equivalent in the dialect."""
        return CompileError(f"the LLVM dialect is not written for {why}: {self.text.strip()[:120]}")

    def peek(self) -> str:
        """The next token, "" at the end."""
        found = _HEX.match(self.text, self.at) or _TOKEN.match(self.text, self.at)
        return found[1] if found else ""

    def next(self) -> str:
        """Consume and return the next token."""
        found = _HEX.match(self.text, self.at) or _TOKEN.match(self.text, self.at)
        if found is None:
            raise self.refuse("a line that ends here")
        self.at = found.end()
        return found[1]

    def take(self, *tokens: str) -> str | None:
        """Consume the next token if it is one of these."""
        return self.next() if self.peek() in tokens else None

    def expect(self, token: str) -> None:
        """Consume the next token, which must be this."""
        if self.next() != token:
            raise self.refuse(f"something other than {token!r}")

    def skip(self, *words: str) -> None:
        """Skip all of these words."""
        while self.take(*words):
            pass

    def type(self) -> str:
        """Parse a type; returns it in MLIR's form."""
        token = self.next()
        if token in _SCALARS:
            if token == "ptr" and self.peek() == "addrspace":
                raise self.refuse("other address spaces")
            return _SCALARS[token]
        if re.fullmatch(r"i\d+", token):
            return token
        if token == "{":
            return f"!llvm.struct<({', '.join(_within(each) for each in self._types('}'))})>"
        if token == "[":
            size = self.next()
            self.expect("x")
            inner = _within(self.type())
            self.expect("]")
            return f"!llvm.array<{size} x {inner}>"
        if token == "<":
            size = self.next()
            self.expect("x")
            inner = self.type()
            self.expect(">")
            return f"vector<{size}x{inner}>"
        raise self.refuse(f"the type {token}")

    def _types(self, end: str) -> list[str]:
        found: list[str] = []
        while self.take(end) is None:
            found.append(self.type())
            self.take(",")
        return found

    def attributes(self) -> str:
        """Parse the attributes of a parameter, argument or result; returns the dialect's attributes
        for its passing, in braces."""
        passed: list[str] = []
        align = ""
        while re.fullmatch(r"[a-z_]\w*", self.peek()) and not self._is_value():
            name = self.next()
            if name in _EXTENSIONS:
                passed.append(f"llvm.{name}")
            elif name in _IN_MEMORY:
                self.expect("(")
                passed.append(f"llvm.{name} = {self.type()}")
                self.expect(")")
            elif self.peek() == "(":
                self._balanced()
            elif self.peek().isdigit():
                size = self.next()
                align = f"llvm.align = {size} : i64" if name == "align" else align
        if any("=" in each for each in passed) and align:
            passed.append(align)
        return f" {{{', '.join(passed)}}}" if passed else ""

    def attributes_before_type(self) -> None:
        """Skip the attributes of a result, which are before its type."""
        while re.fullmatch(r"[a-z_]\w*", self.peek()) and not self._is_type():
            self.next()
            if self.peek() == "(":
                self._balanced()

    def _is_type(self) -> bool:
        return self.peek() in _SCALARS or re.fullmatch(r"i\d+", self.peek()) is not None

    def _is_value(self) -> bool:
        return self.peek() in (*_PLAIN, *_EXPRESSIONS)

    def _balanced(self) -> None:
        depth = 0
        while True:
            token = self.next()
            depth += (token == "(") - (token == ")")
            if depth == 0:
                return

    def typed(self) -> Typed:
        """A type, attributes, and a value."""
        kind = self.type()
        self.attributes()
        return kind, self.value()

    def value(self) -> Value:
        """Parse a value whose type was parsed before."""
        token = self.next()
        if token in _EXPRESSIONS:
            return self._expression(token)
        if token in _ENDS:
            end = _ENDS[token]
            members: list[Typed] = []
            while self.take(end) is None:
                members.append(self.typed())
                self.take(",")
            return Aggregate(tuple(members))
        if token.startswith('c"'):
            return Bytes(token[2:-1])
        if token[0] in "%@":
            return Name(token)
        if token in _PLAIN or re.match(r"-?\d|0x|f0x", token):
            return Literal(token)
        raise self.refuse(f"the value {token}")

    def _expression(self, opcode: str) -> Constant:
        self.skip("inbounds", "nuw", "nusw", "nsw")
        self.expect("(")
        kind = None
        if opcode == "getelementptr":
            kind = self.type()
            self.expect(",")
        operands = [self.typed()]
        while self.take(","):
            operands.append(self.typed())
        if self.take("to"):
            kind = self.type()
        self.expect(")")
        return Constant(opcode, tuple(operands), kind)


def _within(kind: str) -> str:
    """A type inside a type of the dialect, which has a short form."""
    return kind.removeprefix("!llvm.") if kind.startswith("!llvm.") else kind


def float_bits(text: str, kind: str) -> str:
    """A float in MLIR's syntax, by its bits."""
    digits = text.lstrip("f").removeprefix("0x").lstrip("HR")
    if kind in ("f16", "bf16"):
        return f"0x{int(digits, 16):04X}"
    number = struct.unpack(">d", bytes.fromhex(digits))[0] if "0x" in text else float(text)
    if kind == "f64":
        return "0x" + struct.pack(">d", number).hex().upper()
    return "0x" + struct.pack(">f", number).hex().upper()
