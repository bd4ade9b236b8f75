"""What the text of a kernel says of its arrays: which of them are added to or read first, and which
are not read at all.  What cannot be told counts as the unsafe of the two."""

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
    """The syntax tree of a function; None where its text is not to be had."""
    try:
        return ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):
        return None


def read_first(tree: ast.AST | None, names: tuple[str, ...]) -> dict[str, str]:
    """The arrays among `names` of which the text reads what was there before, and what it does.

    `_ADDS`: `h[i] += 1`, and what is handed to an atomic function, as `cuda.atomic.add` and
    `wp.atomic_add`.  `_READS`: an element, or with `load` a tile, is read further above than one is
    written."""
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
    """The arrays of which elements are used, in the order in which that happens, and whether they
    are read."""
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
    """Notes on results, of those that are not filled, which a function adds to, or reads before
    it writes to them: each is also a `BuildWarning`.  `advice` says how one is filled."""
    from ferrule.compiler.assumptions import REMARKS, warn

    remarks = [
        f"{each} is a result that the function {how}, and begins with what was in the memory "
        f"before: {advice.format(each)}"
        for each, how in (read_first(tree_of(function), tuple(results)) if results else {}).items()
    ]
    warn(name, remarks)
    return {REMARKS: remarks} if remarks else {}


def unfilled(results: Sequence[Tensor], zero: Any) -> list[str]:
    """The names of the results that are not filled with zeros, as `zero` of `compile` says."""
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
    """Whether the text names other fields of a parameter alone, and so does not use the array at
    this path."""
    if tree is None:
        return False
    return not any(_reaches(ast.unparse(each), path) for each in _chains(tree))


def _chains(node: ast.AST) -> Iterator[ast.expr]:
    """The names that are used, each with the fields behind it: `x`, `options.weights`."""
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
    """Whether what is used is what stands at a path, has it as a field, or is a part of it."""
    return f"{path}.".startswith(f"{used}.") or used.startswith(f"{path}.")
