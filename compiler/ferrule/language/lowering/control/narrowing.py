"""Narrowing of optional and union parameters by a condition, for its two sides.

`if a is None`, `if a is not None`, `if isinstance(a, fe.Tensor)`, their `not`, and parts of an
`and` or `or`: on the side where the condition implies that the parameter is present, the name has
its value.
"""

from __future__ import annotations

import ast
import builtins
from dataclasses import field
from typing import Any

from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.objects.parameters import is_kind
from ferrule.language.values import Handle, Maybe, OneOf
from ferrule.specs.deferred import dataclass


@dataclass(frozen=True, slots=True)
class Narrowed:
    """The names that a condition narrows if it is true, and if it is false."""

    true: dict[str, Any] = field(default_factory=dict)
    false: dict[str, Any] = field(default_factory=dict)


def narrow(low: Lowering, test: ast.expr) -> Narrowed:
    """The narrowed names of a condition."""
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            inner = narrow(low, operand)
            return Narrowed(inner.false, inner.true)
        case ast.BoolOp(op=ast.And(), values=values):
            parts = [narrow(low, value) for value in values]
            return Narrowed({k: v for part in parts for k, v in part.true.items()})
        case ast.BoolOp(op=ast.Or(), values=values):
            parts = [narrow(low, value) for value in values]
            return Narrowed(false={k: v for part in parts for k, v in part.false.items()})
        case ast.Compare(left=ast.Name(id=name), ops=[op], comparators=[ast.Constant(value=None)]):
            return _none(low.peek(name), name, op)
        case ast.Call(func=func, args=[ast.Name(id=name), kinds], keywords=[]):
            value = low.peek(name)
            if not isinstance(value, (OneOf, Handle)):
                return Narrowed()
            if low.evaluate(func) is not builtins.isinstance:
                return Narrowed()
            if isinstance(value, OneOf):
                return _kinds(value, name, low.evaluate(kinds))
            from ferrule.language.lowering.objects import any_values

            found = any_values.assumed(low, value, low.evaluate(kinds), test)
            return Narrowed() if found is None else Narrowed({name: found})
    return Narrowed()


def _none(value: Any, name: str, op: ast.cmpop) -> Narrowed:
    if not isinstance(value, Maybe) or not isinstance(op, (ast.Is, ast.IsNot)):
        return Narrowed()
    present, absent = {name: value.item}, {name: None}
    return Narrowed(present, absent) if isinstance(op, ast.IsNot) else Narrowed(absent, present)


def _kinds(value: OneOf, name: str, wanted: Any) -> Narrowed:
    inside = {i: m for i, m in value.members.items() if is_kind(m[0], wanted)}
    outside = {i: m for i, m in value.members.items() if i not in inside}
    return Narrowed(_among(value, name, inside), _among(value, name, outside))


def _among(value: OneOf, name: str, members: dict[int, Any]) -> dict[str, Any]:
    """The name with fewer members; with one, the member itself."""
    if not members:
        return {}
    if len(members) == 1:
        ((_, member),) = members.values()
        return {name: member}
    return {name: OneOf(value.tag, members, value.name)}
