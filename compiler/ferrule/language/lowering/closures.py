"""Functions that are defined inside a compiled function."""

from __future__ import annotations

import ast
from collections import ChainMap
from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any, NoReturn, cast

from ferrule.language.lowering.context import Frame, Lowering
from ferrule.language.source import Source
from ferrule.language.values import is_run_time
from ferrule.specs.deferred import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class Closure:
    """A lambda or a nested def: its source, whose outer names are those of the enclosing frame.

    They are read when it is called, as in Python; its defaults are evaluated at the definition.
    """

    source: Source

    @property
    def words(self) -> str:
        """Its name in messages."""
        is_lambda = isinstance(self.source.node, ast.Lambda)
        kind = "lambda" if is_lambda else f"function {self.source.name!r}"
        return f"the {kind} of line {self.source.node.lineno}"

    def reached(self) -> Iterator[tuple[str, Any]]:
        """The values that it can change: the defaults, and the values of outer names."""
        yield from self.source.defaults.items()
        names = {node.id for node in ast.walk(self.source.node) if isinstance(node, ast.Name)}
        for name in sorted(names):
            if name in self.source.outer:
                yield name, self.source.outer[name]

    def __call__(self, *args: object, **kwargs: object) -> NoReturn:
        raise TypeError("a function that is defined in a compiled function is called only there")


def visible_from(frame: Frame) -> Mapping[str, Any]:
    """The names that a function or comprehension inside this frame sees; the mapping is live."""
    return ChainMap(frame.names, cast("MutableMapping[str, Any]", frame.source.outer))


def close(low: Lowering, node: ast.FunctionDef | ast.Lambda) -> Closure:
    """The closure of a lambda or a nested def."""
    if isinstance(node, ast.FunctionDef) and node.decorator_list:
        low.fail(
            node.decorator_list[0],
            "a decorator inside a compiled function is not supported",
            hint=f"define {node.name} outside of it",
        )
    defaults = {name: low.evaluate(value) for name, value in _defaults(node.args)}
    return Closure(low.frame.source.nested(node, visible_from(low.frame), defaults))


def _defaults(arguments: ast.arguments) -> Iterator[tuple[str, ast.expr]]:
    positional = [*arguments.posonlyargs, *arguments.args]
    given = positional[len(positional) - len(arguments.defaults) :]
    for arg, value in zip(given, arguments.defaults, strict=True):
        yield arg.arg, value
    for arg, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        if default is not None:
            yield arg.arg, default


def captured(closure: Closure) -> str | None:
    """The name of a run-time value that a closure captures, or None."""
    done: set[Closure] = set()
    todo = [closure]
    while todo:
        source = todo.pop().source
        own = {arg.arg for arg in ast.walk(source.node) if isinstance(arg, ast.arg)}
        names = [node for node in ast.walk(source.node) if isinstance(node, ast.Name)]
        own |= {node.id for node in names if isinstance(node.ctx, ast.Store)}
        for name in {node.id for node in names} - own:
            value = source.outer.get(name)
            if is_run_time(value):
                return name
            if isinstance(value, Closure) and value not in done:
                done.add(value)
                todo.append(value)
        if is_run_time(dict(source.defaults)):
            return next(name for name, value in source.defaults.items() if is_run_time(value))
    return None
