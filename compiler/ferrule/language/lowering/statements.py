"""Statements: the interpreter's other half.

`execute` gives a `Returned` where a statement returned, else None.
"""

from __future__ import annotations

import ast
import builtins
from dataclasses import dataclass
from typing import Any, Final

from ferrule.language.lowering import calls, control, elements, operators
from ferrule.language.lowering.closures import Closure
from ferrule.language.lowering.context import Lowering
from ferrule.language.values import KernelCall, Number


@dataclass(frozen=True, slots=True)
class Returned:
    """A function ended with this value."""

    value: Any


def execute(low: Lowering, body: list[ast.stmt]) -> Returned | None:
    """Runs statements in order, up to the first that returns."""
    for statement in body:
        returned = _statement(low, statement)
        if returned is not None:
            return returned
    return None


def _statement(low: Lowering, node: ast.stmt) -> Returned | None:
    match node:
        case ast.Expr(value=value):
            _expression(low, value)
        case ast.Assign(targets=targets, value=value):
            result = low.evaluate(value)
            for target in targets:
                elements.bind(low, target, result)
        case ast.AnnAssign(target=target, value=value):
            _annotated(low, node)
        case ast.AugAssign():
            _augmented(low, node)
        case ast.If():
            return _if(low, node)
        case ast.For():
            return _for(low, node)
        case ast.While():
            return _while(low, node)
        case ast.Return(value=value):
            return _return(low, node, value)
        case ast.FunctionDef(name=name):
            visible = {**low.frame.source.outer, **low.names}
            low.names[name] = Closure(low.frame.source.nested(node, visible))
        case ast.Pass():
            pass
        case ast.Assert():
            _assert(low, node)
        case _:
            _unsupported(low, node)
    return None


_UNSUPPORTED: Final[dict[type[ast.stmt], tuple[str, str]]] = {
    ast.Break: ("break", "put the condition into the loop's own, with while"),
    ast.Continue: ("continue", "put the rest of the loop's body under an if"),
    ast.Import: ("import", "import at the top of the module"),
    ast.ImportFrom: ("import", "import at the top of the module"),
    ast.Global: ("global", "pass the value as an argument"),
    ast.Nonlocal: ("nonlocal", "pass the value as an argument"),
    ast.Try: ("try", "check the condition with if"),
    ast.Raise: ("raise", "check arguments where the function is called"),
    ast.With: ("with", "do it outside of the compiled function"),
    ast.Delete: ("del", "just leave the name alone"),
    ast.ClassDef: ("class", "define the class outside"),
    ast.Match: ("match", "write if and elif"),
}


def _unsupported(low: Lowering, node: ast.stmt) -> None:
    name, hint = _UNSUPPORTED.get(type(node), (type(node).__name__, "write it in another way"))
    low.fail(node, f"{name} is not supported in a compiled function", hint=hint)


def _expression(low: Lowering, node: ast.expr) -> None:
    if isinstance(node, ast.Constant):  # a docstring, or `...`
        return
    value = low.evaluate(node)
    if isinstance(value, KernelCall):
        low.fail(
            node,
            "the kernel is called but never launched",
            expected="kernel(a, b).launch(grid=..., block=...)",
        )


def _annotated(low: Lowering, node: ast.AnnAssign) -> None:
    """`x: Float32 = value` converts to the annotated dtype; other annotations say nothing."""
    if node.value is None:
        return
    value = low.evaluate(node.value)
    annotation = low.evaluate(node.annotation)
    elements.bind(low, node.target, calls.annotated(low, value, annotation, node))


def _augmented(low: Lowering, node: ast.AugAssign) -> None:
    load = ast.copy_location(_as_load(node.target), node.target)
    current = low.evaluate(load)
    value = operators.binary(low, node.op, current, low.evaluate(node.value), node)
    elements.bind(low, node.target, value)


def _as_load(target: ast.expr) -> ast.expr:
    match target:
        case ast.Name(id=name):
            return ast.Name(name, ast.Load())
        case ast.Subscript(value=value, slice=index):
            return ast.Subscript(value, index, ast.Load())
        case ast.Attribute(value=value, attr=attr):
            return ast.Attribute(value, attr, ast.Load())
    return target


def _if(low: Lowering, node: ast.If) -> Returned | None:
    condition = operators.truth(low, low.evaluate(node.test), node.test)
    if isinstance(condition, bool):
        return execute(low, node.body if condition else node.orelse)
    control.branch(low, condition, node)
    return None


def _for(low: Lowering, node: ast.For) -> Returned | None:
    if node.orelse:
        low.fail(node.orelse[0], "else of a loop is not supported in a compiled function")
    call = node.iter
    if isinstance(call, ast.Call) and low.evaluate(call.func) is builtins.range:
        if call.keywords:
            low.fail(call, "range takes no keyword arguments")
        control.for_range(low, node, [low.evaluate(argument) for argument in call.args])
        return None
    for item in control.compile_time_items(low, low.evaluate(call), call):
        elements.bind(low, node.target, item)
        returned = execute(low, node.body)
        if returned is not None:
            return returned
    return None


def _while(low: Lowering, node: ast.While) -> Returned | None:
    if node.orelse:
        low.fail(node.orelse[0], "else of a loop is not supported in a compiled function")
    if isinstance(node.test, ast.Constant) and not node.test.value:
        return None
    control.while_loop(low, node)
    return None


def _return(low: Lowering, node: ast.Return, value: ast.expr | None) -> Returned:
    if low.frame.regions:
        low.fail(
            node,
            "return inside a run-time branch or loop is not supported",
            hint="assign the result to a name and return it at the end",
        )
    return Returned(None if value is None else low.evaluate(value))


def _assert(low: Lowering, node: ast.Assert) -> None:
    """An assert on what is known at compile time; one at run time is not supported."""
    condition = operators.truth(low, low.evaluate(node.test), node.test)
    if isinstance(condition, Number):
        low.fail(
            node,
            "assert on a run-time value is not supported",
            hint="check it where the function is called",
        )
    if not condition:
        message = "" if node.msg is None else f": {low.evaluate(node.msg)}"
        low.fail(node, f"assertion failed at compile time{message}")
