"""Statements: the interpreter's other half.

`execute` gives a `Returned` where a statement returned, else None.
"""

from __future__ import annotations

import ast
import builtins
from dataclasses import dataclass
from typing import Any, Final

from ferrule.language.lowering import calls, control, elements, loops, operators
from ferrule.language.lowering.closures import close
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
            low.names[name] = close(low, node)
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
    ast.AsyncFunctionDef: ("async def", "write def"),
    ast.AsyncFor: ("async for", "write for"),
    ast.AsyncWith: ("async with", "do it outside of the compiled function"),
    ast.Match: ("match", "write if and elif"),
}


def _unsupported(low: Lowering, node: ast.stmt) -> None:
    name, hint = _UNSUPPORTED.get(type(node), (type(node).__name__, "write it in another way"))
    low.fail(node, f"{name} is not supported in a compiled function", hint=hint)


def _expression(low: Lowering, node: ast.expr) -> None:
    if isinstance(node, ast.Constant):  # a docstring, or `...`
        return
    value = low.decide(node) if isinstance(node, ast.BoolOp) else low.evaluate(node)
    if isinstance(value, KernelCall):
        raise low.state.unlaunched[value]


def _annotated(low: Lowering, node: ast.AnnAssign) -> None:
    """`x: Float32 = value` converts to the annotated dtype; other annotations say nothing."""
    if node.value is None:
        return
    value = low.evaluate(node.value)
    annotation = calls.annotation_of(low, node.annotation)
    elements.bind(low, node.target, calls.annotated(low, value, annotation, node))


def _augmented(low: Lowering, node: ast.AugAssign) -> None:
    """`target op= value`; the base and the index of an element are evaluated once."""
    match node.target:
        case ast.Name(id=name):
            current = low.lookup(name, node.target)
            low.names[name] = operators.binary(
                low, node.op, current, low.evaluate(node.value), node
            )
        case ast.Subscript() as target:
            place = elements.place(low, target)
            current = place.read()
            place.write(operators.binary(low, node.op, current, low.evaluate(node.value), node))
        case ast.Attribute():
            elements.bind(low, node.target, None)


def _if(low: Lowering, node: ast.If) -> Returned | None:
    condition = low.decide(node.test)
    if isinstance(condition, bool):
        return execute(low, node.body if condition else node.orelse)
    control.branch(low, condition, node)
    return None


def _for(low: Lowering, node: ast.For) -> Returned | None:
    if node.orelse:
        low.fail(
            node.orelse[0],
            "else of a loop is not supported in a compiled function",
            hint="write it after the loop",
        )
    call = node.iter
    if isinstance(call, ast.Call) and low.evaluate(call.func) is builtins.range:
        if call.keywords:
            low.fail(call, "range takes no keyword arguments")
        loops.for_range(low, node, [low.evaluate(argument) for argument in call.args])
        return None
    for item in control.compile_time_items(low, low.evaluate(call), call):
        elements.bind(low, node.target, item)
        returned = execute(low, node.body)
        if returned is not None:
            return returned
    return None


def _while(low: Lowering, node: ast.While) -> Returned | None:
    if node.orelse:
        low.fail(
            node.orelse[0],
            "else of a loop is not supported in a compiled function",
            hint="write it after the loop",
        )
    if isinstance(node.test, ast.Constant) and not node.test.value:
        return None
    loops.while_loop(low, node)
    return None


def _return(low: Lowering, node: ast.Return, value: ast.expr | None) -> Returned:
    if low.frame.regions:
        low.fail(
            node,
            "return inside a run-time branch or loop is not supported",
            hint="put the rest of the function under an if"
            if value is None
            else "assign the result to a name and return it at the end",
        )
    return Returned(None if value is None else low.evaluate(value))


def _assert(low: Lowering, node: ast.Assert) -> None:
    """An assert on what is known at compile time; one at run time is not supported."""
    condition = low.decide(node.test)
    if isinstance(condition, Number):
        low.fail(
            node,
            "assert on a run-time value is not supported",
            hint="check it where the function is called",
        )
    if not condition:
        text = None if node.msg is None else low.evaluate(node.msg)
        message = "" if text is None else f": {operators.describe(text, plain=True)}"
        low.fail(node, f"assertion failed at compile time{message}")
