"""Sizes (`specs` expressions over symbols) in LLVM, evaluated in 64 bits.

`plain` is for what was proved before to stay in range; `checked` also says whether every step did.
Neither traps: a division by zero gives 0 (and is not ok).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from llvmlite import ir

from ferrule.language.codegen import arithmetic
from ferrule.runtime.llvm.layouts import I1, I64
from ferrule.specs import Compound, Dim, Sym
from ferrule.specs.expr import INT64_MIN, ExprOp

_Step = Callable[[ir.IRBuilder, ir.Value, ir.Value], ir.Value]


def plain(b: ir.IRBuilder, dim: Dim, symbols: Mapping[Sym, ir.Value]) -> ir.Value:
    """The value of an expression that is known to stay in 64 bits."""
    return _evaluate(b, dim, symbols, lambda op, lhs, rhs: _PLAIN[op](b, lhs, rhs))


def checked(
    b: ir.IRBuilder, dim: Dim, symbols: Mapping[Sym, ir.Value]
) -> tuple[ir.Value, ir.Value]:
    """The value of an expression, and whether no step left 64 bits or divided by zero."""
    ok: list[ir.Value] = []

    def step(op: ExprOp, lhs: ir.Value, rhs: ir.Value) -> ir.Value:
        if op in _OVERFLOWS:
            pair = _OVERFLOWS[op](b, lhs, rhs)
            ok.append(b.not_(b.extract_value(pair, 1)))
            return b.extract_value(pair, 0)
        if op in _DIVIDES:
            ok.append(_divides(b, op, lhs, rhs))
        return _PLAIN[op](b, lhs, rhs)

    value = _evaluate(b, dim, symbols, step)
    all_ok = ir.Constant(I1, 1)
    for one in ok:
        all_ok = one if all_ok.__class__ is ir.Constant else b.and_(all_ok, one)
    return value, all_ok


def _evaluate(
    b: ir.IRBuilder,
    dim: Dim,
    symbols: Mapping[Sym, ir.Value],
    step: Callable[[ExprOp, ir.Value, ir.Value], ir.Value],
) -> ir.Value:
    """Without recursion: an expression may be deeper than Python's stack."""
    todo: list[Dim | ExprOp] = [dim]
    done: list[ir.Value] = []
    while todo:
        match todo.pop():
            case Compound(op, lhs, rhs):
                todo += [op, rhs, lhs]
            case Sym() as symbol:
                done.append(symbols[symbol])
            case int(number):
                done.append(ir.Constant(I64, number))
            case name:
                rhs_value, lhs_value = done.pop(), done.pop()
                done.append(step(name, lhs_value, rhs_value))
    return done.pop()


def _divides(b: ir.IRBuilder, op: ExprOp, lhs: ir.Value, rhs: ir.Value) -> ir.Value:
    ok = b.icmp_signed("!=", rhs, ir.Constant(I64, 0))
    if op == "mod":
        return ok
    lowest = b.icmp_signed("==", lhs, ir.Constant(I64, INT64_MIN))
    overflows = b.and_(lowest, b.icmp_signed("==", rhs, ir.Constant(I64, -1)))
    return b.and_(ok, b.not_(overflows))


_PLAIN: Final[dict[ExprOp, _Step]] = {
    "add": lambda b, lhs, rhs: b.add(lhs, rhs),
    "sub": lambda b, lhs, rhs: b.sub(lhs, rhs),
    "mul": lambda b, lhs, rhs: b.mul(lhs, rhs),
    "floordiv": arithmetic.floor_divide,
    "mod": arithmetic.floor_modulo,
    "min": lambda b, lhs, rhs: b.select(b.icmp_signed("<", lhs, rhs), lhs, rhs),
    "max": lambda b, lhs, rhs: b.select(b.icmp_signed(">", lhs, rhs), lhs, rhs),
    "ceildiv": arithmetic.ceil_divide,
}
_OVERFLOWS: Final[dict[ExprOp, _Step]] = {
    "add": lambda b, lhs, rhs: b.sadd_with_overflow(lhs, rhs),
    "sub": lambda b, lhs, rhs: b.ssub_with_overflow(lhs, rhs),
    "mul": lambda b, lhs, rhs: b.smul_with_overflow(lhs, rhs),
}
_DIVIDES: Final[tuple[ExprOp, ...]] = ("floordiv", "mod", "ceildiv")
