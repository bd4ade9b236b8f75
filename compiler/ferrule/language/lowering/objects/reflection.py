"""Objects of registered types in host functions: fields, methods, constructors.

The fields and methods of a type, and their kinds, are queried from tvm-ffi at compile time; the
offset of a field, and the function of a method, are looked up when the compiled code first runs.
"""

from __future__ import annotations

import ast
import difflib
from functools import partial
from typing import Any, Final, NoReturn

from ferrule.compiler.artefacts import literal
from ferrule.language.ir import ops
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.descriptions import describe
from ferrule.language.lowering.objects import foreign_calls
from ferrule.language.lowering.objects.any_values import ANY, Shown, typed
from ferrule.language.lowering.objects.schemas import known_index, spec_of_schema
from ferrule.language.values import BoundMethod, Handle, Number
from ferrule.runtime.values.typeinfo import MethodInfo, TypeInfo, type_info
from ferrule.specs import params

INIT: Final = "__ffi_init__"
_KEYWORDS: Final = "ffi.GetKwargsObject"
_WIDEST: Final = 8
"""The size of a field that holds any number of compiled code."""

_Args = list[Any]
_Kwargs = dict[str, Any]


def attribute(low: Lowering, value: Handle, attr: str, node: ast.AST) -> Any:
    """`x.attr`: the value of a field, or a method."""
    info = _info(low, _key(value), node)
    field = info.field(attr)
    if field is not None:
        foreign_calls.require_host(low, node)
        result = ops.Value(ANY, attr)
        place = low.location(node)
        low.builder.append(ops.Field(result, value.leaves[0], info.type_key, attr, place))
        name = f"{value.name}.{attr}"
        spec = spec_of_schema(field.schema, "value")
        return typed(low, result, spec, Shown(name, literal(name)), node)
    method = info.method(attr)
    if method is None:
        _refuse(low, value, attr, info, node)
    return BoundMethod(partial(_call, value=value, info=info, method=method), attr)


def _key(value: Handle) -> str:
    assert isinstance(value.param, params.Object)
    return value.param.type_key


def _info(low: Lowering, key: str, node: ast.AST) -> TypeInfo:
    """tvm-ffi's current information about a type."""
    if known_index(key) is None:
        low.fail(
            node,
            f"tvm-ffi does not know the type {key!r} here, so neither its fields nor its methods",
            hint="import the module or load the library that registers it before compiling",
        )
    return type_info(key)


def _refuse(low: Lowering, value: Handle, attr: str, info: TypeInfo, node: ast.AST) -> NoReturn:
    known = [each.name for each in info.fields] + [each.name for each in info.methods]
    names = [name for name in known if not name.startswith("__")]
    near = difflib.get_close_matches(attr, names, n=1)
    low.fail(
        node,
        f"{describe(value)} of type {info.type_key} has no field or method {attr!r}",
        expected=f"one of {', '.join(names)}" if names else "a type with reflected fields",
        hint=f"did you mean .{near[0]}?" if near else None,
    )


def _call(
    low: Lowering,
    args: _Args,
    kwargs: _Kwargs,
    node: ast.Call,
    *,
    value: Handle,
    info: TypeInfo,
    method: MethodInfo,
) -> Any:
    """`x.method(y)`."""
    foreign_calls.require_host(low, node)
    if kwargs:
        low.fail(
            node, f"the method {method.name} of {info.type_key} takes no argument {min(kwargs)!r}"
        )
    given = args if method.static else [value, *args]
    _check_count(low, info, method, len(given), node)
    name = f"the result of {value.name}.{method.name}"
    spec = spec_of_schema(method.result, "result")
    return _obtained(low, ops.Method(info.type_key, method.name), given, spec, name, node)


def _check_count(
    low: Lowering, info: TypeInfo, method: MethodInfo, count: int, node: ast.Call
) -> None:
    if method.params is not None and len(method.params) != count:
        own = 0 if method.static else 1
        low.fail(
            node,
            f"{info.type_key}.{method.name} takes {len(method.params) - own} arguments, "
            f"but got {count - own}",
            expected=str(method),
        )


def _obtained(
    low: Lowering,
    callee: ops.Method,
    given: _Args,
    spec: params.Param | None,
    name: str,
    node: ast.Call,
) -> Any:
    if isinstance(spec, params.NoneValue):
        foreign_calls.emit_packed(low, callee, given, "nothing", node)
        return None
    value = foreign_calls.emit_packed(low, callee, given, "any", node)
    return typed(low, value, spec, Shown(name, literal(name)), node)


# ---- assignments to fields ----


def assign(low: Lowering, target: ast.Attribute, owner: Handle, value: Any) -> None:
    """`x.field = value`."""
    foreign_calls.require_host(low, target)
    info = _info(low, _key(owner), target)
    field = info.field(target.attr)
    if field is None:
        _refuse(low, owner, target.attr, info, target)
    if not field.writable:
        low.fail(
            target,
            f"the field {target.attr!r} of {info.type_key} is read-only",
            expected="a field that its type lets be written",
        )
    setter = ops.Setter(info.type_key, target.attr)
    foreign_calls.emit_packed(low, setter, [owner, value], "nothing", target)


def _check_held(low: Lowering, info: TypeInfo, name: str, value: Any, node: ast.AST) -> None:
    """Ends the function if a narrow field cannot hold a number that is passed to a constructor."""
    field = info.field(name)
    is_number = isinstance(value, int | float | Number)
    if field is not None and is_number and field.size < _WIDEST:
        trial = ops.Setter(info.type_key, name, is_trial=True)
        foreign_calls.emit_packed(low, trial, [value], "nothing", node)


# ---- new objects ----


def make_object(low: Lowering, args: _Args, kwargs: _Kwargs, node: ast.Call) -> Handle:
    """`fe.make_object("my.Type", x, y=z)`."""
    if not args or not isinstance(args[0], str):
        low.fail(
            node,
            "make_object takes the key of a registered type",
            expected='fe.make_object("my.Type", x, y)',
        )
    return construct(low, args[0], args[1:], kwargs, node)


def _positional(info: TypeInfo) -> list[str]:
    """The fields that a constructor takes by position; none if the type has its own constructor,
    whose parameter widths are unknown."""
    if info.method(INIT) is not None:
        return []
    taken = [each for each in info.fields if each.is_positional]
    return [each.name for each in sorted(taken, key=lambda each: each.has_default)]


def construct(low: Lowering, key: str, args: _Args, kwargs: _Kwargs, node: ast.Call) -> Handle:
    """A new object of a type, by its `__ffi_init__`; keywords are passed in tvm-ffi's
    convention."""
    foreign_calls.require_host(low, node)
    info = _info(low, key, node)
    unknown = [name for name in kwargs if info.field(name) is None]
    if unknown:
        low.fail(node, f"{key} has no field {unknown[0]!r} to make an object with")
    given = list(args)
    for name, value in (*zip(_positional(info), args, strict=False), *kwargs.items()):
        _check_held(low, info, name, value, node)
    if kwargs:
        marker = foreign_calls.emit_packed(low, _KEYWORDS, [], "any", node)
        given.append(Handle(params.AnyValue("keywords"), (marker,), "keywords"))
        given += [each for pair in kwargs.items() for each in pair]
    spec, name = params.Object("object", key), f"{ast.unparse(node.func)}(...)"
    made = _obtained(low, ops.Method(key, INIT), given, spec, name, node)
    assert isinstance(made, Handle)
    return made
