"""Values inside containers and objects: checked against their specs where they are read.

A number, a text, an object of one kind takes a compare and a load or two; other kinds are received
like the result of a call.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import field
from typing import Any, Final

from ferrule.compiler.artefacts import Fault, literal
from ferrule.language.faces import containers as faces
from ferrule.language.faces.base import Tensor
from ferrule.language.faces.containers import type_key_of
from ferrule.language.ir import ops
from ferrule.language.ir.types import HandleType, Type
from ferrule.language.lowering.arguments import bound
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.descriptions import describe
from ferrule.language.lowering.handles import is_open
from ferrule.language.lowering.numbers import coercion
from ferrule.language.lowering.objects import call_results, foreign_calls
from ferrule.language.values import Handle, Maybe, Number, OneOf
from ferrule.runtime.abi import TypeIndex
from ferrule.specs import Boolean, DType, Float64, Int32, Int64, Uint64, params
from ferrule.specs.deferred import dataclass
from ferrule.specs.text import kind_text
from ferrule.specs.typeindex import BIG_INT

ANY: Final = HandleType("any")

_NUMBERS: Final = (TypeIndex.INT, TypeIndex.BOOL)


@dataclass(frozen=True, slots=True)
class Shown:
    """A value in messages: text for a `Fault`, and the values of its placeholders.

    `name` is its name in messages of the compiler.
    """

    name: str
    text: str
    values: tuple[ops.Value, ...] = field(default=())


def peek(low: Lowering, source: ops.Value, part: ops.PeekPart, hint: str = "") -> ops.Value:
    """A part of any value, or the size of a container; for objects see `peek_object`."""
    types: dict[ops.PeekPart, Type] = {
        "type_index": Int32,
        "float": Float64,
        "dtype": Int32,
        "text": HandleType("bytes"),
    }
    result = ops.Value(types.get(part, Int64), hint or part)
    low.builder.append(ops.Peek(result, source, part))
    return result


def peek_object(low: Lowering, source: ops.Value, param: params.Param, hint: str) -> Handle:
    """The object inside a value, like a parameter of this kind."""
    result = ops.Value(HandleType(type(param).__name__.lower()), "object")
    low.builder.append(ops.Peek(result, source, "object"))
    return Handle(param, (result,), hint)


def typed(
    low: Lowering, value: ops.Value, spec: params.Param | None, shown: Shown, node: ast.AST
) -> Any:
    """A value with the type of its spec, else the call ends with a TypeError; None accepts any
    value."""
    match spec:
        case None | params.AnyValue():
            return Handle(params.AnyValue("value"), (value,), shown.name)
        case params.Optional(item=item) if _is_plain(item):
            index = peek(low, value, "type_index")
            none = low.builder.constant(Int32, int(TypeIndex.NONE))
            present = low.builder.compare("ne", index, none)
            absent = low.builder.unary("not", present)
            found = _read(low, value, item, spec, shown, node, absent)
            return Maybe(Number(present), found, shown.name)
        case _ if _is_plain(spec):
            return _read(low, value, spec, spec, shown, node)
    placed = call_results.spec_of(low, spec, node, spec.name)
    return call_results.received(low, value, placed, shown.name, node)


def as_type(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> Any:
    """`fe.as_type(x, kind)`."""
    given, kind = bound(low, "value kind", args, kwargs, node)
    foreign_calls.require_host(low, node)
    if not isinstance(given, (Handle, Maybe, OneOf)):
        low.fail(
            node,
            f"as_type of {describe(given)}, whose kind is known while compiling",
            expected="a value of any kind, an object, or what may be absent",
        )
    name = ast.unparse(node.args[0]) if node.args else "the value"
    spec = call_results.spec_of(low, kind, node, "value")
    return typed(
        low, foreign_calls.as_any(low, given, node), spec, Shown(name, literal(name)), node
    )


def dtype_text(low: Lowering, dtype: Handle, node: ast.AST) -> Handle:
    """The name of a run-time dtype."""
    value = foreign_calls.emit_packed(low, ops.DTypeText(), [dtype], "any", node)
    leaves = peek(low, value, "text"), peek(low, value, "text_size")
    return Handle(params.String("name"), leaves, f"the name of {dtype.name}")


def is_none(low: Lowering, value: Handle) -> Number:
    """Whether a value of any kind is None."""
    index = peek(low, value.leaves[0], "type_index")
    none = low.builder.constant(Int32, int(TypeIndex.NONE))
    return Number(low.builder.compare("eq", index, none))


def _is_plain(spec: params.Param) -> bool:
    if isinstance(spec, params.Scalar):
        return spec.dtype is not Uint64  # a large one is a tvm-ffi object
    payload = params.payload_of(spec)
    return payload not in (None, params.Payload.ADDRESS, params.Payload.ANY)


def _read(
    low: Lowering,
    value: ops.Value,
    spec: params.Param,
    whole: params.Param,
    shown: Shown,
    node: ast.AST,
    absent: ops.Value | None = None,
) -> Any:
    """A plain value; if it is `absent`, the result is meaningless."""
    build, index = low.builder, peek(low, value, "type_index")
    fits = _fits(low, value, index, spec)
    fits = fits if absent is None else build.binary("or", fits, absent)
    wanted = literal(kind_text(whole, {}, full=False))
    message = f"Mismatched type of {shown.text}, expected {wanted}, but got {{type}}"
    fault = Fault("TypeError", message, low.location(node))
    if isinstance(spec, params.Scalar):
        _end_if_big(low, value, shown, spec.dtype, node)
    build.check(fits, fault, *shown.values, index)
    match spec:
        case params.Scalar(dtype=dtype):
            return _number(low, value, dtype, shown, node, absent)
        case params.String() | params.Bytes():
            leaves = peek(low, value, "text"), peek(low, value, "text_size")
            return Handle(spec, leaves, shown.name)
        case params.DataType():
            return Handle(spec, (peek(low, value, "dtype"),), shown.name)
        case params.Device():
            return Handle(spec, (peek(low, value, "device"),), shown.name)
        case params.NoneValue():
            return None
    return peek_object(low, value, spec, shown.name)


def _fits(low: Lowering, value: ops.Value, index: ops.Value, spec: params.Param) -> ops.Value:
    """Whether a value is of the kind of a spec, a Boolean."""
    match spec:
        case params.Object(type_key=key):
            result = ops.Value(Boolean, "is_instance")
            low.builder.append(ops.IsInstance(result, value, key))
            return result
        case params.Scalar(dtype=dtype):
            floats = (TypeIndex.FLOAT,) if dtype.kind == "float" else ()
            return _is_one_of(low, index, (*floats, *_NUMBERS))
    assert isinstance(spec, params.WithTraits)
    return _is_one_of(low, index, spec.traits.stored)


def _end_if_big(low: Lowering, value: ops.Value, shown: Shown, dtype: DType, node: ast.AST) -> None:
    """An OverflowError for an int outside of int64, which is a tvm-ffi object."""
    build, index = low.builder, peek(low, value, "type_index")
    message = f"Out of bound {shown.text}, expected {dtype.name}, but got an int outside of int64"
    small = build.compare("ne", index, build.constant(Int32, BIG_INT))
    build.check(small, Fault("OverflowError", message, low.location(node)), *shown.values)


def _is_one_of(low: Lowering, index: ops.Value, indices: Sequence[int]) -> ops.Value:
    build = low.builder
    first, *rest = [
        build.compare("eq", index, build.constant(Int32, int(each))) for each in indices
    ]
    for part in rest:
        first = build.binary("or", first, part)
    return first


def _number(
    low: Lowering,
    value: ops.Value,
    dtype: DType,
    shown: Shown,
    node: ast.AST,
    absent: ops.Value | None,
) -> Number:
    """A number in its dtype; an OverflowError if an integer does not fit."""
    build = low.builder
    if dtype.kind == "float":
        return coercion.convert(low, Number(peek(low, value, "float")), dtype)
    number = peek(low, value, "int")
    if dtype is Boolean:
        return _boolean(low, number, shown, node, absent)
    if dtype is Int64:
        return Number(number)
    smallest, largest = dtype.range
    fits = build.compare("ge", number, build.constant(Int64, smallest))
    if largest < Int64.range[1]:
        below = build.compare("le", number, build.constant(Int64, largest))
        fits = build.binary("and", fits, below)
    fits = fits if absent is None else build.binary("or", fits, absent)
    message = f"Out of bound {shown.text}, expected {dtype.name}, but got {{}}"
    build.check(fits, Fault("OverflowError", message, low.location(node)), *shown.values, number)
    return coercion.convert(low, Number(number), dtype)


def _boolean(
    low: Lowering, number: ops.Value, shown: Shown, node: ast.AST, absent: ops.Value | None
) -> Number:
    """0 or 1 as a Boolean; a ValueError for another number."""
    build = low.builder
    zero, one = (build.compare("eq", number, build.constant(Int64, value)) for value in (0, 1))
    fits = build.binary("or", zero, one)
    fits = fits if absent is None else build.binary("or", fits, absent)
    message = f"Invalid {shown.text}, expected True, False, 0 or 1, but got {{}}"
    build.check(fits, Fault("ValueError", message, low.location(node)), *shown.values, number)
    return Number(one)


# ---- isinstance ----


def is_instance(low: Lowering, value: Handle, wanted: Any, node: ast.AST) -> Any:
    """`isinstance(x, kind)` for a value of any kind, or for an object."""
    foreign_calls.require_host(low, node)
    if isinstance(wanted, tuple):
        parts = [is_instance(low, value, each, node) for each in wanted]
        found = parts[0].value
        for part in parts[1:]:
            found = low.builder.binary("or", found, part.value)
        return Number(found)
    key = type_key_of(wanted)
    indices = None if key is not None else _CLASSES.get(wanted)
    if key is None and indices is None:
        low.fail(
            node,
            f"isinstance asks for {describe(wanted)}",
            expected="int, float, bool, str, bytes, type(None), fe.Tensor, fe.Array, fe.List, "
            "fe.Map, fe.Dict, or the class of a registered type",
        )
    given = foreign_calls.as_any(low, value, node)
    if key is not None:
        result = ops.Value(Boolean, "is_instance")
        low.builder.append(ops.IsInstance(result, given, key))
        return Number(result)
    return Number(_is_one_of(low, peek(low, given, "type_index"), indices or ()))


_CLASSES: Final[dict[Any, tuple[int, ...]]] = {
    int: (*_NUMBERS, BIG_INT),
    float: (TypeIndex.FLOAT,),
    bool: (TypeIndex.BOOL,),
    str: params.String.traits.stored,
    bytes: params.Bytes.traits.stored,
    type(None): (TypeIndex.NONE,),
    Tensor: (TypeIndex.TENSOR,),
    faces.Array: (TypeIndex.ARRAY,),
    faces.List: (TypeIndex.LIST,),
    faces.Map: (TypeIndex.MAP,),
    faces.Dict: (TypeIndex.DICT,),
}


def assumed(low: Lowering, value: Handle, wanted: Any, node: ast.AST) -> Any:
    """The value after a successful `isinstance`; None if that does not determine its kind.

    An int is an Int64; the call ends with an OverflowError for one that does not fit.
    """
    if not is_open(value) or low.kind != "host":
        return None
    key = type_key_of(wanted)
    if key is not None:
        spec: params.Param = params.Object("value", key)
        if isinstance(value.param, params.Object):
            return Handle(spec, value.leaves, value.name)
        return peek_object(low, value.leaves[0], spec, value.name)
    if not isinstance(value.param, params.AnyValue):
        return None
    if wanted is int:
        _end_if_big(low, value.leaves[0], Shown(value.name, literal(value.name)), Int64, node)
    return _assumed_plain(low, value, wanted)


def _assumed_plain(low: Lowering, value: Handle, wanted: Any) -> Any:
    """A value of a Python class, or a container of anything; any value is safe to read."""
    source = value.leaves[0]
    containers: dict[Any, params.Param] = {
        faces.Array: params.Array("value"),
        faces.List: params.List("value"),
        faces.Map: params.Map("value"),
        faces.Dict: params.Dict("value"),
    }
    if wanted in (str, bytes):
        text = params.String("value") if wanted is str else params.Bytes("value")
        return Handle(text, (peek(low, source, "text"), peek(low, source, "text_size")), value.name)
    if wanted is int:
        return Number(peek(low, source, "int"))
    if wanted is float:
        return Number(peek(low, source, "float"))
    if wanted is bool:
        zero = low.builder.constant(Int64, 0)
        return Number(low.builder.compare("ne", peek(low, source, "int"), zero))
    if wanted in containers:
        return peek_object(low, source, containers[wanted], value.name)
    return None
