"""Complex numbers: arithmetic on pairs of floats, each operation of which is rounded.

`+ - * ==` are those of the parts, as in NumPy, without the repairs of C's Annex G: an infinite
factor may give NaN parts.  A real operand is a complex one with an imaginary part of 0.  A division
scales by the larger part of the divisor (R. L. Smith, "Algorithm 116: Complex division", CACM 1962)
and multiplies with one reciprocal, as NumPy does; by zero, both parts are divided by 0.  Complex
numbers have no order, and no other operators.
"""

from __future__ import annotations

import ast
from typing import Any, Final

from ferrule.language.ir import ops
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.descriptions import describe
from ferrule.language.lowering.numbers import coercion
from ferrule.language.lowering.numbers.tables import SIGNS
from ferrule.language.promotion import NoCommonType, promote, weak
from ferrule.language.values import ComplexNumber, Number
from ferrule.specs import Complex128, DType, Float64, Numeric

Pair = tuple[ops.Value, ops.Value]

_LARGE: Final = 2.0**500
"""Beyond it, and below its reciprocal, a square of a float64 may overflow or lose bits."""
# A power of two scales without rounding.
_SCALE: Final = 2.0**600


def as_complex(low: Lowering, value: Any, dtype: DType, node: ast.AST) -> ComplexNumber:
    """A number of any kind as a complex one of this dtype."""
    value = coercion.plain(value)
    if isinstance(value, Numeric):
        value = value.value
    if isinstance(value, ComplexNumber):
        return ComplexNumber(*(coercion.convert(low, x, dtype.part) for x in parts(value)))
    if isinstance(value, complex):
        real, imag = (coercion.constant(low, x, dtype.part, node) for x in (value.real, value.imag))
        return ComplexNumber(real, imag)
    number = coercion.as_number(low, value, node, dtype.part)
    zero = low.builder.constant(dtype.part, 0.0)
    return ComplexNumber(coercion.convert(low, number, dtype.part), Number(zero))


def of_parts(low: Lowering, dtype: DType, real: Any, imag: Any, node: ast.AST) -> ComplexNumber:
    """`fe.Complex64(real, imag)`."""
    found = []
    for value in (real, imag):
        if coercion.is_complex(value):
            low.fail(node, f"{dtype.__name__} takes two real numbers, but got {describe(value)}")
        number = coercion.as_number(low, value, node, dtype.part)
        found.append(coercion.convert(low, number, dtype.part))
    return ComplexNumber(*found)


def parts(z: ComplexNumber) -> tuple[Number, Number]:
    """The real and the imaginary part."""
    return z.real, z.imag


def _values(z: ComplexNumber) -> Pair:
    return z.real.value, z.imag.value


def _pair(values: Pair) -> ComplexNumber:
    return ComplexNumber(*map(Number, values))


def dtype_of(value: Any) -> DType | None:
    """The dtype of a number; None for a Python number, which takes that of the other operand."""
    if isinstance(value, (Number, ComplexNumber)):
        return value.dtype
    return type(value) if isinstance(value, Numeric) else None


def common(
    low: Lowering, left: Any, right: Any, sign: str, node: ast.AST
) -> tuple[ComplexNumber, ComplexNumber]:
    """Both operands, one of which is complex, as complex numbers of one dtype."""
    left, right = coercion.plain(left), coercion.plain(right)
    lhs, rhs = dtype_of(left), dtype_of(right)
    try:
        dtype = promote(lhs or weak(left, rhs), rhs or weak(right, lhs))
    except NoCommonType:
        low.fail(
            node,
            f"no type holds both operands of {sign}: {describe(left)} and {describe(right)}",
            hint="convert the float of 8 bits: fe.Float32(x)",
        )
    return as_complex(low, left, dtype, node), as_complex(low, right, dtype, node)


def arithmetic(
    low: Lowering, name: ops.BinaryOp, left: Any, right: Any, node: ast.AST
) -> ComplexNumber:
    """One operation on two numbers, one of which is complex."""
    emit = _EMITTERS.get(name)
    sign = SIGNS.get(name, name)
    if emit is None:
        order = name in ("max", "min", "floordiv", "mod")
        low.fail(
            node,
            f"{sign} of complex numbers" + (", which have no order" if order else ""),
            expected="+ - * / == !=, abs(z), z.real, z.imag, z.conj()",
        )
    lhs, rhs = common(low, left, right, sign, node)
    return _pair(emit(low, _values(lhs), _values(rhs)))


def _by_parts(name: ops.BinaryOp) -> Any:
    def emit(low: Lowering, x: Pair, y: Pair) -> Pair:
        b = low.builder
        return b.binary(name, x[0], y[0]), b.binary(name, x[1], y[1])

    return emit


def _product(low: Lowering, x: Pair, y: Pair) -> Pair:
    b, (xr, xi), (yr, yi) = low.builder, x, y
    real = b.binary("sub", b.binary("mul", xr, yr), b.binary("mul", xi, yi))
    return real, b.binary("add", b.binary("mul", xr, yi), b.binary("mul", xi, yr))


def _quotient(low: Lowering, x: Pair, y: Pair) -> Pair:
    """Smith's method; which part of the divisor is larger, is chosen by selection."""
    b, (xr, xi), (yr, yi) = low.builder, x, y
    assert isinstance(yr.type, DType)
    zero, one = b.constant(yr.type, 0.0), b.constant(yr.type, 1.0)
    size_r, size_i = b.unary("fabs", yr), b.unary("fabs", yi)
    by_real = b.compare("ge", size_r, size_i)
    large, small = b.select(by_real, yr, yi), b.select(by_real, yi, yr)
    ratio = b.binary("div", small, large)
    scale = b.binary("div", one, b.binary("add", large, b.binary("mul", small, ratio)))
    scaled_r, scaled_i = b.binary("mul", xr, ratio), b.binary("mul", xi, ratio)
    real = b.select(by_real, b.binary("add", xr, scaled_i), b.binary("add", scaled_r, xi))
    imag = b.select(by_real, b.binary("sub", xi, scaled_r), b.binary("sub", scaled_i, xr))
    none = b.binary("and", b.compare("eq", size_r, zero), b.compare("eq", size_i, zero))
    by_zero = b.binary("div", xr, size_r), b.binary("div", xi, size_r)
    found = b.binary("mul", real, scale), b.binary("mul", imag, scale)
    return b.select(none, by_zero[0], found[0]), b.select(none, by_zero[1], found[1])


_EMITTERS: Final[dict[str, Any]] = {
    "add": _by_parts("add"),
    "sub": _by_parts("sub"),
    "mul": _product,
    "div": _quotient,
}


def compare(low: Lowering, name: ops.CompareOp, left: Any, right: Any, node: ast.AST) -> Number:
    """`==` and `!=`: of both parts."""
    if name not in ("eq", "ne"):
        low.fail(
            node,
            "complex numbers are compared by order, and have none",
            expected="== or !=, or abs(z) < limit",
        )
    lhs, rhs = common(low, left, right, "==", node)
    b = low.builder
    real, imag = (b.compare(name, x, y) for x, y in zip(_values(lhs), _values(rhs), strict=True))
    return Number(b.binary("and" if name == "eq" else "or", real, imag))


def truth(low: Lowering, z: ComplexNumber, node: ast.AST) -> Number:
    """Whether a part is not zero."""
    return compare(low, "ne", z, 0.0, node)


def unary(low: Lowering, op: ast.unaryop, value: Any, node: ast.AST) -> ComplexNumber:
    """`-z` and `+z`."""
    if isinstance(op, ast.Invert):
        low.fail(node, f"~ takes integers and bools, but got {describe(value)}")
    z = _alone(low, value, node)
    if isinstance(op, ast.UAdd):
        return z
    real, imag = _values(z)
    return _pair((low.builder.unary("neg", real), low.builder.unary("neg", imag)))


def _alone(low: Lowering, value: Any, node: ast.AST) -> ComplexNumber:
    return as_complex(low, value, dtype_of(value) or weak(coercion.plain(value), None), node)


def conjugate(low: Lowering, value: Any, node: ast.AST) -> ComplexNumber:
    """`z.conj()`."""
    z = _alone(low, value, node)
    return ComplexNumber(z.real, Number(low.builder.unary("neg", z.imag.value)))


def magnitude(low: Lowering, value: Any, node: ast.AST) -> Number:
    """`abs(z)`: infinite if a part is, within an ulp of the exact one, and without overflow inside.

    A complex64 is computed in float64; the parts of a complex128 are scaled by powers of two.
    """
    z, b = _alone(low, value, node), low.builder
    x, y = (b.unary("fabs", b.cast(Float64, part)) for part in _values(z))
    if z.dtype is Complex128:
        scale = _scale(low, x, y)
        x, y = b.binary("mul", x, scale), b.binary("mul", y, scale)
        root = b.binary("div", _root(low, x, y), scale)
    else:
        root = _root(low, x, y)
    infinity = b.constant(Float64, float("inf"))
    either = b.binary("or", b.compare("eq", x, infinity), b.compare("eq", y, infinity))
    return Number(b.cast(z.dtype.part, b.select(either, infinity, root)))


def _root(low: Lowering, x: ops.Value, y: ops.Value) -> ops.Value:
    b = low.builder
    return b.unary("sqrt", b.binary("add", b.binary("mul", x, x), b.binary("mul", y, y)))


def _scale(low: Lowering, x: ops.Value, y: ops.Value) -> ops.Value:
    b = low.builder
    larger = b.binary("max", x, y)
    down, up, one = (b.constant(Float64, k) for k in (1 / _SCALE, _SCALE, 1.0))
    is_large = b.compare("gt", larger, b.constant(Float64, _LARGE))
    is_small = b.compare("lt", larger, b.constant(Float64, 1 / _LARGE))
    return b.select(is_large, down, b.select(is_small, up, one))


def select(
    low: Lowering, condition: ops.Value, left: Any, right: Any, node: ast.AST
) -> ComplexNumber:
    """One of two numbers."""
    lhs, rhs = common(low, left, right, "where", node)
    sides = zip(_values(lhs), _values(rhs), strict=True)
    real, imag = (low.builder.select(condition, x, y) for x, y in sides)
    return _pair((real, imag))
