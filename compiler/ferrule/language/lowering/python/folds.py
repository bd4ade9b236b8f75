"""Python's functions of several values, with run-time values: `sum`, `any`, `all`, `divmod`."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable
from typing import Any, Final

from ferrule.language.lowering.arguments import Intrinsic
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.descriptions import describe
from ferrule.language.lowering.numbers import coercion, typed_constants
from ferrule.language.lowering.python import operators
from ferrule.language.values import Generated, is_run_time
from ferrule.specs import Boolean


def _total(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> Any:
    """`sum(values, start=0)`."""
    if not is_run_time((args, kwargs)) and not typed_constants.are_typed(*args, *kwargs.values()):
        return coercion.at_compile_time(low, node, lambda: sum(*args, **kwargs))
    items = _items(low, "sum", args[:1], node)
    result = kwargs.get("start", args[1] if len(args) > 1 else 0)
    if len(args) > 2 or kwargs.keys() - {"start"}:
        low.fail(node, "sum takes values and a start")
    for item in items:
        result = low.binary(ast.Add(), result, item, node)
    return result


def _truth_of(name: str, python: Callable[..., bool]) -> Callable[..., Any]:
    """`any(values)` or `all(values)`: every value is already computed."""
    operator = ast.BitOr() if name == "any" else ast.BitAnd()

    def emit(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> Any:
        if not is_run_time(args):
            known = coercion.at_compile_time(low, node, lambda: python(*args, **kwargs))
            return Boolean(known) if typed_constants.are_typed(*args) else known
        result: Any = name == "all"
        for item in _items(low, name, args, node):
            truth = operators.truth(low, item, node)
            if truth is (name == "any"):
                return truth
            result = low.binary(operator, result, truth, node)
        return result

    return emit


def _items(low: Lowering, name: str, args: list[Any], node: ast.Call) -> list[Any]:
    # At compile time it is unknown how far `any` and `all` would consume a generator.
    taken = (tuple, list, Generated) if name == "sum" else (tuple, list)
    if len(args) != 1 or not isinstance(args[0], taken):
        what = describe(args[0]) if args else "nothing"
        low.fail(
            node,
            f"{name} of run-time values takes one tuple or list of them, but got {what}",
            hint="add or compare in a loop over range(...)",
        )
    return list(args[0])


def _quotient_and_rest(
    low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call
) -> Any:
    """`divmod(x, y)`."""
    if len(args) != 2 or kwargs:
        low.fail(node, f"divmod takes two numbers, but got {len(args) + len(kwargs)}")
    x, y = args
    return tuple(low.binary(op, x, y, node) for op in (ast.FloorDiv(), ast.Mod()))


TABLE: Final[dict[Any, Intrinsic]] = {
    builtins.sum: _total,
    builtins.any: _truth_of("any", any),
    builtins.all: _truth_of("all", all),
    builtins.divmod: _quotient_and_rest,
}
