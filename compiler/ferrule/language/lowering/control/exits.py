"""Early exits: `return`, `break`, `continue`.

Three names that no program can have, the keywords, record whether a function, a loop or an
iteration is over.  Each is False, True or a run-time Boolean, and is joined by branches and carried
by loops like any other name.  A larger exit implies the smaller ones: a `return` sets all three, a
`break` also that of the iteration, which decides whether code still runs.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Any, Final

from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.control.joins import NOTHING, RETURNED
from ferrule.language.lowering.descriptions import describe
from ferrule.language.values import Number, Undefined
from ferrule.specs.deferred import dataclass

RETURN: Final = "return"
BREAK: Final = "break"
CONTINUE: Final = "continue"
VALUE: Final = RETURNED
"""The return value, if the function has returned; else `NOTHING`."""

FLAGS: Final = (RETURN, BREAK, CONTINUE)
RUNNING: Final[dict[str, Any]] = {RETURN: False, BREAK: False, CONTINUE: False}
START: Final[dict[str, Any]] = {**RUNNING, VALUE: NOTHING}
LABELS: Final = {VALUE: "the returned value"}

_ENDED_BY: Final = {RETURN: FLAGS, BREAK: (BREAK, CONTINUE), CONTINUE: (CONTINUE,)}


@dataclass(frozen=True, slots=True)
class Returned:
    """A function ended with this value, always or under a run-time condition."""

    value: Any
    always: bool = True


def leave(low: Lowering, how: str) -> None:
    """No code after this runs, up to the end of the function, the loop or the iteration."""
    low.names.update(dict.fromkeys(_ENDED_BY[how], True))


def gone(names: dict[str, Any]) -> bool | Number:
    """Whether control has left, so that the rest of the block does not run."""
    flag: bool | Number = names.get(CONTINUE, False)
    return flag


def dead(names: dict[str, Any]) -> bool:
    """Whether the function is certainly over, so that names have no more uses."""
    return names.get(RETURN) is True


def returned(low: Lowering) -> Returned | None:
    """The exit of the function; None if it reached its end."""
    flag = low.names.get(RETURN, False)
    if flag is False:
        return None
    value = low.names.get(VALUE, NOTHING)
    return Returned(None if value is NOTHING else value, always=flag is True)


def result(low: Lowering, node: ast.AST, name: str) -> Any:
    """The result of a function for its caller, after its body was lowered."""
    end = returned(low)
    if end is None or end.value is None:
        return None
    if isinstance(end.value, Undefined) and end.value.error is not None:
        raise end.value.error
    if not end.always:
        low.fail(
            node,
            f"{name} returns {describe(end.value)} on one way and nothing on another",
            expected="a value on every way",
            hint="end the function with a return of a value of the same type",
        )
    return end.value


def ways_out(body: Iterable[ast.stmt]) -> set[str]:
    """The exits in a loop's body, `BREAK` and `RETURN`, without those of nested functions."""
    found: set[str] = set()

    def visit(node: ast.AST, *, inner: bool) -> None:
        match node:
            case ast.Return():
                found.add(RETURN)
            case ast.Break() if not inner:
                found.add(BREAK)
            case ast.FunctionDef() | ast.Lambda() | ast.ClassDef():
                return
            case ast.For() | ast.While():
                for each in node.orelse:
                    visit(each, inner=inner)
                for each in node.body:
                    visit(each, inner=True)
                return
        for child in ast.iter_child_nodes(node):
            visit(child, inner=inner)

    for statement in body:
        visit(statement, inner=False)
    return found


def leaves_around(orelse: Iterable[ast.stmt]) -> bool:
    """Whether the else of a loop has a `break` or `continue` for the enclosing loop."""
    stack: list[ast.AST] = list(orelse)
    while stack:
        match node := stack.pop():
            case ast.Break() | ast.Continue():
                return True
            case ast.FunctionDef() | ast.Lambda() | ast.ClassDef():
                continue
            case ast.For() | ast.While():
                stack += node.orelse
            case _:
                stack += ast.iter_child_nodes(node)
    return False
