"""How a kernel of Warp indexes its arrays, as its text says it: by which indices of the launch, by
which numbers, or by what cannot be told.

An index of the launch is a name that is assigned once, from `wp.tid()`.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

_FACTS: Final = ("shape", "strides", "size", "ndim", "dtype")
"""What a kernel asks an array without reading its elements."""
_ATOMIC: Final = "atomic_"


@dataclass(slots=True)
class Indices:
    """The indices of an array, by its axes.

    `launched` are pairs of an axis and the launch's; `least` is how many elements the numbers that
    index an axis need; `unknown` are the axes that something else indexes too.
    """

    launched: set[tuple[int, int]] = field(default_factory=set)
    least: dict[int, int] = field(default_factory=dict)
    unknown: set[int] = field(default_factory=set)


def indices_of(tree: ast.AST | None, path: str, rank: int) -> Indices:
    """Those of the array at a path, a parameter or a field of one, "options.weights"; `rank` is the
    number of its axes.  Nothing is known without a text."""
    found = Indices()
    if tree is None:
        found.unknown.update(range(rank))
        return found
    launched = _launched(tree)
    for indices in _uses(tree, path):
        for axis, index in enumerate(indices[:rank]):  # the others are those of a vector
            _note(found, launched, axis, index)
        found.unknown.update(range(len(indices), rank))
    return found


def _note(found: Indices, launched: dict[str, int], axis: int, index: ast.expr) -> None:
    match index:
        case ast.Name(id=name) if name in launched:
            found.launched.add((axis, launched[name]))
        case ast.Call() if _is_tid(index):
            found.launched.add((axis, 0))
        case ast.Constant(value=int() as number) if number >= 0:
            found.least[axis] = max(found.least.get(axis, 0), number + 1)
        case _:
            found.unknown.add(axis)


def _launched(tree: ast.AST) -> dict[str, int]:
    """The names that are an index of the launch, with its axis."""
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
    """The indices of each use of an array, as many as are said."""
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
    """What is indexed, and the indices, those of `x[i][j]` too."""
    if not isinstance(node, ast.Subscript):
        return node, []
    array, indices = _flat(node.value)
    inner = node.slice
    return array, indices + (inner.elts if isinstance(inner, ast.Tuple) else [inner])


def _text(node: ast.AST) -> str | None:
    """A name with the fields behind it; None for anything else."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=name):
            owner = _text(value)
            return owner and f"{owner}.{name}"
    return None


def _is_atomic(function: ast.expr) -> bool:
    """Whether it is an atomic function with the indices between array and value."""
    name = (_text(function) or "").rpartition(".")[2]
    return name.startswith(_ATOMIC) and name != "atomic_cas"
