"""What PTX text says, as frozen dataclasses; `parser.parse` makes them.

Names of registers, labels and variables of nested scopes are unique in their function: those of an
inner scope have a number behind an `@`, which no name of a text can have.
"""

from __future__ import annotations

from collections.abc import Mapping

from ferrule.specs.deferred import dataclass


class PtxError(ValueError):
    """Text that is no PTX, or that cannot be executed; `line` is the line of the text, from 1."""

    def __init__(self, text: str, line: int) -> None:
        super().__init__(f"PTX line {line}: {text}" if line else text)
        self.line = line


@dataclass(frozen=True, slots=True)
class Register:
    """A register, or a special one such as `%tid.x`; `_` is a result that nobody wants."""

    name: str


@dataclass(frozen=True, slots=True)
class Negated:
    """`!p`, a predicate of the other sense."""

    name: str


@dataclass(frozen=True, slots=True)
class Immediate:
    """An integer, as written."""

    value: int


@dataclass(frozen=True, slots=True)
class FloatImmediate:
    """A float: its bits, in `width` bits."""

    bits: int
    width: int


@dataclass(frozen=True, slots=True)
class Symbol:
    """A variable, a label or a function, and bytes after its start."""

    name: str
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Address:
    """`[base+offset]`; no base for an absolute address."""

    base: Register | Symbol | None
    offset: int


@dataclass(frozen=True, slots=True)
class Group:
    """Operands in brackets: `{a, b}`, `a|b`, or `(a, b)` of a call."""

    kind: str
    items: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Part:
    """`r.h1` or `-r`, as video instructions have them: what is taken of a register."""

    name: str
    selector: str
    """`h1`; empty for the whole register."""
    negated: bool = False


Operand = Register | Negated | Immediate | FloatImmediate | Symbol | Address | Group | Part


@dataclass(frozen=True, slots=True)
class Place:
    """The line of a source file that an instruction comes from, and where that was inlined."""

    file: str
    line: int
    called_from: Place | None = None


@dataclass(frozen=True, slots=True)
class Guard:
    """`@p` or `@!p`."""

    name: str
    negated: bool


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction: `ld.global.b32 %r1, [%rd1];` has the opcode ld, and two modifiers."""

    opcode: str
    modifiers: tuple[str, ...]
    operands: tuple[Operand, ...]
    guard: Guard | None
    line: int
    place: Place | None
    part_of: Instruction | None = None
    """The instruction of the text that this one and others stand for."""

    @property
    def name(self) -> str:
        """Opcode and modifiers, as written."""
        return ".".join((self.opcode, *self.modifiers))


@dataclass(frozen=True, slots=True)
class Label:
    """A place that branches name."""

    name: str
    line: int


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable of a state space: `size` bytes, 0 for an array whose size the launch says.

    `data` is what it begins with, and `references` are (offset, bytes, symbol) within it.
    """

    space: str
    name: str
    type: str
    size: int
    align: int
    line: int
    data: bytes | None = None
    references: tuple[tuple[int, int, Symbol], ...] = ()
    extern: bool = False


@dataclass(frozen=True, slots=True)
class Prototype:
    """What an indirect call hands over and gets back: the bytes of each."""

    results: tuple[int, ...]
    parameters: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Function:
    """A kernel (`entry`) or a function; one without a body is a declaration."""

    name: str
    entry: bool
    parameters: tuple[Variable, ...]
    results: tuple[Variable, ...]
    registers: Mapping[str, str]
    """The type of each register."""
    variables: tuple[Variable, ...]
    body: tuple[Instruction | Label, ...] | None
    directives: Mapping[str, tuple[int, ...]]
    """Such as `reqntid`, with its numbers."""
    tables: Mapping[str, tuple[str, ...]]
    """The labels of each `.branchtargets`, and the functions of each `.calltargets`."""
    prototypes: Mapping[str, Prototype]
    """Each `.callprototype`."""
    line: int


@dataclass(frozen=True, slots=True)
class Module:
    """A whole text."""

    version: tuple[int, int]
    target: str
    variables: tuple[Variable, ...]
    functions: tuple[Function, ...]
