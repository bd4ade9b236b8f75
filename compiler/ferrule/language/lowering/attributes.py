"""Attributes of run-time values; those of compile-time objects are ordinary Python."""

from __future__ import annotations

import ast
import difflib
import inspect
from collections.abc import Callable, Iterable
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
    if hasattr(value, attr):
        return operators.at_compile_time(low, node, lambda: getattr(value, attr))
    low.fail(
        node,
        f"{_name(value)} has no attribute {attr!r}",
        hint=_near(attr, dir(value)) if not isinstance(value, tuple) else _COORDINATE.get(attr),
    )


_COORDINATE: Final = {axis: f"it is a tuple: x[{i}]" for i, axis in enumerate("xyz")}


def _name(value: Any) -> str:
    return f"the module {value.__name__}" if inspect.ismodule(value) else operators.describe(value)


def _near(attr: str, known: Iterable[str]) -> str | None:
    near = difflib.get_close_matches(attr, known, n=1)
    return f"did you mean .{near[0]}?" if near else None


def _from_table(
    low: Lowering,
    table: dict[str, Callable[[Lowering, Any], Any]],
    value: Any,
    attr: str,
    node: ast.AST,
) -> Any:
    if attr in table:
        return table[attr](low, value)
    low.fail(
        node,
        f"{operators.describe(value)} has no attribute {attr!r}",
        expected=f"one of {', '.join(table)}",
        hint=_near(attr, table),
    )
