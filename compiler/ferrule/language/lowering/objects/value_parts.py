"""`extract_mlir_values` and `new_from_mlir_values`: objects as lists of what the run has of them.

An object whose class says it itself is asked; ferrule does not need the answer, see
`control.value_objects`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any, Final

from ferrule.language.faces import cute as faces
from ferrule.language.lowering import structures
from ferrule.language.lowering.arguments import Intrinsic, bound
from ferrule.language.lowering.context import Lowering
from ferrule.language.values import is_run_time, is_value_object
from ferrule.specs import Numeric


def _extract(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> list[Any]:
    """`extract_mlir_values(obj)`."""
    (value,) = bound(low, "obj", args, kwargs, node)
    return _values(low, value, node)


def _values(low: Lowering, value: Any, node: ast.Call) -> list[Any]:
    if is_value_object(value):
        return list(low.call(value.__extract_mlir_values__, [], {}, node))
    inner = _parts(value)
    if inner is not None:
        return [each for part in inner for each in _values(low, part, node)]
    return [value] if is_run_time(value) or isinstance(value, Numeric) else []


def _new(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> Any:
    """`new_from_mlir_values(obj, values)`."""
    value, given = bound(low, "obj values", args, kwargs, node)
    wanted = len(_values(low, value, node))
    if not isinstance(given, (list, tuple)) or len(given) != wanted:
        count = len(given) if isinstance(given, (list, tuple)) else "something else"
        low.fail(
            node,
            f"new_from_mlir_values got {count} values",
            expected=f"a list of {wanted}, as extract_mlir_values gives for this object",
        )
    return _rebuilt(low, value, iter(given), node)


def _rebuilt(low: Lowering, value: Any, given: Iterator[Any], node: ast.Call) -> Any:
    if is_value_object(value):
        own = [next(given) for _ in _values(low, value, node)]
        return low.call(value.__new_from_mlir_values__, [own], {}, node)
    inner = _parts(value)
    if inner is not None:
        items = [_rebuilt(low, part, given, node) for part in inner]
        return items if isinstance(value, list) else structures.rebuild(value, items)
    return next(given) if is_run_time(value) or isinstance(value, Numeric) else value


def _parts(value: Any) -> list[Any] | None:
    if isinstance(value, list):
        return value
    found = structures.parts(value)
    return None if found is None else [item for _, item in found]


TABLE: Final[dict[Any, Intrinsic]] = {
    faces.extract_mlir_values: _extract,
    faces.new_from_mlir_values: _new,
}
"""The emitters of these functions."""
