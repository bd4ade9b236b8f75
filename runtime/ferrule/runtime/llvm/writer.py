"""The writer: a fast emitter, for code that is generated for every compiled function.

`Emitter` builds llvmlite's objects and prints them at the end; an object for an instruction costs
ten times as much as its text.  The writer makes the text directly.  It knows only the names of
types: the caller must pass matching operands, and LLVM's verifier reports a mismatch.

A function is a list of blocks, in the order in which they are made or arranged; the writer owns the
insertion point.  Names of values depend only on the order of emission, so the same calls give the
same text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final, Literal, NamedTuple

from ferrule.runtime.cfunctions import c_function
from ferrule.runtime.llvm.arithmetic import Binary, Overflowing, Predicate
from ferrule.runtime.llvm.layouts import FieldType, Layout, size_of

FloatBinary = Literal["fadd", "fsub", "fmul"]
FloatPredicate = Literal["oeq", "olt", "ole", "ogt", "oge", "uno"]
Cast = Literal[
    "trunc",
    "zext",
    "sext",
    "bitcast",
    "ptrtoint",
    "inttoptr",
    "sitofp",
    "uitofp",
    "fptrunc",
    "fpext",
]


class Value(NamedTuple):
    """An operand: its LLVM type and how the text refers to it."""

    type: str
    ref: str


NULL: Final = Value("ptr", "null")
TRUE: Final = Value("i1", "true")
FALSE: Final = Value("i1", "false")
_BYTES: Final = tuple(
    chr(byte) if 32 <= byte < 127 and chr(byte) not in '"\\' else f"\\{byte:02X}"
    for byte in range(256)
)


def _is_plain(name: str) -> bool:
    """Whether LLVM accepts a name that begins with this text without quotes.

    A parameter's name can be any Unicode identifier.
    """
    return name.isascii() and not name[0].isdigit()


def symbol_name(name: str) -> str:
    """A function's name in LLVM text: a name beyond ASCII is in quotes, as escaped UTF-8."""
    if name.isascii():
        return f"@{name}"
    return f'@"{"".join(_BYTES[byte] for byte in name.encode())}"'


def const(kind: str, value: int) -> Value:
    """An integer; a bit pattern above the signed range is written as the negative value."""
    bits = int(kind[1:])
    if not -(1 << (bits - 1)) <= value < 1 << bits:
        raise OverflowError(f"{value} does not fit {kind}")
    return Value(kind, str(value - (1 << bits) if value >= 1 << (bits - 1) else int(value)))


def i32(value: int) -> Value:
    """A 32-bit constant."""
    return const("i32", value)


def i64(value: int) -> Value:
    """A 64-bit constant."""
    return const("i64", value)


class Block:
    """A basic block under construction."""

    __slots__ = ("ended", "lines", "name")

    def __init__(self, name: str) -> None:
        self.name: Final = name
        self.lines: Final[list[str]] = []
        self.ended = False


class Writer:
    """Writes one LLVM module."""

    def __init__(self) -> None:
        self.topic = ""
        """What the next instructions are for, where somebody asks."""
        self._globals: list[str] = []
        self._functions: list[str] = []
        self._declared: dict[str, str] = {}
        self._defined: set[str] = set()
        self._constants: dict[bytes, Value] = {}
        self._blocks: list[Block] = []
        self._entry: list[str] = []
        self._block = Block("")
        self._emit = self._block.lines.append
        self._number = 0

    def text(self) -> str:
        """The module as LLVM assembly."""
        declared = (text for name, text in self._declared.items() if name not in self._defined)
        return "\n".join([*self._globals, *declared, *self._functions]) + "\n"

    # ---- functions ----

    @contextmanager
    def define(
        self, name: str, result: str, parameters: Sequence[Value], attributes: str = ""
    ) -> Iterator[None]:
        """Emit the body of a function, one at a time; `parameters` carry their names."""
        self._blocks, self._entry, self._number = [], [], 0
        self._blocks.append(Block("entry"))
        self.at(self._blocks[0])
        yield
        for block in self._blocks:
            if not block.ended:
                raise RuntimeError(f"the block {block.name} of {name} has no end")
        declared = ", ".join(f"{parameter.type} {parameter.ref}" for parameter in parameters)
        lines = [f"define {result} {symbol_name(name)}({declared}) {attributes}".rstrip() + " {"]
        for i, block in enumerate(self._blocks):
            lines.append(f"{block.name}:")
            lines += self._entry if i == 0 else []
            lines += block.lines
        self._functions.append("\n".join([*lines, "}"]))
        self._defined.add(name)

    def symbol(self, name: str, result: str, kinds: Sequence[str], attributes: str = "") -> None:
        """Declare a function that another module or object defines."""
        text = f"declare {result} {symbol_name(name)}({', '.join(kinds)}) {attributes}".rstrip()
        known = self._declared.setdefault(name, text)
        if known != text:
            raise TypeError(f"{name} is declared as {known!r}, asked for as {text!r}")

    def call(
        self, name: str, result: str, arguments: Sequence[Value], attributes: str = ""
    ) -> Value:
        """Call a function by its name; the declaration follows from the operands."""
        self.symbol(name, result, [argument.type for argument in arguments], attributes)
        operands = ", ".join(f"{argument.type} {argument.ref}" for argument in arguments)
        return self._value(result, f"call {result} {symbol_name(name)}({operands})", name)

    def call_void(self, name: str, arguments: Sequence[Value], attributes: str = "") -> None:
        """The same for a function that returns nothing."""
        self.symbol(name, "void", [argument.type for argument in arguments], attributes)
        operands = ", ".join(f"{argument.type} {argument.ref}" for argument in arguments)
        self._emit(f"  call void {symbol_name(name)}({operands})")

    def call_c(self, name: str, arguments: Sequence[Value]) -> Value:
        """Call one of the C functions of the fixed table."""
        return self.call(name, c_function(name).result, arguments)

    # ---- blocks ----

    def block(self, hint: str) -> Block:
        """A new block at the end of the function."""
        block = Block(f"{hint}.{self._next()}")
        self._blocks.append(block)
        return block

    def at(self, block: Block) -> None:
        """Go on emitting at the end of `block`."""
        self._block = block
        self._emit = block.lines.append

    @contextmanager
    def apart(self) -> Iterator[list[Block]]:
        """Collect the blocks that are made inside, outside of the function, until `arrange`.

        The insertion point comes back at the end.
        """
        before, here = self._blocks, self._block
        found: list[Block] = []
        self._blocks = found
        try:
            yield found
        finally:
            self._blocks = before
            self.at(here)

    def arrange(self, blocks: Sequence[Block]) -> None:
        """Put blocks after all blocks that the function has now."""
        self._blocks += blocks

    def branch(self, target: Block) -> None:
        """Go to `target`."""
        self._end(f"  br label %{target.name}")

    def cond_branch(self, condition: Value, then: Block, otherwise: Block) -> None:
        """Go to one of two blocks."""
        self._end(f"  br i1 {condition.ref}, label %{then.name}, label %{otherwise.name}")

    def ret(self, value: Value) -> None:
        """Return from the function."""
        self._end(f"  ret {value.type} {value.ref}")

    def _end(self, line: str) -> None:
        self._emit(line)
        self._block.ended = True

    @property
    def here(self) -> Block:
        """The block of the insertion point."""
        return self._block

    # ---- memory ----

    def alloca(self, element: str, count: int = 1, *, name: str) -> Value:
        """Naturally aligned room on the stack, reserved once a call."""
        value = Value("ptr", f"%{name}.{self._next()}")
        self._entry.append(f"  {value.ref} = alloca [{count} x {element}], align 8")
        return value

    def store_at_entry(self, value: Value, base: Value, bytes_: int = 0) -> None:
        """Store a constant at an offset of stack space, at the start of the function."""
        address = base.ref
        if bytes_:
            address = f"%at.{self._next()}"
            self._entry.append(
                f"  {address} = getelementptr inbounds i8, ptr {base.ref}, i64 {bytes_}"
            )
        self._entry.append(f"  store {value.type} {value.ref}, ptr {address}")

    def load(self, address: Value, kind: str, name: str = "v") -> Value:
        """Load a naturally aligned scalar."""
        return self._value(kind, f"load {kind}, ptr {address.ref}", name)

    def load_pair(self, address: Value) -> Value:
        """Load two i64s for `equal_lanes`: as four i32s, which every vector unit can compare."""
        return self._value("<4 x i32>", f"load <4 x i32>, ptr {address.ref}, align 8", "pair")

    def store(self, value: Value, address: Value) -> None:
        """Store a naturally aligned scalar."""
        self._emit(f"  store {value.type} {value.ref}, ptr {address.ref}")

    def offset(self, base: Value, bytes_: int, name: str = "at") -> Value:
        """The address plus `bytes_`."""
        if bytes_ == 0:
            return base
        return self._value("ptr", f"getelementptr inbounds i8, ptr {base.ref}, i64 {bytes_}", name)

    def index(self, base: Value, element: FieldType, position: int, name: str = "at") -> Value:
        """The address of an element of an array."""
        return self.offset(base, size_of(element) * position, name)

    def load_field(self, base: Value, layout: Layout, path: str, name: str = "") -> Value:
        """The value of a scalar field."""
        kind = layout.type_of(path)
        if isinstance(kind, Layout):
            raise TypeError(f"{layout.name}.{path} is a struct, not a scalar")
        return self.load(self.offset(base, layout.offset(path)), str(kind), name or path)

    def bytes_constant(self, data: bytes, *, align: int = 8) -> Value:
        """The address of a private constant, one for equal bytes."""
        known = self._constants.get(data)
        if known is None:
            known = self._constants[data] = Value("ptr", f"@.bytes.{len(self._constants)}")
            text = "".join(map(_BYTES.__getitem__, data))
            self._globals.append(
                f"{known.ref} = private unnamed_addr constant [{len(data)} x i8] "
                f'c"{text}", align {align}'
            )
        return known

    def zeroed(self, name: str, kind: str) -> Value:
        """The address of a variable of the object, one for a name; it is zero at first."""
        variable = Value("ptr", f"@{name}")
        text = f"{variable.ref} = internal global {kind} zeroinitializer"
        if text not in self._globals:
            self._globals.append(text)
        return variable

    # ---- arithmetic: the `Arithmetic` that sizes are lowered with, and more ----

    def const_i64(self, value: int) -> Value:
        """A 64-bit constant."""
        return i64(value)

    def const_i1(self, value: bool) -> Value:
        """A flag that is known."""
        return TRUE if value else FALSE

    def widened(self, flag: Value) -> Value:
        """An i1 as 0 or 1, i64."""
        return self.cast("zext", flag, "i64")

    def binary(self, op: Binary | FloatBinary, left: Value, right: Value, name: str = "v") -> Value:
        """`left op right`, wrapping."""
        return self._value(left.type, f"{op} {left.type} {left.ref}, {right.ref}", name)

    def icmp(self, predicate: Predicate, left: Value, right: Value) -> Value:
        """Compare integers or pointers."""
        return self._value("i1", f"icmp {predicate} {left.type} {left.ref}, {right.ref}", "c")

    def equal_lanes(self, left: Value, right: Value) -> Value:
        """Where two vectors of four are the same, four i1s."""
        return self._value("<4 x i1>", f"icmp eq {left.type} {left.ref}, {right.ref}", "same")

    def fcmp(self, predicate: FloatPredicate, left: Value, right: Value) -> Value:
        """Compare floats."""
        return self._value("i1", f"fcmp {predicate} {left.type} {left.ref}, {right.ref}", "c")

    def select(self, condition: Value, then: Value, otherwise: Value, name: str = "v") -> Value:
        """`then` where the condition holds."""
        kind = then.type
        text = f"select i1 {condition.ref}, {kind} {then.ref}, {kind} {otherwise.ref}"
        return self._value(kind, text, name)

    def not_(self, flag: Value) -> Value:
        """The opposite of an i1."""
        return self._value("i1", f"xor i1 {flag.ref}, true", "c")

    def cast(self, op: Cast, value: Value, kind: str, name: str = "v") -> Value:
        """The value converted to another type; unchanged if it has this type already."""
        if value.type == kind:
            return value
        return self._value(kind, f"{op} {value.type} {value.ref} to {kind}", name)

    def overflowing(self, op: Overflowing, left: Value, right: Value) -> tuple[Value, Value]:
        """The wrapped result, and the flag that says whether it wrapped."""
        kind = f"{{ {left.type}, i1 }}"
        pair = self.call(f"llvm.{op}.with.overflow.{left.type}", kind, [left, right])
        value = self._value(left.type, f"extractvalue {kind} {pair.ref}, 0", "v")
        return value, self._value("i1", f"extractvalue {kind} {pair.ref}, 1", "c")

    def phi(self, kind: str, incoming: Sequence[tuple[Value, Block]], name: str = "v") -> Value:
        """A phi: the value for the block from which control came."""
        ways = ", ".join(f"[ {value.ref}, %{block.name} ]" for value, block in incoming)
        return self._value(kind, f"phi {kind} {ways}", name)

    def _value(self, kind: str, text: str, name: str) -> Value:
        self._number = number = self._number + 1
        ref = f"%{name}.{number}" if _is_plain(name) else f"%v.{number}"
        self._emit(f"  {ref} = {text}")
        return Value(kind, ref)

    def _next(self) -> int:
        self._number += 1
        return self._number
