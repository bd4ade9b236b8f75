"""Lists and Dicts that a host function changes: `x[i] = v`, `x.append(v)`, `d[key] = v`."""

from __future__ import annotations

import ast
from functools import partial
from typing import Any, Final

from ferrule.language.lowering.arguments import bound
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.objects import containers, foreign_calls, texts
from ferrule.language.lowering.python import operators
from ferrule.language.values import BoundMethod, Handle, Number
from ferrule.specs import params

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
            low.fail(node, f"{operators.describe(container)} is assigned to", hint=_NEVER)


def method(container: Handle) -> BoundMethod:
    """`x.append` of a List."""
    return BoundMethod(partial(_append, container=container), "append")


def _append(
    low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call, *, container: Handle
) -> None:
    (value,) = bound(low, "item", args, kwargs, node)
    assert isinstance(container.param, params.List)
    given = [container, _fitting(low, container, container.param.item, value, node)]
    foreign_calls.emit_packed(low, "ffi.ListAppend", given, "nothing", node)


def _fitting(
    low: Lowering, container: Handle, spec: params.Param | None, value: Any, node: ast.AST
) -> Any:
    """A value as an element: what is seen to be none is a CompileError, others when it is read."""
    value = operators.plain(value)
    match spec:
        case params.Scalar(dtype=dtype):
            return operators.convert(low, operators.as_number(low, value, node, dtype), dtype)
        case params.String() | params.Bytes():
            kind = str if isinstance(spec, params.String) else bytes
            run_time = texts.is_text(value) and type(value.param) is type(spec)
            if not (isinstance(value, kind) or run_time):
                low.fail(
                    node,
                    f"{operators.describe(container)} has {kind.__name__} in it, "
                    f"but gets {operators.describe(value)}",
                )
    return value
