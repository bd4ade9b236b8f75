"""Video instructions on single numbers: parts of words, with more than 32 bits in between.

The second step combines what the first one gave, as a number of the destination's type, with the
third operand: it adds, takes the smaller or the larger, or puts bytes into it.
"""

from __future__ import annotations

from typing import Final

from ferrule.emulator.instructions.forms import Named, form, kind
from ferrule.emulator.instructions.packed import part
from ferrule.emulator.ptx.module import Instruction, Operand, Part, Register
from ferrule.emulator.warps.emitter import Emitter, splat

_WORDS: Final = "<32 x i32>"
_LONG: Final = "<32 x i64>"
_WIDE: Final = "<32 x i128>"
_TWO: Final = r"\.(?P<a>[us]32)\.(?P<b>[us]32)"
_THREE: Final = r"\.(?P<d>[us]32)" + _TWO
_THEN: Final = r"(\.(?P<then>add|min|max))?"
_SELECTORS: Final = {
    **{f"b{i}": (8, i) for i in range(4)}, "h0": (16, 0), "h1": (16, 1),
}  # fmt: skip
"""The bits of each part of a word, and its place."""


@form("vadd", _THREE + r"(?P<sat>\.sat)?" + _THEN, 3, 4)
@form("vsub", _THREE + r"(?P<sat>\.sat)?" + _THEN, 3, 4)
@form("vabsdiff", _THREE + r"(?P<sat>\.sat)?" + _THEN, 3, 4)
@form("vmin", _THREE + r"(?P<sat>\.sat)?" + _THEN, 3, 4)
@form("vmax", _THREE + r"(?P<sat>\.sat)?" + _THEN, 3, 4)
def _arithmetic(e: Emitter, item: Instruction, named: Named) -> None:
    a, b = _selected(e, item.operands[1], named, "a"), _selected(e, item.operands[2], named, "b")
    _finish(e, item, named, computed(e, item.opcode[1:], _LONG, a, b))


@form("vset", _TWO + r"\.(?P<how>eq|ne|lt|le|gt|ge)" + _THEN, 3, 4)
def _compared(e: Emitter, item: Instruction, named: Named) -> None:
    """1 where it holds; the result is unsigned."""
    a, b = _selected(e, item.operands[1], named, "a"), _selected(e, item.operands[2], named, "b")
    _finish(e, item, {**named, "d": "u32", "sat": None}, holds(e, kind(named, "how"), _LONG, a, b))


@form("vshl", r"\.(?P<d>[us]32)\.(?P<a>[us]32)\.(?P<b>u32)(?P<sat>\.sat)?\.(?P<mode>clamp|wrap)"
      + _THEN, 3, 4)  # fmt: skip
@form("vshr", r"\.(?P<d>[us]32)\.(?P<a>[us]32)\.(?P<b>u32)(?P<sat>\.sat)?\.(?P<mode>clamp|wrap)"
      + _THEN, 3, 4)  # fmt: skip
def _shifted(e: Emitter, item: Instruction, named: Named) -> None:
    """The shifted value is cut to its lowest 34 bits."""
    a, b = _selected(e, item.operands[1], named, "a"), _selected(e, item.operands[2], named, "b")
    if named["mode"] == "clamp":
        b = e.op(f"call {_LONG} @llvm.umin.v32i64({_LONG} {b}, {_LONG} {splat('i64', '32')})")
    else:
        b = e.op(f"and {_LONG} {b}, {splat('i64', '31')}")
    value = e.op(f"{'shl' if item.opcode == 'vshl' else 'ashr'} {_LONG} {a}, {b}")
    high = e.op(f"shl {_LONG} {value}, {splat('i64', '30')}")
    _finish(e, item, named, e.op(f"ashr {_LONG} {high}, {splat('i64', '30')}"))


def _selected(e: Emitter, operand: Operand, named: Named, which: str) -> str:
    """A part of a word, in 64 bits."""
    sign = kind(named, which)[0]
    if not isinstance(operand, Part):
        return _longer(e, e.read(operand, "b32"), sign)
    if operand.negated:
        raise e.refuse(f"-{operand.name}")
    bits, place = _place(e, operand.selector)
    word = e.read(Register(operand.name), "b32")
    return _longer(e, part(e, word, f"{sign}{bits}", place), sign)


def _place(e: Emitter, selector: str) -> tuple[int, int]:
    if selector not in _SELECTORS:
        raise e.refuse(f"the part .{selector}")
    return _SELECTORS[selector]


def _longer(e: Emitter, word: str, sign: str, to: str = _LONG) -> str:
    return e.op(f"{'sext' if sign == 's' else 'zext'} {_WORDS} {word} to {to}")


def computed(e: Emitter, opcode: str, llvm: str, a: str, b: str) -> str:
    """A sum, difference, distance, or the smaller or larger of two signed numbers."""
    if opcode in ("add", "sub"):
        return e.op(f"{opcode} {llvm} {a}, {b}")
    name = llvm[1:-1].replace("32 x ", "v32")
    if opcode == "absdiff":
        apart = e.op(f"sub {llvm} {a}, {b}")
        return e.op(f"call {llvm} @llvm.abs.{name}({llvm} {apart}, i1 false)")
    return e.op(f"call {llvm} @llvm.s{opcode}.{name}({llvm} {a}, {llvm} {b})")


def holds(e: Emitter, how: str, llvm: str, a: str, b: str) -> str:
    """1 where a comparison of signed numbers holds, else 0."""
    test = how if how in ("eq", "ne") else f"s{how}"
    return e.op(f"zext <32 x i1> {e.op(f'icmp {test} {llvm} {a}, {b}')} to {llvm}")


def clamped(e: Emitter, llvm: str, value: str, sign: str, bits: int) -> str:
    """The nearest number of a type."""
    least, most = (-(1 << bits - 1), (1 << bits - 1) - 1) if sign == "s" else (0, (1 << bits) - 1)
    element = llvm.rpartition(" ")[2][:-1]
    value = computed(e, "max", llvm, value, splat(element, str(least)))
    return computed(e, "min", llvm, value, splat(element, str(most)))


# ---- the second step ----


def _finish(e: Emitter, item: Instruction, named: Named, value: str) -> None:
    to, sign = item.operands[0], kind(named, "d")[0]
    target = _target(e, item, named)
    if named["sat"]:
        value = clamped(e, _LONG, value, sign, target[0] if target else 32)
    word = e.op(f"trunc {_LONG} {value} to {_WORDS}")
    if target is not None:
        word = _merged(e, word, e.read(item.operands[3], "b32"), *target)
    elif named["then"]:
        word = _combined(e, kind(named, "then"), sign, word, e.read(item.operands[3], "b32"))
    e.write(Register(to.name) if isinstance(to, Part) else to, "b32", word)


def _target(e: Emitter, item: Instruction, named: Named) -> tuple[int, int] | None:
    """The part of the third operand that the result takes."""
    to = item.operands[0]
    merges = isinstance(to, Part)
    if merges and named["then"] is not None:
        raise e.refuse("a part of the result and a second operation")
    if (merges or named["then"] is not None) != (len(item.operands) == 4):
        raise e.refuse(f"it has {len(item.operands)} operands")
    return _place(e, to.selector) if isinstance(to, Part) else None


def _merged(e: Emitter, word: str, into: str, bits: int, place: int) -> str:
    mask = (1 << bits) - 1 << bits * place
    up = e.op(f"shl {_WORDS} {word}, {splat('i32', str(bits * place))}")
    up = e.op(f"and {_WORDS} {up}, {splat('i32', str(mask))}")
    rest = e.op(f"and {_WORDS} {into}, {splat('i32', str(~mask & 0xFFFFFFFF))}")
    return e.op(f"or {_WORDS} {up}, {rest}")


def _combined(e: Emitter, how: str, sign: str, word: str, third: str) -> str:
    if how == "add":
        return e.op(f"add {_WORDS} {word}, {third}")
    return e.op(f"call {_WORDS} @llvm.{sign}{how}.v32i32({_WORDS} {word}, {_WORDS} {third})")


# ---- products ----


@form("vmad", _THREE + r"(?P<po>\.po)?(?P<sat>\.sat)?(?P<scale>\.shr(7|15))?", 4)
def _vmad(e: Emitter, item: Instruction, named: Named) -> None:
    """A product and a sum in 128 bits, of which 64 are left when they are shifted."""
    signs = [_negated(each) for each in item.operands[1:]]
    if signs[0] != signs[1] and signs[2]:
        raise e.refuse("both the product and the third operand are negated")
    if named["po"] and any(signs):
        raise e.refuse("a negated operand with .po")
    signed = "s" in (kind(named, "a")[0], kind(named, "b")[0]) or signs[0] != signs[1] or signs[2]
    value = _sum(e, item, named, signed, signs)
    if named["scale"]:
        value = e.op(f"ashr {_WIDE} {value}, {splat('i128', named['scale'][4:])}")
    if named["sat"]:
        value = clamped(e, _WIDE, _of_64_bits(e, value, signed), "s" if signed else "u", 32)
    e.write(item.operands[0], "b32", e.op(f"trunc {_WIDE} {value} to {_WORDS}"))


def _negated(operand: Operand) -> bool:
    return isinstance(operand, Part) and operand.negated


def _positive(operand: Operand) -> Operand:
    if not isinstance(operand, Part):
        return operand
    return Part(operand.name, operand.selector) if operand.selector else Register(operand.name)


def _sum(
    e: Emitter, item: Instruction, named: Named, signed: bool, negated: list[bool]
) -> str:  # fmt: skip
    """A number is negated as hardware does: its bits are inverted, and 1 is added to the sum."""
    a, b = (_selected(e, _positive(item.operands[i]), named, k) for i, k in ((1, "a"), (2, "b")))
    x, y = (e.op(f"sext {_LONG} {each} to {_WIDE}") for each in (a, b))
    product = e.op(f"mul {_WIDE} {x}, {y}")
    third = e.read(_positive(item.operands[3]), "b32")
    if negated[0] != negated[1]:
        product = e.op(f"xor {_WIDE} {product}, {splat('i128', '-1')}")
    if negated[2]:
        third = e.op(f"xor {_WORDS} {third}, {splat('i32', '-1')}")
    value = e.op(f"add {_WIDE} {product}, {_longer(e, third, 's' if signed else 'u', _WIDE)}")
    if named["po"] or negated[0] != negated[1] or negated[2]:
        value = e.op(f"add {_WIDE} {value}, {splat('i128', '1')}")
    return value


def _of_64_bits(e: Emitter, value: str, signed: bool) -> str:
    low = e.op(f"trunc {_WIDE} {value} to {_LONG}")
    return e.op(f"{'sext' if signed else 'zext'} {_LONG} {low} to {_WIDE}")
