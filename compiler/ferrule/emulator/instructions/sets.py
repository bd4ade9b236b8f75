"""`set`, comparisons whose results are numbers, and `setp` on pairs of halves."""

from __future__ import annotations

from typing import Final

from ferrule.emulator.instructions.floats import flushed_half, widened
from ferrule.emulator.instructions.forms import Named, form, kind
from ferrule.emulator.instructions.logic import ORDERED, compared
from ferrule.emulator.ptx.module import Group, Instruction
from ferrule.emulator.warps.emitter import Emitter, bits_of, splat

_CMP: Final = r"\.(?P<cmp>eq|ne|lt|le|gt|ge|equ|neu|ltu|leu|gtu|geu|num|nan)"
_ICMP: Final = r"\.(?P<cmp>eq|ne|lt|le|gt|ge|lo|ls|hi|hs)"
_BOOL: Final = r"(\.(?P<bool>and|or|xor))?"
_TRUE: Final = {"f32": 0x3F800000, "f16": 0x3C00, "bf16": 0x3F80, "f16x2": 0x3C00, "bf16x2": 0x3F80}
"""1.0; of other types what holds is all ones."""


@form("set", _ICMP + _BOOL + r"\.(?P<d>u32|s32|f32)\.(?P<t>[bsu](16|32|64))", 3, 4)
@form("set", _CMP + _BOOL + r"(?P<ftz>\.ftz)?\.(?P<d>u32|s32|f32)\.(?P<t>f32)", 3, 4)
@form("set", _CMP + _BOOL + r"\.(?P<d>u32|s32|f32)\.(?P<t>f64)", 3, 4)
@form("set", _CMP + _BOOL + r"(?P<ftz>\.ftz)?\.(?P<d>[us](16|32)|f16)\.(?P<t>f16)", 3, 4)
@form("set", _CMP + _BOOL + r"\.(?P<d>[us](16|32)|bf16)\.(?P<t>bf16)", 3, 4)
@form("set", _ICMP + _BOOL + r"\.(?P<d>f16|bf16)\.(?P<t>[bsu](16|32|64))", 3, 4)
@form("set", _CMP + _BOOL + r"(?P<ftz>\.ftz)?\.(?P<d>f16|bf16)\.(?P<t>f32)", 3, 4)
@form("set", _CMP + _BOOL + r"\.(?P<d>f16|bf16)\.(?P<t>f64)", 3, 4)
def _set(e: Emitter, item: Instruction, named: Named) -> None:
    d = kind(named, "d")
    value = _joined(e, item, named, compared(e, named, item.operands[1], item.operands[2]))
    bits = bits_of(d)
    true = splat(f"i{bits}", str(_TRUE.get(d, -1)))
    found = e.op(f"select <32 x i1> {value}, <32 x i{bits}> {true}, <32 x i{bits}> zeroinitializer")
    e.write(item.operands[0], d, e.cast(found, f"b{bits}", d))


def _joined(e: Emitter, item: Instruction, named: Named, value: str) -> str:
    """With the predicate that is the last operand."""
    if (named["bool"] is None) != (len(item.operands) == 3):
        raise e.refuse(f"it has {len(item.operands)} operands")
    if named["bool"] is None:
        return value
    return e.op(f"{named['bool']} <32 x i1> {value}, {e.read(item.operands[3], 'pred')}")


@form("set", _CMP + _BOOL + r"(?P<ftz>\.ftz)?\.(?P<d>f16x2|u32|s32)\.(?P<t>f16x2)", 3, 4)
@form("set", _CMP + _BOOL + r"\.(?P<d>bf16x2|u32|s32)\.(?P<t>bf16x2)", 3, 4)
def _set_pair(e: Emitter, item: Instruction, named: Named) -> None:
    """Half by half: 1.0 or all ones where it holds."""
    true = splat("i32", str(_TRUE.get(kind(named, "d"), 0xFFFF)))
    whole = "zeroinitializer"
    for place, value in enumerate(_halves(e, item, named)):
        value = _joined(e, item, named, value)
        found = e.op(f"select <32 x i1> {value}, <32 x i32> {true}, <32 x i32> zeroinitializer")
        found = e.op(f"shl <32 x i32> {found}, {splat('i32', str(16 * place))}")
        whole = e.op(f"or <32 x i32> {whole}, {found}")
    e.write(item.operands[0], "b32", whole)


@form("setp", _CMP + _BOOL + r"(?P<ftz>\.ftz)?\.(?P<t>f16x2)", 3, 4)
@form("setp", _CMP + _BOOL + r"\.(?P<t>bf16x2)", 3, 4)
def _setp_pair(e: Emitter, item: Instruction, named: Named) -> None:
    """A predicate for each half, the lower one first."""
    to = item.operands[0]
    if not isinstance(to, Group) or to.kind != "|" or len(to.items) != 2:
        raise e.refuse("wanted two predicates p|q")
    found = [_joined(e, item, named, value) for value in _halves(e, item, named)]
    for register, value in zip(to.items, found, strict=True):
        e.write(register, "pred", value)


def _halves(e: Emitter, item: Instruction, named: Named) -> list[str]:
    half = kind(named)[:-2]
    words = [e.read(each, "b32") for each in item.operands[1:3]]
    found = []
    for shift in (0, 16):
        given = []
        for word in words:
            part = e.op(f"lshr <32 x i32> {word}, {splat('i32', str(shift))}")
            part = e.op(f"trunc <32 x i32> {part} to <32 x i16>")
            value = widened(e, e.cast(part, "b16", half), half)
            given.append(flushed_half(e, value) if named.get("ftz") else value)
        found.append(
            e.op(f"fcmp {ORDERED[kind(named, 'cmp')]} <32 x float> {given[0]}, {given[1]}")
        )
    return found
