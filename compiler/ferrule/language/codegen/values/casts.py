"""Conversions of scalars between dtypes, with the semantics of `Cast` and `Bitcast`.

Every conversion to a float rounds once.  Conversions to a 2-byte float in two steps would round
twice; from float64 and from 64-bit integers the first step rounds to odd (see `halves`).
"""

from __future__ import annotations

from llvmlite import ir

from ferrule import specs
from ferrule.compiler import halves
from ferrule.language.codegen.values.scalars import form, value_type
from ferrule.runtime.llvm.emitter import Emitter
from ferrule.runtime.llvm.layouts import F32, F64, I16
from ferrule.specs import DType

_CUT = 11
"""The bits of a 64-bit integer that do not fit into a float64."""


def cast(emitter: Emitter, source: DType, target: DType, operand: ir.Value) -> ir.Value:
    """The operand in another dtype."""
    if source is target:
        return operand
    match form(source):
        case "bool" | "int" | "uint":
            return _from_integer(emitter, source, target, operand)
        case "half" if form(target) == "bool" and operand.type == I16:
            # Without the sign, so that -0.0 is False, too.
            magnitude = emitter.builder.shl(operand, ir.Constant(operand.type, 1))
            return emitter.builder.icmp_unsigned("!=", magnitude, ir.Constant(operand.type, 0))
        case "half":
            return cast(emitter, specs.Float32, target, halves.widen(emitter, source, operand))
        case "float":
            return _from_float(emitter, target, operand)


def bitcast(emitter: Emitter, source: DType, target: DType, operand: ir.Value) -> ir.Value:
    """The same bits in another dtype of the same size."""
    if value_type(source) == value_type(target):
        return operand
    return emitter.builder.bitcast(operand, value_type(target))


def widen_integer(b: ir.IRBuilder, dtype: DType, operand: ir.Value, target: ir.Type) -> ir.Value:
    """An integer or bool in an integer type that is at least as wide."""
    if operand.type == target:
        return operand
    if isinstance(operand, ir.Constant):
        # llvmlite keeps the number as it was given, and `truncate` gives unsigned ones as negative.
        bits = (1 << operand.type.width) - 1
        return ir.Constant(target, operand.constant & (bits if dtype.kind != "int" else -1))
    return b.sext(operand, target) if dtype.kind == "int" else b.zext(operand, target)


def truncate(b: ir.IRBuilder, operand: ir.Value, target: ir.Type, name: str) -> ir.Value:
    """The low bits of an integer."""
    if isinstance(operand, ir.Constant):
        half = 1 << target.width - 1
        return ir.Constant(target, (operand.constant + half) % (2 * half) - half)
    return b.trunc(operand, target, name=name)


def _from_integer(emitter: Emitter, source: DType, target: DType, operand: ir.Value) -> ir.Value:
    b, kind = emitter.builder, value_type(target)
    match form(target):
        case "bool":
            return b.icmp_unsigned("!=", operand, ir.Constant(operand.type, 0))
        case "int" | "uint":
            narrows = kind.width < operand.type.width
            return b.trunc(operand, kind) if narrows else widen_integer(b, source, operand, kind)
        case "float":
            return _to_float(b, source, operand, kind)
        case "half":
            if source.bits == 64:
                operand = _fit_float64(b, source, operand)
            return halves.narrow(emitter, target, _to_float(b, source, operand, F64))


def _to_float(b: ir.IRBuilder, source: DType, operand: ir.Value, kind: ir.Type) -> ir.Value:
    return b.sitofp(operand, kind) if source.kind == "int" else b.uitofp(operand, kind)


def _fit_float64(b: ir.IRBuilder, source: DType, operand: ir.Value) -> ir.Value:
    """The integer, rounded to odd if a float64 cannot hold it."""
    zero, low_bits = ir.Constant(operand.type, 0), ir.Constant(operand.type, (1 << _CUT) - 1)
    kept = b.and_(operand, ir.Constant(operand.type, -(1 << _CUT)))
    sticky = b.icmp_unsigned("!=", b.and_(operand, low_bits), zero)
    odd = b.or_(kept, b.select(sticky, ir.Constant(operand.type, 1 << _CUT), zero))
    limit = ir.Constant(operand.type, 1 << 53)
    # |x| < 2**53, in one comparison
    low = b.add(operand, limit) if source.kind == "int" else operand
    room = ir.Constant(operand.type, 1 << 54) if source.kind == "int" else limit
    return b.select(b.icmp_unsigned("<", low, room), operand, odd)


def _from_float(emitter: Emitter, target: DType, operand: ir.Value) -> ir.Value:
    b, kind = emitter.builder, value_type(target)
    match form(target):
        case "bool":
            # Unordered: a NaN is True, as in Python.
            return b.fcmp_unordered("!=", operand, ir.Constant(operand.type, 0.0))
        case "int" | "uint":
            return _saturate(emitter, target, operand)
        case "half":
            return halves.narrow(emitter, target, operand)
        case "float":
            return b.fptrunc(operand, kind) if kind == F32 else b.fpext(operand, kind)


def _saturate(emitter: Emitter, target: DType, operand: ir.Value) -> ir.Value:
    kind = value_type(target)
    # LLVM's plain conversion is poison where the number does not fit.
    sign = "s" if target.kind == "int" else "u"
    name = f"llvm.fpto{sign}i.sat.{kind.intrinsic_name}.{operand.type.intrinsic_name}"
    return emitter.call(emitter.symbol(name, ir.FunctionType(kind, [operand.type])), [operand])
