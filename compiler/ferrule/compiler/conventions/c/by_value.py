"""Structs by value, as C passes and returns them on x86-64 and AArch64.

The registers for a struct depend on the processor, but the text of a body is the same for all.  So
a body calls a *bridge*, which gets the addresses of structs; the object has one bridge for each
processor (`Part.machine`), which makes the call as C does there.

Sources: System V ABI, AMD64 supplement, 3.2.3 "Parameter Passing"; Procedure Call Standard for the
Arm 64-bit Architecture, 6.8.2 "Parameter passing rules" and 6.9 "Result return".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import chain
from typing import Final, TypeAlias

from llvmlite import ir

from ferrule.compiler.artefacts import Part
from ferrule.compiler.conventions.arguments import InMemory, in_memory
from ferrule.compiler.conventions.base import Call
from ferrule.compiler.conventions.c.structs import Array, fill, is_opaque, rounded
from ferrule.compiler.conventions.c.structs import members as members_of
from ferrule.runtime.llvm.layouts import I64, VOID, Field, Layout
from ferrule.runtime.llvm.writer import symbol_name
from ferrule.specs.deferred import dataclass

# Both ABIs pass what is small in registers of this size.
_WORD: Final = 8
# Larger structs are passed in memory, by the ABIs of x86-64 and of AArch64; floats see below.
_MOST_IN_REGISTERS: Final = 16
_MOST_IN_FLOATS: Final = 64
"""The largest struct in registers: four floats of 16 bytes on AArch64."""
_FLOATS: Final = {"float": 4, "double": 8}


@dataclass(frozen=True, slots=True)
class Shape:
    """Size and alignment of a struct in bytes, and the offset and LLVM type of each member."""

    size: int
    align: int
    members: tuple[tuple[int, str], ...]

    @classmethod
    def of(cls, given: InMemory, what: str) -> Shape:
        """The shape of an argument.

        Raises TypeError for a struct without members, for an array, for what has a union or other
        bytes of an unknown type in it and may go into registers, and for what fits into registers
        but has a larger alignment than they are wide: C compilers do not agree on those.
        """
        if isinstance(given, Array):
            raise TypeError(f"{what}: C hands over no array by value: write Reference(Array(…))")
        members = tuple(members_of(given, 0))
        is_small = given.size <= _MOST_IN_REGISTERS
        if is_small and not members:
            raise TypeError(f"{what}: C has no struct without members")
        if members and is_opaque(given) and given.size <= _MOST_IN_FLOATS:
            raise TypeError(
                f"{what}: the registers for a union, or for bytes of an unknown type, depend on "
                f"what may be in them: let the function take the address, Reference(…)"
            )
        if is_small and given.align > _WORD:
            raise TypeError(
                f"{what}: a struct of {given.size} bytes that is aligned to {given.align} cannot "
                f"be handed over by value: let the function take its address, Reference(…)"
            )
        return cls(given.size, given.align, members)

    @classmethod
    def of_memory(cls, given: InMemory) -> Shape:
        """The shape of a struct that is in memory and never passed by value."""
        return cls(given.size, given.align, tuple(members_of(given, 0)))

    @classmethod
    def of_types(cls, kinds: Sequence[ir.Type]) -> Shape:
        """The shape of a struct with members of these types, in order."""
        names = [str(position) for position in range(len(kinds))]
        layout = Layout("struct", map(Field, names, kinds))
        members = zip(map(layout.offset, names), map(str, kinds), strict=True)
        return cls(layout.size, layout.align, tuple(members))

    @property
    def words(self) -> int:
        """Its size in eight-byte words."""
        return -(-self.size // _WORD)


Passed: TypeAlias = "str | Shape"
"""A parameter of a function: a value with its LLVM type and attributes, or a struct."""

_Way: TypeAlias = "tuple[str, ...]"
"""How a struct is passed: the types of the values that its words become, or in memory."""

_IN_MEMORY: Final[_Way] = ("memory",)


def call_by_value(
    call: Call,
    symbol: str,
    returned: ir.Type | Shape,
    passed: Sequence[Passed],
    given: Sequence[ir.Value],
    fixed: int | None = None,
) -> ir.Value:
    """Call a function with structs among its arguments, or with a struct as its result.

    `given` has an address for each struct, see `on_stack`.  `fixed` is the number of arguments
    before the `...` of a variadic function.  Returns the function's result, or the address of the
    struct.
    """
    e = call.emitter
    texts = {machine: call_text(machine, symbol, returned, passed, fixed) for machine in _RULES}
    name = f"ferrule_bridge_{sha256(''.join(texts.values()).encode()).hexdigest()[:16]}"
    for machine, text in texts.items():
        whole = text.replace("@bridge(", f"@{name}(")
        call.part(Part(name, name, whole, machine=machine))
    place, arguments = None, list(given)
    if isinstance(returned, Shape):
        place = e.alloca(I64, returned.words, name="returned")
        arguments.insert(0, place)
    result = VOID if isinstance(returned, Shape) else returned
    kind = ir.FunctionType(result, [each.type for each in arguments])
    value = e.call(e.symbol(name, kind), arguments)
    return value if place is None else place


def on_stack(call: Call, given: InMemory, what: str) -> ir.Value:
    """The address of a struct in whole words, with zeros in its gaps."""
    (place,) = in_memory(call, given, what)
    fill(call, place, given.size, rounded(given.size, _WORD))
    return place


# ---- the rules of the processors ----


def _sysv_words(shape: Shape) -> _Way:
    """Each word is in a floating-point register if it has only floats, else in an integer
    register."""
    if shape.size > _MOST_IN_REGISTERS:
        return _IN_MEMORY
    words = []
    for position in range(shape.words):
        inside = [kind for offset, kind in shape.members if offset // _WORD == position]
        words.append("double" if all(kind in _FLOATS for kind in inside) else "i64")
    return tuple(words)


def _sysv(returned: _Way, passed: Sequence[Passed]) -> Iterator[_Way]:
    """A struct is in registers if enough are free for all of it, else on the stack."""
    # Six integer registers, rdi to r9, and xmm0 to xmm7. The address for a result in memory takes
    # rdi.
    free = {"i64": 5 if returned == _IN_MEMORY else 6, "double": 8}
    for each in passed:
        if isinstance(each, Shape):
            way = words = _sysv_words(each)
            if any(words.count(kind) > left for kind, left in free.items()):
                way = _IN_MEMORY
        else:
            way, words = (each,), ("double" if each in _FLOATS else "i64",)
        if way != _IN_MEMORY:
            for kind in words:
                free[kind] = max(0, free[kind] - 1)
        yield way


def _aapcs_words(shape: Shape) -> _Way:
    """Up to four floats of one type are in floating-point registers, else up to two words."""
    kinds, count = {kind for _, kind in shape.members}, len(shape.members)
    # A homogeneous floating-point aggregate, AAPCS64 5.9.5.
    if len(kinds) == 1 and kinds.issubset(_FLOATS) and count <= 4:
        (kind,) = kinds
        if shape.size == count * _FLOATS[kind]:
            return (f"[{count} x {kind}]",)
    if shape.size > _MOST_IN_REGISTERS:
        return _IN_MEMORY
    return ("i64",) if shape.words == 1 else ("[2 x i64]",)


def _aapcs(returned: _Way, passed: Sequence[Passed]) -> Iterator[_Way]:
    """LLVM puts all elements of an array into registers, or none."""
    for each in passed:
        yield _aapcs_words(each) if isinstance(each, Shape) else (each,)


@dataclass(frozen=True, slots=True)
class _Rules:
    """The rules for one struct and for the arguments of a call; the attributes of the address of a
    struct in memory."""

    words: Callable[[Shape], _Way]
    ways: Callable[[_Way, Sequence[Passed]], Iterator[_Way]]
    memory: str


_RULES: Final[Mapping[str, _Rules]] = {
    "x86_64": _Rules(_sysv_words, _sysv, "byval([{size} x i8]) align {align}"),
    "aarch64": _Rules(_aapcs_words, _aapcs, ""),
}


# ---- the text of a bridge ----


@dataclass(frozen=True, slots=True)
class _Operand:
    """An operand of the call: its type, its attributes, its value."""

    kind: str
    value: str
    how: str = ""

    @property
    def param(self) -> str:
        """The parameter for this operand."""
        return f"{self.kind} {self.how}".rstrip()

    def __str__(self) -> str:
        return f"{self.param} {self.value}"


def call_text(
    machine: str,
    symbol: str,
    returned: ir.Type | Shape,
    passed: Sequence[Passed],
    fixed: int | None = None,
) -> str:
    """LLVM IR of the function `bridge`: `returned` is the first parameter if it is a struct.
    `fixed` as for `call_by_value`."""
    rules, is_struct = _RULES[machine], isinstance(returned, Shape)
    back = rules.words(returned) if isinstance(returned, Shape) else (str(returned),)
    lines: list[str] = []
    place = [_place(returned)] if isinstance(returned, Shape) and back == _IN_MEMORY else []
    each_way = enumerate(zip(passed, rules.ways(back, passed), strict=True))
    given = [_operands(lines, f"%a{i}", each, way, rules.memory) for i, (each, way) in each_way]
    named = [*place, *chain.from_iterable(given[:fixed])]
    operands = ", ".join(map(str, [*place, *chain.from_iterable(given)]))
    # The `...` must be in the type: a variadic call on x86-64 tells the number of vector registers
    # in AL.
    dots = [] if fixed is None else ["..."]
    params = ", ".join([*(each.param for each in named), *dots])
    kinds = ", ".join([*(each.kind for each in named), *dots])
    result, name = _result(returned, back), symbol_name(symbol)
    callee = f"{result} ({kinds})" if dots else result
    lines += _called(f"call {callee} {name}({operands})", result, is_struct)
    body = "".join(f"  {line}\n" for line in lines)
    return f"declare {result} {name}({params})\n{_head(returned, passed)} {{\n{body}}}\n"


def _head(returned: ir.Type | Shape, passed: Sequence[Passed]) -> str:
    """The head of a bridge, which gets structs by their addresses."""
    kinds = ("ptr" if isinstance(each, Shape) else each.partition(" ")[0] for each in passed)
    taken = [f"{kind} %a{number}" for number, kind in enumerate(kinds)]
    if isinstance(returned, Shape):
        return f"define void @bridge({', '.join(['ptr %result', *taken])}) alwaysinline nounwind"
    return f"define {returned} @bridge({', '.join(taken)}) alwaysinline nounwind"


def _place(returned: Shape) -> _Operand:
    """The place of a struct that is returned in memory."""
    align = max(_WORD, returned.align)
    return _Operand("ptr", "%result", f"sret([{returned.size} x i8]) align {align}")


def _operands(lines: list[str], value: str, each: Passed, way: _Way, memory: str) -> list[_Operand]:
    """The operands of the call that one argument becomes."""
    if not isinstance(each, Shape):
        kind, _, how = each.partition(" ")
        return [_Operand(kind, value, how)]
    if way == _IN_MEMORY:
        how = memory.format(size=each.size, align=max(_WORD, each.align))
        return [_Operand("ptr", value, how)]
    return _loaded(lines, value, way)


def _loaded(lines: list[str], place: str, way: _Way) -> list[_Operand]:
    """Load the words of a struct; returns the operands of the call."""
    operands = []
    for position, kind in enumerate(way):
        value = f"{place}.{position}"
        lines.append(f"{value}.at = getelementptr i8, ptr {place}, i64 {_WORD * position}")
        lines.append(f"{value} = load {kind}, ptr {value}.at, align {_WORD}")
        operands.append(_Operand(kind, value))
    return operands


def _result(returned: ir.Type | Shape, back: _Way) -> str:
    """The LLVM type of the function's result."""
    if not isinstance(returned, Shape):
        return str(returned)
    if back == _IN_MEMORY:
        return "void"
    return back[0] if len(back) == 1 else f"{{ {', '.join(back)} }}"


def _called(call: str, kind: str, is_struct: bool) -> Iterator[str]:
    """The call, and the instructions that store or return its result."""
    yield call if kind == "void" else f"%value = {call}"
    if is_struct and kind != "void":
        yield f"store {kind} %value, ptr %result, align {_WORD}"
    yield "ret void" if kind == "void" or is_struct else f"ret {kind} %value"
