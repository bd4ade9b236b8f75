"""Functions that call themselves have one copy in a kernel, and for each call a frame on a stack.

The stack lies behind the other local memory of a thread, and grows upwards. `FRAME` has the start
of the frame of the running call, `STACK` the first byte behind all that is in use. A frame begins
with the caller's `FRAME` and the number of the call to return to; then come parameters, results,
variables, and the registers that the caller needs again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Final

from ferrule.emulator.ptx.cursor import BYTES
from ferrule.emulator.ptx.module import (
    Address,
    Function,
    Guard,
    Immediate,
    Instruction,
    Label,
    Operand,
    PtxError,
    Register,
    Symbol,
)
from ferrule.emulator.warps.liveness import live_at
from ferrule.specs.deferred import dataclass

Items = list["Instruction | Label"]
Variable = Address | Symbol
"""A place of the stack, or a variable."""

FRAME: Final = Register("#frame")
STACK: Final = Register("#stack")
_WORD: Final = Register("#word")
_BIT: Final = Register("#bit")
_PLACE: Final = Register("#place")
END: Final = Register("%#stack")
"""A special register: the bytes of a thread's local memory."""
START: Final = "#stack"
"""The variable of no bytes where the stack begins."""
REGISTERS: Final = {
    FRAME.name: "b64", STACK.name: "b64", _PLACE.name: "b64", _WORD.name: "b32", _BIT.name: "pred",
    **{f"#copy{bits}": f"b{max(bits, 16)}" for bits in (8, 16, 32, 64)},
}  # fmt: skip
"""What kernels with a stack have, besides those of their text."""

FULL: Final = (
    "the thread's stack is full: its calls and alloca need more than twice what "
    "cuCtxSetLimit(CU_LIMIT_STACK_SIZE) says"
)
"""Why a thread ends at a call."""

SIZE: Final = "#size:"
"""Before the name of a function: the bytes of its frame, which are known once all is read."""
_SAVE, _RESTORE = "#save", "#restore"
_NUMBER: Final = 8
"""Where the number of the call is."""
_HEAD: Final = 16
_ALIGN: Final = 16


def new(at: Instruction, opcode: str, modifiers: str, *operands: Operand) -> Instruction:
    """An instruction that belongs to a place of the text: `new(call, "add", "u64", a, b, c)`."""
    words = tuple(filter(None, modifiers.split(".")))
    return Instruction(opcode, words, operands, None, at.line, at.place)


@dataclass(slots=True)
class Frame:
    """Of a function: where things lie from the start of a frame, and who calls it."""

    function: Function
    size: int = _HEAD
    places: dict[str, int] = field(default_factory=dict)
    formal: list[int] = field(default_factory=list)
    """Where parameters and then results are."""
    returns: list[str] = field(default_factory=list)
    """The label behind each call."""

    def __post_init__(self) -> None:
        for each in (*self.function.parameters, *self.function.results):
            own = self.prefix + each.name
            self.place(own, each.size, each.align)
            self.formal.append(self.places[own])

    @property
    def prefix(self) -> str:
        return f"{self.function.name}#own:"

    @property
    def entry(self) -> str:
        return self.prefix + "entry"

    @property
    def leave(self) -> str:
        return self.prefix + "leave"

    @property
    def table(self) -> str:
        """The list of `returns`."""
        return self.prefix + "returns"

    def place(self, name: str, size: int, align: int) -> None:
        """A variable in the frame."""
        self.size = -(-self.size // align) * align
        self.places[name] = self.size
        self.size += size

    @property
    def bytes(self) -> int:
        return -(-self.size // _ALIGN) * _ALIGN

    # ---- calls of the function ----

    def call(
        self, at: Instruction, given: Sequence[str], got: Sequence[str], inside: bool
    ) -> Items:
        """A call; `inside` of a function that has a frame, its registers are kept."""
        label = f"{self.prefix}back{len(self.returns)}"
        number = Immediate(len(self.returns))
        self.returns.append(label)
        formal = (*self.function.parameters, *self.function.results)
        into, out = self.formal[: len(given)], self.formal[len(given) :]
        found: Items = [new(at, _SAVE, "")] if inside else []
        found += grow(at, Symbol(f"{SIZE}{self.function.name}"), label)
        for name, place, each in zip(given, into, formal, strict=False):
            found += copy(at, Address(STACK, place), Symbol(name), each.size, each.align)
        found += [
            new(at, "st", "local.u64", Address(STACK, 0), FRAME),
            new(at, "st", "local.u32", Address(STACK, _NUMBER), number),
            new(at, "mov", "u64", FRAME, STACK),
            new(at, "mov", "u64", STACK, _PLACE),
            new(at, "bra", "", Symbol(self.entry)),
            Label(label, at.line),
            new(at, "mov", "u64", STACK, FRAME),
            new(at, "ld", "local.u64", FRAME, Address(STACK, 0)),
        ]
        if inside:
            found.append(new(at, _RESTORE, ""))
        for name, place, each in zip(got, out, formal[len(given) :], strict=False):
            found += copy(at, Symbol(name), Address(STACK, place), each.size, each.align)
        return found

    def text(
        self, body: Items, registers: Mapping[str, str], tables: Mapping[str, Sequence[str]]
    ) -> Items:
        """The function itself, from its entry to the jump back."""
        at = Instruction("ret", (), (), None, self.function.line, None)
        found: Items = [
            Label(self.entry, at.line),
            *body,
            Label(self.leave, at.line),
            new(at, "ld", "local.u32", _WORD, Address(FRAME, _NUMBER)),
            new(at, "brx", "idx", _WORD, Symbol(self.table)),
        ]
        kept = self._kept(found, registers, tables)
        return [each for item in kept for each in self._relative(item)]

    # ---- registers around calls ----

    def _kept(
        self, items: Items, registers: Mapping[str, str], tables: Mapping[str, Sequence[str]]
    ) -> Items:
        """Registers that are read behind a call are kept in the frame while it runs."""
        marks = [i for i, each in enumerate(items) if _is(each, _RESTORE)]
        live = live_at(items, tables, _comes_back) if marks else []
        kept = iter([sorted(name for name in live[i] if name in registers) for i in marks])
        found: Items = []
        names: list[str] = []
        for item in items:
            if _is(item, _SAVE):
                assert isinstance(item, Instruction)
                names = next(kept)
                found += [each for name in names for each in self._save(item, name, registers)]
            elif _is(item, _RESTORE):
                assert isinstance(item, Instruction)
                found += [each for name in names for each in self._restore(item, name, registers)]
            else:
                found.append(item)
        return found

    def _slot(self, name: str, kind: str) -> Address:
        own = f"{_SAVE}:{name}"
        size = 4 if kind == "pred" else BYTES[kind]
        if own not in self.places:
            self.place(own, size, size)
        return Address(Symbol(own), 0)

    def _save(self, at: Instruction, name: str, registers: Mapping[str, str]) -> Items:
        kind, register = registers[name], Register(name)
        slot = self._slot(name, kind)
        if kind != "pred":
            return [new(at, "st", f"local.b{8 * BYTES[kind]}", slot, register)]
        bit = new(at, "selp", "b32", _WORD, Immediate(1), Immediate(0), register)
        return [bit, new(at, "st", "local.b32", slot, _WORD)]

    def _restore(self, at: Instruction, name: str, registers: Mapping[str, str]) -> Items:
        kind, register = registers[name], Register(name)
        slot = self._slot(name, kind)
        if kind != "pred":
            return [new(at, "ld", f"local.b{8 * BYTES[kind]}", register, slot)]
        load = new(at, "ld", "local.b32", _WORD, slot)
        return [load, new(at, "setp", "ne.b32", register, _WORD, Immediate(0))]

    # ---- variables ----

    def _relative(self, item: Instruction | Label) -> Items:
        """An instruction with the frame's variables by their place in it."""
        if isinstance(item, Label):
            return [item]
        before: Items = []
        operands = tuple(self._operand(item, each, before) for each in item.operands)
        if operands == item.operands:
            return [item]
        modifiers = item.modifiers
        if any(_in_frame(each) for each in operands):
            modifiers = _of_frame(modifiers)
        elif item.opcode == "mov" and modifiers[-1][1:] == "32":
            return [
                *before,
                replace(item, opcode="cvt", modifiers=("u32", "u64"), operands=operands),
            ]
        return [*before, replace(item, operands=operands, modifiers=modifiers)]

    def _operand(self, item: Instruction, operand: Operand, before: Items) -> Operand:
        if isinstance(operand, Symbol) and operand.name in self.places:
            place = Immediate(self.places[operand.name] + operand.offset)
            before.append(new(item, "add", "u64", _PLACE, FRAME, place))
            return _PLACE
        base = operand.base if isinstance(operand, Address) else None
        if isinstance(base, Symbol) and isinstance(operand, Address) and base.name in self.places:
            return Address(FRAME, self.places[base.name] + base.offset + operand.offset)
        return operand


def _of_frame(modifiers: tuple[str, ...]) -> tuple[str, ...]:
    """Parameters of functions are local memory; `weak` says what was handed over, see `handed`."""
    if not any(each.startswith("param") for each in modifiers):
        return modifiers
    return "weak", *("local" if each.startswith("param") else each for each in modifiers)


def handed(item: Instruction) -> bool:
    """Whether a load is of parameters or results of a call, whose gaps nobody writes."""
    place = item.operands[1]
    of_stack = isinstance(place, Address) and place.base in (FRAME, STACK)
    return of_stack and item.modifiers[0] == "weak"


def _in_frame(operand: Operand) -> bool:
    return isinstance(operand, Address) and operand.base == FRAME


def _is(item: Instruction | Label, opcode: str) -> bool:
    return isinstance(item, Instruction) and item.opcode == opcode


def _comes_back(item: Instruction) -> bool:
    """A jump to a function of its own comes back behind itself."""
    target = item.operands[0] if item.opcode == "bra" else None
    return isinstance(target, Symbol) and target.name.endswith("#own:entry")


# ---- the stack ----


def begin(at: Instruction) -> Items:
    """What a kernel with a stack does first."""
    return [
        new(at, "mov", "u64", STACK, Symbol(START)),
        new(at, "mov", "u64", FRAME, Immediate(0)),
    ]


def grow(at: Instruction, size: Operand, label: str) -> Items:
    """`#place` behind so many more bytes of the stack; the thread ends where there are none."""
    fits = label + ":fits"
    jump = new(at, "bra", "", Symbol(fits))
    return [
        new(at, "add", "u64", _PLACE, STACK, size),
        new(at, "setp", "le.u64", _BIT, _PLACE, END),
        replace(jump, guard=Guard(_BIT.name, False)),
        replace(new(at, "trap", ""), modifiers=(FULL,)),
        Label(fits, at.line),
    ]


def stack_instruction(item: Instruction, label: str) -> Items:
    """`alloca`, `stacksave` and `stackrestore`, in instructions on `STACK`."""
    if item.modifiers not in (("u32",), ("u64",)):
        raise PtxError(f"{item.name} is not emulated", item.line)
    counts = {"alloca": (2, 3)}.get(item.opcode, (1,))
    if len(item.operands) not in counts or not isinstance(item.operands[0], Register):
        raise PtxError(f"{item.name} of this form is not emulated", item.line)
    kind, register = item.modifiers[0], item.operands[0]
    if item.opcode == "stacksave":
        return [_from_long(item, kind, register, STACK)]
    if item.opcode == "stackrestore":
        return [_to_long(item, kind, STACK, register)]
    return _alloca(item, kind, register, label)


def _alloca(item: Instruction, kind: str, result: Register, label: str) -> Items:
    align = item.operands[2] if len(item.operands) > 2 else Immediate(8)
    if not isinstance(align, Immediate) or align.value not in (1, 2, 4, 8, 16, 32, 64, 128, 256):
        raise PtxError(f"{item.name} with this alignment is not emulated", item.line)
    size = Register("#copy64")
    return [
        _to_long(item, kind, size, item.operands[1]),
        # No stack is that large, and the sums below cannot wrap.
        new(item, "min", "u64", size, size, Immediate(1 << 32)),
        new(item, "add", "u64", size, size, Immediate(_ALIGN - 1)),
        new(item, "and", "b64", size, size, Immediate(-_ALIGN)),
        new(item, "add", "u64", STACK, STACK, Immediate(align.value - 1)),
        new(item, "and", "b64", STACK, STACK, Immediate(-align.value)),
        *grow(item, size, label),
        _from_long(item, kind, result, STACK),
        new(item, "mov", "u64", STACK, _PLACE),
    ]


def _to_long(at: Instruction, kind: str, to: Register, source: Operand) -> Instruction:
    return new(at, *(("mov", "u64") if kind == "u64" else ("cvt", "u64.u32")), to, source)


def _from_long(at: Instruction, kind: str, to: Register, source: Operand) -> Instruction:
    return new(at, *(("mov", "u64") if kind == "u64" else ("cvt", "u32.u64")), to, source)


def copy(
    at: Instruction, to: Address | Symbol, source: Address | Symbol, size: int, align: int
) -> Items:
    """Bytes from one variable to another, or from or to a place of the stack."""
    step = next(each for each in (8, 4, 2, 1) if size % each == 0 and align % each == 0)
    register = Register(f"#copy{8 * step}")
    found: Items = []
    for offset in range(0, size, step):
        for opcode, place in (("ld", source), ("st", to)):
            where = _at(place, offset)
            space = "param" if isinstance(place, Symbol) else "weak.local"
            operands = (register, where) if opcode == "ld" else (where, register)
            found.append(new(at, opcode, f"{space}.b{8 * step}", *operands))
    return found


def _at(place: Variable, offset: int) -> Address:
    if isinstance(place, Symbol):
        return Address(place, offset)
    return Address(place.base, place.offset + offset)
