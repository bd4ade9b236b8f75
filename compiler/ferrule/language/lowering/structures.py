"""Tuples, vectors and dataclasses as trees; branches join and loops carry their leaves."""

from __future__ import annotations

import typing
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields
from typing import Any

from ferrule.language.values import Fielded, Vector, is_record


def parts(value: Any) -> list[tuple[str, Any]] | None:
    """The items of a tuple, vector or dataclass, each with the suffix of its name in messages.

    None for anything else: a leaf.
    """
    if isinstance(value, tuple):
        return [(f"[{i}]", item) for i, item in enumerate(value)]
    if isinstance(value, Vector):
        return parts(value.items)
    if isinstance(value, Fielded):
        return [
            (path, item) for (path, _), item in zip(leaves(value.form), value.items, strict=True)
        ]
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
    if isinstance(template, Fielded):
        return Fielded(template.form, tuple(items), template.name)
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
    if isinstance(left, Fielded) and isinstance(right, Fielded):
        return same_form(left.form, right.form)
    return type(left) is type(right) and len(ours) == len(theirs)


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """The leaves of a tree, each with its place in it: `.mean`, `[1].x`."""
    found = parts(value)
    if found is None:
        yield path, value
        return
    for suffix, item in found:
        yield from leaves(item, path + suffix)


def mapped(emit: Callable[..., Any], *trees: Any) -> Any:
    """A tree with the results of `emit` for the leaves of these trees of one form."""
    columns = [parts(tree) for tree in trees]
    if columns[0] is None:
        return emit(*trees)
    rows = zip(*(column or () for column in columns), strict=True)
    return rebuild(trees[0], [mapped(emit, *(item for _, item in row)) for row in rows])


def same_form(left: Any, right: Any) -> bool:
    """Whether two trees have the same classes with as many items; the leaves are not compared."""
    ours, theirs = parts(left), parts(right)
    if ours is None or theirs is None:
        return ours is theirs
    pairs = zip(ours, theirs, strict=False)
    return alike(left, right) and all(same_form(a, b) for (_, a), (_, b) in pairs)


def hints(of: Any) -> dict[str, Any]:
    """The annotations of a class or function."""
    try:
        return typing.get_type_hints(of)
    except Exception:  # names for type checkers only
        return dict(getattr(of, "__annotations__", {}))
