"""Explicit conversions: `fe.Float32(x)`, `x.to(fe.Int8)`, and annotations."""

from __future__ import annotations

import ast
import math
from typing import Any

from ferrule.language.faces.base import Constexpr
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.descriptions import describe
from ferrule.language.lowering.numbers import scalars
from ferrule.language.lowering.tensors import whole_tensors
from ferrule.language.promotion import stores_implicitly
from ferrule.language.values import RUN_TIME, Number, is_run_time
from ferrule.specs import Boolean, DType, Numeric


def convert_to(
    low: Lowering, dtype: DType, args: list[Any], kwargs: dict[str, Any], node: ast.Call
) -> Any:
    """`fe.Float32(x)`: a conversion of a run-time number, or a constant with a type."""
    if len(args) != 1 or kwargs:
        low.fail(node, f"{dtype.__name__} takes one value, but got {len(args) + len(kwargs)}")
    value = args[0]
    if isinstance(value, RUN_TIME):
        _require_scalar(low, dtype, node)
        return whole_tensors.lift(
            low,
            (value,),
            node,
            lambda x: scalars.convert(low, scalars.as_number(low, x, node), dtype),
        )
    if isinstance(value, Numeric):
        _require_scalar(low, dtype, node)
        return scalars.at_compile_time(low, node, lambda: dtype(value))
    known = scalars.plain(value)
    if isinstance(known, float) and dtype.is_integer and math.isfinite(known):
        known = math.trunc(known)
    elif dtype is Boolean and isinstance(known, (int, float)):
        known = bool(known)
    return scalars.at_compile_time(low, node, lambda: dtype(known))


def _require_scalar(low: Lowering, dtype: DType, node: ast.AST) -> None:
    small_float = dtype.kind == "float" and dtype.bits < 16
    if dtype.kind == "complex" or dtype.bits < 8 or small_float:
        low.fail(node, f"{dtype.name} is a storage type: it has no scalar values")


def annotated(
    low: Lowering, value: Any, annotation: Any, node: ast.AST, name: str | None = None
) -> Any:
    """A value converted for the annotation of its name: numbers to the annotated dtype.

    The conversion is as in a store: not from a float to an integer.  A Constexpr must be a
    compile-time value.  Other annotations are ignored.
    """
    label = "this value" if name is None else repr(name)
    if annotation is Constexpr and is_run_time(value):
        low.fail(
            node,
            f"{label} is a Constexpr, but gets {describe(value)}",
            expected="a value known at compile time",
            hint="annotate it with a dtype such as fe.Int32, or leave the annotation away",
        )
    if not isinstance(annotation, DType):
        return value
    value = scalars.plain(value)
    if isinstance(value, (Number, Numeric)):
        _require_scalar(low, annotation, node)
        if not stores_implicitly(value.dtype, annotation):
            low.fail(
                node,
                f"{label} is annotated as {annotation.__name__}, but gets {describe(value)}",
                hint=f"convert it, fe.{annotation.__name__}(x)",
            )
        if isinstance(value, Numeric):
            return annotation(value)
        return scalars.convert(low, value, annotation)
    if scalars.is_python_number(value):
        return scalars.at_compile_time(low, node, lambda: annotation(value))
    return value
