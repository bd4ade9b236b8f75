"""From a Python function to its AST, with what its names mean and where its lines are."""

from __future__ import annotations

import ast
import inspect
import os
import textwrap
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ferrule.compiler.artefacts import Location
from ferrule.compiler.errors import CompileError, Diagnostic, Span


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """A function's AST.  `outer` holds the names that it takes from around it (closure, globals).

    Lines and columns of the AST are those of the dedented text; `span` and `location` translate.
    """

    name: str
    node: ast.FunctionDef | ast.Lambda
    outer: Mapping[str, Any]
    file: str
    lines: tuple[str, ...]
    first_line: int
    dedent: int

    def span(self, node: ast.AST) -> Span:
        """The place of a node, cut to its first line."""
        line = getattr(node, "lineno", 1)
        column = getattr(node, "col_offset", 0)
        text = self.lines[line - 1] if line <= len(self.lines) else ""
        same_line = getattr(node, "end_lineno", line) == line
        end = getattr(node, "end_col_offset", len(text)) if same_line else len(text)
        return Span(self.file, self.name, self.first_line + line - 1, column, end, text)

    def location(self, node: ast.AST) -> Location:
        """The place of a node, as faults carry it."""
        return Location(self.file, self.name, self.first_line + getattr(node, "lineno", 1) - 1)

    def nested(self, node: ast.FunctionDef | ast.Lambda, outer: Mapping[str, Any]) -> Source:
        """A function that is defined inside this one."""
        name = getattr(node, "name", "<lambda>")
        return Source(name, node, outer, self.file, self.lines, self.first_line, self.dedent)


def read_source(function: Callable[..., Any]) -> Source:
    """The source of a Python function.

    Raises CompileError for what is no Python function, has no source that can be found, or is a
    lambda, a generator or a coroutine.
    """
    function = inspect.unwrap(function)
    if not isinstance(function, types.FunctionType):
        raise CompileError(f"{function!r} is no Python function, so it has no source to compile")
    _refuse_kinds(function)
    try:
        lines, first_line = inspect.getsourcelines(function)
    except (OSError, TypeError):
        raise CompileError(
            Diagnostic(
                f"the source of {function.__qualname__!r} cannot be found",
                expected="a function that is defined in a file",
                hint="write the function into a module; exec() and the plain prompt keep no source",
            )
        ) from None
    text = textwrap.dedent("".join(lines))
    tree = ast.parse(text)
    node = tree.body[0]
    if not isinstance(node, ast.FunctionDef):
        raise CompileError(f"{function.__qualname__!r} is not defined by a def statement")
    dedented = tuple(text.splitlines())
    dedent = len(lines[0].rstrip("\n")) - len(dedented[0])
    file = display_path(inspect.getsourcefile(function) or "<unknown>")
    outer = outer_names(function)
    return Source(function.__name__, node, outer, file, dedented, first_line, dedent)


def _refuse_kinds(function: types.FunctionType) -> None:
    if function.__name__ == "<lambda>":
        raise CompileError(
            Diagnostic("a lambda cannot be compiled by itself", hint="write a def statement")
        )
    if function.__code__.co_flags & (
        inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
    ):
        raise CompileError(
            f"{function.__qualname__!r} is a generator or a coroutine, which cannot be compiled"
        )


def outer_names(function: types.FunctionType) -> dict[str, Any]:
    """Globals and closure variables of a function, by name."""
    names = dict(function.__globals__)
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            names[name] = cell.cell_contents
        except ValueError:  # a variable that its function has not assigned yet
            names.pop(name, None)
    return names


def display_path(path: str) -> str:
    """A source path as messages show it: relative to the working directory where it is below it."""
    try:
        relative = os.path.relpath(path)
    except ValueError:  # another drive
        return path
    return path if relative.startswith("..") else relative
