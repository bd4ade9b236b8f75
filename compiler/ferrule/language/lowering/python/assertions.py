"""`assert` and `raise`: errors at compile time, and checks that end the call at run time."""

from __future__ import annotations

import ast
import re
from typing import Any, Final

from ferrule.compiler.artefacts import MAX_FAULT_VALUES, Fault
from ferrule.language.faces import base, calls
from ferrule.language.ir import ops
from ferrule.language.lowering.arguments import Intrinsic
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.control import exits
from ferrule.language.lowering.control.mutation import unchanged
from ferrule.language.lowering.descriptions import describe
from ferrule.language.lowering.numbers import coercion
from ferrule.language.lowering.objects.faults import Message
from ferrule.language.lowering.python import operators
from ferrule.language.values import RUN_TIME, Number, is_run_time
from ferrule.runtime.errors import errors_of_python
from ferrule.specs import Boolean

_WHERE: Final = " in block ({}, {}, {}), thread ({}, {}, {})"
_KIND: Final = re.compile(r"[^\W\d]\w*")
_COORDINATES: Final[tuple[ops.Register, ...]] = ("block_idx", "thread_idx")
_SIGNALS: Final = (StopIteration, StopAsyncIteration, KeyboardInterrupt)
"""Exceptions that Python raises for other purposes than errors."""

_ERRORS: Final = frozenset(errors_of_python()) - frozenset(_SIGNALS)


def check(low: Lowering, node: ast.Assert) -> None:
    """`assert condition, message`.  A CompileError if it is known to fail."""
    condition = low.decide(node.test)
    if condition is True:
        return
    if condition is False and not low.is_conditional():
        text = "" if node.msg is None else _shown(low, node.msg)
        low.fail(node, f"assertion failed at compile time{text and ': '}{text}")
    known = coercion.as_number(low, condition, node, Boolean)
    message = ast.Constant(f"assertion failed: {ast.unparse(node.test)}")
    _end_unless(low, known, "AssertionError", node.msg or message, node)
    if condition is False:
        exits.leave(low, exits.RETURN)


def _shown(low: Lowering, text: ast.expr) -> str:
    """A compile-time message; for a run-time one its source code."""
    message = Message(low, text)
    message.expression(text)
    if message.values:
        return ast.unparse(text)
    return describe(low.evaluate(text), plain=True)


def raise_error(low: Lowering, node: ast.Raise) -> None:
    """`raise ValueError("text")`, and other errors of Python."""
    call = node.exc
    raised = call.func if isinstance(call, ast.Call) else call
    kind: Any = None if raised is None else low.evaluate(raised)
    args = call.args if isinstance(call, ast.Call) else []
    is_error = isinstance(kind, type) and kind in _ERRORS
    if not is_error or node.cause is not None or len(args) > 1 or _keywords(call):
        low.fail(
            node,
            "this raise is not supported in a compiled function",
            expected='an error of Python with one text, such as raise ValueError("n is negative")',
        )
    text = args[0] if args else ast.copy_location(ast.Constant(""), node)
    message = Message(low, text)
    message.expression(text)
    if not message.values and not low.is_conditional():
        shown = describe(low.evaluate(text), plain=True)
        low.fail(node, f"the function raises {kind.__name__} in every call: {shown}")
    _end(low, coercion.as_number(low, False, node), kind.__name__, message, node)
    exits.leave(low, exits.RETURN)


def _keywords(call: ast.expr | None) -> list[ast.keyword]:
    return call.keywords if isinstance(call, ast.Call) else []


def _raise_error_call(
    low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call
) -> None:
    """`fe.raise_error("ValueError", "n is {}", n)`."""
    if kwargs or len(args) < 2 or not isinstance(args[1], str):
        low.fail(
            node,
            "raise_error takes the class of the error, a text, and the values of its fields",
            expected='fe.raise_error("ValueError", "n must be positive, but it is {}", n)',
        )
    kind, template, *values = args
    if isinstance(kind, type) and issubclass(kind, Exception):
        kind = kind.__name__
    if not isinstance(kind, str) or _KIND.fullmatch(kind) is None:
        low.fail(
            node,
            f"the class of raise_error's error is {describe(kind)}",
            expected='a name such as "ValueError", or a class of Python',
        )
    message = Message(low, node)
    message.template(template, values)
    if not message.values and not low.is_conditional():
        low.fail(node, f"the function raises {kind} in every call: {template}")
    _end(low, coercion.as_number(low, False, node), kind, message, node)
    exits.leave(low, exits.RETURN)


def _end_unless(
    low: Lowering, condition: Number, kind: str, text: ast.expr, node: ast.stmt
) -> None:
    """Ends the call with an error if the condition is false.

    As in Python, the message is evaluated only then, unless its evaluation is invisible.
    """
    build, message = low.builder, Message(low, text)
    with build.region() as region, low.in_region(), unchanged(low, text):
        message.expression(text)
    if all(op.is_speculative for op in region.ops):
        for op in region.ops:
            build.append(op)
        _end(low, condition, kind, message, node)
        return
    with build.region(region):
        _end(low, coercion.as_number(low, False, node), kind, message, node)
    with build.region() as holds:
        pass
    failed = build.unary("not", condition.value)
    build.if_(failed, region.freeze(), holds.freeze(), ())


def _end(
    low: Lowering, condition: Number, kind: str, message: Message, node: ast.stmt | ast.Call
) -> None:
    """The check; that of a kernel includes the thread."""
    text, values = message.text, message.values
    room = MAX_FAULT_VALUES
    names_thread = low.kind == "kernel" and low.state.target == "cpu"  # a GPU prints it itself
    if names_thread:
        text += _WHERE
        room -= len(_COORDINATES) * len(ops.AXES)
    if len(values) > room:
        hint = "a string counts as two" if "{bytes}" in text else None
        low.fail(node, f"the message shows more than {room} numbers", hint=hint)
    if names_thread:
        values += [
            low.builder.special(register, axis)
            for register in _COORDINATES
            for axis in range(len(ops.AXES))
        ]
    low.builder.check(condition.value, Fault(kind, text, low.location(node)), *values)


def _static_assert(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> None:
    """`static_assert(condition, message)`: a CompileError if the condition is false."""
    names = ("condition", "message")
    given = dict(zip(names, args, strict=False)) | kwargs
    if len(args) > len(names) or not {"condition"} <= given.keys() <= set(names):
        low.fail(node, "static_assert takes a condition and a message")
    condition = given["condition"]
    if is_run_time(condition):
        low.fail(
            node,
            f"static_assert takes a condition known at compile time, but got {describe(condition)}",
            hint="write assert, which checks at run time",
        )
    if not operators.truth(low, condition, node):
        text = given.get("message")
        shown = "" if text is None else f": {describe(text, plain=True)}"
        low.fail(node, f"static assertion failed{shown}")


def _const_expr(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> Any:
    """`const_expr(x)`: x, which must be known at compile time."""
    if len(args) != 1 or kwargs:
        low.fail(node, f"const_expr takes one value, but got {len(args) + len(kwargs)}")
    value = args[0]
    if is_run_time(value):
        hint = "leave const_expr away: if and while decide at run time too"
        low.fail(
            node,
            f"const_expr takes a value known at compile time, but got {describe(value)}",
            hint=hint if isinstance(value, RUN_TIME) else None,
        )
    return value


TABLE: Final[dict[Any, Intrinsic]] = {
    base.const_expr: _const_expr,
    base.static_assert: _static_assert,
    calls.raise_error: _raise_error_call,
}
