"""Containers of tvm-ffi in host functions: reading parameters, and making new ones.

Elements of an Array or List are read directly, those of a Map or Dict through functions that
tvm-ffi has registered.
"""

from __future__ import annotations

import ast
from typing import Any

from ferrule.compiler.artefacts import Fault, literal
from ferrule.language.ir import ops
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.descriptions import describe
from ferrule.language.lowering.handles import MAPS, SEQUENCES, compares
from ferrule.language.lowering.numbers import coercion
from ferrule.language.lowering.objects import foreign_calls
from ferrule.language.lowering.objects.any_values import ANY, Shown, peek, typed
from ferrule.language.lowering.objects.faults import Message
from ferrule.language.values import Handle, Number
from ferrule.specs import Int64, params

_Args = list[Any]
_Kwargs = dict[str, Any]


def length(low: Lowering, container: Handle, node: ast.AST) -> Number:
    """`len(x)`."""
    return Number(size(low, container, node))


def truth(low: Lowering, container: Handle, node: ast.AST) -> Number:
    """Whether it is not empty."""
    count = size(low, container, node)
    return Number(low.builder.compare("ne", count, low.builder.constant(Int64, 0)))


def size(low: Lowering, container: Handle, node: ast.AST) -> ops.Value:
    """The number of elements or keys, an Int64."""
    foreign_calls.require_host(low, node)
    return peek(low, container.leaves[0], "size")


# ---- Array and List ----


def item(low: Lowering, container: Handle, key: Any, node: ast.expr) -> Any:
    """`x[key]`: an element, or the value of a key."""
    name = _name(node)
    if isinstance(container.param, MAPS):
        return _value_of(low, container, key, name, node)
    return element(low, container, position(low, container, key, node), name, node)


def _name(node: ast.expr) -> str:
    return ast.unparse(node)


def position(low: Lowering, container: Handle, key: Any, node: ast.expr) -> ops.Value:
    """The position for an index, counted from the end if it is negative; an IndexError."""
    if isinstance(key, slice):
        low.fail(
            node,
            f"parts of {describe(container)} are not taken at run time",
            expected="an integer",
            hint="read the elements that are needed: for i in range(1, len(x))",
        )
    number = coercion.as_number(low, key, node, Int64)
    if not number.dtype.is_integer:
        low.fail(
            node,
            f"{describe(container)} is indexed by {describe(key)}",
            expected="an integer",
        )
    build, count = low.builder, size(low, container, node)
    given = coercion.convert(low, number, Int64).value
    index, zero = given, build.constant(Int64, 0)
    if not (isinstance(number.dim, int) and number.dim >= 0):
        from_end = build.binary("add", given, count)
        index = build.select(build.compare("lt", given, zero), from_end, given)
    inside = build.compare("lt", index, count)
    if index is not given:
        inside = build.binary("and", build.compare("ge", index, zero), inside)
    name = literal(container.name)
    message = f"Out of bound index of {name}, which has {{}} elements, but got {{}}"
    build.check(inside, Fault("IndexError", message, low.location(node)), count, given)
    return index


def element(low: Lowering, container: Handle, index: ops.Value, name: str, node: ast.expr) -> Any:
    """The element at a position that is in range."""
    assert isinstance(container.param, SEQUENCES)
    value = ops.Value(ANY, "item")
    low.builder.append(ops.Item(value, container.leaves[0], index))
    shown = Shown(name, f"{literal(container.name)}[{{}}]", (index,))
    return typed(low, value, container.param.item, shown, node)


# ---- Map and Dict ----


def kind_of(container: Handle) -> str:
    """Its name in tvm-ffi, such as "Map"."""
    return type(container.param).__name__


def keyed(low: Lowering, container: Handle, key: Any, node: ast.AST) -> Any:
    """A key for a lookup: tvm-ffi distinguishes 1 from True and from 1.0."""
    assert isinstance(container.param, MAPS)
    key = coercion.plain(key)
    match container.param.key:
        case params.Scalar(dtype=dtype):
            return coercion.convert(low, coercion.as_number(low, key, node, dtype), dtype)
        case params.String() if not _is_text(key):
            low.fail(node, f"a key of {container.name} is a string, not {describe(key)}")
    return key


def _is_text(key: Any) -> bool:
    return isinstance(key, str) or (
        isinstance(key, Handle) and isinstance(key.param, params.String)
    )


def contains(low: Lowering, key: Any, container: Handle, node: ast.AST) -> Number:
    """`key in x`."""
    if not isinstance(container.param, MAPS):
        low.fail(
            node,
            f"{describe(container)} is searched",
            expected="a Map or Dict on the right of `in`",
            hint="compare its elements in a loop",
        )
    return Number(has_key(low, container, keyed(low, container, key, node), node))


def has_key(low: Lowering, container: Handle, key: Any, node: ast.AST) -> ops.Value:
    """Whether a Map or Dict has a `keyed` key, a Boolean."""
    function = f"ffi.{kind_of(container)}Count"
    count = foreign_calls.emit_packed(low, function, [container, key], "int", node)
    return low.builder.compare("ne", count, low.builder.constant(Int64, 0))


def _value_of(low: Lowering, container: Handle, key: Any, name: str, node: ast.AST) -> Any:
    """`x[key]`, or a KeyError."""
    key = keyed(low, container, key, node)
    there = has_key(low, container, key, node)
    text, values = _key_text(low, key, node)
    fault = Fault(
        "KeyError", f"Missing key {text} of {literal(container.name)}", low.location(node)
    )
    low.builder.check(there, fault, *values)
    return found(low, container, key, name, node)


def found(low: Lowering, container: Handle, key: Any, name: str, node: ast.AST) -> Any:
    """The value of a key that exists."""
    assert isinstance(container.param, MAPS)
    function = f"ffi.{kind_of(container)}GetItem"
    value = foreign_calls.emit_packed(low, function, [container, key], "any", node)
    return typed(low, value, container.param.value, _shown(low, container, key, name, node), node)


def _shown(low: Lowering, container: Handle, key: Any, name: str, node: ast.AST) -> Shown:
    text, values = _key_text(low, key, node)
    return Shown(name, f"{literal(container.name)}[{text}]", values)


def _key_text(low: Lowering, key: Any, node: ast.AST) -> tuple[str, tuple[ops.Value, ...]]:
    """A key for the text of a `Fault`, and the values of its placeholders."""
    if isinstance(key, Handle) and not compares(key):
        return literal(key.name), ()
    message = Message(low, node)
    message.value(key)
    text = f"'{message.text}'" if _is_text(key) else message.text
    return text, tuple(message.values)
