"""Intrinsics, the functions of the language itself: their emitters, and their arguments by name."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Callable
from typing import Any

from ferrule.language.lowering.context import Lowering
from ferrule.language.values import BoundMethod

Intrinsic = Callable[[Lowering, list[Any], dict[str, Any], ast.Call], Any]
"""Emits a call and returns its value, given positional arguments and keyword arguments."""


def bound(
    low: Lowering, names: str, args: list[Any], kwargs: dict[str, Any], node: ast.Call
) -> list[Any]:
    """The arguments of a call in the order of `names`, words in a string.

    An argument with `=` is optional and None by default.  A CompileError if the arguments do not
    fit.
    """
    wanted = names.split()
    order = [name.rstrip("=") for name in wanted]
    given = {**dict(zip(order, args, strict=False)), **kwargs}
    needed = {name for name in wanted if not name.endswith("=")}
    twice = kwargs.keys() & set(order[: len(args)])
    if len(args) > len(order) or twice or not needed <= set(given) <= set(order):
        low.fail(
            node,
            f"expected the arguments {', '.join(order)}" if order else "expected no arguments",
            expected=f"({', '.join(order)})",
        )
    return [given.get(name) for name in order]


def method_of(module: str, name: str) -> Callable[[Lowering, Any], BoundMethod]:
    """As `method`, for a function of a module of the lowering that few kernels need: it is imported
    when the method is called."""

    def emit(low: Lowering, of: Any, *given: Any) -> Any:
        found = importlib.import_module(f"ferrule.language.lowering.{module}")
        return getattr(found, name)(low, of, *given)

    emit.__name__ = name
    return method(emit)


def method(function: Callable[..., Any]) -> Callable[[Lowering, Any], BoundMethod]:
    """A row of a table of attributes: the method `function(low, of, args, kwargs, node)`."""

    def bind(_: Lowering, of: Any) -> BoundMethod:
        return BoundMethod(
            lambda low, args, kwargs, node: function(low, of, args, kwargs, node),
            function.__name__,
        )

    return bind
