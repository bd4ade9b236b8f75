"""`--libdevice` for functions that libdevice lacks and others of it make up: `sigmoid`.

1 / (1 + e**-x) is right at both ends: e**-x overflows to infinity, or vanishes beside 1.  Where it
overflows the result is 0, which may be a subnormal number.
"""

from __future__ import annotations

from dataclasses import replace

from ferrule.language.ir import ops
from ferrule.language.ir.builder import Builder
from ferrule.language.ir.rewrite import rewrite
from ferrule.language.mathlib.formulas import Num
from ferrule.specs import Float32, Float64


def composed(program: ops.Program) -> ops.Program:
    """The program whose kernels have no `sigmoid` but those that are `fast`."""
    kernels = tuple(replace(k, body=rewrite(k.body, _rule)) for k in program.kernels)
    return replace(program, kernels=kernels)


def _rule(b: Builder, op: ops.Op) -> None:
    if not isinstance(op, ops.Unary) or op.op != "sigmoid" or op.fast:
        b.append(op)
        return
    x = Num(b, op.operand)
    is_wide = x.dtype in (Float32, Float64)
    power = (-(x if is_wide else x.to(Float32))).unary("exp")
    found = (1.0 / (power + 1.0)).value
    b.append(ops.Bitcast(op.result, found) if is_wide else ops.Cast(op.result, found))
