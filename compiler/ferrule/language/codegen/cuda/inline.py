"""Pieces of PTX in a kernel: LLVM's inline assembly, which may do anything to memory."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from llvmlite import ir

from ferrule.language.codegen.functions.lowering import EmitOp, FunctionLowering
from ferrule.language.codegen.values.scalars import dtype_of, value_type
from ferrule.language.ir import ops
from ferrule.runtime.llvm.layouts import F32, F64, I1, I16, I32, I64

REGISTERS: Final = {"h": I16, "r": I32, "l": I64, "f": F32, "d": F64}
"""The type of a register by the letter of its constraint."""


def _emit(lowering: FunctionLowering, op: ops.InlinePtx) -> ir.Value:
    """The result of a piece of PTX; Booleans are 0 and 1 in registers of 32 bits."""
    b = lowering.b
    first, *others = [each.removeprefix("=") for each in op.constraints.split(",")]
    given = [
        _register(b, lowering.values[value], REGISTERS[letter])
        for value, letter in zip(op.given, others, strict=True)
    ]
    kind = ir.FunctionType(REGISTERS[first], [value.type for value in given])
    code = ir.InlineAsm(kind, op.text, f"{op.constraints},~{{memory}}", side_effect=True)
    call = b.call(code, given)
    call.attributes.add("convergent")
    return _value(b, call, value_type(dtype_of(op.result)))


def _register(b: ir.IRBuilder, value: ir.Value, kind: ir.Type) -> ir.Value:
    if value.type == kind:
        return value
    if isinstance(value.type, ir.IntType):
        return b.zext(value, kind)
    return b.bitcast(value, kind)


def _value(b: ir.IRBuilder, value: ir.Value, kind: ir.Type) -> ir.Value:
    if value.type == kind:
        return value
    if kind == I1:
        return b.icmp_unsigned("!=", value, ir.Constant(value.type, 0))
    return b.trunc(value, kind) if isinstance(kind, ir.IntType) else b.bitcast(value, kind)


EMITTERS: Final[Mapping[type[ops.Op], EmitOp]] = MappingProxyType({ops.InlinePtx: _emit})
