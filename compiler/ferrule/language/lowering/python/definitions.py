"""Classes that are defined inside of a compiled function: ordinary Python, run while compiling."""

from __future__ import annotations

import ast
import builtins
import linecache
from types import SimpleNamespace
from typing import Any

from ferrule.language.lowering.closures import Closure, visible_from
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.numbers import coercion
from ferrule.language.source import Source
from ferrule.language.values import Undefined, is_run_time


def class_(low: Lowering, node: ast.ClassDef) -> Any:
    """The class, whose methods are compiled in place like others.

    What it uses of the function around it must be known while compiling.
    """
    outer = visible_from(low.frame)
    used = {each.id: each for each in ast.walk(node) if isinstance(each, ast.Name)}
    own = {each.id for each in used.values() if isinstance(each.ctx, ast.Store)}
    own |= {each.arg for each in ast.walk(node) if isinstance(each, ast.arg)}
    names: dict[str, Any] = {"__name__": outer.get("__name__", "__main__")}
    for name, place in used.items():
        if name in own or name not in outer:
            continue
        value = low.lookup(name, place)
        if is_run_time(value):
            value = _attributes(low, node, name) or value
        if is_run_time(value) or isinstance(value, Undefined | Closure):
            low.fail(
                place,
                f"the class {node.name} uses {name!r}, which is not known while compiling",
                hint="pass it to a method",
            )
        names[name] = value
    if low.state.region is not None:
        low.state.region.runs(*names.values())
    file = _file(low.frame.source)
    code = coercion.at_compile_time(
        low, node, lambda: compile(ast.Module([node], []), file, "exec", dont_inherit=True)
    )
    names["__builtins__"] = builtins
    coercion.at_compile_time(low, node, lambda: exec(code, names))
    return names[node.name]


def _attributes(low: Lowering, node: ast.ClassDef, name: str) -> SimpleNamespace | None:
    """The attributes of a run-time value that the annotations of a class name, such as
    `a.element_type`; None if it uses the value otherwise, or one is not known while compiling."""
    uses = sum(isinstance(each, ast.Name) and each.id == name for each in ast.walk(node))
    inside = [
        each
        for statement in node.body
        if isinstance(statement, ast.AnnAssign)
        for each in ast.walk(statement.annotation)
        if isinstance(each, ast.Attribute)
        and isinstance(each.value, ast.Name)
        and each.value.id == name
    ]
    found = {each.attr: low.evaluate(each) for each in inside} if uses == len(inside) else {}
    return SimpleNamespace(**found) if found and not is_run_time(list(found.values())) else None


def _file(source: Source) -> str:
    """A name under which the text of a function is found, for the methods of its classes."""
    file = f"<{source.file}, line {source.first_line}, in {source.name}>"
    lines = ["\n"] * (source.first_line - 1) + [f"{line}\n" for line in source.lines]
    linecache.cache[file] = (sum(map(len, lines)), None, lines, file)
    return file
