"""Assignments: to names, tuples of targets, elements of tensors, items of lists, and fields."""

from __future__ import annotations

import ast
from typing import Any

from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.control import mutation
from ferrule.language.lowering.descriptions import describe, usage_hint
from ferrule.language.lowering.numbers import scalars
from ferrule.language.lowering.objects import container_methods, containers, reflection
from ferrule.language.lowering.tensors import coordinates, elements, fields
from ferrule.language.values import (
    RUN_TIME,
    ConstantTable,
    Fielded,
    Handle,
    PointerView,
    TensorView,
    Vector,
    is_record,
    is_run_time,
)
from ferrule.specs import params
from ferrule.specs.deferred import dataclass


def bind(low: Lowering, target: ast.expr, value: Any) -> None:
    """Assigns to a target: a name, a tuple of targets, a tensor's elements, an item of a list."""
    match target:
        case ast.Name(id=name):
            low.names[name] = value
        case ast.Tuple(elts=elts) | ast.List(elts=elts):
            _unpack(low, target, elts, value)
        case ast.Subscript():
            place(low, target).write(value)
        case ast.Attribute(value=inner) if reflection.is_object(owner := low.evaluate(inner)):
            reflection.assign(low, target, owner, value)
        case ast.Attribute(value=ast.Name(id=name), attr=attr) if is_record(low.peek(name)):
            low.fail(
                target,
                "attributes cannot be assigned to in a compiled function",
                hint=f"make a new object: {name} = dataclasses.replace({name}, {attr}=...)",
            )
        case _:
            low.fail(
                target,
                "attributes cannot be assigned to in a compiled function",
                hint="assign to a name, or to an element of a tensor",
            )


def _unpack(low: Lowering, target: ast.expr, elts: list[ast.expr], value: Any) -> None:
    if isinstance(value, ConstantTable):
        from ferrule.language.lowering.numbers import constant_tables

        value = constant_tables.items(low, value, target)
    if isinstance(value, RUN_TIME):
        low.fail(
            target,
            f"{describe(value)} cannot be unpacked",
            hint=usage_hint(value),
        )
    items = scalars.at_compile_time(low, target, lambda: list(value))
    starred = [at for at, inner in enumerate(elts) if isinstance(inner, ast.Starred)]
    if starred and len(items) >= len(elts) - 1:
        first, last = starred[0], len(items) - (len(elts) - 1 - starred[0])
        items[first:last] = [items[first:last]]
    if len(items) != len(elts):
        low.fail(target, f"{len(items)} values are assigned to {len(elts)} names")
    for inner, item in zip(elts, items, strict=True):
        bind(low, inner.value if isinstance(inner, ast.Starred) else inner, item)


@dataclass(frozen=True, slots=True)
class Place:
    """The target `base[index]` of an assignment, with base and index evaluated."""

    low: Lowering
    node: ast.Subscript
    base: Any
    key: Any

    def read(self) -> Any:
        """The element at this place."""
        if isinstance(self.base, (TensorView, PointerView)):
            return elements.read(self.low, self.base, self.key, self.node)
        if isinstance(self.base, Fielded):
            return fields.read(self.low, self.base, self.key, self.node)
        if isinstance(self.base, Handle):
            return containers.item(self.low, self.base, self.key, self.node)
        return scalars.at_compile_time(self.low, self.node, lambda: self.base[self.key])

    def write(self, value: Any) -> None:
        """Stores a value at this place."""
        if isinstance(self.base, (TensorView, PointerView)):
            elements.write(self.low, self.base, self.key, value, self.node)
        elif isinstance(self.base, Fielded):
            fields.write(self.low, self.base, self.key, value, self.node)
        elif isinstance(self.base, Handle):
            container_methods.write(self.low, self.base, self.key, value, self.node)
        else:
            if is_run_time(value):
                mutation.require_inside(self.low, self.base, self.node)
            scalars.at_compile_time(
                self.low, self.node, lambda: self.base.__setitem__(self.key, value)
            )


def place(low: Lowering, node: ast.Subscript) -> Place:
    """The place of a subscript, for an assignment."""
    base = low.evaluate(node.value)
    if isinstance(base, (TensorView, PointerView, Fielded)):
        return Place(low, node, base, coordinates.subscript(low, node.slice))
    if isinstance(base, Handle) and isinstance(base.param, (params.Elements, params.Pairs)):
        return Place(low, node, base, low.evaluate(node.slice))
    if isinstance(base, RUN_TIME):
        hint = "a vector never changes: make a fragment, frag.store(v), and assign to that"
        low.fail(
            node,
            f"{describe(base)} has no elements to assign to",
            hint=hint if isinstance(base, Vector) else None,
        )
    if not hasattr(base, "__setitem__"):
        low.fail(
            node,
            f"{describe(base)} has no elements to assign to",
            hint="assign to an element of a tensor or of a list",
        )
    key = scalars.plain(low.evaluate(node.slice))
    if is_run_time(key):
        low.fail(
            node.slice,
            f"{type(base).__name__}s are indexed while compiling, "
            f"but this index is {describe(key)}",
            hint="loop over it with range_constexpr, or keep the values in a tensor",
        )
    return Place(low, node, base, key)
