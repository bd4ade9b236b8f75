"""Ops whose value depends only on their operands.

`fma` is an instruction on a GPU, and a function of the module on a CPU.  The function is portable
code, defined at its first use; if the CPU has an instruction, it replaces the calls
(`ferrule.compiler.assemble`).
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from ferrule.language.codegen.functions import memory
from ferrule.language.codegen.functions.lowering import FunctionLowering
from ferrule.language.codegen.values import arithmetic, casts
from ferrule.language.codegen.values.arithmetic import intrinsic
from ferrule.language.codegen.values.scalars import constant, dtype_of
from ferrule.language.ir import ops
from ferrule.language.ir.builder import Builder
from ferrule.runtime.llvm.emitter import Emitter
from ferrule.specs import DType


def computed(
    lowering: FunctionLowering,
    op: ops.Constant | ops.Arithmetic | ops.Load,
    inlined: Inline,
) -> ir.Value:
    """The value of an op that depends only on its operands."""
    dtype = dtype_of(op.result)
    e, values, maths = lowering.emitter, lowering.values, lowering.maths
    match op:
        case ops.Constant(_, value):
            return constant(dtype, value)
        case ops.Unary() | ops.Binary() if maths is not None and maths.keeps(op):
            given = [values[operand] for operand in op.operands]
            return maths.emit(e, op, dtype, given)
        case ops.Unary(_, name, operand):
            made = arithmetic.unary(e, name, dtype, values[operand])
            return arithmetic.flagged(made, op.flags)
        case ops.Binary() if op.result in lowering.chained:
            from ferrule.language.codegen.functions import chains

            return chains.computed(lowering, op)
        case ops.Binary(_, "floordiv" | "mod" as name, lhs, rhs) if rhs in lowering.least:
            least = lowering.least[rhs]
            return arithmetic.divide_by_size(lowering.b, name, values[lhs], values[rhs], least)
        case ops.Binary(_, name, lhs, rhs):
            made = arithmetic.binary(e, name, dtype, values[lhs], values[rhs])
            return arithmetic.flagged(made, op.flags)
        case ops.Fma(_, x, y, z):
            operands = [values[operand] for operand in (x, y, z)]
            return fma(e, dtype, operands, inlined, rest=op.rest)
        case ops.Compare(_, name, lhs, rhs):
            if lowering.chained:
                lowering.compared[op.result] = op
            return arithmetic.compare(e, name, dtype_of(lhs), values[lhs], values[rhs])
        case ops.Cast():
            return _cast(lowering, op)
        case ops.Bitcast(_, operand):
            return casts.bitcast(e, dtype_of(operand), dtype, values[operand])
        case ops.Select(result, condition) if result in lowering.chained:
            from ferrule.language.codegen.functions import chains

            return chains.chosen(lowering, op, lowering.compared[condition])
        case ops.Select(_, condition, on_true, on_false):
            return lowering.b.select(values[condition], values[on_true], values[on_false])
        case ops.Load(_, tensor, indices):
            return memory.load(lowering, tensor, indices)


def _cast(lowering: FunctionLowering, op: ops.Cast) -> ir.Value:
    """A cast; one that widens an integer uses its known 64-bit value."""
    result, operand = op.result, op.operand
    source, target = dtype_of(operand), dtype_of(result)
    if (source.is_narrow or target.is_narrow) and source is not target:
        return _narrow_cast(lowering, op)
    if operand in lowering.least and target.kind == "int" and target.bits >= source.bits:
        lowering.least[result] = lowering.least[operand]
    if operand in lowering.wide and target.is_integer and target.bits == 64:
        return lowering.wide[operand]
    return casts.cast(lowering.emitter, source, target, lowering.values[operand])


def _narrow_cast(lowering: FunctionLowering, op: ops.Cast) -> ir.Value:
    """A conversion of a float of fewer than 16 bits that `mathlib` has left: an instruction."""
    assert lowering.maths is not None and isinstance(op.result.type, DType)
    return lowering.maths.emit(lowering.emitter, op, op.result.type, [lowering.values[op.operand]])


# ---- fma ----


Inline = Callable[[ops.Region, dict[ops.Value, ir.Value]], ir.Value]
"""Emits a region's ops at the insertion point, and returns the value that it yields."""


def fma(
    emitter: Emitter, dtype: DType, operands: list[ir.Value], emit: Inline, *, rest: bool = False
) -> ir.Value:
    """`x * y + z` of float32s or float64s, rounded once; `rest`: see `ops.Fma`."""
    if str(emitter.module.triple).startswith("nvptx"):
        return intrinsic(emitter.builder, "llvm.fma", *operands)
    kind = operands[0].type
    name = f"ferrule_{'rest' if rest else 'fma'}_{kind.intrinsic_name}"
    if name not in emitter.module.globals:
        attributes = ("alwaysinline", "nounwind")
        with emitter.define(
            name, kind, [kind] * 3, names="xyz", linkage="internal", attributes=attributes
        ) as function:
            emitter.ret(_portable(dtype, function.args, emit, rest=rest))
    return emitter.call(emitter.module.globals[name], operands)


def _portable(
    dtype: DType, arguments: tuple[ir.Argument, ...], emit: Inline, *, rest: bool
) -> ir.Value:
    from ferrule.language.mathlib.expand import expand_fma, expand_rest

    parameters = [ops.Value(dtype, name) for name in "xyz"]
    b = Builder()
    with b.region() as region:
        result = expand_rest(b, *parameters[:2]) if rest else expand_fma(b, *parameters)
    return emit(region.freeze(result), dict(zip(parameters, arguments, strict=True)))
