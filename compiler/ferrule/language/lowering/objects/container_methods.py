"""Methods of containers in host functions, and assignments to them: `x[i] = v`, `d[key] = v`."""

from __future__ import annotations

import ast
from functools import partial
from typing import Any, Final

from ferrule.language.lowering.arguments import bound
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.descriptions import describe
from ferrule.language.lowering.handles import MAPS, MapView, is_text
from ferrule.language.lowering.numbers import coercion
from ferrule.language.lowering.objects import containers, foreign_calls
from ferrule.language.values import BoundMethod, Handle, Number
from ferrule.specs import params

_Args = list[Any]
_Kwargs = dict[str, Any]

_NEVER: Final = "an Array and a Map never change: make a List or Dict, or a new one"


def write(low: Lowering, container: Handle, key: Any, value: Any, node: ast.expr) -> None:
    """`x[key] = value`."""
    match container.param:
        case params.List(item=item):
            at = Number(containers.position(low, container, key, node))
            given = [container, at, _fitting(low, container, item, value, node)]
            foreign_calls.emit_packed(low, "ffi.ListSetItem", given, "nothing", node)
        case params.Dict(value=spec):
            known = containers.keyed(low, container, key, node)
            given = [container, known, _fitting(low, container, spec, value, node)]
            foreign_calls.emit_packed(low, "ffi.DictSetItem", given, "nothing", node)
        case _:
            low.fail(node, f"{describe(container)} is assigned to", hint=_NEVER)


def _append(
    low: Lowering, args: _Args, kwargs: _Kwargs, node: ast.Call, *, container: Handle
) -> None:
    (value,) = bound(low, "item", args, kwargs, node)
    assert isinstance(container.param, params.List)
    given = [container, _fitting(low, container, container.param.item, value, node)]
    foreign_calls.emit_packed(low, "ffi.ListAppend", given, "nothing", node)


def _fitting(
    low: Lowering, container: Handle, spec: params.Param | None, value: Any, node: ast.AST
) -> Any:
    """A value as an element: an obviously wrong one is a CompileError, others are checked when they
    are read."""
    value = coercion.plain(value)
    match spec:
        case params.Scalar(dtype=dtype):
            return coercion.convert(low, coercion.as_number(low, value, node, dtype), dtype)
        case params.String() | params.Bytes():
            kind = str if isinstance(spec, params.String) else bytes
            run_time = is_text(value) and type(value.param) is type(spec)
            if not (isinstance(value, kind) or run_time):
                low.fail(
                    node,
                    f"{describe(container)} has {kind.__name__} in it, but gets {describe(value)}",
                )
    return value


def _get(low: Lowering, args: _Args, kwargs: _Kwargs, node: ast.Call, *, container: Handle) -> Any:
    """`x.get(key, default)`; the default default is None."""
    key, default = bound(low, "key default=", args, kwargs, node)
    key = containers.keyed(low, container, key, node)
    there = Number(containers.has_key(low, container, key, node))
    name = ast.unparse(node)
    with low.builder.region() as then, low.in_region():
        found = containers.found(low, container, key, name, node)
    with low.builder.region() as otherwise, low.in_region():
        other = _default(low, found, default, node)
    return low.choose(there, (then, otherwise), (found, other), name, node)


def _default(low: Lowering, found: Any, default: Any, node: ast.Call) -> Any:
    """The default of `get`, converted towards the kind of a found value."""
    if isinstance(found, Number) and coercion.is_python_number(default):
        return coercion.as_number(low, default, node, found.dtype)
    if isinstance(found, Handle) and isinstance(found.param, params.AnyValue):
        value = foreign_calls.as_any(low, default, node)
        return Handle(params.AnyValue("value"), (value,), "the default")
    return default


def attribute(low: Lowering, container: Handle, attr: str, node: ast.AST) -> Any:
    """`x.get`, `x.keys`, `x.values`, `x.items` of a Map or Dict."""
    is_map = isinstance(container.param, MAPS)
    if isinstance(container.param, params.List) and attr == "append":
        return BoundMethod(partial(_append, container=container), "append")
    if is_map and attr == "get":
        return BoundMethod(partial(_get, container=container), "get")
    if is_map and attr in _VIEWS:
        return BoundMethod(partial(_view, container=container, what=attr), attr)
    low.fail(
        node,
        f"{describe(container)} has no attribute {attr!r}",
        expected="get, keys, values, items" if is_map else "x[i], len(x), for v in x",
        hint="a List is appended to, x.append(v)" if attr == "append" else None,
    )


_VIEWS: Final = ("keys", "values", "items")


def _view(
    low: Lowering, args: _Args, kwargs: _Kwargs, node: ast.Call, *, container: Handle, what: str
) -> MapView:
    bound(low, "", args, kwargs, node)
    return MapView(container, what)
