"""Statements: the interpreter's other half.

A statement that leaves (`return`, `break`, `continue`) sets the names of `exits`; the code after it
runs only if control has not left.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import sys
from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from ferrule.language.faces import threads
from ferrule.language.lowering.closures import close
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.control import branches, exits
from ferrule.language.lowering.control.branches import Step
from ferrule.language.lowering.control.exits import Returned
from ferrule.language.lowering.handles import is_iterable
from ferrule.language.lowering.numbers import coercion
from ferrule.language.lowering.python import (
    assignment,
    conversions,
    inlining,
    records,
    results,
)
from ferrule.language.source import SPLIT
from ferrule.language.values import KernelCall
from ferrule.specs import Int32


def execute(low: Lowering, body: list[ast.stmt]) -> Returned | None:
    """Runs statements in order; returns how the function ended, if one of them ended it."""
    outer = low.builder.at
    if body:
        branches.run(low, [partial(_statement, low, statement) for statement in body], body[0])
    low.builder.at = outer  # what follows, such as the loop around them, belongs to itself
    return exits.returned(low)


def _statement(low: Lowering, node: ast.stmt, rest: Sequence[Step]) -> bool:
    """Runs a statement; returns whether it also ran the ones after it."""
    low.builder.at = (low.frame, node)
    try:
        if isinstance(node, ast.If):
            return _if(low, node, rest)
        _simple(low, node)
    except RecursionError:
        # Report the innermost statement that has enough stack left for that.
        low.fail(node, "the function is nested too deeply to be compiled", hint=SPLIT)
    return False


def _simple(low: Lowering, node: ast.stmt) -> None:
    match node:
        case ast.Expr(value=value):
            _expression(low, value)
        case ast.Assign(targets=targets, value=value):
            result = low.evaluate(value)
            for target in targets:
                assignment.bind(low, target, result)
        case ast.AnnAssign(target=target, value=value):
            _annotated(low, node)
        case ast.AugAssign():
            _augmented(low, node)
        case ast.FunctionDef(name=name):
            low.names[name] = close(low, node)
        case ast.ClassDef(name=name):
            from ferrule.language.lowering.python import definitions

            low.names[name] = definitions.class_(low, node)
        case ast.Pass():
            pass
        case ast.Assert():
            from ferrule.language.lowering.python import assertions

            assertions.check(low, node)
        case _:
            _control(low, node)


def _control(low: Lowering, node: ast.stmt) -> None:
    match node:
        case ast.For():
            _for(low, node)
        case ast.While():
            _while(low, node)
        case ast.Return(value=value):
            given = None if value is None else low.evaluate(value)
            low.names[exits.VALUE] = results.given_back(low, given, node)
            exits.leave(low, exits.RETURN)
        case ast.Break():
            exits.leave(low, exits.BREAK)
        case ast.Continue():
            exits.leave(low, exits.CONTINUE)
        case ast.Raise():
            from ferrule.language.lowering.python import assertions

            assertions.raise_error(low, node)
        case ast.With():
            _with(low, node)
        case _:
            _unsupported(low, node)


_UNSUPPORTED: Final[dict[type[ast.stmt], tuple[str, str]]] = {
    ast.Import: ("import", "import at the top of the module"),
    ast.ImportFrom: ("import", "import at the top of the module"),
    ast.Global: ("global", "pass the value as an argument"),
    ast.Nonlocal: ("nonlocal", "pass the value as an argument, and return the new one"),
    ast.Try: ("try", "check the condition with if"),
    ast.Delete: ("del", "just leave the name alone"),
    ast.Match: (
        "a match with a mapping, or a name in an alternative or behind a star,",
        "write if and elif",
    ),
    ast.AsyncFunctionDef: ("async def", "write def"),
    ast.AsyncFor: ("async for", "write for"),
    ast.AsyncWith: ("async with", "do it outside of the compiled function"),
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
    """`x: Float32 = value` converts to the annotated dtype; other annotations are ignored."""
    if node.value is None:
        return
    value = low.evaluate(node.value)
    annotation = inlining.annotation_of(low, node.annotation)
    name = node.target.id if isinstance(node.target, ast.Name) else None
    value = conversions.annotated(low, value, annotation, node, name)
    assignment.bind(low, node.target, value)


def _augmented(low: Lowering, node: ast.AugAssign) -> None:
    """`target op= value`; the base and the index of an element are evaluated once."""
    match node.target:
        case ast.Name(id=name):
            current = low.lookup(name, node.target)
            low.names[name] = records.augmented(low, current, low.evaluate(node.value), node)
        case ast.Subscript() as target:
            place = assignment.place(low, target)
            current = place.read()
            place.write(records.augmented(low, current, low.evaluate(node.value), node))
        case ast.Attribute() as target:
            changed = assignment.attribute(low, target)
            current = changed.read()
            changed.write(records.augmented(low, current, low.evaluate(node.value), node))


def _if(low: Lowering, node: ast.If, rest: Sequence[Step]) -> bool:
    condition = low.decide(node.test)
    if isinstance(condition, bool):
        low.execute(node.body if condition else node.orelse)
        return False
    return branches.branch(low, condition, node, rest)


def _for(low: Lowering, node: ast.For) -> None:
    from ferrule.language.lowering.control import loops, ranges

    call = node.iter
    if isinstance(call, ast.Call):
        counts = ranges.of_call(low, call)
        if counts is not None and counts.is_unrolled(low):
            # Typed as at run time: a wish to unroll does not change what is computed.
            known = map(Int32, range(*map(coercion.plain, counts.bounds)))
            loops.unrolled(low, node, known, partial(assignment.bind, low, node.target))
            return
        if counts is not None:
            loops.for_range(low, node, counts.bounds, counts.hints, flags=counts.flags)
            return
    value = low.evaluate(call)
    if is_iterable(value):
        from ferrule.language.lowering.python import iteration  # few programs need it

        iteration.loop(low, node, value)
        return
    items = branches.compile_time_items(low, value, call)
    loops.unrolled(low, node, items, partial(assignment.bind, low, node.target))


def _while(low: Lowering, node: ast.While) -> None:
    from ferrule.language.lowering.control import loops

    if isinstance(node.test, ast.Constant) and not node.test.value:
        loops.end_loop(low, node)
    else:
        loops.while_loop(low, node)


def _with(low: Lowering, node: ast.With) -> None:
    """Enters the managers, runs the body, and leaves them, also after an error."""
    if _elects(low, node):
        only = ast.If(node.items[0].context_expr, node.body, [])
        low.execute([ast.copy_location(only, node)])
        return
    with contextlib.ExitStack() as opened:
        for item in node.items:
            manager = _manager(low, item.context_expr)
            low.state.changes += 1
            entered = manager.__enter__()
            opened.push(_Leaving(manager))
            if item.optional_vars is not None:
                assignment.bind(low, item.optional_vars, entered)
        low.execute(node.body)


def _elects(low: Lowering, node: ast.With) -> bool:
    """Whether this is `with fe.arch.elect_one():`, CuTe DSL's form of an `if`."""
    only = node.items[0].context_expr
    if len(node.items) > 1 or not isinstance(only, ast.Call):
        return False
    return low.evaluate(only.func) is threads.elect_one and node.items[0].optional_vars is None


def _manager(low: Lowering, expr: ast.expr) -> Any:
    """What a call of a function with `@contextlib.contextmanager` gives; others are not called."""
    function = low.evaluate(expr.func) if isinstance(expr, ast.Call) else None
    if not inspect.isgeneratorfunction(getattr(function, "__wrapped__", None)):
        low.fail(
            expr,
            "with is not supported in a compiled function, but for what a function with "
            "@contextlib.contextmanager gives",
            hint="do it outside of the compiled function",
        )
    return low.evaluate(expr)


class _Leaving:
    """Leaves a manager: it sees an error of the body, and cannot hide it."""

    def __init__(self, manager: Any) -> None:
        self.manager = manager

    def __enter__(self) -> None:
        """It was entered before."""

    def __exit__(self, *_: Any) -> None:
        self.manager.__exit__(*sys.exc_info())
