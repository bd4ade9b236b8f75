"""The pass that replaces each op of the maths library by simpler ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final

from ferrule.language.fastmath import FMAD
from ferrule.language.ir import ops, scalars
from ferrule.language.ir.arithmetic import Keep, keep_none
from ferrule.language.ir.builder import Builder, Formulas
from ferrule.language.ir.rewrite import rewrite
from ferrule.language.mathlib import (
    errorfunctions,
    exponentials,
    fused,
    hyperbolic,
    inverse,
    logarithms,
    narrow,
    pairs,
    powers,
    remainder,
    rounding,
    trigonometry,
)
from ferrule.language.mathlib.forms import FORMS, with_narrow_sign
from ferrule.language.mathlib.formulas import Num
from ferrule.specs import DType, Float32
from ferrule.specs.deferred import dataclass


@dataclass(frozen=True, slots=True)
class _Machine:
    """What runs a function: a GPU or not, and whether what a product lacks takes it one
    instruction."""

    on_gpu: bool = False
    rests: bool = False


_PLAIN: Final = _Machine()


def expanded(program: ops.Program, keep: Keep, *, on_gpu: bool, rests: bool) -> ops.Program:
    """See `expand_maths` of the package."""
    rule = partial(_expand, keep, _Machine(on_gpu, on_gpu or rests))
    of_host = partial(_expand, keep_none, _Machine(rests=rests))
    return replace(
        program,
        kernels=tuple(replace(k, body=rewrite(k.body, rule)) for k in program.kernels),
        host=replace(program.host, body=rewrite(program.host.body, of_host)),
    )


def narrow_expanded(program: ops.Program) -> ops.Program:
    """See `expand_narrow` of the package."""

    def rule(b: Builder, op: ops.Op) -> None:
        if narrow.touches(op):
            _expand(_keep_functions, _PLAIN, b, op)
        else:
            b.append(op)

    return replace(
        program,
        kernels=tuple(replace(k, body=rewrite(k.body, rule)) for k in program.kernels),
        host=replace(program.host, body=rewrite(program.host.body, rule)),
    )


def _keep_functions(op: ops.Unary | ops.Binary | ops.Cast) -> bool:
    return not isinstance(op, ops.Cast)


def expansion(b: Builder, op: ops.Op) -> tuple[ops.Op, ...] | None:
    """See `expand_op` of the package."""
    if not isinstance(op, (ops.Unary, ops.Binary, ops.Fma, ops.Compare, ops.Cast)):
        return None
    with b.region() as region:
        if isinstance(op, ops.Fma) and not narrow.touches(op):
            b.append(ops.Bitcast(op.result, expand_fma(b, op.x, op.y, op.z)))
        else:
            _expand(keep_none, _PLAIN, b, op)
    return None if region.ops == [op] else tuple(region.ops)


def _formulas(op: ops.Op, machine: _Machine) -> Formulas:
    """What the formula of an op may use."""
    if isinstance(op, (ops.Unary, ops.Binary)) and FMAD in op.flags:
        return Formulas(fma=True, contracts=True, on_gpu=machine.on_gpu)
    return Formulas(fma=machine.rests and isinstance(op, ops.Unary) and op.op in SAME_BY_FMA)


def _expand(keep: Keep, machine: _Machine, b: Builder, op: ops.Op) -> None:
    b.formulas = _formulas(op, machine)
    match op:
        case _ if narrow.touches(op):
            narrow.expand(keep, partial(_expand, keep, machine), b, op)
        case ops.Unary(result, "rsqrt", operand, fast=True) if not keep(op):
            _define(b, result, powers.fast_rsqrt, operand)
        case ops.Unary(result, name, operand) if name in UNARY and not keep(op):
            _define(b, result, UNARY[name], operand)
        case ops.Binary(result, "copysign", lhs, rhs) if _has_16_bits(result) and not keep(op):
            # In float32 the sign of a NaN may be lost: GPUs convert each NaN to the same one.
            b.append(ops.Bitcast(result, with_narrow_sign(Num(b, lhs), Num(b, rhs)).value))
        case ops.Binary(result, name, lhs, rhs) if name in BINARY and not keep(op):
            _define(b, result, BINARY[name], lhs, rhs)
        case ops.Fma(result, x, y, z) if result.type not in FORMS:
            b.append(ops.Bitcast(result, expand_fma(b, x, y, z)))
        case _:
            b.append(op)


def _has_16_bits(value: ops.Value) -> bool:
    return isinstance(value.type, DType) and value.type.bits == 16


def _define(
    b: Builder, result: ops.Value, function: Callable[..., Num], *operands: ops.Value
) -> None:
    """Computes a result, in float32 where the dtype is narrower."""
    numbers = [Num(b, operand) for operand in operands]
    if result.type not in FORMS:
        wide = function(*(number.to(Float32) for number in numbers))
        b.append(ops.Cast(result, wide.value))
    else:
        b.append(ops.Bitcast(result, function(*numbers).value))


def expand_rest(b: Builder, x: ops.Value, y: ops.Value) -> ops.Value:
    """What the product of two float32s lacks after rounding, by simpler ops."""
    return pairs.two_product(Num(b, x), Num(b, y)).lo.value


def expand_fma(b: Builder, x: ops.Value, y: ops.Value, z: ops.Value) -> ops.Value:
    """`x * y + z` rounded once, by simpler ops."""
    return fused.fma(Num(b, x), Num(b, y), Num(b, z)).value


SAME_BY_FMA: Final = ("atan", "erf", "rsqrt", "sigmoid", "tanh")
"""Functions that were compared with and without Fma on all float32s: not a bit differs."""

UNARY: Final[dict[ops.UnaryOp, Callable[[Num], Num]]] = {
    "exp": exponentials.exp,
    "exp2": exponentials.exp2,
    "expm1": exponentials.expm1,
    "sigmoid": exponentials.sigmoid,
    "log": logarithms.log,
    "log2": logarithms.log2,
    "log10": logarithms.log10,
    "log1p": logarithms.log1p,
    "rsqrt": powers.rsqrt,
    "cbrt": powers.cbrt,
    "sin": trigonometry.sin,
    "cos": trigonometry.cos,
    "tan": trigonometry.tan,
    "asin": inverse.asin,
    "acos": inverse.acos,
    "atan": inverse.atan,
    "sinh": hyperbolic.sinh,
    "cosh": hyperbolic.cosh,
    "tanh": hyperbolic.tanh,
    "erf": errorfunctions.erf,
    "erfc": errorfunctions.erfc,
    "fabs": rounding.fabs,
    "floor": rounding.floor,
    "ceil": rounding.ceil,
    "round": rounding.round_even,
    "trunc": rounding.trunc,
}
BINARY: Final[dict[ops.BinaryOp, Callable[[Num, Num], Num]]] = {
    "pow": powers.power,
    "atan2": inverse.atan2,
    "fmod": remainder.fmod,
    "copysign": rounding.copysign,
}
scalars.require_all(
    "mathlib.expand",
    {*UNARY, *BINARY},
    [name for name, row in scalars.EVERY.items() if row.library],
)
