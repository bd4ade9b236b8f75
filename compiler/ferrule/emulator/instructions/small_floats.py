"""Floats of 8 bits and tf32: `cvt` from and to pairs of e4m3 and e5m2, and of 19 bits."""

from __future__ import annotations

from typing import Final

from ferrule.emulator.instructions.floats import F32, narrowed, relu, widened
from ferrule.emulator.instructions.forms import Named, form, kind
from ferrule.emulator.ptx.module import Instruction
from ferrule.emulator.warps.emitter import Emitter, splat

_WORDS: Final = "<32 x i32>"
_PAIRS: Final = r"(?P<d>e4m3|e5m2)x2"
_SHAPES: Final = {"e4m3": (3, 7, 0x7E), "e5m2": (2, 15, 0x7B)}
"""Bits behind the point, the exponent's bias, and the greatest number."""
_CANONICAL: Final = splat("i32", "127")


@form("cvt", r"\.rn\.satfinite(?P<relu>\.relu)?\." + _PAIRS + r"\.(?P<t>f32)", 3)
def _from_singles(e: Emitter, item: Instruction, named: Named) -> None:
    """The first operand becomes the upper byte."""
    high, low = (e.read(each, "f32") for each in item.operands[1:3])
    _put(e, item, named, low, high)


@form("cvt", r"\.rn\.satfinite(?P<relu>\.relu)?\." + _PAIRS + r"\.(?P<t>f16)x2", 2)
def _from_halves(e: Emitter, item: Instruction, named: Named) -> None:
    word = e.read(item.operands[1], "b32")
    parts = []
    for shift in (0, 16):
        part = e.op(f"lshr {_WORDS} {word}, {splat('i32', str(shift))}")
        part = e.op(f"trunc {_WORDS} {part} to <32 x i16>")
        parts.append(widened(e, e.cast(part, "b16", "f16"), "f16"))
    _put(e, item, named, *parts)


def _put(e: Emitter, item: Instruction, named: Named, low: str, high: str) -> None:
    bytes_of = []
    for value in (low, high):
        given = relu(e, value) if named["relu"] else value
        bytes_of.append(_byte(e, given, kind(named, "d")))
    word = e.op(f"or {_WORDS} {bytes_of[0]}, {e.op(f'shl {_WORDS} {bytes_of[1]}, splat (i32 8)')}")
    e.write(item.operands[0], "b16", e.op(f"trunc {_WORDS} {word} to <32 x i16>"))


def _byte(e: Emitter, value: str, shape: str) -> str:
    """A float32 as the nearest of 8 bits, ties to even; what is too great as the greatest."""
    digits, bias, most = _SHAPES[shape]
    bits = e.op(f"bitcast {F32} {value} to {_WORDS}")
    size = e.op(f"and {_WORDS} {bits}, splat (i32 2147483647)")
    large = _rounded(e, size, 23 - digits)
    large = e.op(f"lshr {_WORDS} {large}, {splat('i32', str(23 - digits))}")
    large = e.op(f"sub {_WORDS} {large}, {splat('i32', str(127 - bias << digits))}")
    # Below the normal numbers an addition rounds: its last bit is the least number there is.
    unit = splat("i32", str(127 + 23 + 1 - bias - digits << 23))
    sum_of = e.op(
        f"fadd {F32} {e.op(f'bitcast {_WORDS} {size} to {F32}')}, "
        f"{e.op(f'bitcast {_WORDS} {unit} to {F32}')}"
    )
    small = e.op(f"sub {_WORDS} {e.op(f'bitcast {F32} {sum_of} to {_WORDS}')}, {unit}")
    least = splat("i32", str(127 + 1 - bias << 23))
    below = e.op(f"icmp ult {_WORDS} {size}, {least}")
    found = e.op(f"select <32 x i1> {below}, {_WORDS} {small}, {_WORDS} {large}")
    limit = splat("i32", str(most))
    found = e.op(f"call {_WORDS} @llvm.umin.v32i32({_WORDS} {found}, {_WORDS} {limit})")
    sign = e.op(f"and {_WORDS} {e.op(f'lshr {_WORDS} {bits}, splat (i32 24)')}, splat (i32 128)")
    found = e.op(f"or {_WORDS} {found}, {sign}")
    nan = e.op(f"icmp ugt {_WORDS} {size}, splat (i32 2139095040)")
    return e.op(f"select <32 x i1> {nan}, {_WORDS} {_CANONICAL}, {_WORDS} {found}")


def _rounded(e: Emitter, size: str, dropped: int) -> str:
    """Bits of a float with the last ones rounded into the others, ties to even."""
    odd = e.op(f"lshr {_WORDS} {size}, {splat('i32', str(dropped))}")
    odd = e.op(f"and {_WORDS} {odd}, splat (i32 1)")
    more = e.op(f"add {_WORDS} {odd}, {splat('i32', str((1 << dropped - 1) - 1))}")
    return e.op(f"add {_WORDS} {size}, {more}")


@form("cvt", r"\.rn(?P<relu>\.relu)?\.f16x2\." + _PAIRS, 2)
def _to_halves(e: Emitter, item: Instruction, named: Named) -> None:
    given = e.op(f"zext <32 x i16> {e.read(item.operands[1], 'b16')} to {_WORDS}")
    whole = "zeroinitializer"
    for shift in (0, 8):
        byte = e.op(f"lshr {_WORDS} {given}, {splat('i32', str(shift))}")
        value = _number(e, byte, kind(named, "d"))
        if named["relu"]:
            value = relu(e, value)
        bits = e.cast(narrowed(e, value, "f16"), "f16", "b16")
        word = e.op(f"zext <32 x i16> {bits} to {_WORDS}")
        word = e.op(f"shl {_WORDS} {word}, {splat('i32', str(2 * shift))}")
        whole = e.op(f"or {_WORDS} {whole}, {word}")
    e.write(item.operands[0], "b32", whole)


def _number(e: Emitter, byte: str, shape: str) -> str:
    """The low byte of each word as a float32: as a float16 with other exponents, times 2**k."""
    digits, bias, _ = _SHAPES[shape]
    sign = e.op(f"shl {_WORDS} {e.op(f'and {_WORDS} {byte}, splat (i32 128)')}, splat (i32 8)")
    size = e.op(f"and {_WORDS} {byte}, splat (i32 127)")
    moved = e.op(f"shl {_WORDS} {size}, {splat('i32', str(10 - digits))}")
    bits = e.op(f"trunc {_WORDS} {e.op(f'or {_WORDS} {sign}, {moved}')} to <32 x i16>")
    value = widened(e, e.cast(bits, "b16", "f16"), "f16")
    if bias == 15:
        return value
    value = e.op(f"fmul {F32} {value}, {splat('float', f'{float(1 << 15 - bias)}')}")
    nan = e.op(f"icmp eq {_WORDS} {size}, {_CANONICAL}")
    clean = e.op(f"bitcast {_WORDS} splat (i32 2147483647) to {F32}")
    return e.op(f"select <32 x i1> {nan}, {F32} {clean}, {F32} {value}")


@form("cvt", r"\.(?P<r>rn|rz)(?P<relu>\.relu)?(?P<finite>\.satfinite)?\.tf32\.f32", 2)
@form("cvt", r"\.(?P<r>rna)(?P<finite>\.satfinite)?\.tf32\.f32", 2)
def _tensor_float(e: Emitter, item: Instruction, named: Named) -> None:
    """10 bits behind the point: to nearest even, towards 0, or to nearest with ties away from 0."""
    value = e.read(item.operands[1], "f32")
    if named.get("relu"):
        value = relu(e, value)
    bits = e.op(f"bitcast {F32} {value} to {_WORDS}")
    size = e.op(f"and {_WORDS} {bits}, splat (i32 2147483647)")
    if named["r"] == "rn":
        found = _rounded(e, size, 13)
    else:
        more = splat("i32", "4096" if named["r"] == "rna" else "0")
        found = e.op(f"add {_WORDS} {size}, {more}")
    found = e.op(f"and {_WORDS} {found}, splat (i32 -8192)")
    limit = splat("i32", str(0x7F7FE000 if named["finite"] else 0x7F800000))
    found = e.op(f"call {_WORDS} @llvm.umin.v32i32({_WORDS} {found}, {_WORDS} {limit})")
    sign = e.op(f"and {_WORDS} {bits}, splat (i32 -2147483648)")
    found = e.op(f"or {_WORDS} {found}, {sign}")
    nan = e.op(f"icmp ugt {_WORDS} {size}, splat (i32 2139095040)")
    canonical = splat("i32", "2147483647")
    found = e.op(f"select <32 x i1> {nan}, {_WORDS} {canonical}, {_WORDS} {found}")
    e.write(item.operands[0], "b32", found)
