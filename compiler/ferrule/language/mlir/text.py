"""A writer of MLIR text: lines, names of values and blocks, and declarations that a module has
once."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field
from typing import Final

from ferrule.runtime.llvm.arithmetic import Binary, Overflowing, Predicate
from ferrule.specs.deferred import dataclass

_OPS: Final[dict[Binary, str]] = {
    "add": "addi",
    "sub": "subi",
    "mul": "muli",
    "and": "andi",
    "or": "ori",
    "xor": "xori",
    "shl": "shli",
    "lshr": "shrui",
    "ashr": "shrsi",
    "sdiv": "divsi",
    "srem": "remsi",
}
_NO_NAME: Final = re.compile(r"[^A-Za-z0-9_]")


@dataclass(slots=True)
class Text:
    """MLIR under construction; a value is represented by its name, with the `%`.

    It offers the integer arithmetic of `runtime.llvm.arithmetic`, so that sizes can be lowered to
    it.  `declared` are the module-level ops that functions need, by symbol; `prologue` are the ops
    that are placed at the beginning of the function.  `place` is the location that is appended to
    each op.
    """

    lines: list[str] = field(default_factory=list)
    declared: dict[str, str] = field(default_factory=dict)
    prologue: list[str] = field(default_factory=list)
    types: dict[str, str] = field(default_factory=dict)
    depth: int = 1
    place: str = ""
    _used: dict[str, int] = field(default_factory=dict)

    # ---- names and lines ----

    def name(self, hint: str = "") -> str:
        """A name that is not used yet: the hint, with a number if it is taken."""
        wanted = _NO_NAME.sub("_", hint) or "v"
        if wanted[0].isdigit():
            wanted = f"_{wanted}"
        count = self._used.get(wanted, 0)
        self._used[wanted] = count + 1
        # A separator before the number: names from hints that end in a digit cannot collide.
        return f"%{wanted}" if not count else f"%{wanted}.{count}"

    def label(self, hint: str) -> str:
        """A name of a block."""
        return "^" + self.name(f"{hint}_block")[1:]

    def line(self, text: str) -> None:
        """Writes a line at the insertion point."""
        has_place = not text.endswith("{") and not text.startswith("//")
        self.lines.append("  " * self.depth + text + (self.place if has_place else ""))

    def block(self, label: str, argument: str = "") -> None:
        """Writes the label of a block."""
        self.lines.append("  " * (self.depth - 1) + f"{label}{argument}:")

    @contextmanager
    def indented(self) -> Iterator[None]:
        """Within this context, lines are indented one level deeper."""
        self.depth += 1
        yield
        self.depth -= 1

    def op(self, text: str, type_: str, hint: str = "") -> str:
        """Writes an op with one result of this type."""
        name = self.known(self.name(hint), type_)
        self.line(f"{name} = {text}")
        return name

    def first(self, text: str, type_: str, hint: str = "") -> str:
        """Writes an op at the beginning of the function."""
        name = self.known(self.name(hint), type_)
        self.prologue.append(f"    {name} = {text}")
        return name

    def several(self, text: str, types: Sequence[str], hint: str = "") -> list[str]:
        """Writes an op with several results; returns their names."""
        if not types:
            self.line(text)
            return []
        name = self.name(hint)
        self.line(f"{name}:{len(types)} = {text}" if len(types) > 1 else f"{name} = {text}")
        names = [f"{name}#{i}" for i in range(len(types))] if len(types) > 1 else [name]
        for each, type_ in zip(names, types, strict=True):
            self.types[each] = type_
        return names

    def known(self, name: str, type_: str) -> str:
        """Records the type of a value."""
        self.types[name] = type_
        return name

    def declare(self, symbol: str, text: str) -> str:
        """Declares a symbol of the module unless it is declared already; returns the symbol."""
        self.declared.setdefault(symbol, text)
        return symbol

    # ---- constants ----

    def integer(self, value: int, type_: str, hint: str = "") -> str:
        """An integer constant."""
        bits = 64 if type_ == "index" else int(type_[1:])
        half = 1 << (bits - 1)
        number = value if bits == 1 else (value + half) % (2 * half) - half
        shown = ("false", "true")[value & 1] if bits == 1 else str(number)
        suffix = "" if bits == 1 else f" : {type_}"
        return self.op(f"arith.constant {shown}{suffix}", type_, hint or f"c{shown}")

    def float_bits(self, bits: int, type_: str) -> str:
        """A float constant with these bits."""
        digits = {"f64": 16, "f32": 8}.get(type_, 4)
        return self.op(f"arith.constant 0x{bits:0{digits}X} : {type_}", type_, "cst")

    def float32(self, value: float) -> str:
        """A constant of float32."""
        return self.float_bits(struct.unpack("<I", struct.pack("<f", value))[0], "f32")

    def float64(self, value: float) -> str:
        """A constant of float64."""
        return self.float_bits(struct.unpack("<Q", struct.pack("<d", value))[0], "f64")

    def index(self, value: int) -> str:
        """A constant of `index`."""
        return self.integer(value, "index")

    # ---- arithmetic ----

    def const_i64(self, value: int) -> str:
        return self.integer(value, "i64")

    def const_i1(self, value: bool) -> str:
        return self.integer(int(value), "i1")

    def arith(self, name: str, *operands: str, hint: str = "") -> str:
        """An op of `arith` or `math` whose operands and result have one type."""
        type_ = self.types[operands[0]]
        full = name if "." in name else f"arith.{name}"
        return self.op(f"{full} {', '.join(operands)} : {type_}", type_, hint)

    def binary(self, op: Binary, left: str, right: str) -> str:
        return self.arith(_OPS[op], left, right)

    def overflowing(self, op: Overflowing, left: str, right: str) -> tuple[str, str]:
        type_ = self.types[left]
        zero = self.integer(0, type_)
        if op == "smul":
            low, high = self.several(
                f"arith.mulsi_extended {left}, {right} : {type_}", [type_, type_]
            )
            sign = self.arith("shrsi", low, self.integer(int(type_[1:]) - 1, type_))
            return low, self.icmp("ne", high, sign)
        result = self.binary("add" if op == "sadd" else "sub", left, right)
        differs = self.arith("xori", left, result)
        other = self.arith("xori", right if op == "sadd" else left, result)
        if op == "ssub":
            differs, other = self.arith("xori", left, right), differs
        return result, self.icmp("slt", self.arith("andi", differs, other), zero)

    def icmp(self, predicate: Predicate, left: str, right: str) -> str:
        return self.op(f"arith.cmpi {predicate}, {left}, {right} : {self.types[left]}", "i1")

    def fcmp(self, predicate: str, left: str, right: str) -> str:
        """A comparison of floats."""
        return self.op(f"arith.cmpf {predicate}, {left}, {right} : {self.types[left]}", "i1")

    def select(self, condition: str, then: str, otherwise: str) -> str:
        type_ = self.types[then]
        return self.op(f"arith.select {condition}, {then}, {otherwise} : {type_}", type_)

    def not_(self, flag: str) -> str:
        return self.arith("xori", flag, self.const_i1(True))

    def widened(self, flag: str) -> str:
        return self.cast("extui", flag, "i64")

    def cast(self, name: str, value: str, type_: str, hint: str = "") -> str:
        """A conversion op of `arith`; no op if the value has the type already."""
        source = self.types[value]
        if source == type_:
            return value
        return self.op(f"arith.{name} {value} : {source} to {type_}", type_, hint)

    def as_index(self, value: str) -> str:
        """An i64 as an `index`."""
        return self.cast("index_cast", value, "index")

    # ---- module ----

    def module(self, *, container: bool = False) -> str:
        """The text of the whole module; `container`: it contains kernels for a GPU, and
        launches."""
        attributes = " attributes {gpu.container_module}" if container else ""
        return (
            "\n".join([f"module{attributes} {{", *self.declared.values(), *self.lines, "}"]) + "\n"
        )


def escaped(data: bytes) -> str:
    """Bytes as an MLIR string literal."""
    plain = (chr(c) if 32 <= c < 127 and c not in b'"\\' else f"\\{c:02X}" for c in data)
    return '"' + "".join(plain) + '"'
