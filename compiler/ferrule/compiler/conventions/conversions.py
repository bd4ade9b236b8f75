"""Conversions of numbers to the callee's types: rounded once, never wrapped."""

from __future__ import annotations

from typing import Final

from llvmlite import ir

from ferrule.compiler import halves
from ferrule.compiler.artefacts import Fault, literal
from ferrule.compiler.conventions.base import Call
from ferrule.compiler.conventions.floats import float_value
from ferrule.compiler.wrapper.leaves import leaves_of
from ferrule.runtime.llvm.layouts import F32, F64, I8, I16, I32, I64, PTR
from ferrule.specs import Dim, DType, Scalar, Uint64
from ferrule.specs.conditions import Computed

TYPES: Final[dict[str, ir.Type]] = {
    "ptr": PTR,
    "i8": I8,
    "i16": I16,
    "i32": I32,
    "i64": I64,
    "float": F32,
    "double": F64,
}
"""The LLVM types of leaves, by their names in `wrapper.leaves`."""


def limits(dtype: DType) -> tuple[int, int]:
    """The smallest and the largest number of an integer dtype."""
    if dtype.kind == "int":
        return -(1 << dtype.bits - 1), (1 << dtype.bits - 1) - 1
    return 0, 1 if dtype.kind == "bool" else (1 << dtype.bits) - 1


def type_of(dtype: DType) -> ir.Type:
    """The LLVM type of a scalar parameter."""
    return TYPES[leaves_of(Scalar("x", dtype))[0]]


def converted(
    call: Call, source: Dim | float | Scalar | Computed, wanted: DType, what: str
) -> ir.Value:
    """A number as a dtype, with its type of `TYPES`; `what` is its name in the errors of a call.

    A constant must fit.
    """
    if isinstance(source, int) and wanted.kind != "float":
        return ir.Constant(type_of(wanted), source)
    if isinstance(source, Computed):
        return _narrowed(call, float_value(call, source), wanted)
    if isinstance(source, float):
        return _narrowed(call, ir.Constant(F64, source), wanted)
    if isinstance(source, Scalar) and source.dtype.kind == "float":
        return _narrowed(
            call, halves.to_float64(call.emitter, source.dtype, call.leaves(source)[0]), wanted
        )
    if isinstance(source, Scalar):
        value = call.leaves(source)[0]
        if source.dtype is wanted:
            return value
        if wanted.kind == "float" and source.dtype.kind != "int":
            return _from_integer(call, value, wanted, signed=False)
        number = call.wide(value, source, what)
    else:
        bits = call.unsigned(source, what)
        if bits is not None and wanted == Uint64:
            return bits
        if bits is not None and wanted.kind == "float":
            return _from_integer(call, bits, wanted, signed=False)
        number = call.size(source, what)
    if wanted.kind == "float":
        return _from_integer(call, number, wanted, signed=True)
    return _fitting(call, number, wanted, what)


def _from_integer(call: Call, value: ir.Value, wanted: DType, *, signed: bool) -> ir.Value:
    """An integer as a float dtype, rounded once."""
    b = call.emitter.builder
    if value.type == I64 and wanted.bits < 64:
        value = _rounded_to_odd(call, value, signed=signed)
    return _narrowed(call, (b.sitofp if signed else b.uitofp)(value, F64), wanted)


def _rounded_to_odd(call: Call, value: ir.Value, *, signed: bool) -> ir.Value:
    """An i64 that is exact as a float64: if it needs more than 53 bits, it is rounded to odd, so
    its lowest bit records whether bits were lost, and a second rounding gives the result of one
    rounding."""
    e = call.emitter
    # 2047 is the 11 bits that an i64 has beyond the 53 of a float64. If one of them is set, adding
    # 2047 carries into bit 11, the lowest that is kept.
    lost = e.binary("and", value, e.const_i64(2047))
    odd = e.binary("or", value, e.binary("add", lost, e.const_i64(2047)))
    kept = e.binary("and", odd, e.const_i64(-2048))
    # Moves -2^53 to 0, so that one unsigned comparison tests both ends.
    shifted = e.binary("add", value, e.const_i64(1 << 53)) if signed else value
    large = e.icmp("ugt", shifted, e.const_i64(1 << (54 if signed else 53)))
    return e.select(large, kept, value)


def _fitting(call: Call, number: ir.Value, wanted: DType, what: str) -> ir.Value:
    """An i64 as an integer type; a value that does not fit is an error of the call."""
    e = call.emitter
    low, high = limits(wanted)
    flags = []
    if wanted.kind != "int" or wanted.bits < 64:
        flags.append(e.icmp("slt", number, e.const_i64(low)))
    if wanted.bits < 64:
        flags.append(e.icmp("sgt", number, e.const_i64(high)))
    fault = Fault("ValueError", f"{literal(what)} does not fit {wanted.name}: got {{}}")
    for flag in flags:
        call.refuse(flag, fault, [number])
    kind = type_of(wanted)
    return number if kind == I64 else e.builder.trunc(number, kind)


def _narrowed(call: Call, value: ir.Value, wanted: DType) -> ir.Value:
    """A float64 as a float dtype, rounded once."""
    if wanted.bits == 64:
        return value
    if wanted.bits == 32 and type_of(wanted) == F32 and wanted.name == "float32":
        return call.emitter.builder.fptrunc(value, F32)
    return halves.narrow(call.emitter, wanted, value)
