"""Conversions between float32 and the narrow floats: of 2 bytes (as bits in an i16), TFloat32.

On CPUs they are branch-free integer code, of operations that every CPU has as vector instructions;
GPUs have instructions for narrowing to 2 bytes.  They round to nearest, ties to even; subnormals
are exact, NaN stays NaN. Each is an internal function of the module, defined at its first use, and
always inlined.

A float64 is narrowed through a float32 that is rounded to *odd*: its last bit records that digits
were cut off, so that the second rounding sees no false tie and the result is that of one rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from llvmlite import ir

from ferrule import specs
from ferrule.runtime.llvm.emitter import Emitter
from ferrule.runtime.llvm.layouts import F32, F64, I16, I32
from ferrule.specs import DType

_HALF: Final = ir.HalfType()


class BFloatType(ir.Type):  # type: ignore[misc]
    """LLVM's bfloat, for which llvmlite has no class."""

    def _to_string(self) -> str:
        return "bfloat"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BFloatType)

    def __hash__(self) -> int:
        return hash(BFloatType)


_BFLOAT: Final = BFloatType()
_Body = Callable[[ir.IRBuilder, ir.Value], ir.Value]


def widen(emitter: Emitter, dtype: DType, bits: ir.Value) -> ir.Value:
    """The float32 with the value of a narrow float."""
    if dtype is specs.TFloat32:
        return bits
    if dtype is specs.Float16 and _is_gpu(emitter):
        return emitter.builder.fpext(emitter.builder.bitcast(bits, _HALF), F32)
    return _call(emitter, f"{dtype.name}_to_float32", I16, F32, _WIDEN[dtype], bits)


def to_float64(emitter: Emitter, dtype: DType, value: ir.Value) -> ir.Value:
    """The float64 with the value of a float parameter's leaf."""
    if dtype in (specs.Float16, specs.BFloat16):
        value = widen(emitter, dtype, value)
    return value if value.type == F64 else emitter.builder.fpext(value, F64)


def narrow(emitter: Emitter, dtype: DType, value: ir.Value) -> ir.Value:
    """The narrow float that is nearest to a float32 or float64."""
    if dtype is specs.Float16 and _is_gpu(emitter):
        return emitter.builder.bitcast(emitter.builder.fptrunc(value, _HALF), I16)
    if value.type == F64:
        value = _call(emitter, "float64_to_odd_float32", F64, F32, _round_to_odd, value)
    if dtype is specs.BFloat16 and _is_gpu(emitter):
        # An instruction from sm_80 on; before, LLVM writes integer code.
        return emitter.builder.bitcast(emitter.builder.fptrunc(value, _BFLOAT), I16)
    kind = F32 if dtype is specs.TFloat32 else I16
    return _call(emitter, f"float32_to_{dtype.name}", F32, kind, _NARROW[dtype], value)


def _is_gpu(emitter: Emitter) -> bool:
    return str(emitter.module.triple).startswith("nvptx")


def _call(
    emitter: Emitter, name: str, source: ir.Type, target: ir.Type, body: _Body, operand: ir.Value
) -> ir.Value:
    if name not in emitter.module.globals:
        attributes = ("alwaysinline", "nounwind")
        with emitter.define(
            name, target, [source], names=["x"], linkage="internal", attributes=attributes
        ) as function:
            emitter.ret(body(emitter.builder, function.args[0]))
    return emitter.call(emitter.module.globals[name], [operand])


def _i32(value: int) -> ir.Constant:
    return ir.Constant(I32, value)


def _widen_float16(b: ir.IRBuilder, bits: ir.Value) -> ir.Value:
    wide = b.zext(bits, I32)
    magnitude = b.and_(wide, _i32(0x7FFF))
    sign = b.shl(b.and_(wide, _i32(0x8000)), _i32(16))
    shifted = b.shl(magnitude, _i32(13))
    # 112 is the difference of the biases, 127 - 15. Twice that moves the exponent of infinity and
    # NaN from 31 to 255.
    normal = b.add(shifted, _i32(112 << 23))
    special = b.add(shifted, _i32(224 << 23))
    # An integer conversion, because some processes flush subnormal floats to zero.
    tiny = b.fmul(b.sitofp(magnitude, F32), ir.Constant(F32, 2.0**-24))
    finite = b.select(b.icmp_unsigned("<", magnitude, _i32(0x400)), b.bitcast(tiny, I32), normal)
    result = b.select(b.icmp_unsigned(">=", magnitude, _i32(0x7C00)), special, finite)
    return b.bitcast(b.or_(result, sign), F32)


def _narrow_float16(b: ir.IRBuilder, value: ir.Value) -> ir.Value:
    bits = b.bitcast(value, I32)
    sign = b.and_(b.lshr(bits, _i32(16)), _i32(0x8000))
    magnitude = b.and_(bits, _i32(0x7FFFFFFF))
    even = b.and_(b.lshr(magnitude, _i32(13)), _i32(1))
    # One less than half of the 13 bits that go, and the last bit that stays: a tie is rounded up
    # only from an odd one. The difference of the biases goes in the same addition.
    rounded = b.add(b.add(magnitude, even), _i32(0xFFF - (112 << 23)))
    shifted = b.lshr(rounded, _i32(13))
    normal = b.select(b.icmp_unsigned("<", shifted, _i32(0x7C00)), shifted, _i32(0x7C00))
    # The last bit of a float in [0.5, 1) is worth 2**-24, as that of a subnormal float16 is.
    aligned = b.fadd(b.bitcast(magnitude, F32), ir.Constant(F32, 0.5))
    tiny = b.sub(b.bitcast(aligned, I32), _i32(0x3F000000))
    # 113 is the exponent of 2^-14, the smallest normal float16.
    finite = b.select(b.icmp_unsigned("<", magnitude, _i32(113 << 23)), tiny, normal)
    payload = b.and_(b.lshr(magnitude, _i32(13)), _i32(0x3FF))
    nan = b.or_(payload, _i32(0x7E00))
    result = b.select(b.icmp_unsigned(">", magnitude, _i32(0x7F800000)), nan, finite)
    return b.trunc(b.or_(result, sign), I16)


def _widen_bfloat16(b: ir.IRBuilder, bits: ir.Value) -> ir.Value:
    return b.bitcast(b.shl(b.zext(bits, I32), _i32(16)), F32)


def _narrow_bfloat16(b: ir.IRBuilder, value: ir.Value) -> ir.Value:
    bits = b.bitcast(value, I32)
    upper = b.lshr(bits, _i32(16))
    rounded = b.add(b.add(bits, b.and_(upper, _i32(1))), _i32(0x7FFF))
    # The quiet bit: the payload may be in the lower half alone, and would be infinity without it.
    nan = b.or_(upper, _i32(0x40))
    is_nan = b.icmp_unsigned(">", b.and_(bits, _i32(0x7FFFFFFF)), _i32(0x7F800000))
    return b.trunc(b.select(is_nan, nan, b.lshr(rounded, _i32(16))), I16)


def _narrow_tfloat32(b: ir.IRBuilder, value: ir.Value) -> ir.Value:
    bits = b.bitcast(value, I32)
    even = b.and_(b.lshr(bits, _i32(13)), _i32(1))
    rounded = b.add(b.add(bits, even), _i32(0xFFF))
    is_nan = b.icmp_unsigned(">", b.and_(bits, _i32(0x7FFFFFFF)), _i32(0x7F800000))
    # The quiet bit: the payload may be in the bits that are cleared, and would be infinity without
    # it.
    chosen = b.select(is_nan, b.or_(bits, _i32(0x400000)), rounded)
    return b.bitcast(b.and_(chosen, _i32(-0x2000)), F32)


def _round_to_odd(b: ir.IRBuilder, value: ir.Value) -> ir.Value:
    nearest = b.fptrunc(value, F32)
    back = b.fpext(nearest, F64)
    inexact = b.fcmp_ordered("!=", back, value)
    # The sign bit aside, bits are ordered as magnitudes are: one less is one step towards zero.
    above = b.select(
        b.fcmp_ordered(">=", value, ir.Constant(F64, 0.0)),
        b.fcmp_ordered(">", back, value),
        b.fcmp_ordered("<", back, value),
    )
    towards_zero = b.sub(b.bitcast(nearest, I32), b.zext(above, I32))
    return b.bitcast(b.or_(towards_zero, b.zext(inexact, I32)), F32)


_WIDEN: Final[dict[DType, _Body]] = {
    specs.Float16: _widen_float16,
    specs.BFloat16: _widen_bfloat16,
}
_NARROW: Final[dict[DType, _Body]] = {
    specs.Float16: _narrow_float16,
    specs.BFloat16: _narrow_bfloat16,
    specs.TFloat32: _narrow_tfloat32,
}
