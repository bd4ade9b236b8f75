"""Attributes of run-time values; those of compile-time objects are ordinary Python."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Callable
from typing import Any, Final

from ferrule.language.lowering import launches, operators
from ferrule.language.lowering.context import Lowering
from ferrule.language.values import (
    RUN_TIME,
    BoundMethod,
    KernelCall,
    Number,
    TensorView,
)
from ferrule.specs import Dim, DType, Int32, Int64, Sym


def size_number(low: Lowering, dim: Dim) -> Any:
    """A size as the language sees it: a Python int, or a run-time Int32 or Int64."""
    if isinstance(dim, int):
        return dim
    return Number(low.builder.size(size_dtype(dim), dim), dim)


def size_dtype(dim: Dim) -> DType:
    """Int32 for a 32-bit symbol; Int64 for a wider one and for what could pass 32 bits."""
    return Int32 if isinstance(dim, Sym) and dim.width == 32 else Int64


_TENSOR: Final[dict[str, Callable[[Lowering, TensorView], Any]]] = {
    "shape": lambda low, t: tuple(size_number(low, dim) for dim in t.type.shape),
    "stride": lambda low, t: tuple(size_number(low, dim) for dim in t.type.strides),
    "element_type": lambda low, t: t.type.dtype,
    "dtype": lambda low, t: t.type.dtype,
    "ndim": lambda low, t: len(t.type.shape),
}
_NUMBER: Final[dict[str, Callable[[Lowering, Number], Any]]] = {
    "dtype": lambda low, n: n.dtype,
}


def get(low: Lowering, value: Any, attr: str, node: ast.AST) -> Any:
    """`value.attr`."""
    match value:
        case TensorView():
            return _from_table(low, _TENSOR, value, attr, node)
        case Number():
            return _from_table(low, _NUMBER, value, attr, node)
        case KernelCall() if attr == "launch":
            return BoundMethod(
                lambda low, args, kwargs, call: launches.launch(low, value, args, kwargs, call),
                "launch",
            )
        case _ if isinstance(value, RUN_TIME):
            low.fail(
                node,
                f"{operators.describe(value)} has no attribute {attr!r}",
                hint=operators.usage_hint(value),
            )
    return operators.at_compile_time(low, node, lambda: getattr(value, attr))


def _from_table(
    low: Lowering,
    table: dict[str, Callable[[Lowering, Any], Any]],
    value: Any,
    attr: str,
    node: ast.AST,
) -> Any:
    if attr in table:
        return table[attr](low, value)
    near = difflib.get_close_matches(attr, table, n=1)
    low.fail(
        node,
        f"{operators.describe(value)} has no attribute {attr!r}",
        expected=f"one of {', '.join(table)}",
        hint=f"did you mean .{near[0]}?" if near else None,
    )
