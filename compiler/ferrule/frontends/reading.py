"""Facts about a kernel's arrays from its source: which are added to or read first, and which are
not read at all.  In case of doubt the unsafe one is assumed."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any, Final

from ferrule.specs import Tensor

_ATOMIC: Final = "atomic_"
_ADDS: Final = "adds to"
_READS: Final = "reads before it writes to it"
FILL: Final = "zero=[{0!r}] fills it"


def tree_of(function: Any) -> ast.AST | None:
    """The syntax tree of a function; None if its source is not available."""
    try:
        return ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):
        return None


def read_first(tree: ast.AST | None, names: tuple[str, ...]) -> dict[str, str]:
    """The arrays among `names` whose previous contents the source uses, and how.

    `_ADDS`: `h[i] += 1`, and arguments of atomic functions, such as `cuda.atomic.add` and
    `wp.atomic_add`.  `_READS`: the first read of an element, or of a tile with `load`, is above the
    first write.
    """
    if tree is None:
        return {}
    added = {name for node in ast.walk(tree) for name in _added(node)}
    first: dict[str, bool] = {}
    for name, is_read in _uses(tree):
        first.setdefault(name, is_read)
    return {
        name: _ADDS if name in added else _READS
        for name in names
        if name in added or first.get(name, False)
    }


def _uses(node: ast.AST) -> Iterator[tuple[str, bool]]:
    """The arrays whose elements are used, in the order of execution, and whether each use is a
    read."""
    match node:
        case ast.Assign(targets=targets, value=value):
            for part in (value, *targets):
                yield from _uses(part)
        case ast.Subscript(value=ast.Name(id=name), slice=index, ctx=context):
            yield from _uses(index)
            yield name, isinstance(context, ast.Load)
        case ast.Call(func=ast.Attribute(attr="load" | "store" as called), args=[to, *more]):
            for given in (*more, *node.keywords):
                yield from _uses(given)
            for each in ast.walk(to):
                if isinstance(each, ast.Name):
                    yield each.id, called == "load"
        case _:
            for child in ast.iter_child_nodes(node):
                yield from _uses(child)


def remarks_on(
    name: str, function: Any, results: Sequence[str], advice: str
) -> dict[str, list[str]]:
    """Remarks on results that are not filled and that a function adds to, or reads before it writes
    them; each is also a `BuildWarning`.  `advice` explains how to fill one."""
    from ferrule.compiler.assumptions import REMARKS, warn

    remarks = [
        f"{each} is a result that the function {how}, and begins with what was in the memory "
        f"before: {advice.format(each)}"
        for each, how in (read_first(tree_of(function), tuple(results)) if results else {}).items()
    ]
    warn(name, remarks)
    return {REMARKS: remarks} if remarks else {}


def unfilled(results: Sequence[Tensor], zero: Any) -> list[str]:
    """The names of the results that are not filled with zeros, according to the argument `zero` of
    `compile`."""
    filled = (zero,) if isinstance(zero, str) else zero
    names = [each.name for each in results]
    return [] if zero is True else [each for each in names if each not in (filled or ())]


def _added(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.AugAssign(target=ast.Subscript(value=ast.Name(id=name))):
            yield name
        case ast.Call(func=function, args=[first, *_]) if _is_atomic(function):
            for each in ast.walk(first):
                if isinstance(each, ast.Name):
                    yield each.id


def _is_atomic(function: ast.expr) -> bool:
    text = ast.unparse(function)
    return ".atomic." in text or text.rpartition(".")[2].startswith(_ATOMIC)


def is_unread(tree: ast.AST | None, path: str) -> bool:
    """Whether the source names only other fields of a parameter, and so does not use the array at
    this path."""
    if tree is None:
        return False
    return not any(_reaches(ast.unparse(each), path) for each in _chains(tree))


def _chains(node: ast.AST) -> Iterator[ast.expr]:
    """The names that are used, each with its chain of fields: `x`, `options.weights`."""
    if isinstance(node, ast.Name) or (isinstance(node, ast.Attribute) and _is_dotted(node)):
        yield node
        return
    for child in ast.iter_child_nodes(node):
        yield from _chains(child)


def _is_dotted(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) or (
        isinstance(node, ast.Attribute) and _is_dotted(node.value)
    )


def _reaches(used: str, path: str) -> bool:
    """Whether the used name is the path itself, a prefix of it, or an extension of it."""
    return f"{path}.".startswith(f"{used}.") or used.startswith(f"{path}.")
