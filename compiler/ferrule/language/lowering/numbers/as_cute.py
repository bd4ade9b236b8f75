"""Operators of functions that follow CuTe DSL, where their results are others than Python's.

As CuTe DSL 4.8.1 computes them: `%` of run-time numbers and vectors is the remainder of a division
towards zero, with the sign of the dividend, as in C, although `//` rounds down; that of typed
constants is Python's.  Arithmetic of two Booleans at run time gives a Boolean: whether the number
is not 0.  `**` computes in 32 bits at least, and in float64 where one operand is a float and one
has 64 bits.
"""

from __future__ import annotations

import ast
from typing import Any

from ferrule.language.ir import ops
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.numbers import scalars
from ferrule.language.lowering.numbers.coercion import convert, is_complex
from ferrule.language.promotion import promote_as_cute
from ferrule.language.values import Number, Vector
from ferrule.specs import Boolean, Compound, Dim, DType, Float32, Float64, Int32, Numeric, Sym


def arithmetic(low: Lowering, name: ops.BinaryOp, left: Any, right: Any, node: ast.AST) -> Any:
    """One operator that the program wrote, on two numbers."""
    if is_complex(left) or is_complex(right):
        return scalars.arithmetic(low, name, left, right, node)
    if name == "mod":
        return _remainder(low, left, right, node)
    found = scalars.arithmetic(low, name, left, right, node)
    return _of_booleans(low, left, right, found, node)


def _of_booleans(low: Lowering, left: Any, right: Any, found: Number, node: ast.AST) -> Number:
    if _is_boolean(left) and _is_boolean(right) and found.dtype.is_integer:
        truth: Number = scalars.truth(low, found, node)
        return truth
    return found


def dtype_of_power(base: Any, exponent: Any) -> DType | None:
    """The dtype that CuTe DSL computes `base ** exponent` in; None where the operators say it."""
    dtypes = [x.dtype for x in (base, exponent) if isinstance(x, (Number, Vector, Numeric))]
    if not isinstance(base, (Number, Vector, Numeric)) or any(d.kind == "complex" for d in dtypes):
        return None
    if any(dtype.kind == "float" for dtype in dtypes) or isinstance(exponent, float):
        return Float64 if any(dtype.bits == 64 for dtype in dtypes) else Float32
    return Int32 if base.dtype is Boolean else promote_as_cute(base.dtype, Int32)


def _is_boolean(value: Any) -> bool:
    return isinstance(value, (Number, Numeric)) and value.dtype is Boolean


def _remainder(low: Lowering, left: Any, right: Any, node: ast.AST) -> Number:
    lhs, rhs = scalars.operands(low, left, right, "%", node)
    if lhs.dtype.kind == "float":
        return _of_floats(low, lhs, rhs)
    found = scalars.arithmetic(low, "mod", lhs, rhs, node)
    if lhs.dtype is Boolean:
        return _of_booleans(low, lhs, rhs, found, node)
    if lhs.dtype.kind == "uint" or (_is_natural(low, lhs) and _is_natural(low, rhs)):
        low.builder.naturals.add(found.value)
        return found
    return _towards_zero(low, lhs, rhs, found)


def _is_natural(low: Lowering, number: Number) -> bool:
    """Whether a number is known not to be negative: then both remainders are the same."""
    if number.value in low.builder.naturals:
        return True
    return number.dim is not None and _is_natural_size(low, number.dim)


def _is_natural_size(low: Lowering, dim: Dim) -> bool:
    """Strides and integer parameters have symbols, too, and may be negative."""
    match dim:
        case Compound("floordiv" | "ceildiv" | "mod" | "min", lhs, rhs):
            return _is_natural_size(low, lhs) and _is_natural_size(low, rhs)
        case Sym():
            return dim in low.state.sizes or (dim.min is not None and dim.min >= 0)
        case int():
            return dim >= 0
    return False


def _towards_zero(low: Lowering, lhs: Number, rhs: Number, found: Number) -> Number:
    """From Python's remainder, which has the sign of the divisor."""
    build, zero = low.builder, low.builder.constant(lhs.dtype, 0)
    signs = (build.compare("lt", each.value, zero) for each in (lhs, rhs))
    moves = build.binary("xor", *signs)
    moves = build.binary("and", moves, build.compare("ne", found.value, zero))
    moved = build.binary("sub", found.value, rhs.value)
    return Number(build.select(moves, moved, found.value))


def _of_floats(low: Lowering, lhs: Number, rhs: Number) -> Number:
    """Floats of 2 bytes are computed in float32."""
    wide = Float64 if lhs.dtype is Float64 else Float32
    x, y = (convert(low, each, wide) for each in (lhs, rhs))
    found = Number(low.builder.binary("fmod", x.value, y.value))
    return convert(low, found, lhs.dtype)
