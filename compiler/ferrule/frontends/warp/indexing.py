"""How a kernel of Warp indexes its arrays, according to its source: by indices of the launch, by
numbers, or by values that are not known.

An index of the launch is a name that is assigned once, from `wp.tid()`.  A number is a constant, an
outer variable that the kernel reads, or computed from these.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from operator import add, floordiv, lshift, mod, mul, neg, pos, rshift, sub
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from ferrule.frontends.captured import own_values
from ferrule.specs.deferred import dataclass

_FACTS: Final = ("shape", "strides", "size", "ndim", "dtype")
"""Attributes of an array that a kernel uses without reading its elements."""
_ATOMIC: Final = "atomic_"
_SIGNS: Final[Mapping[type[ast.unaryop], Callable[[int], int]]] = MappingProxyType(
    {ast.USub: neg, ast.UAdd: pos}
)
_BINARY: Final[Mapping[type[ast.operator], Callable[[int, int], int]]] = MappingProxyType(
    {
        ast.Add: add,
        ast.Sub: sub,
        ast.Mult: mul,
        ast.FloorDiv: floordiv,
        ast.Mod: mod,
        ast.LShift: lshift,
        ast.RShift: rshift,
    }
)
_OF_NATURALS: Final = (ast.FloorDiv, ast.Mod, ast.LShift, ast.RShift)
"""Operations whose results are the same in C and in Python only if no operand is negative."""
_WIDEST: Final = 31
_NONE: Final[Mapping[str, int]] = MappingProxyType({})


@dataclass(slots=True)
class Indices:
    """The indices of an array, by its axes.

    `launched` are pairs of an axis and an axis of the launch; `least` is the number of elements
    that an axis needs for the numbers that index it; `unknown` are the axes that are also indexed
    by other values.
    """

    launched: set[tuple[int, int]] = field(default_factory=set)
    least: dict[int, int] = field(default_factory=dict)
    unknown: set[int] = field(default_factory=set)


def uses_tiles(tree: ast.AST) -> bool:
    """Whether a kernel loads, stores or makes tiles, and has none of values of its threads, of
    which each thread gives one."""
    called = {
        node.func.attr if isinstance(node.func, ast.Attribute) else ast.unparse(node.func)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
    }
    return any(name.startswith("tile_") for name in called) and not called & {"tile", "untile"}


def numbers_of(function: Any) -> dict[str, int]:
    """The integers that a kernel's function reads in addition to its arguments, with their current
    values, by their names, "N" or "settings.N"."""
    found = ((name, _integer(value)) for name, value in own_values(function))
    return {name: number for name, number in found if number is not None}


def _integer(value: Any) -> int | None:
    if hasattr(type(value), "_wp_scalar_type_"):  # A number of Warp's.
        value = getattr(value, "value", None)
    is_integer = isinstance(value, int | np.integer) and not isinstance(value, bool)
    return int(value) if is_integer else None


def indices_of(
    tree: ast.AST | None, path: str, rank: int, numbers: Mapping[str, int] = _NONE
) -> Indices:
    """The indices of the array at a path, which is a parameter or a field of one,
    "options.weights"; `rank` is the number of its axes, `numbers` are the outer integers by name.
    Without a source nothing is known."""
    found = Indices()
    if tree is None:
        found.unknown.update(range(rank))
        return found
    launched, own = _launched(tree), _own_names(tree)
    numbers = {name: each for name, each in numbers.items() if name.partition(".")[0] not in own}
    for indices in _uses(tree, path):
        for axis, index in enumerate(indices[:rank]):  # further ones index into a vector
            _note(found, launched, numbers, axis, index)
        found.unknown.update(range(len(indices), rank))
    return found


def _note(
    found: Indices,
    launched: Mapping[str, int],
    numbers: Mapping[str, int],
    axis: int,
    index: ast.expr,
) -> None:
    match index:
        case ast.Name(id=name) if name in launched:
            found.launched.add((axis, launched[name]))
        case ast.Call() if _is_tid(index):
            found.launched.add((axis, 0))
        case _:
            number = _number(index, numbers)
            if number is None or number < 0:
                found.unknown.add(axis)
            else:
                found.least[axis] = max(found.least.get(axis, 0), number + 1)


def _number(node: ast.expr, numbers: Mapping[str, int]) -> int | None:
    """The constant value of an index, in the 32 bits in which Warp computes it; None if it is not
    known."""
    found = _computed(node, numbers)
    return found if found is not None and -(1 << _WIDEST) <= found < 1 << _WIDEST else None


def _computed(node: ast.expr, numbers: Mapping[str, int]) -> int | None:
    match node:
        case ast.Constant(value=int() as number):
            return int(number)
        case ast.Name() | ast.Attribute():
            return numbers.get(_text(node) or "")
        case ast.UnaryOp(op=sign, operand=operand) if type(sign) in _SIGNS:
            signed = _number(operand, numbers)
            return None if signed is None else _SIGNS[type(sign)](signed)
        case ast.BinOp(left=left, op=operation, right=right) if type(operation) in _BINARY:
            return _combined(operation, _number(left, numbers), _number(right, numbers))
        case ast.Call(func=ast.Name(id="int"), args=[value], keywords=[]):
            return _number(value, numbers)
    return None


def _combined(operation: ast.operator, left: int | None, right: int | None) -> int | None:
    if left is None or right is None:
        return None
    if isinstance(operation, _OF_NATURALS) and (left < 0 or right < 0):
        return None
    if isinstance(operation, (ast.FloorDiv, ast.Mod)) and not right:
        return None
    if isinstance(operation, (ast.LShift, ast.RShift)) and right > _WIDEST:
        return None
    return _BINARY[type(operation)](left, right)


def _own_names(tree: ast.AST) -> set[str]:
    """The kernel's own names: parameters, and names that it assigns."""
    stored = (
        each.id
        for each in ast.walk(tree)
        if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load)
    )
    return {*stored, *(each.arg for each in ast.walk(tree) if isinstance(each, ast.arg))}


def _launched(tree: ast.AST) -> dict[str, int]:
    """The names that are indices of the launch, with their axes."""
    stored = Counter(
        each.id
        for each in ast.walk(tree)
        if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load)
    )
    found: dict[str, int] = {}
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if _is_tid(value):
                found[name] = 0
            case ast.Assign(targets=[ast.Tuple(elts=items)], value=value) if _is_tid(value):
                for axis, each in enumerate(items):
                    if isinstance(each, ast.Name):
                        found[each.id] = axis
    return {name: axis for name, axis in found.items() if stored[name] == 1}


def _is_tid(value: ast.expr) -> bool:
    match value:
        case ast.Call(func=ast.Name(id="tid") | ast.Attribute(value=ast.Name(), attr="tid")):
            return not value.args
    return False


def _uses(node: ast.AST, path: str) -> Iterator[Sequence[ast.expr]]:
    """The indices in each use of an array, which may be fewer than its axes."""
    match node:
        case ast.Subscript():
            array, indices = _flat(node)
            if _text(array) == path:
                yield indices
                for each in indices:
                    yield from _uses(each, path)
                return
        case ast.Call(func=function, args=[array, *indices, value]) if _text(
            array
        ) == path and _is_atomic(function):
            yield indices
            for each in (*indices, value):
                yield from _uses(each, path)
            return
        case ast.Attribute(value=array, attr=name) if name in _FACTS and _text(array) == path:
            return
        case ast.Name() | ast.Attribute() if _text(node) is not None:
            if f"{path}.".startswith(f"{_text(node)}."):
                yield ()
            return
        case ast.arg():
            return
    for child in ast.iter_child_nodes(node):
        yield from _uses(child, path)


def _flat(node: ast.expr) -> tuple[ast.expr, list[ast.expr]]:
    """The indexed value and all its indices, also for `x[i][j]`."""
    if not isinstance(node, ast.Subscript):
        return node, []
    array, indices = _flat(node.value)
    inner = node.slice
    return array, indices + (inner.elts if isinstance(inner, ast.Tuple) else [inner])


def _text(node: ast.AST) -> str | None:
    """A name with its chain of fields; None for any other expression."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=name):
            owner = _text(value)
            return owner and f"{owner}.{name}"
    return None


def _is_atomic(function: ast.expr) -> bool:
    """Whether it is an atomic function whose indices are between the array and the value."""
    name = (_text(function) or "").rpartition(".")[2]
    return name.startswith(_ATOMIC) and name != "atomic_cas"
