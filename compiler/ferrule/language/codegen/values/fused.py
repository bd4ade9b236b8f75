"""`fma` for a target: an instruction on a GPU, a function of the module on a CPU.

The function is portable code, defined at its first use; if the CPU has an instruction, it replaces
the calls (`ferrule.compiler.assemble`).
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from ferrule.language.codegen.values.arithmetic import intrinsic
from ferrule.language.ir import ops
from ferrule.language.ir.builder import Builder
from ferrule.runtime.llvm.emitter import Emitter
from ferrule.specs import DType

Inline = Callable[[ops.Region, dict[ops.Value, ir.Value]], ir.Value]
"""Emits a region's ops at the insertion point, and returns the value that it yields."""


def fma(emitter: Emitter, dtype: DType, operands: list[ir.Value], emit: Inline) -> ir.Value:
    """`x * y + z` of float32s or float64s, rounded once."""
    if str(emitter.module.triple).startswith("nvptx"):
        return intrinsic(emitter.builder, "llvm.fma", *operands)
    kind = operands[0].type
    name = f"ferrule_fma_{kind.intrinsic_name}"
    if name not in emitter.module.globals:
        attributes = ("alwaysinline", "nounwind")
        with emitter.define(
            name, kind, [kind] * 3, names="xyz", linkage="internal", attributes=attributes
        ) as function:
            emitter.ret(_portable(dtype, function.args, emit))
    return emitter.call(emitter.module.globals[name], operands)


def _portable(dtype: DType, arguments: tuple[ir.Argument, ...], emit: Inline) -> ir.Value:
    from ferrule.language.mathlib.expand import expand_fma

    parameters = [ops.Value(dtype, name) for name in "xyz"]
    b = Builder()
    with b.region() as region:
        result = expand_fma(b, *parameters)
    return emit(region.freeze(result), dict(zip(parameters, arguments, strict=True)))
