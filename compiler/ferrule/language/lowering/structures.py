"""Tuples, vectors and dataclasses as trees; branches join and loops carry their leaves."""

from __future__ import annotations

import typing
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields, replace
from typing import Any, Final

from ferrule.language.values import (
    Begin,
    ComplexNumber,
    CoordinateView,
    Fielded,
    SwizzledView,
    ThreadSlice,
    Vector,
    is_record,
    is_value_object,
)

_MOST: Final = 1 << 30


def parts(value: Any) -> list[tuple[str, Any]] | None:
    """The items of a tuple, vector, dataclass or object of values, each with the suffix of its name
    in messages.

    None for anything else: a leaf.
    """
    if isinstance(value, tuple):
        return [(f"[{i}]", item) for i, item in enumerate(value)]
    if isinstance(value, Vector):
        return parts(value.items)
    if isinstance(value, ComplexNumber):
        return [(".real", value.real), (".imag", value.imag)]
    if isinstance(value, Fielded):
        return [
            (path, item) for (path, _), item in zip(leaves(value.form), value.items, strict=True)
        ]
    if isinstance(value, CoordinateView):
        return parts(value.origin)
    if isinstance(value, SwizzledView):
        begin = value.begin
        return [("", begin.known if begin.number is None else begin.number)]
    if isinstance(value, ThreadSlice):
        return [("", value.thread)]
    if is_record(value):
        return [(f".{each.name}", getattr(value, each.name, None)) for each in fields(value)]
    if is_value_object(value):
        return [(f".{name}", item) for name, item in vars(value).items()]
    return None


def rebuild(template: Any, items: Iterable[Any]) -> Any:
    """A tuple, vector or dataclass like the template, with these items.

    A dataclass is filled without calling its constructor, whose checks could not read run-time
    values.
    """
    if isinstance(template, Vector):
        return Vector(template.shape, tuple(items))
    if isinstance(template, ComplexNumber):
        return ComplexNumber(*items)
    if isinstance(template, Fielded):
        return Fielded(template.form, tuple(items), template.name)
    if isinstance(template, CoordinateView):
        return replace(template, origin=tuple(items))
    if isinstance(template, SwizzledView):
        (item,) = items
        return replace(template, begin=_begin(template.begin, item))
    if isinstance(template, ThreadSlice):
        return replace(template, thread=next(iter(items)))
    if isinstance(template, tuple):
        # The constructor of a named tuple takes its fields one by one, and may be the user's.
        return tuple.__new__(type(template), tuple(items))
    if is_value_object(template):
        return fill(type(template), zip(vars(template), items, strict=True))
    return fill(type(template), zip([f.name for f in fields(template)], items, strict=True))


def _begin(like: Begin, item: Any) -> Begin:
    """The beginning of a swizzled tensor after a join: all that is known is what it divides by."""
    if isinstance(item, int):
        return Begin(item)
    known = like.known if like.number is not None else 0
    return Begin(known, item, -step_of(like))


def step_of(begin: Begin) -> int:
    """A power of two that is known to divide the run-time part of a beginning, or all of it if
    there is none."""
    bits = begin.known if begin.number is None else begin.bits
    return bits & -bits or _MOST


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
    if isinstance(left, CoordinateView) and isinstance(right, CoordinateView):
        return left.layout == right.layout and alike(left.origin, right.origin)
    if isinstance(left, SwizzledView) and isinstance(right, SwizzledView):
        return _alike_views(left, right)
    if isinstance(left, ThreadSlice) and isinstance(right, ThreadSlice):
        return bool(left.of == right.of)
    if isinstance(left, Fielded) and isinstance(right, Fielded):
        return same_form(left.form, right.form)
    same_names = not is_value_object(left) or list(vars(left)) == list(vars(right))
    return type(left) is type(right) and len(ours) == len(theirs) and same_names


def _alike_views(left: SwizzledView, right: SwizzledView) -> bool:
    """Whether two swizzled tensors differ at most in the run-time number of their beginnings."""
    same = left.root is right.root and left.inner == right.inner and left.layout == right.layout
    ours, theirs = left.begin, right.begin
    if (ours.number is None) != (theirs.number is None):
        return False
    known = ours.number is None or ours.known == theirs.known
    return (
        same and known and left.of_pointer == right.of_pointer and step_of(ours) == step_of(theirs)
    )


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


# ---- structs in shared memory ----

_STORAGE: Final = "ferrule.language.faces.pipelines.storage"
"""The module of their classes, which programs without a struct do not import."""


def is_struct(value: Any) -> bool:
    """Whether this is a struct in shared memory; its module is imported by programs with one."""
    return any(_is_of_storage(cls, "StructValue") for cls in type(value).__mro__)


def memory_of(value: Any) -> Any:
    """The pointer to a range of shared memory, which indices are of; any other value as it is."""
    return value.pointer if _is_of_storage(type(value), "MemRangeData") else value


def _is_of_storage(cls: type, name: str) -> bool:
    return cls.__name__ == name and cls.__module__ == _STORAGE
