"""Unary and binary operators and comparisons of scalars, by family of dtype.

The semantics are those of `ferrule.language.ir.ops`: nothing traps and no result is poison.  Narrow
floats are computed in float32 and rounded after each operator.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ferrule import specs
from ferrule.language.codegen.errors import CodegenError
from ferrule.language.ir import ops
from ferrule.language.ir.scalars import BINARY, UNARY, ScalarOp
from ferrule.language.mlir import halves
from ferrule.language.mlir.text import Text
from ferrule.language.mlir.types import HALVES
from ferrule.runtime.llvm.arithmetic import Predicate
from ferrule.specs import DType, Float32

_SIGNED: Final[dict[ops.CompareOp, Predicate]] = {
    "eq": "eq",
    "ne": "ne",
    "lt": "slt",
    "le": "sle",
    "gt": "sgt",
    "ge": "sge",
}
_UNSIGNED: Final[dict[ops.CompareOp, Predicate]] = {
    "eq": "eq",
    "ne": "ne",
    "lt": "ult",
    "le": "ule",
    "gt": "ugt",
    "ge": "uge",
}


def unary(
    t: Text,
    op: ops.UnaryOp,
    dtype: DType,
    operand: str,
    *,
    native: bool,
    flags: tuple[str, ...] = (),
) -> str:
    """`op operand`."""
    if dtype in HALVES:
        if op == "neg" and dtype is not specs.TFloat32:
            return _negated_half(t, operand)
        wide = halves.widen(t, dtype, operand, native=native)
        result = unary(t, op, Float32, wide, native=native)
        return halves.narrow(t, dtype, result, native=native)
    if dtype.kind == "float":
        return _float_unary(t, op, operand, native=native, flags=flags)
    match op:
        case "neg":
            return t.binary("sub", t.integer(0, t.types[operand]), operand)
        case "not":
            return t.arith("xori", operand, t.integer(-1, t.types[operand]))
        case _:
            return t.arith(_named(UNARY[op], op, dtype), operand)


def binary(
    t: Text,
    op: ops.BinaryOp,
    dtype: DType,
    lhs: str,
    rhs: str,
    *,
    native: bool,
    flags: tuple[str, ...] = (),
) -> str:
    """`lhs op rhs`."""
    if dtype in HALVES:
        left, right = (halves.widen(t, dtype, side, native=native) for side in (lhs, rhs))
        result = binary(t, op, Float32, left, right, native=native)
        return halves.narrow(t, dtype, result, native=native)
    if dtype.kind == "float":
        return t.arith(_named(BINARY[op], op, dtype), lhs, rhs, flags=flags)
    match op:
        case "floordiv" | "mod" | "shl" | "shr":
            return _SAFE[op, dtype.kind == "int"](t, lhs, rhs)
        case _:
            return t.arith(_named(BINARY[op], op, dtype), lhs, rhs)


def compare(t: Text, op: ops.CompareOp, dtype: DType, lhs: str, rhs: str, *, native: bool) -> str:
    """`lhs op rhs` as an i1; only "ne" is true of a NaN."""
    if dtype.kind != "float":
        return t.icmp((_SIGNED if dtype.kind == "int" else _UNSIGNED)[op], lhs, rhs)
    if dtype in HALVES:
        lhs, rhs = (halves.widen(t, dtype, side, native=native) for side in (lhs, rhs))
    return t.fcmp("une" if op == "ne" else f"o{op}", lhs, rhs)


def _float_unary(
    t: Text, op: ops.UnaryOp, operand: str, *, native: bool, flags: tuple[str, ...]
) -> str:
    match op:
        case "sigmoid":
            return _sigmoid(t, operand)
        case "sqrt" if native:  # `math.sqrt` becomes a library call on a GPU
            kind = t.types[operand]
            text = f'llvm.call_intrinsic "llvm.sqrt.{kind}"({operand}) : ({kind}) -> {kind}'
            return t.op(text, kind)
        case _:
            return t.arith(_named(UNARY[op], op, Float32), operand, flags=flags)


def _named(row: ScalarOp, op: str, dtype: DType) -> str:
    """The name of MLIR's operation.  Raises CodegenError for an operator that has none."""
    name = row.mlir.get(dtype.kind)
    if name is None:
        raise CodegenError(f"MLIR has no operation for {op} of {dtype.name}")
    return name


def _negated_half(t: Text, operand: str) -> str:
    type_ = t.types[operand]
    bits = t.arith("xori", t.cast("bitcast", operand, "i16"), t.integer(0x8000, "i16"))
    return t.cast("bitcast", bits, type_)


def _sigmoid(t: Text, operand: str) -> str:
    one = t.float32(1.0) if t.types[operand] == "f32" else t.float64(1.0)
    return t.arith("divf", one, t.arith("addf", one, t.arith("math.exp", t.arith("negf", operand))))


# ---- divisions and shifts, where `arith` leaves something undefined ----


def _divided(t: Text, lhs: str, rhs: str) -> tuple[str, str, str, str, str]:
    """Quotient, remainder, divisor, whether the quotient overflows, whether rhs is 0."""
    type_ = t.types[lhs]
    zero, one = t.integer(0, type_), t.integer(1, type_)
    lowest = t.icmp("eq", lhs, t.integer(-(1 << int(type_[1:]) - 1), type_))
    minus = t.icmp("eq", rhs, t.integer(-1, type_))
    is_zero = t.icmp("eq", rhs, zero)
    unfit = t.binary("or", is_zero, t.binary("and", lowest, minus))
    divisor = t.select(unfit, one, rhs)
    quotient, rest = t.binary("sdiv", lhs, divisor), t.binary("srem", lhs, divisor)
    opposite = t.icmp("slt", t.binary("xor", rest, divisor), zero)
    down = t.binary("and", t.icmp("ne", rest, zero), opposite)
    return quotient, rest, divisor, down, is_zero


def _floor_divide(t: Text, lhs: str, rhs: str) -> str:
    quotient, _, _, down, is_zero = _divided(t, lhs, rhs)
    type_ = t.types[lhs]
    lower = t.binary("sub", quotient, t.integer(1, type_))
    return t.select(is_zero, t.integer(0, type_), t.select(down, lower, quotient))


def _floor_modulo(t: Text, lhs: str, rhs: str) -> str:
    _, rest, divisor, down, _ = _divided(t, lhs, rhs)
    return t.select(down, t.binary("add", rest, divisor), rest)


def _unsigned(t: Text, rhs: str) -> tuple[str, str, str]:
    """A divisor that is not 0, whether the given one was 0, and the constant 0."""
    type_ = t.types[rhs]
    zero = t.integer(0, type_)
    is_zero = t.icmp("eq", rhs, zero)
    return t.select(is_zero, t.integer(1, type_), rhs), is_zero, zero


def _unsigned_divide(t: Text, lhs: str, rhs: str) -> str:
    divisor, is_zero, zero = _unsigned(t, rhs)
    return t.select(is_zero, zero, t.arith("divui", lhs, divisor))


def _unsigned_modulo(t: Text, lhs: str, rhs: str) -> str:
    divisor, _, _ = _unsigned(t, rhs)
    return t.arith("remui", lhs, divisor)


def _shifts(name: str) -> Callable[[Text, str, str], str]:
    """A shift whose result is defined for a count of the width or more: all bits are shifted
    out."""

    def emit(t: Text, lhs: str, rhs: str) -> str:
        type_ = t.types[lhs]
        zero = t.integer(0, type_)
        # `arith` says nothing of a shift by the width or more; a select hides that, but not from
        # folding: so the count is another one there, too.
        inside = t.icmp("ult", rhs, t.integer(int(type_[1:]), type_))
        return t.select(inside, t.arith(name, lhs, t.select(inside, rhs, zero)), zero)

    return emit


def _shift_right(t: Text, lhs: str, rhs: str) -> str:
    type_ = t.types[lhs]
    last = t.integer(int(type_[1:]) - 1, type_)
    return t.binary("ashr", lhs, t.arith("minui", rhs, last))


_SAFE: Final[dict[tuple[str, bool], Callable[[Text, str, str], str]]] = {
    ("floordiv", True): _floor_divide,
    ("floordiv", False): _unsigned_divide,
    ("mod", True): _floor_modulo,
    ("mod", False): _unsigned_modulo,
    ("shl", True): _shifts("shli"),
    ("shl", False): _shifts("shli"),
    ("shr", True): _shift_right,
    ("shr", False): _shifts("shrui"),
}
