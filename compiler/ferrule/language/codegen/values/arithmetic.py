"""Unary and binary operators and comparisons of scalars: one table for each, by family of dtype.

The semantics is that of `ferrule.language.ir.ops`: nothing here traps or needs a library.  Narrow
floats are computed in float32 and rounded after each operator; for `+ - * /` and the square root
that is the same as rounding once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from llvmlite import ir

from ferrule.compiler import halves
from ferrule.language.codegen.errors import CodegenError
from ferrule.language.codegen.values.scalars import Form, form
from ferrule.language.ir import ops
from ferrule.language.ir.scalars import BINARY, UNARY, ScalarOp, require_all
from ferrule.runtime.llvm.emitter import Emitter
from ferrule.runtime.llvm.layouts import I1, I16
from ferrule.specs import DType, Float32

_EmitUnary = Callable[[ir.IRBuilder, ir.Value], ir.Value]
_EmitBinary = Callable[[ir.IRBuilder, ir.Value, ir.Value], ir.Value]


def flagged(value: ir.Value, flags: tuple[str, ...]) -> ir.Value:
    """The result of arithmetic on floats with these fast-math flags, if it is an instruction that
    takes them; a 2-byte float's is a conversion, which does not."""
    if flags and isinstance(value, ir.Instruction) and value.opname in _TAKES_FLAGS:
        value.flags = list(flags)
    return value


_TAKES_FLAGS: Final = frozenset({"fadd", "fsub", "fmul", "fdiv", "fneg"})


def unary(emitter: Emitter, op: ops.UnaryOp, dtype: DType, operand: ir.Value) -> ir.Value:
    """`op operand`.  Raises CodegenError for an op that `mathlib` must expand first."""
    family = form(dtype)
    # A change of the sign needs no way there and back through float32.
    if family == "half" and op == "neg" and operand.type == I16:
        return emitter.builder.xor(operand, ir.Constant(operand.type, 0x8000))
    if family == "half":
        wide = unary(emitter, op, Float32, halves.widen(emitter, dtype, operand))
        return halves.narrow(emitter, dtype, wide)
    emit = _UNARY.get(op, {}).get(family)
    if emit is None:
        raise CodegenError(f"the target has no instruction for {op} of {dtype.name}")
    return emit(emitter.builder, operand)


def binary(
    emitter: Emitter, op: ops.BinaryOp, dtype: DType, lhs: ir.Value, rhs: ir.Value
) -> ir.Value:
    """`lhs op rhs`."""
    family = form(dtype)
    if family == "half":
        left, right = (halves.widen(emitter, dtype, side) for side in (lhs, rhs))
        return halves.narrow(emitter, dtype, binary(emitter, op, Float32, left, right))
    emit = _BINARY.get(op, {}).get(family)
    if emit is None:
        raise CodegenError(f"the target has no instruction for {op} of {dtype.name}")
    return emit(emitter.builder, lhs, rhs)


def compare(
    emitter: Emitter, op: ops.CompareOp, dtype: DType, lhs: ir.Value, rhs: ir.Value
) -> ir.Value:
    """`lhs op rhs` as an i1."""
    b, sign = emitter.builder, _COMPARE[op]
    match form(dtype):
        case "int":
            return b.icmp_signed(sign, lhs, rhs)
        case "uint" | "bool":
            return b.icmp_unsigned(sign, lhs, rhs)
        case "half":
            lhs, rhs = (halves.widen(emitter, dtype, side) for side in (lhs, rhs))
    # Only "not equal" is true for a NaN.
    return b.fcmp_unordered(sign, lhs, rhs) if op == "ne" else b.fcmp_ordered(sign, lhs, rhs)


def floor_divide(b: ir.IRBuilder, lhs: ir.Value, rhs: ir.Value) -> ir.Value:
    """Signed floor division; x // 0 is 0, INT_MIN // -1 is INT_MIN."""
    shift = _exponent(rhs)
    if shift is not None:
        return b.ashr(lhs, ir.Constant(lhs.type, shift))
    quotient, _, _, down = _divided(b, lhs, rhs)
    return _or_zero(b, rhs, b.sub(quotient, b.zext(down, lhs.type)))


def floor_modulo(b: ir.IRBuilder, lhs: ir.Value, rhs: ir.Value) -> ir.Value:
    """Signed modulo with the sign of the divisor; x % 0 is 0."""
    if _exponent(rhs) is not None:
        return b.and_(lhs, ir.Constant(lhs.type, rhs.constant - 1))
    _, remainder, divisor, down = _divided(b, lhs, rhs)
    return b.select(down, b.add(remainder, divisor), remainder)


def divide_by_size(
    b: ir.IRBuilder, op: ops.BinaryOp, lhs: ir.Value, rhs: ir.Value, least: int
) -> ir.Value:
    """`floordiv` or `mod` of signed integers by a number that is at least this one, 0 or more.

    So no division overflows, and only a negative remainder is not Python's.
    """
    zero, one = ir.Constant(lhs.type, 0), ir.Constant(lhs.type, 1)
    divisor = rhs if least else b.select(_is_zero(b, rhs), one, rhs)
    remainder = b.srem(lhs, divisor)
    negative = b.icmp_signed("<", remainder, zero)
    if op == "mod":
        return b.select(negative, b.add(remainder, divisor), remainder)
    quotient = b.sub(b.sdiv(lhs, divisor), b.zext(negative, lhs.type))
    return quotient if least else _or_zero(b, rhs, quotient)


def _divided(
    b: ir.IRBuilder, lhs: ir.Value, rhs: ir.Value
) -> tuple[ir.Value, ir.Value, ir.Value, ir.Value]:
    """Quotient, remainder, the divisor used, and whether the quotient is above the true one."""
    divisor = _signed_divisor(b, lhs, rhs)
    quotient, remainder = b.sdiv(lhs, divisor), b.srem(lhs, divisor)
    zero = ir.Constant(lhs.type, 0)
    inexact = b.icmp_signed("!=", remainder, zero)
    signs_differ = b.icmp_signed("<", b.xor(remainder, divisor), zero)
    return quotient, remainder, divisor, b.and_(inexact, signs_differ)


def _signed_divisor(b: ir.IRBuilder, lhs: ir.Value, rhs: ir.Value) -> ir.Value:
    """The divisor; 1 if the division would trap: by 0, and INT_MIN by -1."""
    if isinstance(rhs, ir.Constant) and rhs.constant not in (0, -1):
        return rhs
    # By 1, INT_MIN stays INT_MIN, to which INT_MIN // -1 wraps, and the remainder is 0 as well.
    lowest = b.icmp_signed("==", lhs, ir.Constant(lhs.type, -(1 << lhs.type.width - 1)))
    overflows = b.and_(lowest, b.icmp_signed("==", rhs, ir.Constant(lhs.type, -1)))
    return b.select(b.or_(_is_zero(b, rhs), overflows), ir.Constant(lhs.type, 1), rhs)


def _unsigned_divisor(b: ir.IRBuilder, rhs: ir.Value) -> ir.Value:
    if isinstance(rhs, ir.Constant) and rhs.constant != 0:
        return rhs
    return b.select(_is_zero(b, rhs), ir.Constant(rhs.type, 1), rhs)


def _exponent(divisor: ir.Value) -> int | None:
    """The exponent of a constant that is a power of two, as a signed integer."""
    if not isinstance(divisor, ir.Constant):
        return None
    value = divisor.constant
    return value.bit_length() - 1 if value > 0 and value & (value - 1) == 0 else None


def _is_zero(b: ir.IRBuilder, value: ir.Value) -> ir.Value:
    return b.icmp_signed("==", value, ir.Constant(value.type, 0))


def _or_zero(b: ir.IRBuilder, divisor: ir.Value, quotient: ir.Value) -> ir.Value:
    """The quotient, or 0 if the divisor is 0."""
    if isinstance(divisor, ir.Constant) and divisor.constant != 0:
        return quotient
    return b.select(_is_zero(b, divisor), ir.Constant(quotient.type, 0), quotient)


def _unsigned_divide(b: ir.IRBuilder, lhs: ir.Value, rhs: ir.Value) -> ir.Value:
    return _or_zero(b, rhs, b.udiv(lhs, _unsigned_divisor(b, rhs)))


def _unsigned_modulo(b: ir.IRBuilder, lhs: ir.Value, rhs: ir.Value) -> ir.Value:
    if _exponent(rhs) is not None:
        return b.and_(lhs, ir.Constant(lhs.type, rhs.constant - 1))
    return b.urem(lhs, _unsigned_divisor(b, rhs))


def _picked(sign: str, signed: bool) -> _EmitBinary:
    """The operand that has this relation to the other."""

    def emit(b: ir.IRBuilder, lhs: ir.Value, rhs: ir.Value) -> ir.Value:
        test = b.icmp_signed if signed else b.icmp_unsigned
        return b.select(test(sign, lhs, rhs), lhs, rhs)

    return emit


def intrinsic(b: ir.IRBuilder, name: str, *operands: ir.Value) -> ir.Value:
    """Calls an overloaded intrinsic whose operands and result have one type."""
    kind = operands[0].type
    kinds = [kind]
    if isinstance(kind, ir.VectorType):  # llvmlite has no name for these
        name, kinds = f"{name}.v{kind.count}{kind.element.intrinsic_name}", []
    callee = b.module.declare_intrinsic(name, kinds, ir.FunctionType(kind, [kind] * len(operands)))
    return b.call(callee, operands)


def _intrinsic(name: str) -> Callable[..., ir.Value]:
    return lambda b, *operands: intrinsic(b, name, *operands)


def opaque(b: ir.IRBuilder, value: ir.Value) -> ir.Value:
    """The same number, of which LLVM knows nothing: through inline assembly without instructions.

    It has 32 or 64 bits, which fit a register of every CPU.
    """
    same = ir.InlineAsm(ir.FunctionType(value.type, [value.type]), "", "=r,0", side_effect=False)
    return b.call(same, [value])


def _leading_zeros(b: ir.IRBuilder, x: ir.Value) -> ir.Value:
    kind = ir.FunctionType(x.type, [x.type, I1])
    callee = b.module.declare_intrinsic("llvm.ctlz", [x.type], kind)
    # With 1 the result for 0 would be poison, and not the width.
    return b.call(callee, [x, ir.Constant(I1, 0)])


def _shift_left(b: ir.IRBuilder, lhs: ir.Value, rhs: ir.Value) -> ir.Value:
    inside = b.icmp_unsigned("<", rhs, ir.Constant(rhs.type, rhs.type.width))
    # LLVM's shift by the width or more is poison, which a select that does not take it drops.
    return b.select(inside, b.shl(lhs, rhs), ir.Constant(lhs.type, 0))


def _shift_right(b: ir.IRBuilder, lhs: ir.Value, rhs: ir.Value) -> ir.Value:
    last = ir.Constant(rhs.type, rhs.type.width - 1)
    # The count is cut and not the result: all bits that are left are the sign.
    return b.ashr(lhs, b.select(b.icmp_unsigned("<", rhs, last), rhs, last))


def _unsigned_shift_right(b: ir.IRBuilder, lhs: ir.Value, rhs: ir.Value) -> ir.Value:
    inside = b.icmp_unsigned("<", rhs, ir.Constant(rhs.type, rhs.type.width))
    return b.select(inside, b.lshr(lhs, rhs), ir.Constant(lhs.type, 0))


_Emit = Callable[..., ir.Value]


def _families(emit: _Emit, *families: Form) -> dict[Form, _Emit]:
    return dict.fromkeys(families, emit)


_UNARY: Final[dict[ops.UnaryOp, dict[Form, _EmitUnary]]] = {
    "neg": {
        **_families(lambda b, x: b.neg(x), "int", "uint"),
        **_families(lambda b, x: b.fneg(x), "float"),
    },
    "not": _families(lambda b, x: b.not_(x), "bool", "int", "uint"),
    "sqrt": _families(_intrinsic("llvm.sqrt"), "float"),
    "popc": _families(_intrinsic("llvm.ctpop"), "int", "uint"),
    "clz": _families(_leading_zeros, "int", "uint"),
    # Only for targets that have instructions: elsewhere LLVM would call a library.
    "fabs": _families(_intrinsic("llvm.fabs"), "float"),
    "floor": _families(_intrinsic("llvm.floor"), "float"),
    "ceil": _families(_intrinsic("llvm.ceil"), "float"),
    "round": _families(_intrinsic("llvm.roundeven"), "float"),
    "trunc": _families(_intrinsic("llvm.trunc"), "float"),
}

_BINARY: Final[dict[ops.BinaryOp, dict[Form, _EmitBinary]]] = {
    "add": {
        **_families(lambda b, x, y: b.add(x, y), "int", "uint"),
        **_families(lambda b, x, y: b.fadd(x, y), "float"),
    },
    "sub": {
        **_families(lambda b, x, y: b.sub(x, y), "int", "uint"),
        **_families(lambda b, x, y: b.fsub(x, y), "float"),
    },
    "mul": {
        **_families(lambda b, x, y: b.mul(x, y), "int", "uint"),
        **_families(lambda b, x, y: b.fmul(x, y), "float"),
    },
    "div": _families(lambda b, x, y: b.fdiv(x, y), "float"),
    "floordiv": {"int": floor_divide, "uint": _unsigned_divide},
    "mod": {"int": floor_modulo, "uint": _unsigned_modulo},
    # `maximum` and `minimum`, not `maxnum` and `minnum`: a NaN stays one, and -0.0 is less than
    # 0.0.
    "max": {
        "int": _picked(">", signed=True),
        "uint": _picked(">", signed=False),
        "float": _intrinsic("llvm.maximum"),
    },
    "min": {
        "int": _picked("<", signed=True),
        "uint": _picked("<", signed=False),
        "float": _intrinsic("llvm.minimum"),
    },
    "and": _families(lambda b, x, y: b.and_(x, y), "bool", "int", "uint"),
    "or": _families(lambda b, x, y: b.or_(x, y), "bool", "int", "uint"),
    "xor": _families(lambda b, x, y: b.xor(x, y), "bool", "int", "uint"),
    "shl": _families(_shift_left, "int", "uint"),
    "shr": {"int": _shift_right, "uint": _unsigned_shift_right},
    "copysign": _families(_intrinsic("llvm.copysign"), "float"),
}

_COMPARE: Final[dict[ops.CompareOp, str]] = {
    "eq": "==",
    "ne": "!=",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
}


def _forms(table: Mapping[Any, Mapping[Form, _Emit]]) -> set[str]:
    return {f"{name} of {form}" for name, forms in table.items() for form in forms}


def _needed(rows: Mapping[Any, ScalarOp]) -> set[str]:
    """Ops without a formula in the maths library need an instruction for each kind."""
    return {
        f"{name} of {kind}" for name, row in rows.items() if not row.library for kind in row.kinds
    }


require_all("codegen.values.arithmetic", _forms(_UNARY), _needed(UNARY))
require_all("codegen.values.arithmetic", _forms(_BINARY), _needed(BINARY))
