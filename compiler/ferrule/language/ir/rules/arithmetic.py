"""The verifier's rules for the ops of `arithmetic`; their text is in the docstring of
`verifier`."""

from __future__ import annotations

from ferrule.language.ir import arithmetic
from ferrule.language.ir.rules.checker import Checker
from ferrule.language.ir.scalars import BINARY, BITS, FLOATS, NUMBERS, UNARY
from ferrule.language.ir.types import HandleType, Type
from ferrule.language.ir.values import Value
from ferrule.specs import Boolean, DType, Float32


def simple(checker: Checker, op: arithmetic.Arithmetic) -> None:
    """Checks an op with one result."""
    result = op.result
    match op:
        case arithmetic.Unary(_, name, operand):
            checker.scalar(operand, UNARY[name].kinds, f"the operand of {name}")
            checker.types([operand], [result.type], "operands")
        case arithmetic.Binary(_, name, lhs, rhs):
            checker.scalar(lhs, BINARY[name].kinds, f"the operands of {name}")
            checker.types([lhs, rhs], [result.type] * 2, "operands")
        case arithmetic.Fma(_, x, y, z, rest):
            checker.scalar(x, FLOATS, "the operands of fma")
            checker.types([x, y, z], [result.type] * 3, "operands")
            checker.require(not rest or result.type is Float32, "only fma of float32 gives rests")
        case arithmetic.Compare(_, _, lhs, rhs):
            checker.scalar(lhs, (*BITS, *FLOATS), "the operands of a comparison")
            checker.types([rhs, result], [lhs.type, Boolean], "operands and result")
        case arithmetic.Cast(_, operand, saturate):
            for value in (operand, result):
                checker.scalar(value, (*BITS, *FLOATS), "what is cast")
            narrow = isinstance(result.type, DType) and result.type.is_narrow
            checker.require(not saturate or narrow, "only floats of fewer than 16 bits saturate")
        case arithmetic.Bitcast(_, operand):
            for value in (operand, result):
                checker.scalar(value, NUMBERS, "what is cast")
            checker.require(_bits(operand) == _bits(result), "a bitcast keeps the size")
        case arithmetic.Select(_, condition, on_true, on_false):
            checker.scalar(result, (*BITS, *FLOATS), "what is selected")
            wanted = [Boolean, result.type, result.type]
            checker.types([condition, on_true, on_false], wanted, "operands")


def holds(type_: Type, value: bool | int | float) -> bool:
    """Whether a number can be a constant of this type."""
    if not isinstance(type_, DType):
        return isinstance(type_, HandleType) and value == 0
    match type_.kind:
        case "bool":
            return value in (0, 1)
        case "int" | "uint":
            low, high = type_.range
            return isinstance(value, int) and low <= value <= high
        case "float":
            return True
        case _:
            return False


def _bits(value: Value) -> int:
    return value.type.value_bits if isinstance(value.type, DType) else 0
