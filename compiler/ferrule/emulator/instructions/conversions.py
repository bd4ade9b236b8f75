"""Conversions: `cvt` in all the forms whose rounding is known to the bit."""

from __future__ import annotations

from ferrule.emulator.instructions.floats import (
    F32,
    F64,
    flushed,
    narrowed,
    relu,
    saturated,
    to_odd,
    widened,
)
from ferrule.emulator.instructions.forms import Named, form, kind
from ferrule.emulator.ptx.module import Instruction
from ferrule.emulator.warps.emitter import Emitter, bits_of, splat, vector

_INT = r"[us](8|16|32|64)"
_WHOLE = {"rni": "roundeven", "rzi": "trunc", "rmi": "floor", "rpi": "ceil"}
_FLOAT_BITS = {"bf16": 16, "f16": 16, "f32": 32, "f64": 64}


@form("cvt", rf"(?P<sat>\.sat)?\.(?P<d>{_INT})\.(?P<t>{_INT})", 2)
def _integers(e: Emitter, item: Instruction, named: Named) -> None:
    """Extended by the source's sign, or cut; .sat keeps it inside of the result's numbers."""
    d, t = kind(named, "d"), kind(named)
    value = e.read(item.operands[1], t, wider=True)
    if named["sat"]:
        value = _clamped(e, value, d, t)
    e.write(item.operands[0], d, _resized(e, value, bits_of(t), bits_of(d), t), wider=True)


def _resized(e: Emitter, value: str, have: int, want: int, t: str) -> str:
    if have == want:
        return value
    how = "trunc" if want < have else "sext" if t[0] == "s" else "zext"
    return e.op(f"{how} <32 x i{have}> {value} to <32 x i{want}>")


def _clamped(e: Emitter, value: str, d: str, t: str) -> str:
    """Limits of the result that are inside of the source's numbers."""
    low, high = _range(d)
    least, most = _range(t)
    sign, llvm = t[0], vector(t)
    for bound, name, inside in ((high, "min", high < most), (low, "max", low > least)):
        if inside:
            limit = splat(f"i{bits_of(t)}", str(bound & (1 << bits_of(t)) - 1))
            call = f"@llvm.{sign}{name}.v32i{bits_of(t)}"
            value = e.op(f"call {llvm} {call}({llvm} {value}, {llvm} {limit})")
    return value


def _range(t: str) -> tuple[int, int]:
    bits = bits_of(t)
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if t[0] == "s" else (0, (1 << bits) - 1)


@form("cvt", rf"\.rn(?P<sat>\.sat)?\.(?P<d>f32|f64|f16|bf16)\.(?P<t>{_INT})", 2)
def _to_float(e: Emitter, item: Instruction, named: Named) -> None:
    d, t = kind(named, "d"), kind(named)
    value = e.read(item.operands[1], t, wider=True)
    op = "sitofp" if t[0] == "s" else "uitofp"
    if d == "bf16":
        if bits_of(t) == 64:
            raise e.refuse()
        value = e.op(f"{op} {vector(t)} {value} to {F64}")
        value = to_odd(e, value, "zeroinitializer")
    else:
        # Integers that float32 rounds are far beyond what float16 has.
        value = e.op(f"{op} {vector(t)} {value} to {F64 if d == 'f64' else F32}")
    if named["sat"]:
        value = saturated(e, value, F64 if d == "f64" else F32)
    e.write(item.operands[0], d, narrowed(e, value, d))


@form("cvt", rf"\.(?P<r>rni|rzi|rmi|rpi)(?P<ftz>\.ftz)?(\.sat)?\.(?P<d>{_INT})\.(?P<t>f32)", 2)
@form("cvt", rf"\.(?P<r>rni|rzi|rmi|rpi)(\.sat)?\.(?P<d>{_INT})\.(?P<t>f64|f16|bf16)", 2)
def _to_integer(e: Emitter, item: Instruction, named: Named) -> None:
    """Beyond the result's numbers it is the nearest of them, and 0 for NaN."""
    d, t = kind(named, "d"), kind(named)
    value = _whole(e, item, named)
    source, suffix = (F64, "v32f64") if t == "f64" else (F32, "v32f32")
    name = f"@llvm.fpto{'s' if d[0] == 's' else 'u'}i.sat.v32i{bits_of(d)}.{suffix}"
    found = e.op(f"call {vector(d)} {name}({source} {value})")
    e.write(item.operands[0], d, found, wider=True)


def _whole(e: Emitter, item: Instruction, named: Named) -> str:
    t = kind(named)
    value = widened(e, e.read(item.operands[1], t), t)
    if named.get("ftz"):
        value = flushed(e, value)
    llvm, suffix = (F64, "v32f64") if t == "f64" else (F32, "v32f32")
    return e.op(f"call {llvm} @llvm.{_WHOLE[kind(named, 'r')]}.{suffix}({llvm} {value})")


@form("cvt", r"\.(?P<r>rni|rzi|rmi|rpi)(?P<ftz>\.ftz)?(?P<sat>\.sat)?\.(?P<d>f32)\.(?P<t>f32)", 2)
@form("cvt", r"\.(?P<r>rni|rzi|rmi|rpi)(?P<sat>\.sat)?\.(?P<d>f64)\.(?P<t>f64)", 2)
@form("cvt", r"\.(?P<r>rni|rzi|rmi|rpi)\.(?P<d>f16)\.(?P<t>f16)", 2)
@form("cvt", r"\.(?P<r>rni|rzi|rmi|rpi)\.(?P<d>bf16)\.(?P<t>bf16)", 2)
def _to_whole_float(e: Emitter, item: Instruction, named: Named) -> None:
    d = kind(named, "d")
    value = _whole(e, item, named)
    if named.get("sat"):
        value = saturated(e, value, F64 if d == "f64" else F32)
    e.write(item.operands[0], d, narrowed(e, value, d))


@form("cvt", r"(?P<ftz>\.ftz)?(?P<sat>\.sat)?\.(?P<d>f64)\.(?P<t>f32)", 2)
@form("cvt", r"(?P<sat>\.sat)?\.(?P<d>f64|f32)\.(?P<t>f16)", 2)
@form("cvt", r"(?P<sat>\.sat)?\.(?P<d>f64|f32)\.(?P<t>bf16)", 2)
@form("cvt", r"(?P<ftz>\.ftz)?(?P<sat>\.sat)\.(?P<d>f32)\.(?P<t>f32)", 2)
@form("cvt", r"\.rn(?P<ftz>\.ftz)?(?P<sat>\.sat)?\.(?P<d>f16)\.(?P<t>f32)", 2)
@form("cvt", r"\.rn(?P<relu>\.relu)?\.(?P<d>f16|bf16)\.(?P<t>f32)", 2)
@form("cvt", r"\.rn(?P<sat>\.sat)?\.(?P<d>f32|f16)\.(?P<t>f64)", 2)
def _floats(e: Emitter, item: Instruction, named: Named) -> None:
    d, t = kind(named, "d"), kind(named)
    value = widened(e, e.read(item.operands[1], t), t)
    if named.get("ftz"):
        value = flushed(e, value)
    if t == "f64" and d == "f16":
        value = to_odd(e, value, "zeroinitializer")
    elif t == "f64":
        value = e.op(f"fptrunc {F64} {value} to {F32}")
    elif d == "f64":
        value = e.op(f"fpext {F32} {value} to {F64}")
    if named.get("sat"):
        value = saturated(e, value, F64 if d == "f64" else F32)
    if named.get("relu"):
        value = relu(e, value)
    e.write(item.operands[0], d, narrowed(e, value, d))


@form("cvt", r"\.rn(?P<relu>\.relu)?\.(?P<d>f16x2|bf16x2)\.f32", 3)
def _pair(e: Emitter, item: Instruction, named: Named) -> None:
    """The first operand becomes the upper half."""
    half = kind(named, "d")[:-2]
    words = []
    for each in item.operands[1:3]:
        value = e.read(each, "f32")
        if named["relu"]:
            value = relu(e, value)
        bits = e.cast(narrowed(e, value, half), half, "b16")
        words.append(e.op(f"zext <32 x i16> {bits} to <32 x i32>"))
    high = e.op(f"shl <32 x i32> {words[0]}, splat (i32 16)")
    e.write(item.operands[0], "b32", e.op(f"or <32 x i32> {high}, {words[1]}"))


@form("cvt", r"\.rna\.tf32\.f32", 2)
def _tf32(e: Emitter, item: Instruction, named: Named) -> None:
    """10 bits behind the point, to nearest, ties away from 0."""
    value = e.read(item.operands[1], "f32")
    word = e.op(f"bitcast {F32} {value} to <32 x i32>")
    word = e.op(f"add <32 x i32> {word}, splat (i32 4096)")
    word = e.op(f"and <32 x i32> {word}, splat (i32 -8192)")
    magnitude = e.op(f"call {F32} @llvm.fabs.v32f32({F32} {value})")
    infinite = e.op(f"bitcast <32 x i32> splat (i32 2139095040) to {F32}")
    big = e.op(f"fcmp oeq {F32} {magnitude}, {infinite}")
    own = e.op(f"bitcast {F32} {value} to <32 x i32>")
    word = e.op(f"select <32 x i1> {big}, <32 x i32> {own}, <32 x i32> {word}")
    nan = e.op(f"fcmp uno {F32} {value}, {value}")
    word = e.op(f"select <32 x i1> {nan}, <32 x i32> splat (i32 2147483647), <32 x i32> {word}")
    e.write(item.operands[0], "b32", word)
