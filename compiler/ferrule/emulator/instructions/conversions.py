"""Conversions: `cvt` in all the forms whose rounding is known to the bit."""

from __future__ import annotations

from ferrule.emulator.instructions.directed import finite, rounded
from ferrule.emulator.instructions.floats import (
    F32,
    F64,
    exact_sum,
    flushed,
    narrowed,
    relu,
    saturated,
    widened,
)
from ferrule.emulator.instructions.forms import Named, form, kind
from ferrule.emulator.ptx.module import Instruction
from ferrule.emulator.warps.emitter import Emitter, bits_of, splat, vector

_INT = r"[us](8|16|32|64)"
_ROUND = r"\.(?P<r>rn|rz|rm|rp)"
_WHOLE = {"rni": "roundeven", "rzi": "trunc", "rmi": "floor", "rpi": "ceil"}


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


@form("cvt", rf"\.(?P<r>rn|rz|rm|rp)(\.ftz)?(?P<sat>\.sat)?\.(?P<d>f32)\.(?P<t>{_INT})", 2)
@form("cvt", rf"\.(?P<r>rn|rz|rm|rp)(?P<sat>\.sat)?\.(?P<d>f64|f16)\.(?P<t>{_INT})", 2)
@form("cvt", rf"\.(?P<r>rn|rz|rm|rp)\.(?P<d>bf16)\.(?P<t>{_INT})", 2)
def _to_float(e: Emitter, item: Instruction, named: Named) -> None:
    d, t = kind(named, "d"), kind(named)
    value, error = _exactly(e, e.read(item.operands[1], t, wider=True), t)
    found = rounded(e, value, error, kind(named, "r"), d)
    if named.get("sat"):
        found = _saturated_bits(e, found, d)
    e.write(item.operands[0], d, found)


def _exactly(e: Emitter, value: str, t: str) -> tuple[str, str]:
    """An integer as a sum of two float64."""
    op = "sitofp" if t[0] == "s" else "uitofp"
    if bits_of(t) < 64:
        return e.op(f"{op} {vector(t)} {value} to {F64}"), "zeroinitializer"
    high = e.op(f"{'ashr' if t[0] == 's' else 'lshr'} <32 x i64> {value}, splat (i64 32)")
    low = e.op(f"and <32 x i64> {value}, splat (i64 4294967295)")
    high = e.op(f"{op} <32 x i64> {high} to {F64}")
    high = e.op(f"fmul {F64} {high}, {splat('double', '4294967296.0')}")
    return exact_sum(e, high, e.op(f"uitofp <32 x i64> {low} to {F64}"))


def _saturated_bits(e: Emitter, value: str, d: str) -> str:
    llvm = F64 if d == "f64" else F32
    wide = saturated(e, widened(e, value, d), llvm)
    return narrowed(e, wide, d)


@form("cvt", rf"\.(?P<r>rni|rzi|rmi|rpi)(?P<ftz>\.ftz)?(\.sat)?\.(?P<d>{_INT})\.(?P<t>f32)", 2)
@form("cvt", rf"\.(?P<r>rni|rzi|rmi|rpi)(\.sat)?\.(?P<d>{_INT})\.(?P<t>f64|f16|bf16)", 2)
def _to_integer(e: Emitter, item: Instruction, named: Named) -> None:
    """Beyond the result's numbers it is the nearest of them.

    NaN is 0, but the highest bit alone where source or result has 64 bits.
    """
    d, t = kind(named, "d"), kind(named)
    value = _whole(e, item, named)
    source, suffix = (F64, "v32f64") if t == "f64" else (F32, "v32f32")
    name = f"@llvm.fpto{'s' if d[0] == 's' else 'u'}i.sat.v32i{bits_of(d)}.{suffix}"
    found = e.op(f"call {vector(d)} {name}({source} {value})")
    if t == "f64" or bits_of(d) == 64:
        bits = bits_of(d)
        highest = splat(f"i{bits}", str(-(1 << bits - 1)))
        nan = e.op(f"fcmp uno {source} {value}, zeroinitializer")
        found = e.op(f"select <32 x i1> {nan}, {vector(d)} {highest}, {vector(d)} {found}")
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
@form("cvt", r"(?P<sat>\.sat)?\.(?P<d>f64)\.(?P<t>f16|bf16)", 2)
@form("cvt", r"(?P<ftz>\.ftz)?(?P<sat>\.sat)?\.(?P<d>f32)\.(?P<t>f16|bf16)", 2)
@form("cvt", r"(?P<ftz>\.ftz)?(?P<sat>\.sat)?\.(?P<d>f32)\.(?P<t>f32)", 2)
@form("cvt", r"(?P<sat>\.sat)?\.(?P<d>f64)\.(?P<t>f64)", 2)
@form("cvt", rf"{_ROUND}(?P<ftz>\.ftz)?(?P<sat>\.sat)?\.(?P<d>f16)\.(?P<t>f32)", 2)
@form("cvt", rf"{_ROUND}(?P<relu>\.relu)?(?P<finite>\.satfinite)?\.(?P<d>f16|bf16)\.(?P<t>f32)", 2)
@form("cvt", rf"{_ROUND}(?P<ftz>\.ftz)?(?P<sat>\.sat)?\.(?P<d>f32)\.(?P<t>f64)", 2)
@form("cvt", rf"{_ROUND}(?P<sat>\.sat)?\.(?P<d>f16)\.(?P<t>f64)", 2)
@form("cvt", rf"{_ROUND}\.(?P<d>bf16)\.(?P<t>f64)", 2)
@form("cvt", rf"({_ROUND})?\.(?P<d>bf16)\.(?P<t>f16)", 2)
@form("cvt", rf"{_ROUND}\.(?P<d>f16)\.(?P<t>bf16)", 2)
@form("cvt", r"(?P<sat>\.sat)\.(?P<d>f16)\.(?P<t>f16)", 2)
def _floats(e: Emitter, item: Instruction, named: Named) -> None:
    """Triton writes cvt.bf16.f16, which NVIDIA's assembler takes for .rn."""
    d, t = kind(named, "d"), kind(named)
    value = widened(e, e.read(item.operands[1], t), t)
    if named.get("ftz") and t == "f32":
        value = flushed(e, value)
    mode = named.get("r") or "rn"
    wide = t == "f64" or d == "f64" or mode != "rn"
    if wide and t != "f64":
        value = e.op(f"fpext {F32} {value} to {F64}")
    if named.get("sat"):
        value = saturated(e, value, F64 if wide else F32)
    if named.get("relu"):
        value = _relu64(e, value) if wide else relu(e, value)
    found = rounded(e, value, "zeroinitializer", mode, d) if wide else narrowed(e, value, d)
    if named.get("finite"):
        found = finite(e, found, d)
    if named.get("ftz") and d == "f32":
        found = flushed(e, found)
    e.write(item.operands[0], d, found)


def _relu64(e: Emitter, value: str) -> str:
    """0 for what is negative, -0 included; NaN stays."""
    kept = e.op(f"fcmp ugt {F64} {value}, zeroinitializer")
    return e.op(f"select <32 x i1> {kept}, {F64} {value}, {F64} zeroinitializer")


@form(
    "cvt", r"\.(?P<r>rn|rz)(?P<relu>\.relu)?(?P<finite>\.satfinite)?\.(?P<d>f16x2|bf16x2)\.f32", 3
)
def _pair(e: Emitter, item: Instruction, named: Named) -> None:
    """The first operand becomes the upper half."""
    half = kind(named, "d")[:-2]
    words = []
    for each in item.operands[1:3]:
        value = e.op(f"fpext {F32} {e.read(each, 'f32')} to {F64}")
        if named["relu"]:
            value = _relu64(e, value)
        found = rounded(e, value, "zeroinitializer", kind(named, "r"), half)
        if named["finite"]:
            found = finite(e, found, half)
        words.append(e.op(f"zext <32 x i16> {e.cast(found, half, 'b16')} to <32 x i32>"))
    high = e.op(f"shl <32 x i32> {words[0]}, splat (i32 16)")
    e.write(item.operands[0], "b32", e.op(f"or <32 x i32> {high}, {words[1]}"))
