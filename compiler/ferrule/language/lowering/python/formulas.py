"""Functions of `fe.math` that `faces.formulas` has in the kernel language: their calls.

Known numbers are computed by Python, typed constants and run-time numbers by the formula, element
by element of vectors and whole tensors.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import math
import operator
from collections.abc import Callable
from typing import Any, Final

from ferrule.language.faces import formulas, maths
from ferrule.language.lowering.arguments import Intrinsic
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.descriptions import describe
from ferrule.language.lowering.numbers import coercion, scalars, typed_constants
from ferrule.language.lowering.tensors import whole_tensors
from ferrule.language.values import Number, is_run_time
from ferrule.specs import DType, Float32


def _function(
    face: Callable[..., Any], formula: Any, python: Callable[..., Any], *, floats: bool = False
) -> Intrinsic:
    """A function; `floats`: of floats, so that other numbers are converted."""

    def emit(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> Any:
        operands = _operands(low, face, args, kwargs, node)

        def one(*given: Any) -> Any:
            wide = [_wide(low, each, node) if floats else each for each in given]
            result = low.call(formula, wide, {}, node)
            return _narrowed(low, result, given) if floats else result

        if scalars.are_typed_numbers(*operands):
            return typed_constants.folded(low, lambda: one(*operands))
        if not is_run_time(operands):
            raw = [coercion.plain(each) for each in operands]
            return coercion.at_compile_time(low, node, lambda: python(*raw))
        return whole_tensors.lift(low, tuple(operands), node, one)

    return emit


def _operands(
    low: Lowering,
    face: Callable[..., Any],
    args: list[Any],
    kwargs: dict[str, Any],
    node: ast.Call,
) -> list[Any]:
    """The operands of a call, without what it permits or asks of their rounding."""
    try:
        bound = inspect.signature(face).bind(*args, **kwargs)
    except TypeError as error:
        low.fail(node, f"math.{face.__name__}: {error}")
    fast = bound.arguments.pop("fastmath", False)
    if not isinstance(fast, bool):
        low.fail(node, f"fastmath must be a bool known at compile time, but got {describe(fast)}")
    rounding = bound.arguments.pop("rounding", None)
    if rounding not in (None, maths.RoundingMode.NEAREST_EVEN):
        low.fail(
            node,
            f"math.{face.__name__} is asked to round by {describe(rounding)}",
            expected="RoundingMode.NEAREST_EVEN: results are rounded to nearest",
        )
    return list(bound.arguments.values())


def _wide(low: Lowering, operand: Any, node: ast.AST) -> Number:
    """The operand as a Float32 or Float64."""
    number = coercion.operand(low, operand, node)
    wide = number.dtype.kind == "float" and number.dtype.bits >= 32
    return number if wide else coercion.convert(low, number, Float32)


def _narrowed(low: Lowering, result: Any, given: tuple[Any, ...]) -> Any:
    """The result in the dtype of its operand, if that is narrower."""
    first = given[0]
    dtype: Any = first.dtype if isinstance(first, Number) else type(first)
    is_float = isinstance(result, Number) and result.dtype.kind == "float"
    if is_float and isinstance(dtype, DType) and dtype.kind == "float":
        return coercion.convert(low, result, dtype)
    return result


def _towards_zero(x: Any, y: Any) -> Any:
    if isinstance(x, float) or isinstance(y, float):
        return x / y
    quotient = abs(x) // abs(y)
    return quotient if (x < 0) == (y < 0) else -quotient


def _remainder(x: Any, y: Any) -> Any:
    if isinstance(x, float) or isinstance(y, float):
        return math.fmod(x, y)
    return x - _towards_zero(x, y) * y


def _is_normal(x: Any) -> bool:
    return math.isfinite(x) and abs(x) >= 2.0**-126


def _sincos(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> Any:
    fast = {"fastmath": args[1]} if len(args) == 2 else kwargs
    return tuple(low.call(each, args[:1], fast, node) for each in (maths.sin, maths.cos))


def _same_as(other: Callable[..., Any], face: Callable[..., Any]) -> Intrinsic:
    """Another name of a function."""

    def emit(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> Any:
        return low.call(other, _operands(low, face, args, kwargs, node), {}, node)

    return emit


TABLE: Final[dict[Any, Intrinsic]] = {
    maths.abs: _function(maths.abs, formulas.absolute, builtins.abs),
    maths.absf: _same_as(maths.fabs, maths.absf),
    maths.absi: _function(maths.absi, formulas.absolute, builtins.abs),
    maths.neg: _function(maths.neg, formulas.negative, operator.neg),
    maths.add: _function(maths.add, formulas.total, operator.add),
    maths.sub: _function(maths.sub, formulas.difference, operator.sub),
    maths.mul: _function(maths.mul, formulas.product, operator.mul),
    maths.div: _function(maths.div, formulas.quotient, _towards_zero),
    maths.rem: _function(maths.rem, formulas.remainder, _remainder),
    maths.rcp: _function(maths.rcp, formulas.reciprocal, lambda x: 1.0 / x, floats=True),
    maths.clamp: _function(maths.clamp, formulas.clamped, lambda x, lo, hi: min(max(x, lo), hi)),
    maths.roundeven: _same_as(maths.round, maths.roundeven),
    maths.sincos: _sincos,
    maths.isfinite: _function(maths.isfinite, formulas.is_finite, math.isfinite),
    maths.isnormal: _function(maths.isnormal, formulas.is_normal, _is_normal),
    maths.ipowi: _function(maths.ipowi, formulas.power, operator.pow),
    maths.fpowi: _function(maths.fpowi, formulas.float_power, operator.pow),
    maths.asinh: _function(maths.asinh, formulas.asinh, math.asinh, floats=True),
    maths.acosh: _function(maths.acosh, formulas.acosh, math.acosh, floats=True),
    maths.atanh: _function(maths.atanh, formulas.atanh, math.atanh, floats=True),
}
