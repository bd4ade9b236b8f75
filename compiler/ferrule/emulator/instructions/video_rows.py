"""Video instructions on two halves or four bytes at a time, chosen from two words."""

from __future__ import annotations

from typing import Final

from ferrule.emulator.instructions.forms import Named, form, kind
from ferrule.emulator.instructions.packed import part
from ferrule.emulator.instructions.video import clamped, computed, holds
from ferrule.emulator.ptx.module import Instruction, Operand, Part, Register
from ferrule.emulator.warps.emitter import Emitter, splat

_WORDS: Final = "<32 x i32>"
_TWO: Final = r"\.(?P<a>[us]32)\.(?P<b>[us]32)"
_THREE: Final = r"\.(?P<d>[us]32)" + _TWO + r"(?P<then>\.sat|\.add)?"
_COMPARED: Final = _TWO + r"\.(?P<how>eq|ne|lt|le|gt|ge)(?P<then>\.add)?"


@form("vadd2", _THREE, 4)
@form("vadd4", _THREE, 4)
@form("vsub2", _THREE, 4)
@form("vsub4", _THREE, 4)
@form("vavrg2", _THREE, 4)
@form("vavrg4", _THREE, 4)
@form("vabsdiff2", _THREE, 4)
@form("vabsdiff4", _THREE, 4)
@form("vmin2", _THREE, 4)
@form("vmin4", _THREE, 4)
@form("vmax2", _THREE, 4)
@form("vmax4", _THREE, 4)
@form("vset2", _COMPARED, 4)
@form("vset4", _COMPARED, 4)
def _rows(e: Emitter, item: Instruction, named: Named) -> None:
    """Places of the mask take results and the others what the third operand has, or with .add
    the results of the mask's places are added to it."""
    count = int(item.opcode[-1])
    bits = 32 // count
    mask = _mask(e, item.operands[0], count)
    left, right = _sources(e, item, named, count)
    third = e.read(item.operands[3], "b32")
    found = third
    for place in mask:
        value = _one(e, item.opcode[1:-1], named, left[place], right[place])
        if named["then"] == ".add":
            found = e.op(f"add {_WORDS} {found}, {value}")
            continue
        if named["then"]:
            value = clamped(e, _WORDS, value, kind(named, "d")[0], bits)
        found = _put(e, found, value, bits, place)
    e.write(_whole(item.operands[0]), "b32", found)


def _whole(operand: Operand) -> Operand:
    return Register(operand.name) if isinstance(operand, Part) else operand


def _one(e: Emitter, opcode: str, named: Named, a: str, b: str) -> str:
    if opcode == "set":
        return holds(e, kind(named, "how"), _WORDS, a, b)
    if opcode != "avrg":
        return computed(e, opcode, _WORDS, a, b)
    # Halves are rounded away from zero.
    total = e.op(f"add {_WORDS} {a}, {b}")
    positive = e.op(f"icmp sge {_WORDS} {total}, zeroinitializer")
    more = e.op(f"add {_WORDS} {total}, {e.op(f'zext <32 x i1> {positive} to {_WORDS}')}")
    return e.op(f"ashr {_WORDS} {more}, {splat('i32', '1')}")


def _put(e: Emitter, word: str, value: str, bits: int, place: int) -> str:
    mask = (1 << bits) - 1 << bits * place
    up = e.op(f"shl {_WORDS} {value}, {splat('i32', str(bits * place))}")
    up = e.op(f"and {_WORDS} {up}, {splat('i32', str(mask))}")
    rest = e.op(f"and {_WORDS} {word}, {splat('i32', str(~mask & 0xFFFFFFFF))}")
    return e.op(f"or {_WORDS} {rest}, {up}")


# ---- selectors ----


def _mask(e: Emitter, to: Operand, count: int) -> list[int]:
    """The places of the result that are written, `.b310`."""
    if not isinstance(to, Part):
        return list(range(count))
    found = _digits(e, to, count)
    if not found or any(b >= a for a, b in zip(found, found[1:], strict=False)):
        raise e.refuse(f"the mask .{to.selector}")
    return sorted(found)


def _digits(e: Emitter, operand: Part, count: int) -> list[int]:
    """The numbers of a selector, each less than `count`, as they are written."""
    letter = "b" if e.item.opcode.endswith("4") else "h"
    digits = operand.selector[1:]
    known = operand.selector[:1] == letter and not operand.negated
    if not known or any(each not in "01234567"[:count] for each in digits):
        raise e.refuse(f"the part {operand.name}.{operand.selector}")
    return [int(each) for each in digits]


def _sources(
    e: Emitter, item: Instruction, named: Named, count: int
) -> tuple[list[str], list[str]]:
    """Both rows, each chosen from all parts of both words; the first is the lower word's."""
    words = [e.read(_whole(each), "b32") for each in item.operands[1:3]]
    rows = []
    for which, operand in zip("ab", item.operands[1:3], strict=True):
        chosen = list(range(count)) if which == "a" else list(range(count, 2 * count))
        if isinstance(operand, Part):
            chosen = _digits(e, operand, 2 * count)[::-1]
        if len(chosen) != count:
            raise e.refuse("a selector with another number of parts")
        sign = kind(named, which)[0]
        rows.append([part(e, words[i // count], f"{sign}{32 // count}", i % count) for i in chosen])
    return rows[0], rows[1]
