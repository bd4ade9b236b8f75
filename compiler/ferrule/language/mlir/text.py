"""A writer of MLIR text: lines, names of values and blocks, and declarations that a module has
once."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import field
from typing import Final

from ferrule.language.mlir.folding import CONVERSIONS, Folding, conversion, width
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
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_$.]*")
_NO_NAME: Final = re.compile(r"[^A-Za-z0-9_]")


@dataclass(slots=True)
class Text:
    """MLIR under construction; a value is represented by its name, with the `%`.

    It offers the integer arithmetic of `runtime.llvm.arithmetic`, so that sizes can be lowered to
    it.  `declared` are the module-level ops that functions need, by symbol; `prologue` are the ops
    that are placed at the beginning of the function.  `place` is the location that is appended to
    each op, `hint` the preferred name of a value without one of its own.  With `folding` the text
    is folded, and constants are placed at the beginning of the function.
    """

    lines: list[str] = field(default_factory=list)
    declared: dict[str, str] = field(default_factory=dict)
    prologue: list[str] = field(default_factory=list)
    types: dict[str, str] = field(default_factory=dict)
    depth: int = 1
    place: str = ""
    hint: str = ""
    folding: Folding | None = None
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
        with self.scope():
            yield
        self.depth -= 1

    def scope(self) -> AbstractContextManager[None]:
        """A context whose ops are not known after it."""
        return nullcontext() if self.folding is None else self.folding.scope()

    def start(self) -> None:
        """Begins a function whose text is folded: nothing is known yet, and all names are free."""
        self.lines, self.prologue, self._used = [], [], {}
        self.folding = Folding()

    def op(self, text: str, type_: str, hint: str = "") -> str:
        """Writes an op with one result of this type; if the text is folded, not a second time."""
        if self.folding is not None and (found := self.folding.known(text)) is not None:
            return found
        name = self.known(self.name(hint or self.hint), type_)
        self.line(f"{name} = {text}")
        if self.folding is not None:
            self.folding.written(text, name)
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
        if self.folding is not None:
            name = f"c{shown}" if type_ in ("i1", "index") else f"c{shown}_{type_}"
            found = self._constant(f"{shown}{suffix}", type_, name.replace("-", "m"))
            self.folding.numbers[found] = number & 1 if bits == 1 else number
            return found
        return self.op(f"arith.constant {shown}{suffix}", type_, hint or f"c{shown}")

    def float_bits(self, bits: int, type_: str) -> str:
        """A float constant with these bits."""
        digits = {"f64": 16, "f32": 8}.get(type_, 4)
        if self.folding is not None:
            shown = decimal(bits, type_) or f"0x{bits:0{digits}X}"
            return self._constant(f"{shown} : {type_}", type_, "cst")
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

    def _constant(self, shown: str, type_: str, name: str) -> str:
        """A constant at the beginning of the function, the same for each use."""
        assert self.folding is not None
        known = self.folding.constants
        if (shown, type_) not in known:
            known[shown, type_] = self.first(f"arith.constant {shown}", type_, name)
        return known[shown, type_]

    # ---- arithmetic ----

    def const_i64(self, value: int) -> str:
        return self.integer(value, "i64")

    def const_i1(self, value: bool) -> str:
        return self.integer(int(value), "i1")

    def arith(self, name: str, *operands: str, hint: str = "", flags: tuple[str, ...] = ()) -> str:
        """An op of `arith` or `math` whose operands and result have one type; `flags` are
        fast-math flags."""
        type_ = self.types[operands[0]]
        full = name if "." in name else f"arith.{name}"
        if self.folding is not None and not hint:
            found = self.folding.computed(name, operands)
            if found is not None:
                return found if isinstance(found, str) else self.integer(found, type_)
        fast = f" fastmath<{','.join(flags)}>" if flags else ""
        return self.op(f"{full} {', '.join(operands)}{fast} : {type_}", type_, hint)

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
        if self.folding is not None:
            found = self.folding.compared(predicate, left, right)
            if found is not None:
                return self.const_i1(found)
        return self.op(f"arith.cmpi {predicate}, {left}, {right} : {self.types[left]}", "i1")

    def fcmp(self, predicate: str, left: str, right: str) -> str:
        """A comparison of floats."""
        return self.op(f"arith.cmpf {predicate}, {left}, {right} : {self.types[left]}", "i1")

    def select(self, condition: str, then: str, otherwise: str) -> str:
        type_ = self.types[then]
        known = None if self.folding is None else self.folding.numbers.get(condition)
        if known is not None:
            return then if known else otherwise
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
        if self.folding is not None and name in CONVERSIONS:
            return self._converted(self.folding, value, type_, hint)
        return self.op(f"arith.{name} {value} : {source} to {type_}", type_, hint)

    def _converted(self, folding: Folding, value: str, type_: str, hint: str) -> str:
        """A conversion of an integer, made from the first value in a chain of conversions."""
        if value in folding.numbers:
            return self.integer(folding.numbers[value], type_)
        while (value_ := folding.origin(value, self.types, type_)) != value:
            value = value_
        source = self.types[value]
        if source == type_:
            return value
        text = f"arith.{conversion(source, type_)} {value} : {source} to {type_}"
        name = self.op(text, type_, hint or value[1:].partition(".")[0].partition("#")[0])
        folding.converted(value, name, width(type_))
        return name

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


def quoted(symbol: str) -> str:
    """The name of a symbol, in quotes if it is no identifier."""
    return symbol if _NAME.fullmatch(symbol) else escaped(symbol.encode())


def decimal(bits: int, type_: str) -> str | None:
    """A float as MLIR prints it, None if no few digits are exactly this float."""
    size, form = {"f64": (8, "d"), "f32": (4, "f"), "f16": (2, "e")}.get(type_, (4, "f"))
    shift = 16 if type_ == "bf16" else 0
    (value,) = struct.unpack(f"<{form}", (bits << shift).to_bytes(size, "little"))
    if not math.isfinite(value):
        return None
    # 17 digits tell all doubles apart, and 9 all floats of 32 bits; the first digit stands before
    # the point.
    for digits in (6, 9, 16):
        shown = f"{value:.{digits}e}"
        if float(shown) == value:
            return shown
        if not shift and struct.pack(f"<{form}", float(shown)) == struct.pack(f"<{form}", value):
            return shown
    return None
