"""New containers of tvm-ffi in host functions: `fe.Array(x, y)`, `fe.Map({key: value})`, …

tvm-ffi's own constructors make them; the function owns them until it ends.  They live longer if it
returns them or passes them to code that keeps a reference.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any, Final

from ferrule.language.faces import containers as faces
from ferrule.language.faces.base import Shape
from ferrule.language.lowering.arguments import bound
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.descriptions import describe
from ferrule.language.lowering.numbers import coercion
from ferrule.language.lowering.objects import any_values, foreign_calls, reflection
from ferrule.language.lowering.objects.any_values import peek_object
from ferrule.language.values import Handle, Number
from ferrule.specs import Boolean, Float64, Int64, params

_Args = list[Any]
_Kwargs = dict[str, Any]


def array(low: Lowering, args: _Args, kwargs: _Kwargs, node: ast.Call) -> Handle:
    """`fe.Array(x, y)`."""
    return _made(low, "ffi.Array", params.Array("array", _common(args)), args, kwargs, node)


def list_(low: Lowering, args: _Args, kwargs: _Kwargs, node: ast.Call) -> Handle:
    """`fe.List(x, y)`."""
    return _made(low, "ffi.List", params.List("list", _common(args)), args, kwargs, node)


def map_(low: Lowering, args: _Args, kwargs: _Kwargs, node: ast.Call) -> Handle:
    """`fe.Map({key: value})`, or `fe.Map([(key, value)])`."""
    return _made_map(low, params.Map, args, kwargs, node)


def dict_(low: Lowering, args: _Args, kwargs: _Kwargs, node: ast.Call) -> Handle:
    """`fe.Dict({key: value})`, or `fe.Dict([(key, value)])`."""
    return _made_map(low, params.Dict, args, kwargs, node)


def shape(low: Lowering, args: _Args, kwargs: _Kwargs, node: ast.Call) -> Handle:
    """`fe.Shape((m, n))`: tvm-ffi's object for a tuple of sizes."""
    (sizes,) = bound(low, "sizes", [tuple(args)] if len(args) > 1 else args, kwargs, node)
    given = list(sizes) if isinstance(sizes, (tuple, list)) else [sizes]
    numbers = [coercion.as_number(low, size, node, Int64) for size in given]
    for number in numbers:
        if not number.dtype.is_integer:
            low.fail(node, f"{describe(number)} is no size", expected="integers")
    return _made(low, "ffi.Shape", params.Object("shape", "ffi.Shape"), numbers, {}, node)


def _made_map(
    low: Lowering,
    kind: type[params.Map | params.Dict],
    args: _Args,
    kwargs: _Kwargs,
    node: ast.Call,
) -> Handle:
    (given,) = bound(low, "items=", args, kwargs, node)
    pairs: _Args = list(given.items()) if isinstance(given, dict) else list(given or ())
    if not all(isinstance(pair, (tuple, list)) and len(pair) == 2 for pair in pairs):
        low.fail(
            node,
            f"the items of {kind.__name__} are {describe(given)}",
            expected="a dict, or a list of keys and values, [(key, value), ...]",
        )
    keys, values = [key for key, _ in pairs], [value for _, value in pairs]
    spec = kind(kind.__name__.lower(), _common(keys), _common(values))
    flat = [each for pair in pairs for each in pair]
    return _made(low, f"ffi.{kind.__name__}", spec, flat, {}, node)


def _made(
    low: Lowering, function: str, spec: params.Param, items: _Args, kwargs: _Kwargs, node: ast.Call
) -> Handle:
    """A container made by tvm-ffi's own constructor."""
    foreign_calls.require_host(low, node)
    if kwargs:
        low.fail(node, f"{ast.unparse(node.func)} takes no argument {min(kwargs)!r}")
    value = foreign_calls.emit_packed(low, function, items, "any", node)
    return peek_object(low, value, spec, f"{ast.unparse(node.func)}(...)")


def _common(items: _Args) -> params.Param | None:
    """The common spec of these, if they are numbers of one dtype or texts."""
    specs = {_plain_spec(each) for each in items}
    return specs.pop() if len(specs) == 1 else None


def _plain_spec(value: Any) -> params.Param | None:
    match value:
        case Number(dtype=dtype):
            return params.Scalar("item", dtype)
        case bool():
            return params.Scalar("item", Boolean)
        case int():
            return params.Scalar("item", Int64)
        case float():
            return params.Scalar("item", Float64)
        case str() | Handle(param=params.String()):
            return params.String("item")
        case bytes() | Handle(param=params.Bytes()):
            return params.Bytes("item")
        case Handle(param=params.Object(type_key=key)):
            return params.Object("item", key)
    return None


TABLE: Final[dict[Any, Callable[[Lowering, _Args, _Kwargs, ast.Call], Any]]] = {
    faces.Array: array,
    faces.List: list_,
    faces.Map: map_,
    faces.Dict: dict_,
    faces.make_object: reflection.make_object,
    faces.as_type: any_values.as_type,
    Shape: shape,
}
