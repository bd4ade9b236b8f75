"""Tuples, vectors and dataclasses as trees; branches join and loops carry their leaves."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from ferrule.language.values import Vector, is_record


def parts(value: Any) -> list[tuple[str, Any]] | None:
    """The items of a tuple, vector or dataclass, each with the suffix of its name in messages.

    None for anything else: a leaf.
    """
    if isinstance(value, tuple):
        return [(f"[{i}]", item) for i, item in enumerate(value)]
    if isinstance(value, Vector):
        return parts(value.items)
    if is_record(value):
        return [(f".{each.name}", getattr(value, each.name, None)) for each in fields(value)]
    return None


def rebuild(template: Any, items: Iterable[Any]) -> Any:
    """A tuple, vector or dataclass like the template, with these items.

    A dataclass is filled without calling its constructor, whose checks could not read run-time
    values.
    """
    if isinstance(template, Vector):
        return Vector(template.shape, tuple(items))
    if isinstance(template, tuple):
        return tuple.__new__(type(template), tuple(items))
    return fill(type(template), zip([f.name for f in fields(template)], items, strict=True))


def fill(cls: type, values: Iterable[tuple[str, Any]]) -> Any:
    """An instance of a dataclass with these fields, without calling its constructor."""
    instance: Any = object.__new__(cls)
    for name, value in values:
        object.__setattr__(instance, name, value)
    return instance


def alike(left: Any, right: Any) -> bool:
    """Whether two values are of one class with the same number of items."""
    ours, theirs = parts(left), parts(right)
    if ours is None or theirs is None:
        return False
    if isinstance(left, Vector) and isinstance(right, Vector) and left.shape != right.shape:
        return False
    return type(left) is type(right) and len(ours) == len(theirs)
