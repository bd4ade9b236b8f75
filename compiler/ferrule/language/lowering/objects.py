"""Lists, dicts, sets and objects exist only while compiling.

What a run-time condition decides must not change them: both sides of a branch are lowered, and the
body of a loop once.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from typing import Any, Final

from ferrule.language.lowering.context import Lowering
from ferrule.language.values import RUN_TIME

_END: Final = object()
_USED: Final = "names_that_are_used"
"""Attribute of a syntax tree's nodes."""
_CONTAINERS: Final = (list, dict, set, tuple)


@contextmanager
def unchanged(low: Lowering, node: ast.AST) -> Iterator[None]:
    """Refuses code that changes an object from before it, under the run-time condition `node`."""
    before = {name: (value, _content(value)) for name, value in _containers(low, node)}
    yield
    for name, (value, content) in before.items():
        now = _content(value)
        if len(now) != len(content) or any(a is not b for a, b in zip(now, content, strict=True)):
            low.fail(
                node,
                f"the {type(value).__name__} {name!r} is changed inside a run-time branch or loop",
                expected="changes that happen at compile time, outside of it",
            )


def _containers(low: Lowering, node: ast.AST) -> Iterator[tuple[str, Any]]:
    """The containers that code in this node can reach by a name."""
    used = _used_names(node)
    for name in (*low.names, *sorted(used - low.names.keys())):
        value = low.peek(name)
        if _has_parts(value):
            yield name, value


def _used_names(node: ast.AST) -> frozenset[str]:
    """The names in a node.

    They are kept with each node inside of it: branches in branches are asked for one by one.
    """
    if not hasattr(node, _USED):
        for inner in reversed(list(ast.walk(node))):  # parts first
            own = [inner.id] if isinstance(inner, ast.Name) else []
            parts = [getattr(part, _USED) for part in ast.iter_child_nodes(inner)]
            setattr(inner, _USED, frozenset(own).union(*parts))
    found: frozenset[str] = getattr(node, _USED)
    return found


def _content(value: Any) -> list[Any]:
    """Everything in a container, and in those inside it, in one order; to be compared by `is`."""
    result: list[Any] = []
    seen: set[int] = set()

    def visit(item: Any) -> None:
        result.append(item)
        if id(item) not in seen and _has_parts(item):
            seen.add(id(item))
            for inner in _parts(item):
                visit(inner)
            result.append(_END)

    visit(value)
    return result


def _has_parts(item: Any) -> bool:
    if isinstance(item, (*RUN_TIME, type)):
        return False
    return isinstance(item, _CONTAINERS) or is_dataclass(item)


def _parts(item: Any) -> list[Any]:
    if isinstance(item, dict):
        return [part for pair in item.items() for part in pair]
    if isinstance(item, _CONTAINERS):
        return list(item)
    return [getattr(item, each.name, None) for each in fields(item)]
