"""Assignments: to names, tuples of targets, elements of tensors, items of lists, attributes."""

from __future__ import annotations

import ast
from types import FunctionType, MethodType, ModuleType, SimpleNamespace
from typing import Any, Final

from ferrule.language.lowering import structures
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.control import mutation
from ferrule.language.lowering.descriptions import describe, usage_hint
from ferrule.language.lowering.handles import is_registered
from ferrule.language.lowering.numbers import coercion
from ferrule.language.lowering.numbers.sizes import is_number_tensor
from ferrule.language.lowering.python.attributes import get
from ferrule.language.lowering.tensors import coordinates, elements
from ferrule.language.values import (
    RUN_TIME,
    ConstantTable,
    CoordinateView,
    Fielded,
    Handle,
    PointerView,
    SwizzledView,
    TensorView,
    Vector,
    is_record,
    is_run_time,
    is_value_object,
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
        case ast.Attribute():
            attribute(low, target).write(value)
        case _:
            low.fail(
                target,
                "this cannot be assigned to in a compiled function",
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
    items = coercion.at_compile_time(low, target, lambda: list(value))
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
        if isinstance(self.base, (SwizzledView, CoordinateView)):
            from ferrule.language.lowering.tensors import arranged

            return arranged.read(self.low, self.base, self.key, self.node)
        if isinstance(self.base, Fielded):
            from ferrule.language.lowering.tensors import fields

            return fields.read(self.low, self.base, self.key, self.node)
        if isinstance(self.base, Handle):
            from ferrule.language.lowering.objects import containers

            return containers.item(self.low, self.base, self.key, self.node)
        return coercion.at_compile_time(self.low, self.node, lambda: self.base[self.key])

    def write(self, value: Any) -> None:
        """Stores a value at this place."""
        if isinstance(self.base, (TensorView, PointerView)):
            elements.write(self.low, self.base, self.key, value, self.node)
        elif isinstance(self.base, (SwizzledView, CoordinateView)):
            from ferrule.language.lowering.tensors import arranged

            arranged.write(self.low, self.base, self.key, value, self.node)
        elif isinstance(self.base, Fielded):
            from ferrule.language.lowering.tensors import fields

            fields.write(self.low, self.base, self.key, value, self.node)
        elif isinstance(self.base, Handle):
            from ferrule.language.lowering.objects import container_methods

            container_methods.write(self.low, self.base, self.key, value, self.node)
        else:
            self.low.state.changes += 1
            if is_run_time(value):
                mutation.require_inside(self.low, self.base, self.node)
            coercion.at_compile_time(
                self.low, self.node, lambda: self.base.__setitem__(self.key, value)
            )


@dataclass(frozen=True, slots=True)
class Attribute:
    """The target `owner.name` of an assignment, with the owner evaluated.

    An object that exists while compiling is changed as Python would; the run-time parts of records
    are values, which do not change.
    """

    low: Lowering
    node: ast.Attribute
    owner: Any

    def read(self) -> Any:
        """The attribute."""
        return get(self.low, self.owner, self.node.attr, self.node)

    def write(self, value: Any) -> None:
        """Stores a value as the attribute."""
        low, node, owner, name = self.low, self.node, self.owner, self.node.attr
        if is_registered(owner):
            from ferrule.language.lowering.objects import reflection

            reflection.assign(low, node, owner, value)
            return
        field = (
            structures.memory_of(getattr(owner, name, None))
            if structures.is_struct(owner)
            else None
        )
        if isinstance(field, PointerView):
            elements.write(low, field, (0,), value, node)
            return
        self._require_changeable()
        low.state.changes += 1
        if is_run_time(value):
            mutation.require_inside(low, owner, node)
            low.state.has_objects |= is_value_object(owner)
        coercion.at_compile_time(low, node, lambda: setattr(owner, name, value))
        if isinstance(owner, SimpleNamespace) and low.state.region is not None:
            low.state.region.sets.add((id(owner), name))

    def _require_changeable(self) -> None:
        low, node, owner = self.low, self.node, self.owner
        if is_record(owner):
            called = node.value.id if isinstance(node.value, ast.Name) else "a"
            low.fail(
                node,
                f"the fields of {describe(owner)} do not change in a compiled function",
                hint=f"make a new object: {called} = dataclasses.replace({called}, "
                f"{node.attr}=...)",
            )
        if isinstance(owner, (*RUN_TIME, *_UNCHANGED)):
            hint = "assign to a name, or to an element of a tensor"
            low.fail(node, f"{describe(owner)} has no attributes to assign to", hint=hint)


_UNCHANGED: Final = (type, ModuleType, FunctionType, MethodType)
"""What other code shares, so that a compilation does not change it."""


def attribute(low: Lowering, node: ast.Attribute) -> Attribute:
    """The place of an attribute, for an assignment."""
    return Attribute(low, node, low.evaluate(node.value))


def place(low: Lowering, node: ast.Subscript) -> Place:
    """The place of a subscript, for an assignment."""
    base = structures.memory_of(low.evaluate(node.value))
    if is_number_tensor(base):
        pointer, at = coordinates.number_element(low, base, node)
        return Place(low, node, pointer, (at,))
    if isinstance(base, (TensorView, PointerView, Fielded, SwizzledView, CoordinateView)):
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
    key = coercion.plain(low.evaluate(node.slice))
    if is_run_time(key):
        low.fail(
            node.slice,
            f"{type(base).__name__}s are indexed while compiling, "
            f"but this index is {describe(key)}",
            hint="loop over it with range_constexpr, or keep the values in a tensor",
        )
    return Place(low, node, base, key)
