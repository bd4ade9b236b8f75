"""The instructions of a function of LLVM IR as operations of MLIR's dialect `llvm`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from ferrule.compiler.mlir.llvmtext import (
    FLAGS,
    Aggregate,
    Bytes,
    Constant,
    Literal,
    Name,
    Reader,
    Typed,
    float_bits,
)
from ferrule.compiler.mlir.operations import HANDLERS

_BINARY: Final = frozenset(
    "add sub mul sdiv udiv srem urem and or xor shl lshr ashr fadd fsub fmul fdiv frem".split()
)
_CASTS: Final = frozenset(
    "zext sext trunc ptrtoint inttoptr bitcast sitofp uitofp fptosi fptoui fpext fptrunc".split()
)
_PHI: Final = re.compile(r"\[ (.+?), (%(?:\"[^\"]*\"|[\w.$-]+)) \]")
_INLINE: Final = 1 << 28
"""Smaller constant indices of a getelementptr are attributes of the operation."""


class FunctionText:
    """Writes the body of one function; `names` maps its values to their names here."""

    __slots__ = ("blocks", "lines", "names", "phis", "_count")

    def __init__(self, parameters: Sequence[tuple[str, str]] = ()) -> None:
        self.lines: list[str] = []
        self.names = {name: f"%arg{i}" for i, (name, _) in enumerate(parameters)}
        self.blocks: dict[str, str] = {}
        self.phis: dict[str, list[tuple[str, str, dict[str, str]]]] = {}
        self._count = 0

    def line(self, text: str) -> None:
        """One operation."""
        self.lines.append(f"    {text}")

    def fresh(self) -> str:
        """The name of a new value."""
        self._count += 1
        return f"%{self._count - 1}"

    def made(self, text: str) -> str:
        """The value that an operation defines."""
        name = self.fresh()
        self.line(f"{name} = {text}")
        return name

    # ---- blocks ----

    def function(self, function: Any) -> None:
        """All blocks of a function."""
        blocks = list(function.blocks)
        for number, block in enumerate(blocks):
            label = f"%{_label(block)}"
            self.blocks[label] = f"^bb{number}"
            self.phis[label] = [
                self._phi(str(each)) for each in block.instructions if each.opcode == "phi"
            ]
            for each in block.instructions:
                self._declare(str(each))
        for block in blocks:
            self._block(f"%{_label(block)}", list(block.instructions))

    def _declare(self, text: str) -> None:
        found = re.match(r'\s*(%(?:"[^"]*"|[\w.$-]+)) = ', text)
        if found and found[1] not in self.names:
            self.names[found[1]] = self.fresh()

    def _phi(self, text: str) -> tuple[str, str, dict[str, str]]:
        name, _, rest = text.strip().partition(" = phi ")
        reader = Reader(rest)
        reader.skip(*FLAGS)
        kind = reader.type()
        self._declare(text)
        return name, kind, {label: value for value, label in _PHI.findall(rest[reader.at :])}

    def _block(self, label: str, instructions: list[Any]) -> None:
        if self.blocks[label] != "^bb0":
            given = ", ".join(f"{self.names[name]}: {kind}" for name, kind, _ in self.phis[label])
            self.lines.append(f"  {self.blocks[label]}{f'({given})' if given else ''}:")
        for each in instructions:
            if each.opcode != "phi":
                self._instruction(label, str(each).strip(), each.opcode)

    def successor(self, here: str, label: str) -> str:
        """A successor block, with the values that its phis get from this block."""
        given = []
        for _, kind, incoming in self.phis[label]:
            value = self.operand((kind, Reader(incoming[here]).value()))
            given.append((value, kind))
        if not given:
            return self.blocks[label]
        values, kinds = zip(*given, strict=True)
        return f"{self.blocks[label]}({', '.join(values)} : {', '.join(kinds)})"

    # ---- values ----

    def operand(self, typed: Typed) -> str:
        """The name of a value; constants are defined where they are used."""
        kind, value = typed
        match value:
            case Name(text) if text.startswith("%"):
                return self.names[text]
            case Name(text):
                quoted = '@"' + text[1:].strip('"') + '"'
                return self.made(f"llvm.mlir.addressof {quoted} : !llvm.ptr")
            case Literal(text):
                return self.made(_literal(kind, text))
            case Bytes(text):
                return self.made(f'llvm.mlir.constant("{text}") : {kind}')
            case Aggregate(members) if kind.startswith("vector<"):
                listed = ", ".join(_number(each) for each in members)
                return self.made(f"llvm.mlir.constant(dense<[{listed}]> : {kind}) : {kind}")
            case Aggregate(members):
                return self._aggregate(kind, members)
            case Constant():
                return self._constant(kind, value)

    def _aggregate(self, kind: str, members: Sequence[Typed]) -> str:
        whole = self.made(f"llvm.mlir.undef : {kind}")
        for position, member in enumerate(members):
            inner = self.operand(member)
            whole = self.made(f"llvm.insertvalue {inner}, {whole}[{position}] : {kind}")
        return whole

    def _constant(self, kind: str, value: Constant) -> str:
        if value.opcode == "getelementptr":
            assert value.kind is not None
            return self.made(self.step(value.kind, value.operands))
        operands = [self.operand(each) for each in value.operands]
        given = value.operands[0][0]
        if value.kind is None:
            return self.made(f"llvm.{value.opcode} {', '.join(operands)} : {given}")
        return self.made(f"llvm.{value.opcode} {operands[0]} : {given} to {value.kind}")

    def step(self, kind: str, operands: Sequence[Typed]) -> str:
        """A getelementptr, without its name."""
        base, *indices = operands
        address = self.operand(base)
        shown, values = [], []
        for index_kind, index in indices:
            if isinstance(index, Literal) and abs(int(index.text)) < _INLINE:
                shown.append(index.text)
            else:
                values.append((self.operand((index_kind, index)), index_kind))
                shown.append(values[-1][0])
        kinds = ", ".join(["!llvm.ptr", *(each for _, each in values)])
        return f"llvm.getelementptr {address}[{', '.join(shown)}] : ({kinds}) -> !llvm.ptr, {kind}"

    # ---- instructions ----

    def _instruction(self, here: str, text: str, opcode: str) -> None:
        name, equals, rest = text.partition(" = ")
        if not equals or not name.startswith("%") or " " in name.strip('%"'):
            name, rest = "", text
        reader = Reader(rest)
        reader.skip("tail", "notail")
        if reader.next() != opcode:
            raise reader.refuse("such an instruction")
        result = f"{self.names[name]} = " if name else ""
        if opcode in _BINARY:
            self.line(result + self._binary(reader, opcode))
        elif opcode in _CASTS:
            reader.skip(*FLAGS)
            kind, value = reader.typed()
            reader.expect("to")
            self.line(f"{result}llvm.{opcode} {self.operand((kind, value))} : {kind} to "
                      f"{reader.type()}")  # fmt: skip
        else:
            handler = HANDLERS.get(opcode)
            if handler is None:
                raise reader.refuse(f"the instruction {opcode}")
            self.line(result + handler(self, reader, here))

    def _binary(self, reader: Reader, opcode: str) -> str:
        reader.skip(*FLAGS)
        kind, left = reader.typed()
        reader.expect(",")
        right = reader.value()
        operands = f"{self.operand((kind, left))}, {self.operand((kind, right))}"
        return f"llvm.{opcode} {operands} : {kind}"


def _label(block: Any) -> str:
    """The name of a block, in quotes if the text has them."""
    head = str(block).lstrip("\n").split("\n", 1)[0]
    found = re.match(r'("[^"]*"|[\w.$-]+):', head)
    return found[1] if found else str(block.name)


def _number(typed: Typed) -> str:
    """A number within a vector."""
    kind, value = typed
    text = value.text if isinstance(value, Literal) else "?"
    return float_bits(text, kind) if kind.startswith(("f", "bf")) else text


def _literal(kind: str, text: str) -> str:
    match text:
        case "null" | "zeroinitializer":
            return f"llvm.mlir.zero : {kind}"
        case "undef" | "poison":
            return f"llvm.mlir.{text} : {kind}"
        case "true" | "false":
            return f"llvm.mlir.constant({text}) : i1"
    if kind.startswith(("f", "bf")):
        return f"llvm.mlir.constant({float_bits(text, kind)} : {kind}) : {kind}"
    return f"llvm.mlir.constant({text} : {kind}) : {kind}"
