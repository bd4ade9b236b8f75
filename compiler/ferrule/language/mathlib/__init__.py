"""Mathematical functions in the kernel IR itself, the same for every target.

`expand_maths` replaces each op that is not a plain instruction by ops that are, so all targets have
the same results and none needs a library.  The expansions have no tables, and no branches except a
reduction of huge angles and the loop of `fmod`, so loops over them are vectorised. float16,
bfloat16 and tfloat32 are computed in float32 and rounded once more.  Floats of fewer bits have no
other operations than these: `narrow` replaces all arithmetic on them, and their conversions.

A file is a family of functions; its docstring names the method.  `formulas` and `pairs` are the
notation for them; `tests/maths/fit.py` generates `polynomials` and `constants`.  `docs/maths.md`
documents the functions and their measured precision.
"""

from __future__ import annotations

from ferrule.language.ir import ops, scalars
from ferrule.language.ir.arithmetic import Keep, keep_none
from ferrule.language.ir.builder import Builder
from ferrule.specs import DType

__all__ = ["Keep", "expand_maths", "expand_narrow", "expand_op", "keep_none"]


def expand_maths(
    program: ops.Program, keep: Keep = keep_none, *, on_gpu: bool = False, rests: bool = False
) -> ops.Program:
    """The program without ops of the library, except those of kernels that `keep` accepts.

    `on_gpu`: kernels may use Fma of float32, where it gives the same bits in fewer ops, and for
    functions marked `fmad` what else GPUs have.  An Fma of float32 or float64 remains: many targets
    have it.  `rests`: the target computes an Fma that is a `rest` in the best way that it has, and
    host functions have them, too.  All values keep their identity.
    """
    functions = (program.host, *program.kernels)
    if not any(_is_of_library(op) for function in functions for op in function.facts.ops):
        return program
    from ferrule.language.mathlib.expand import expanded

    return expanded(program, keep, on_gpu=on_gpu, rests=rests)


def expand_narrow(program: ops.Program) -> ops.Program:
    """The program with plain ops for the arithmetic and conversions of floats of fewer than 16
    bits; functions of the library remain."""
    from ferrule.language.mathlib import narrow

    functions = (program.host, *program.kernels)
    if not any(narrow.touches(op) for function in functions for op in function.facts.ops):
        return program
    from ferrule.language.mathlib.expand import narrow_expanded

    return narrow_expanded(program)


def expand_op(b: Builder, op: ops.Op) -> tuple[ops.Op, ...] | None:
    """The expansion of one op of the library, or an Fma, for a target that has none of them.

    The result may contain such ops too.  None for any other op.
    """
    if not _is_of_library(op):
        return None
    from ferrule.language.mathlib.expand import expansion

    return expansion(b, op)


def _is_of_library(op: ops.Op) -> bool:
    """Whether the functions of the library, most of this package, are needed for an op."""
    match op:
        case ops.Unary(result, name) | ops.Binary(result, name):
            return scalars.EVERY[name].library or _is_narrow(result)
        case ops.Compare(_, _, operand):
            return _is_narrow(operand)
        case ops.Cast(result, operand):
            return _is_narrow(result) or _is_narrow(operand)
    return isinstance(op, ops.Fma)


def _is_narrow(value: ops.Value) -> bool:
    return isinstance(value.type, DType) and value.type.is_narrow
