"""Float expressions of a call as machine code: see `ferrule.specs.conditions`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from llvmlite import ir

from ferrule.compiler import halves
from ferrule.runtime.llvm.layouts import F64
from ferrule.specs import Scalar
from ferrule.specs.conditions import FloatExpr, Real, float_parts, inner

if TYPE_CHECKING:
    from ferrule.compiler.conventions.base import Call
    from ferrule.specs import Dim

_BINARY: Final = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}


def float_value(call: Call, expression: FloatExpr) -> ir.Value:
    """The value of an expression, a float64."""
    if isinstance(expression, Real):
        return ir.Constant(F64, expression.number)
    if expression.op == "float":
        (of,) = float_parts(expression)
        return _converted(call, of)
    values = [float_value(call, each) for each in inner(expression)]
    builder = call.emitter.builder
    if expression.op == "neg":
        return builder.fneg(*values)
    if expression.op in _BINARY:
        return getattr(builder, _BINARY[expression.op])(*values)
    name = {"abs": "llvm.fabs", "sqrt": "llvm.sqrt"}[expression.op]
    return builder.call(builder.module.declare_intrinsic(name, [F64]), values)


def same_float(call: Call, left: ir.Value, right: ir.Value) -> ir.Value:
    """Whether two float64 are the same number: NaN is NaN, and 0.0 is not -0.0."""
    e, bits = call.emitter, ir.IntType(64)
    equal = e.icmp("eq", e.builder.bitcast(left, bits), e.builder.bitcast(right, bits))
    nans = (e.builder.fcmp_unordered("uno", each, each) for each in (left, right))
    return e.binary("or", equal, e.binary("and", *nans))


def _converted(call: Call, number: Scalar | Dim) -> ir.Value:
    """A float parameter, or a size, which is rounded once as Python rounds an int."""
    if isinstance(number, Scalar):
        return halves.to_float64(call.emitter, number.dtype, call.leaves(number)[0])
    return call.emitter.builder.sitofp(call.size(number, "a size of an expression"), F64)
