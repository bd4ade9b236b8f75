"""Integers of many words: additions and subtractions with a carry, which is a register of its own.

The carry is the register `CARRY` of each lane, which no text can name. A subtraction is the
addition of the complement, as it is on the hardware: the carry is 1 where nothing was borrowed, and
`subc` takes one away where it is 0. The manual says it of `subc` alone, by a borrow; NVRTC's own
division of 128 bits has `addc` behind `sub.cc` and counts on this.
"""

from __future__ import annotations

from typing import Final

from ferrule.emulator.instructions.forms import Named, form, kind
from ferrule.emulator.instructions.integers import widely
from ferrule.emulator.ptx.module import Instruction, Register
from ferrule.emulator.warps.emitter import Emitter, bits_of, splat, vector
from ferrule.emulator.warps.liveness import CARRY

_WORD: Final = r"\.(?P<t>[us](32|64))"
_CC: Final = r"(?P<cc>\.cc)"


@form("add", _CC + _WORD, 3)
@form("addc", _CC + "?" + _WORD, 3)
@form("sub", _CC + _WORD, 3)
@form("subc", _CC + "?" + _WORD, 3)
def _add(e: Emitter, item: Instruction, named: Named) -> None:
    t = kind(named)
    a, b = (e.read(each, t) for each in item.operands[1:3])
    value, carry = _with_carry(e, item.opcode[:3], t, a, b, item.opcode[-1] == "c")
    _written(e, item, named, value, carry)


@form("mad", r"\.(?P<how>lo|hi)" + _CC + _WORD, 4)
@form("madc", r"\.(?P<how>lo|hi)" + _CC + "?" + _WORD, 4)
def _mad(e: Emitter, item: Instruction, named: Named) -> None:
    t = kind(named)
    a, b, c = (e.read(each, t) for each in item.operands[1:4])
    if named["how"] == "lo":
        product = e.op(f"mul {vector(t)} {a}, {b}")
    else:
        product = widely(e, t, a, b, high=True)
    value, carry = _with_carry(e, "add", t, product, c, item.opcode == "madc")
    _written(e, item, named, value, carry)


def _with_carry(e: Emitter, op: str, t: str, a: str, b: str, uses: bool) -> tuple[str, str]:
    """The sum, also of a complement, and whether it goes beyond the word."""
    llvm = vector(t)
    if op == "sub":
        b = e.op(f"xor {llvm} {b}, {splat(f'i{bits_of(t)}', '-1')}")
    value = e.op(f"add {llvm} {a}, {b}")
    carry = e.op(f"icmp ult {llvm} {value}, {a}")
    if not uses and op == "add":
        return value, carry
    one = splat(f"i{bits_of(t)}", "1")
    before = e.op(f"zext <32 x i1> {e.raw(CARRY)} to {llvm}") if uses else one
    final = e.op(f"add {llvm} {value}, {before}")
    again = e.op(f"icmp ult {llvm} {final}, {value}")
    return final, e.op(f"or <32 x i1> {carry}, {again}")


def _written(e: Emitter, item: Instruction, named: Named, value: str, carry: str) -> None:
    e.write(item.operands[0], kind(named), value)
    if named["cc"]:
        e.write(Register(CARRY), "pred", carry)
