"""Floats as float64: exact, by integer code for the 2-byte floats.

No arithmetic has a subnormal operand, so the processor's mode for subnormals does not matter.
"""

from __future__ import annotations

from typing import Final

from ferrule.runtime.llvm.writer import Value, Writer, i64
from ferrule.specs import BFloat16, DType, Float16

_INFINITY: Final = 0x7C00
_SMALLEST_NORMAL: Final = 0x0400
_SHIFT: Final = 52 - 10
_BIAS: Final = (1023 - 15) << 52
_SPECIAL: Final = (2047 - 31) << 52
_STEP: Final = Value("double", "0x3E70000000000000")
"""2**-24, the smallest subnormal of a float16."""


def as_double(writer: Writer, dtype: DType, value: Value) -> Value:
    """A leaf of this dtype, a float or the bits of a 2-byte float, as a double."""
    if dtype is BFloat16:
        bits = writer.cast("zext", value, "i32")
        wide = writer.binary("shl", bits, Value("i32", "16"))
        value = writer.cast("bitcast", wide, "float")
    if dtype is Float16:
        return _of_float16(writer, writer.cast("zext", value, "i64"))
    return writer.cast("fpext", value, "double")


def _of_float16(writer: Writer, bits: Value) -> Value:
    magnitude = writer.binary("and", bits, i64(0x7FFF))
    moved = writer.binary("shl", magnitude, i64(_SHIFT))
    normal = writer.binary("add", moved, i64(_BIAS))
    special = writer.binary("add", moved, i64(_SPECIAL))
    steps = writer.cast("uitofp", magnitude, "double")
    small = writer.cast("bitcast", writer.binary("fmul", steps, _STEP), "i64")
    is_small = writer.icmp("ult", magnitude, i64(_SMALLEST_NORMAL))
    is_special = writer.icmp("uge", magnitude, i64(_INFINITY))
    wide = writer.select(is_small, small, writer.select(is_special, special, normal))
    sign = writer.binary("shl", writer.binary("and", bits, i64(0x8000)), i64(48))
    return writer.cast("bitcast", writer.binary("or", wide, sign), "double")
