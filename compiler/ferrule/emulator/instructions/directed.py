"""Rounds an exact number, a sum of two float64, to a float in any of the four directions."""

from __future__ import annotations

from ferrule.emulator.instructions.floats import F32, F64, narrowed, to_odd, widened
from ferrule.emulator.warps.emitter import Emitter, bits_of, splat

# The bits of the largest finite number, which is where rounding towards zero ends.
_LARGEST = {"f16": 0x7BFF, "bf16": 0x7F7F, "f32": 0x7F7FFFFF}


def rounded(e: Emitter, value: str, error: str, mode: str, d: str) -> str:
    """value + error as a float of type `d`: rn to nearest even, rz to 0, rm down, rp up.

    `error` is at most half a unit in the last place of `value`. NaN becomes the canonical one.
    """
    if d == "f64":
        found = value
        back = value
    elif d == "f32":
        single = e.op(f"fptrunc {F64} {value} to {F32}")
        found = narrowed(e, single, "f32")
        back = e.op(f"fpext {F32} {found} to {F64}")
    else:
        found = narrowed(e, to_odd(e, value, error), d)
        back = e.op(f"fpext {F32} {widened(e, found, d)} to {F64}")
    if mode == "rn" and (d != "f32" or error == "zeroinitializer"):
        return found
    if mode == "rn":
        return _nearest_single(e, value, error)
    return _stepped(e, found, _order(e, value, error, back), value, mode, d)


def _nearest_single(e: Emitter, value: str, error: str) -> str:
    """Rounded to odd among the float64, and then once to float32."""
    bits = e.op(f"bitcast {F64} {value} to <32 x i64>")
    some = e.op(f"fcmp one {F64} {error}, zeroinitializer")
    even = e.op(f"and <32 x i64> {bits}, splat (i64 1)")
    even = e.op(f"icmp eq <32 x i64> {even}, zeroinitializer")
    up = e.op(f"fcmp ogt {F64} {error}, zeroinitializer")
    positive = e.op(f"fcmp ogt {F64} {value}, zeroinitializer")
    apart = e.op(f"xor <32 x i1> {up}, {positive}")
    step = e.op(f"select <32 x i1> {apart}, <32 x i64> splat (i64 -1), <32 x i64> splat (i64 1)")
    where = e.op(f"and <32 x i1> {some}, {even}")
    step = e.op(f"select <32 x i1> {where}, <32 x i64> {step}, <32 x i64> zeroinitializer")
    odd = e.op(f"bitcast <32 x i64> {e.op(f'add <32 x i64> {bits}, {step}')} to {F64}")
    return narrowed(e, e.op(f"fptrunc {F64} {odd} to {F32}"), "f32")


def _order(e: Emitter, value: str, error: str, back: str) -> tuple[str, str]:
    """Whether what was found is above the exact number, and whether it is below it."""
    same = e.op(f"fcmp oeq {F64} {back}, {value}")
    found = []
    for compare, sign in (("ogt", "olt"), ("olt", "ogt")):
        apart = e.op(f"fcmp {compare} {F64} {back}, {value}")
        little = e.op(f"fcmp {sign} {F64} {error}, zeroinitializer")
        little = e.op(f"and <32 x i1> {same}, {little}")
        found.append(e.op(f"or <32 x i1> {apart}, {little}"))
    return found[0], found[1]


def _stepped(e: Emitter, found: str, order: tuple[str, str], value: str, mode: str, d: str) -> str:
    """The next float in the wanted direction where the nearest one is on the other side."""
    bits = bits_of(d)
    llvm, word = f"<32 x i{bits}>", f"i{bits}"
    above, below = order
    negative = e.op(f"fcmp olt {F64} {value}, zeroinitializer")
    positive = e.op(f"xor <32 x i1> {negative}, splat (i1 true)")
    if mode == "rp":
        down, up = "zeroinitializer", below
    elif mode == "rm":
        down, up = above, "zeroinitializer"
    else:
        down = e.op(f"and <32 x i1> {above}, {positive}")
        up = e.op(f"and <32 x i1> {below}, {negative}")
    own = e.cast(found, d, f"b{bits}")
    # What lies away from 0 has greater bits; a 0 has the sign of the exact number.
    minus = e.op(f"icmp slt {llvm} {own}, zeroinitializer")
    plus = e.op(f"xor <32 x i1> {minus}, splat (i1 true)")
    away = e.op(
        f"or <32 x i1> {e.op(f'and <32 x i1> {up}, {plus}')}, "
        f"{e.op(f'and <32 x i1> {down}, {minus}')}"
    )
    near = e.op(
        f"or <32 x i1> {e.op(f'and <32 x i1> {up}, {minus}')}, "
        f"{e.op(f'and <32 x i1> {down}, {plus}')}"
    )
    step = e.op(f"select <32 x i1> {away}, {llvm} {splat(word, '1')}, {llvm} zeroinitializer")
    step = e.op(f"select <32 x i1> {near}, {llvm} {splat(word, '-1')}, {llvm} {step}")
    return e.cast(e.op(f"add {llvm} {own}, {step}"), f"b{bits}", d)


def finite(e: Emitter, value: str, d: str) -> str:
    """Infinity as the largest float of its sign."""
    bits = bits_of(d)
    llvm, word = f"<32 x i{bits}>", f"i{bits}"
    own = e.cast(value, d, f"b{bits}")
    size = e.op(f"and {llvm} {own}, {splat(word, str((1 << bits - 1) - 1))}")
    large = e.op(f"icmp eq {llvm} {size}, {splat(word, str(_LARGEST[d] + 1))}")
    sign = e.op(f"and {llvm} {own}, {splat(word, str(1 << bits - 1))}")
    most = e.op(f"or {llvm} {sign}, {splat(word, str(_LARGEST[d]))}")
    return e.cast(e.op(f"select <32 x i1> {large}, {llvm} {most}, {llvm} {own}"), f"b{bits}", d)
