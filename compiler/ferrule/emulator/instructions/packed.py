"""Several small integers in one register: pairs of 16 bits, products and distances of bytes."""

from __future__ import annotations

from typing import Final

from ferrule.emulator.instructions.forms import Named, form, kind
from ferrule.emulator.ptx.module import Instruction
from ferrule.emulator.warps.emitter import Emitter, splat

_WORDS: Final = "<32 x i32>"


def part(e: Emitter, word: str, kind: str, place: int) -> str:
    """Part `place` of a word, of a type of 8 or 16 bits, as 32 bits."""
    bits = int(kind[1:])
    up = e.op(f"shl {_WORDS} {word}, {splat('i32', str(32 - bits * (place + 1)))}")
    op = "ashr" if kind[0] == "s" else "lshr"
    return e.op(f"{op} {_WORDS} {up}, {splat('i32', str(32 - bits))}")


def joined(e: Emitter, low: str, high: str) -> str:
    """The low halves of two words."""
    low = e.op(f"and {_WORDS} {low}, splat (i32 65535)")
    return e.op(f"or {_WORDS} {low}, {e.op(f'shl {_WORDS} {high}, splat (i32 16)')}")


@form("add", r"\.(?P<t>[us]16)x2", 3)
@form("sub", r"\.(?P<t>[us]16)x2", 3)
@form("min", r"(?P<relu>\.relu)?\.(?P<t>s16)x2", 3)
@form("max", r"(?P<relu>\.relu)?\.(?P<t>s16)x2", 3)
@form("min", r"\.(?P<t>u16)x2", 3)
@form("max", r"\.(?P<t>u16)x2", 3)
def _pairs(e: Emitter, item: Instruction, named: Named) -> None:
    t = kind(named)
    a, b = (e.read(each, "b32") for each in item.operands[1:3])
    found = []
    for place in (0, 1):
        x, y = part(e, a, t, place), part(e, b, t, place)
        value = _computed(e, item.opcode, t, x, y)
        found.append(_positive(e, value) if named.get("relu") else value)
    e.write(item.operands[0], "b32", joined(e, *found))


def _computed(e: Emitter, opcode: str, t: str, x: str, y: str) -> str:
    if opcode in ("add", "sub"):
        return e.op(f"{opcode} {_WORDS} {x}, {y}")
    sign = "s" if t[0] == "s" else "u"
    return e.op(f"call {_WORDS} @llvm.{sign}{opcode}.v32i32({_WORDS} {x}, {_WORDS} {y})")


def _positive(e: Emitter, value: str) -> str:
    return e.op(f"call {_WORDS} @llvm.smax.v32i32({_WORDS} {value}, {_WORDS} zeroinitializer)")


@form("min", r"(?P<relu>\.relu)\.(?P<t>s32)", 3)
@form("max", r"(?P<relu>\.relu)\.(?P<t>s32)", 3)
def _relu(e: Emitter, item: Instruction, named: Named) -> None:
    a, b = (e.read(each, "s32") for each in item.operands[1:3])
    e.write(item.operands[0], "s32", _positive(e, _computed(e, item.opcode, "s32", a, b)))


@form("dp4a", r"\.(?P<t>[us]32)\.(?P<s>[us]32)", 4)
def _dp4a(e: Emitter, item: Instruction, named: Named) -> None:
    """c + the products of four bytes each."""
    a, b, total = (e.read(each, "b32") for each in item.operands[1:4])
    signs = kind(named)[0], kind(named, "s")[0]
    for place in range(4):
        x, y = part(e, a, f"{signs[0]}8", place), part(e, b, f"{signs[1]}8", place)
        total = e.op(f"add {_WORDS} {total}, {e.op(f'mul {_WORDS} {x}, {y}')}")
    e.write(item.operands[0], "b32", total)


@form("dp2a", r"\.(?P<half>lo|hi)\.(?P<t>[us]32)\.(?P<s>[us]32)", 4)
def _dp2a(e: Emitter, item: Instruction, named: Named) -> None:
    """c + the products of both halves of a with two bytes of b, the lower or the upper ones."""
    a, b, total = (e.read(each, "b32") for each in item.operands[1:4])
    first = 0 if named["half"] == "lo" else 2
    for place in range(2):
        x = part(e, a, f"{kind(named)[0]}16", place)
        y = part(e, b, f"{kind(named, 's')[0]}8", first + place)
        total = e.op(f"add {_WORDS} {total}, {e.op(f'mul {_WORDS} {x}, {y}')}")
    e.write(item.operands[0], "b32", total)


@form("cvt", r"\.pack\.sat\.(?P<d>[us]16)\.s32", 3)
@form("cvt", r"\.pack\.sat\.(?P<d>[us][248])\.s32\.b32", 4)
def _pack(e: Emitter, item: Instruction, named: Named) -> None:
    """b and then a as smaller integers, the nearest they have, and the low bits of c above them."""
    d = kind(named, "d")
    bits = int(d[1:])
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if d[0] == "s" else (0, (1 << bits) - 1)
    total = splat("i32", "0") if bits == 16 else e.read(item.operands[3], "b32")
    for operand in item.operands[1:3]:
        value = e.read(operand, "s32")
        for name, limit in (("smin", high), ("smax", low)):
            least = splat("i32", str(limit))
            value = e.op(f"call {_WORDS} @llvm.{name}.v32i32({_WORDS} {value}, {_WORDS} {least})")
        value = e.op(f"and {_WORDS} {value}, {splat('i32', str((1 << bits) - 1))}")
        up = e.op(f"shl {_WORDS} {total}, {splat('i32', str(bits))}")
        total = e.op(f"or {_WORDS} {up}, {value}")
    e.write(item.operands[0], "b32", total)
