"""Operators on run-time numbers and whole tensors, and conversions to numbers.

The operators are in `tables`; what both operands' types make of the result is `promotion`.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable
from typing import Any, Final

from ferrule.compiler.artefacts import Fault
from ferrule.language.ir import ops
from ferrule.language.lowering import floored, typed
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.tables import (
    BITWISE,
    IR_BINARY,
    OF_BOOLS,
    PYTHON_UNARY,
    SIGNS,
    SIZE_BINARY,
)
from ferrule.language.lowering.tables import PYTHON_BINARY as PYTHON_BINARY
from ferrule.language.lowering.words import describe as describe
from ferrule.language.lowering.words import usage_hint as usage_hint
from ferrule.language.promotion import NoCommonType, computed, promote, rank, weak
from ferrule.language.values import RUN_TIME, Handle, Number, PointerView, TensorView, Vector, Whole
from ferrule.specs import Boolean, Compound, DType, Float32, Int32, Int64, Numeric, Uint64
from ferrule.specs.expr import ExprOp, make
from ferrule.specs.rounding import nearest

SCALARS: Final[frozenset[type]] = frozenset((Number, int, float, bool))
"""What operators have nothing special to do for: no whole tensor, and no class of a user's."""


def is_python_number(value: object) -> bool:
    """Whether this is a number that is known at compile time (NumPy's scalars count)."""
    if isinstance(value, (bool, int, float, Numeric)):
        return True
    return type(value).__module__ == "numpy" and getattr(value, "shape", None) == ()


def plain(value: Any) -> Any:
    """A NumPy scalar as a Python number; anything else as it is."""
    return value.item() if type(value).__module__ == "numpy" and is_python_number(value) else value


def as_number(low: Lowering, value: Any, node: ast.AST, near: DType | None = None) -> Number:
    """A number in run-time form; a Python number takes its dtype from its neighbour's, `near`."""
    if isinstance(value, Number):
        return value
    value = plain(value)
    if isinstance(value, Numeric):
        return constant(low, value.value, type(value), node)
    if isinstance(value, (bool, int, float)):
        return constant(low, value, weak(value, near), node)
    low.fail(node, f"expected a number, but got {describe(value)}", hint=usage_hint(value))


def operand(low: Lowering, value: Any, node: ast.AST) -> Number:
    """A number as operators compute with it."""
    number = as_number(low, value, node)
    return convert(low, number, computed(number.dtype))


def constant(low: Lowering, value: bool | int | float, dtype: DType, node: ast.AST) -> Number:
    """A constant of this dtype.  A CompileError where it does not fit."""
    if dtype.is_integer:
        smallest, largest = dtype.range
        if not smallest <= value <= largest:
            low.fail(
                node,
                f"the constant {value} does not fit {dtype.name}",
                expected=f"a value in [{smallest}, {largest}]",
                hint=_wide_enough(int(value)),
            )
        value = int(value)
    elif dtype is not Boolean:
        if type(value) is not float:
            wide = at_compile_time(low, node, functools.partial(float, value))
            value = nearest(dtype, value) if isinstance(value, int) else wide
    dim = int(value) if dtype.is_integer else None
    return Number(low.builder.constant(dtype, value), dim)


def _wide_enough(value: int) -> str | None:
    """Which dtype an integer fits, as a hint."""
    fits = next((each for each in (Int32, Int64, Uint64) if _holds(each, value)), None)
    return None if fits is None else f"where the number is written: fe.{fits.__name__}({value})"


def _holds(dtype: DType, value: int) -> bool:
    smallest, largest = dtype.range
    return smallest <= value <= largest


def convert(low: Lowering, number: Number, dtype: DType) -> Number:
    """A number in another dtype; it stays the same size if an integer type can hold any size."""
    if number.dtype is dtype:
        return number
    keeps = dtype in (Int32, Int64) and number.dtype.is_integer
    return Number(low.builder.cast(dtype, number.value), number.dim if keeps else None)


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
            hint="convert one of them: fe.Int64(x) keeps negative numbers, fe.Uint64(x) those of "
            "2**63 and more",
        )
    return convert(low, lhs, dtype), convert(low, rhs, dtype)


def binary(low: Lowering, op: ast.operator, left: Any, right: Any, node: ast.AST) -> Any:
    """`left op right`."""
    sign, python = PYTHON_BINARY[type(op)]
    if type(op) in IR_BINARY and are_typed_numbers(left, right):
        name = IR_BINARY[type(op)]
        return typed.folded(low, lambda: arithmetic(low, name, left, right, node))
    if not isinstance(left, RUN_TIME) and not isinstance(right, RUN_TIME):
        return at_compile_time(low, node, lambda: python(*untyped(left, right)))
    if isinstance(left, PointerView) or isinstance(right, PointerView):
        from ferrule.language.lowering import views

        return views.arithmetic(low, op, left, right, node)
    if isinstance(left, Handle) or isinstance(right, Handle):
        given = left if isinstance(left, Handle) else right
        low.fail(
            node,
            f"{describe(given)} is an operand of {sign}",
            expected="numbers or whole tensors",
            hint="texts are compared, printed and handed on, but not joined or cut",
        )
    if type(op) not in IR_BINARY:
        low.fail(
            node,
            f"the operator {sign} is not supported on run-time values",
            hint="write it as loops over elements",
        )
    name = IR_BINARY[type(op)]
    if type(left) in SCALARS and type(right) in SCALARS:
        return arithmetic(low, name, left, right, node)
    return lift(low, (left, right), node, lambda a, b: arithmetic(low, name, a, b, node))


def are_typed_numbers(*operands: Any) -> bool:
    """Whether all of these are known numbers, and one of them has a dtype."""
    return any(isinstance(each, Numeric) for each in operands) and all(
        map(is_python_number, operands)
    )


def untyped(left: Any, right: Any) -> tuple[Any, Any]:
    """Both operands, typed constants as Python numbers."""
    return tuple(v.value if isinstance(v, Numeric) else v for v in (left, right))  # type: ignore[return-value]


def at_compile_time(low: Lowering, node: ast.AST, compute: Callable[[], Any]) -> Any:
    """Runs ordinary Python; its errors become CompileErrors at this node."""
    from ferrule.compiler.errors import CompileError
    from ferrule.language.faces import OutsideKernel

    try:
        return compute()
    except (CompileError, OutsideKernel):
        raise
    except Exception as error:
        low.fail(node, f"{type(error).__name__} at compile time: {error}")


def lift(
    low: Lowering, operands: tuple[Any, ...], node: ast.AST, emit: Callable[..., Number]
) -> Any:
    """Applies an operation to numbers, or element by element where an operand is a whole tensor."""
    operands = tuple(_as_whole(low, operand, node) for operand in operands)
    if any(isinstance(operand, Vector) for operand in operands):
        from ferrule.language.lowering import vectors

        return vectors.lift(low, operands, node, emit)
    wholes = [operand for operand in operands if isinstance(operand, Whole)]
    if not wholes:
        return emit(*operands)
    for whole in wholes:
        check_current(low, whole, node)
    first = wholes[0]
    for other in wholes[1:]:
        same_shape(low, other.shape, other.name, first.shape, first.name, node)
    captured = tuple(o if isinstance(o, Whole) else _capture(low, o, node) for o in operands)

    def element(coordinates: tuple[ops.Value, ...]) -> Number:
        with low.in_elements():
            return emit(*(o.element(coordinates) if isinstance(o, Whole) else o for o in captured))

    dtype = _dtype_of(low, first, element)
    return Whole(first.shape, first.name, dtype, element, low.state.writes)


def _as_whole(low: Lowering, value: Any, node: ast.AST) -> Any:
    """A part of a tensor that was written with `:` as a whole-tensor expression."""
    if not (isinstance(value, TensorView) and value.whole):
        return value
    from ferrule.language.lowering import elements

    return elements.whole(low, value, node)


def check_current(low: Lowering, whole: Whole, node: ast.AST) -> None:
    """A whole-tensor expression is computed where it is assigned: nothing may change until then."""
    if whole.since is not None and whole.since != low.state.writes:
        low.fail(
            node,
            "a whole-tensor expression is used after a tensor was written to or a loop began",
            expected="its use before that: a name for it, also for a sum, keeps the expression and "
            "no numbers, which are computed when it is stored to a tensor",
            hint="write the expression here, or store it before: total[0] = fe.sum(a[:])",
        )


def _capture(low: Lowering, operand: Any, node: ast.AST) -> Any:
    if isinstance(operand, Number) or is_python_number(operand):
        return operand
    low.fail(node, f"expected a number or a whole tensor, but got {describe(operand)}")


def _dtype_of(
    low: Lowering, whole: Whole, element: Callable[[tuple[ops.Value, ...]], Number]
) -> DType:
    """The dtype of an element, found by emitting one into a region that is thrown away."""
    with low.builder.region():
        return element(tuple(ops.Value(Int64) for _ in whole.shape)).dtype


_SINGLE: Final = (
    "a reduction of everything has no dims: store it first, total[0] = fe.sum(a[:]), "
    "and use total[0]"
)


def same_shape(
    low: Lowering,
    left: tuple[Any, ...],
    left_name: str,
    right: tuple[Any, ...],
    right_name: str,
    node: ast.AST,
) -> None:
    """Requires two whole tensors to have one shape."""
    if len(left) != len(right):
        low.fail(
            node,
            f"the ranks of a whole-tensor expression differ: {left_name} has {len(left)} dims, "
            f"but {right_name} has {len(right)}",
            expected="equal shapes; nothing is broadcast except scalars",
            hint=_SINGLE if () in (left, right) else None,
        )
    for axis, (a, b) in enumerate(zip(left, right, strict=True)):
        low.relate(a, b, (f"{left_name}.shape[{axis}]", f"{right_name}.shape[{axis}]"), node)


def arithmetic(low: Lowering, name: ops.BinaryOp, left: Any, right: Any, node: ast.AST) -> Number:
    """One arithmetic operation on two numbers of any types."""
    lhs, rhs = common(low, left, right, SIGNS.get(name, name), node)
    if name == "div" and lhs.dtype.kind != "float":
        lhs, rhs = convert(low, lhs, Float32), convert(low, rhs, Float32)
    if name in BITWISE and lhs.dtype.kind == "float":
        low.fail(node, f"bit operations take integers and bools, but got {lhs.dtype.name}")
    if lhs.dtype is Boolean:
        name = OF_BOOLS.get(name, name)
    if lhs.dtype is Boolean and name not in ("and", "or", "xor"):
        lhs, rhs = convert(low, lhs, Int32), convert(low, rhs, Int32)
    if lhs.dtype.kind == "float" and name in ("floordiv", "mod"):
        return floored.floats(low, name, lhs, rhs)
    if name in ("floordiv", "mod") and low.kind == "host" and not low.elementwise:
        _check_divisor(low, rhs, node)
    result = low.builder.binary(name, lhs.value, rhs.value)
    return Number(result, _size(name, lhs, rhs))


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
    """Two typed constants: the result as a size, unless it wrapped or is no size."""
    value = make(op, lhs, rhs)
    smallest, largest = dtype.range
    if isinstance(value, Compound) or not isinstance(value, int):
        return None
    return value if smallest <= value <= largest else None


def truth(low: Lowering, value: Any, node: ast.AST) -> Any:
    """The truth of a value: a bool known at compile time, or a run-time Boolean."""
    if isinstance(value, Number):
        if value.dtype is Boolean:
            return value
        zero = low.builder.constant(value.dtype, 0 if rank(value.dtype) < 2 else 0.0)
        return Number(low.builder.compare("ne", value.value, zero))
    if isinstance(value, Handle):
        from ferrule.language.lowering import containers, texts

        if texts.is_text(value):
            return texts.truth(low, value)
        if containers.is_container(value):
            return containers.truth(low, value, node)
    if isinstance(value, RUN_TIME):
        hint = "combine whole tensors with & and |" if isinstance(value, Whole) else None
        if isinstance(value, Whole) and not value.shape:
            hint = "a reduction of everything is no number yet: store it first, m[0] = fe.sum(a[:])"
        low.fail(node, f"{describe(value)} has no truth value", hint=hint or usage_hint(value))
    low.state.witness.add_special(value, "__bool__", "__len__")
    return at_compile_time(low, node, lambda: bool(value))


def negate(low: Lowering, value: Any, node: ast.AST) -> Any:
    """`not value`."""
    known = truth(low, value, node)
    if isinstance(known, bool):
        return Boolean(not known) if isinstance(value, Numeric) else not known
    return Number(low.builder.unary("not", known.value))


def unary(low: Lowering, op: ast.unaryop, value: Any, node: ast.AST) -> Any:
    """`op value`."""
    if isinstance(op, ast.Not):
        return negate(low, value, node)
    if isinstance(value, Numeric):
        return typed.folded(low, lambda: _unary_number(low, op, value, node))
    if isinstance(value, bool) and isinstance(op, ast.Invert):
        low.fail(
            node,
            f"~ of {value}, which is known while compiling, is {~int(value)} in Python: as a "
            f"condition that is true",
            hint="write not x; ~ of a Boolean at run time, and of fe.Boolean(x), is not x",
        )
    if not isinstance(value, RUN_TIME):
        return at_compile_time(low, node, lambda: PYTHON_UNARY[type(op)](value))
    return lift(low, (value,), node, lambda x: _unary_number(low, op, x, node))


def _unary_number(low: Lowering, op: ast.unaryop, value: Any, node: ast.AST) -> Number:
    number = operand(low, value, node)
    if isinstance(op, ast.Invert):
        if number.dtype.kind == "float":
            low.fail(node, f"~ takes integers and bools, but got {number.dtype.name}")
        ones = low.builder.constant(number.dtype, _ones(number))
        return Number(low.builder.binary("xor", number.value, ones))
    if number.dtype is Boolean:
        number = convert(low, number, Int32)
    if isinstance(op, ast.UAdd):
        return number
    dim = make("sub", 0, number.dim) if number.dim is not None else None
    return Number(low.builder.unary("neg", number.value), dim)


def _ones(number: Number) -> bool | int:
    if number.dtype is Boolean:
        return True
    return -1 if number.dtype.kind == "int" else number.dtype.range[1]
