"""Arithmetic on run-time numbers.

`promotion` determines the dtype of a result; operators on values of all kinds are in
`python.operators`.
"""

from __future__ import annotations

import ast
from typing import Any, Literal, cast

from ferrule.compiler.artefacts import Fault
from ferrule.language.ir import ops
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.numbers.coercion import (
    as_number,
    at_compile_time,
    convert,
    is_complex,
    is_python_number,
    operand,
    plain,
)
from ferrule.language.lowering.numbers.tables import BITWISE, OF_BOOLS, SIGNS, SIZE_BINARY
from ferrule.language.promotion import NoCommonType, promote, promote_as_cute, rank, strong
from ferrule.language.values import ComplexNumber, Number
from ferrule.specs import Boolean, Compound, DType, Float32, Float64, Int32, Int64, Numeric
from ferrule.specs.expr import ExprOp, make


def in_dtype(low: Lowering, number: Any, dtype: DType, node: ast.AST) -> Any:
    """A number converted to another dtype. Both may be complex; a complex number becomes only
    another complex one."""
    if dtype.kind == "complex":
        from ferrule.language.lowering.numbers import complexes  # few programs need it

        return complexes.as_complex(low, number, dtype, node)
    return convert(low, as_number(low, number, node, dtype), dtype)


def common(low: Lowering, left: Any, right: Any, sign: str, node: ast.AST) -> tuple[Number, Number]:
    """Both operands as numbers of one dtype."""
    lhs, rhs = left, right
    if not isinstance(left, (Number, Numeric)):
        rhs = operand(low, right, node)
        lhs = as_number(low, left, node, rhs.dtype)
    elif not isinstance(right, (Number, Numeric)):
        lhs = operand(low, left, node)
        rhs = as_number(low, right, node, lhs.dtype)
    lhs, rhs = as_number(low, lhs, node), as_number(low, rhs, node)
    try:
        dtype = promote(lhs.dtype, rhs.dtype)
    except NoCommonType:
        low.fail(
            node,
            f"no type holds both operands of {sign}: {lhs.dtype.name} and {rhs.dtype.name}",
            hint=_wider(lhs.dtype, rhs.dtype),
        )
    return convert(low, lhs, dtype), convert(low, rhs, dtype)


def operands(
    low: Lowering, left: Any, right: Any, sign: str, node: ast.AST
) -> tuple[Number, Number]:
    """Both operands of an arithmetic operation, as numbers of one dtype."""
    if not low.is_as_cute:
        return common(low, left, right, sign, node)
    left, right = plain(left), plain(right)
    dtypes = _strong(left, right), _strong(right, left)
    if dtypes[0] is None or dtypes[1] is None:
        return common(low, left, right, sign, node)
    try:
        dtype = promote_as_cute(dtypes[0], dtypes[1])
    except NoCommonType:
        return common(low, left, right, sign, node)
    lhs, rhs = (as_number(low, each, node, dtype) for each in (left, right))
    return convert(low, lhs, dtype), convert(low, rhs, dtype)


def _strong(value: Any, other: Any) -> DType | None:
    """The dtype of a number in CuTe DSL, beside another one; None for what is no number."""
    if isinstance(value, bool | int | float):
        return strong(value, _typed(other) or Int32)
    return _typed(value)


def _typed(value: Any) -> DType | None:
    """The dtype of a number that has one by itself."""
    if isinstance(value, Number):
        return value.dtype
    return type(value) if isinstance(value, Numeric) else None


def _wider(left: DType, right: DType) -> str:
    if left.is_narrow or right.is_narrow:
        return "convert the float of 8 bits: fe.Float32(x)"
    return (
        "convert one of them: fe.Int64(x) keeps negative numbers, fe.Uint64(x) those of 2**63 and "
        "more"
    )


def are_typed_numbers(*operands: Any) -> bool:
    """Whether all of these are compile-time numbers, and one of them has a dtype."""
    return any(isinstance(each, Numeric) for each in operands) and all(
        map(is_python_number, operands)
    )


def untyped(left: Any, right: Any) -> tuple[Any, Any]:
    """Both operands, typed constants as Python numbers."""
    return tuple(v.value if isinstance(v, Numeric) else v for v in (left, right))


def arithmetic(low: Lowering, name: ops.BinaryOp, left: Any, right: Any, node: ast.AST) -> Number:
    """One arithmetic operation on two numbers of any types; of complex ones a `ComplexNumber`."""
    if is_complex(left) or is_complex(right):
        from ferrule.language.lowering.numbers import complexes  # few programs need it

        return cast("Number", complexes.arithmetic(low, name, left, right, node))
    if name == "and":
        left, right = _mask(left, right), _mask(right, left)
    lhs, rhs = operands(low, left, right, SIGNS.get(name, name), node)
    if name == "div" and lhs.dtype.kind != "float":
        lhs, rhs = convert(low, lhs, Float32), convert(low, rhs, Float32)
    if name in BITWISE and lhs.dtype.kind == "float":
        low.fail(node, f"bit operations take integers and bools, but got {lhs.dtype.name}")
    if lhs.dtype is Boolean:
        name = OF_BOOLS.get(name, name)
    if lhs.dtype is Boolean and name not in ("and", "or", "xor"):
        lhs, rhs = convert(low, lhs, Int32), convert(low, rhs, Int32)
    if lhs.dtype.kind == "float" and name in ("floordiv", "mod"):
        return _floored(low, name, lhs, rhs)
    if name in ("floordiv", "mod") and low.kind == "host" and not low.elementwise:
        _check_divisor(low, rhs, node)
    result = low.builder.operator(name, lhs.value, rhs.value)
    return Number(result, _size(name, lhs, rhs))


def _mask(value: Any, other: Any) -> Any:
    """An int that is combined by `&` with an unsigned number: of a negative one the bits that this
    number has, which is the result of Python: `x & ~(1 << 31)`."""
    if type(value) is int and value < 0 and isinstance(other, (Number, Numeric)):
        dtype = other.dtype
        if dtype.is_integer and dtype.range[0] == 0 and dtype is not Boolean:
            return value & dtype.range[1]
    return value


def _check_divisor(low: Lowering, divisor: Number, node: ast.AST) -> None:
    if isinstance(divisor.dim, int) and divisor.dim != 0:
        return
    fault = Fault("ZeroDivisionError", "integer division or modulo by zero", low.location(node))
    zero = low.builder.constant(divisor.dtype, 0)
    low.builder.check(low.builder.compare("ne", divisor.value, zero), fault)


def _size(name: ops.BinaryOp, lhs: Number, rhs: Number) -> Any:
    if lhs.dim is None or rhs.dim is None or name not in SIZE_BINARY:
        return None
    if lhs.dtype not in (Int32, Int64):
        return None
    if isinstance(lhs.dim, int) and isinstance(rhs.dim, int):
        return _constant_size(SIZE_BINARY[name], lhs.dim, rhs.dim, lhs.dtype)
    return make(SIZE_BINARY[name], lhs.dim, rhs.dim)


def _constant_size(op: ExprOp, lhs: int, rhs: int, dtype: DType) -> int | None:
    """The result for two typed constants as a size, unless it wrapped or is not a size."""
    value = make(op, lhs, rhs)
    smallest, largest = dtype.range
    if isinstance(value, Compound) or not isinstance(value, int):
        return None
    return value if smallest <= value <= largest else None


def truth(low: Lowering, value: Any, node: ast.AST) -> Any:
    """The truth of a number: a bool known at compile time, or a run-time Boolean."""
    if isinstance(value, ComplexNumber):
        from ferrule.language.lowering.numbers import complexes  # few programs need it

        return complexes.truth(low, value, node)
    if not isinstance(value, Number):
        return at_compile_time(low, node, lambda: bool(value))
    if value.dtype is Boolean:
        return value
    zero = low.builder.constant(value.dtype, 0 if rank(value.dtype) < 2 else 0.0)
    return Number(low.builder.compare("ne", value.value, zero))


# ---- // and % of floats ----
#
# As Python defines them: the quotient is floored, the remainder has the sign of the divisor, and
# both are exact if the result can be represented.  For a divisor of zero the quotient is that of
# IEEE 754 for `x / 0.0`, and the remainder is NaN: floats do not raise.


def _floored(low: Lowering, name: Literal["floordiv", "mod"], lhs: Number, rhs: Number) -> Number:
    """The operator on two floats of one dtype; floats of 2 bytes are computed in float32.

    The method is that of CPython's `float_divmod`: from the exact remainder of `fmod`.
    """
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
    # `exact` is rounded: it may be just below a whole number.
    is_low = build.compare("gt", build.binary("sub", down, floor), half)
    nearest = build.select(is_low, build.binary("add", floor, one), floor)
    plain = build.binary("div", x, y)
    signed = build.select(
        build.compare("eq", down, zero), build.binary("copysign", zero, plain), nearest
    )
    return build.select(build.compare("eq", y, zero), plain, signed)
