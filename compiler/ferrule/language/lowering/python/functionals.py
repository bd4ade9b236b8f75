"""Python's functions that take a function: `map`, `filter`, `sorted`, `functools.reduce`.

They are lowered here if a function or an item is one of the compiled program.  The number of items
is known at compile time, and all results are computed at once, in order.
"""

from __future__ import annotations

import ast
import builtins
import functools
from collections.abc import Callable, Mapping
from typing import Any, Final

from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.control import branches
from ferrule.language.lowering.descriptions import describe
from ferrule.language.lowering.numbers import coercion
from ferrule.language.values import Generated, is_run_time

Emit = Callable[[Lowering, list[Any], dict[str, Any], ast.Call], Any]


def emitter(callee: Any) -> Emit:
    """The lowering of a function of Python that takes a function."""
    return _EMITTERS[callee]


def _map(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> Generated:
    """`map(function, *iterables)`, which ends with the shortest."""
    _require(low, len(args) >= 2 and not kwargs, "map(function, values)", node)
    columns = [_items(low, each, node) for each in args[1:]]
    rows = zip(*columns, strict=False)
    return Generated([low.call(args[0], list(row), {}, node) for row in rows])


def _filter(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> Generated:
    """`filter(function, values)`; whether an item is kept is known at compile time."""
    _require(low, len(args) == 2 and not kwargs, "filter(function, values)", node)
    return Generated([each for each in _items(low, args[1], node) if _keeps(low, args, each, node)])


def _keeps(low: Lowering, args: list[Any], item: Any, node: ast.Call) -> bool:
    value = item if args[0] is None else low.call(args[0], [item], {}, node)
    truth = low.truth(value, node)
    if isinstance(truth, bool):
        return truth
    low.fail(
        node,
        "filter keeps items by a run-time condition, so their number is not known at compile time",
        hint="write x if c else y for each item",
    )


def _sorted(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> list[Any]:
    """`sorted(values, key=…, reverse=…)` by keys that are known at compile time."""
    fits = len(args) == 1 and kwargs.keys() <= {"key", "reverse"}
    _require(low, fits, "sorted(values, key=function, reverse=False)", node)
    items, key = _items(low, args[0], node), kwargs.get("key")
    keys = items if key is None else [low.call(key, [each], {}, node) for each in items]
    unknown = next((each for each in keys if is_run_time(each)), None)
    if unknown is not None:
        low.fail(
            node,
            f"sorted compares items at compile time, but got {describe(unknown)}",
            hint="exchange numbers with min and max: a, b = min(a, b), max(a, b)",
        )
    order = functools.partial(
        sorted, range(len(items)), key=keys.__getitem__, reverse=kwargs.get("reverse", False)
    )
    places = coercion.at_compile_time(low, node, order)
    return [items[place] for place in places]


def _reduce(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> Any:
    """`functools.reduce(function, values, initial)`."""
    _require(low, len(args) in (2, 3) and not kwargs, "reduce(function, values, initial)", node)
    items = [*args[2:], *_items(low, args[1], node)]
    if not items:
        low.fail(node, "reduce of no values, and without an initial one")
    return functools.reduce(lambda x, y: low.call(args[0], [x, y], {}, node), items)


def _items(low: Lowering, values: Any, node: ast.Call) -> list[Any]:
    return list(branches.compile_time_items(low, values, node))


def _require(low: Lowering, fits: bool, expected: str, node: ast.Call) -> None:
    if not fits:
        low.fail(node, "the arguments do not fit", expected=expected)


_EMITTERS: Final[Mapping[Any, Emit]] = {
    builtins.map: _map,
    builtins.filter: _filter,
    builtins.sorted: _sorted,
    functools.reduce: _reduce,
}
