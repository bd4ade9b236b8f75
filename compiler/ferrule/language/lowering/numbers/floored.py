"""`//` and `%` of floats, as Python defines them: the quotient is floored, the remainder has the
sign of the divisor, and both are exact where the result is.

A divisor of zero gives what IEEE 754 says of `x / 0.0`, and NaN for the remainder: floats do not
raise.  The method is that of CPython's `float_divmod`: from the exact remainder of `fmod`.
"""

from __future__ import annotations

from typing import Literal

from ferrule.language.ir import ops
from ferrule.language.lowering.context import Lowering
from ferrule.language.values import Number
from ferrule.specs import DType, Float32, Float64


def floats(low: Lowering, name: Literal["floordiv", "mod"], lhs: Number, rhs: Number) -> Number:
    """The operator on two floats of one dtype; floats of 2 bytes are computed in float32."""
    build, dtype = low.builder, lhs.dtype
    wide = Float64 if dtype is Float64 else Float32
    x, y = build.cast(wide, lhs.value), build.cast(wide, rhs.value)
    zero = build.constant(wide, 0.0)
    rest = build.binary("fmod", x, y)
    opposite = build.binary("xor", build.compare("lt", rest, zero), build.compare("lt", y, zero))
    moves = build.binary("and", build.compare("ne", rest, zero), opposite)
    emit = _quotient if name == "floordiv" else _remainder
    return Number(build.cast(dtype, emit(low, wide, x, y, rest, moves)))


def _remainder(
    low: Lowering, dtype: DType, x: ops.Value, y: ops.Value, rest: ops.Value, moves: ops.Value
) -> ops.Value:
    build = low.builder
    moved = build.select(moves, build.binary("add", rest, y), rest)
    zero = build.constant(dtype, 0.0)
    is_zero = build.compare("eq", moved, zero)
    return build.select(is_zero, build.binary("copysign", zero, y), moved)


def _quotient(
    low: Lowering, dtype: DType, x: ops.Value, y: ops.Value, rest: ops.Value, moves: ops.Value
) -> ops.Value:
    build = low.builder
    zero, half, one = (build.constant(dtype, number) for number in (0.0, 0.5, 1.0))
    exact = build.binary("div", build.binary("sub", x, rest), y)
    down = build.select(moves, build.binary("sub", exact, one), exact)
    floor = build.unary("floor", down)
    # `exact` is rounded: it may have come out just below a whole number.
    is_low = build.compare("gt", build.binary("sub", down, floor), half)
    nearest = build.select(is_low, build.binary("add", floor, one), floor)
    plain = build.binary("div", x, y)
    signed = build.select(
        build.compare("eq", down, zero), build.binary("copysign", zero, plain), nearest
    )
    return build.select(build.compare("eq", y, zero), plain, signed)
