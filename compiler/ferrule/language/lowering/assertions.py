"""`assert` and `raise`: errors at compile time, and checks that end the call at run time."""

from __future__ import annotations

import ast
from typing import Any, Final

from ferrule.compiler.artefacts import MAX_FAULT_VALUES, Fault, literal
from ferrule.language.ir import ops
from ferrule.language.lowering import exits, operators
from ferrule.language.lowering.context import Lowering
from ferrule.language.values import RUN_TIME, Number, is_run_time
from ferrule.specs import Boolean

_WHERE: Final = " in block ({}, {}, {}), thread ({}, {}, {})"
_COORDINATES: Final[tuple[ops.Register, ...]] = ("block_idx", "thread_idx")


_ERRORS: Final = (
    ValueError,
    TypeError,
    RuntimeError,
    IndexError,
    KeyError,
    AttributeError,
    AssertionError,
    MemoryError,
    ZeroDivisionError,
    OverflowError,
)


def check(low: Lowering, node: ast.Assert) -> None:
    """`assert condition, message`.  A CompileError where it is known to fail."""
    condition = low.decide(node.test)
    if condition is True:
        return
    if condition is False and not low.is_conditional():
        text = "" if node.msg is None else operators.describe(low.evaluate(node.msg), plain=True)
        low.fail(node, f"assertion failed at compile time{text and ': '}{text}")
    known = operators.as_number(low, condition, node, Boolean)
    message = ast.Constant(f"assertion failed: {ast.unparse(node.test)}")
    _end_unless(low, known, "AssertionError", node.msg or message, node)
    if condition is False:
        exits.leave(low, exits.RETURN)


def raise_error(low: Lowering, node: ast.Raise) -> None:
    """`raise ValueError("text")`, and other errors of Python."""
    call = node.exc
    kind = None if call is None else low.evaluate(call.func if isinstance(call, ast.Call) else call)
    args = call.args if isinstance(call, ast.Call) else []
    if kind not in _ERRORS or node.cause is not None or len(args) > 1 or _keywords(call):
        low.fail(
            node,
            "this raise is not supported in a compiled function",
            expected='an error of Python with one text, such as raise ValueError("n is negative")',
        )
    message = args[0] if args else ast.copy_location(ast.Constant(""), node)
    if not low.is_conditional():
        text = operators.describe(low.evaluate(message), plain=True)
        low.fail(node, f"the function raises {kind.__name__} in every call: {text}")
    _end_unless(low, operators.as_number(low, False, node), kind.__name__, message, node)
    exits.leave(low, exits.RETURN)


def _keywords(call: ast.expr | None) -> list[ast.keyword]:
    return call.keywords if isinstance(call, ast.Call) else []


def _end_unless(
    low: Lowering, condition: Number, kind: str, message: ast.expr, node: ast.stmt
) -> None:
    """Ends the call with an error if the condition is false; a kernel's names the thread."""
    if low.kind == "kernel" and low.state.target != "cpu":
        low.fail(
            node,
            f"{_word(node)} at run time is not supported in a kernel for a GPU yet",
            hint="check it in the host function, or write a flag to a tensor",
        )
    text, values = _message(low, message)
    if low.kind == "kernel":
        text += _WHERE
        values += [
            low.builder.special(register, axis)
            for register in _COORDINATES
            for axis in range(len(ops.AXES))
        ]
    if len(values) > MAX_FAULT_VALUES:
        room = MAX_FAULT_VALUES - text.count("{}") + len(values)
        low.fail(node, f"the message shows more than {room} numbers")
    low.builder.check(condition.value, Fault(kind, text, low.location(node)), *values)


def _word(node: ast.stmt) -> str:
    return "assert" if isinstance(node, ast.Assert) else "raise"


def _message(low: Lowering, message: ast.expr) -> tuple[str, list[ops.Value]]:
    """The text of the error, with `{}` for each of the numbers that come with it."""
    pieces = message.values if isinstance(message, ast.JoinedStr) else [message]
    text, values = "", list[ops.Value]()
    for piece in pieces:
        value = low.evaluate(piece.value if isinstance(piece, ast.FormattedValue) else piece)
        if isinstance(value, Number):
            text += "{}"
            values.append(_shown(low, value, piece, message))
        elif is_run_time(value):
            low.fail(message, f"{operators.describe(value)} cannot be shown in an error's message")
        else:
            text += literal(_formatted(low, piece, value))
    return text, values


def _shown(low: Lowering, number: Number, piece: ast.expr, node: ast.expr) -> ops.Value:
    """A number of a message: errors show integers."""
    if isinstance(piece, ast.FormattedValue) and (piece.format_spec or piece.conversion != -1):
        low.fail(
            node,
            "a run-time number in an error's message takes no format",
            hint="write {x} alone, or print it before with fe.printf",
        )
    if number.dtype.kind == "float":
        low.fail(
            node,
            f"an error's message shows run-time integers, but this is a {number.dtype.name}",
            hint="print it before with fe.printf, or show fe.Int64(x)",
        )
    return number.value


def _formatted(low: Lowering, piece: ast.expr, value: Any) -> str:
    """A piece of the message that is known at compile time."""
    if not isinstance(piece, ast.FormattedValue):
        return operators.describe(value, plain=True)
    kept = ast.FormattedValue(ast.Name("value", ast.Load()), piece.conversion, piece.format_spec)
    code = ast.fix_missing_locations(ast.Expression(ast.JoinedStr([kept])))
    compiled = compile(code, "<message>", "eval")
    return str(operators.at_compile_time(low, piece, lambda: eval(compiled, {"value": value})))


def static_assert(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> None:
    """`static_assert(condition, message)`: a CompileError where the condition is false."""
    names = ("condition", "message")
    given = dict(zip(names, args, strict=False)) | kwargs
    if len(args) > len(names) or not {"condition"} <= given.keys() <= set(names):
        low.fail(node, "static_assert takes a condition and a message")
    condition = given["condition"]
    if is_run_time(condition):
        low.fail(
            node,
            f"static_assert takes a condition known at compile time, but got "
            f"{operators.describe(condition)}",
            hint="write assert, which checks at run time",
        )
    if not operators.truth(low, condition, node):
        text = given.get("message")
        shown = "" if text is None else f": {operators.describe(text, plain=True)}"
        low.fail(node, f"static assertion failed{shown}")


def const_expr(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> Any:
    """`const_expr(x)`: x, which must be known at compile time."""
    if len(args) != 1 or kwargs:
        low.fail(node, f"const_expr takes one value, but got {len(args) + len(kwargs)}")
    value = args[0]
    if is_run_time(value):
        hint = "leave const_expr away: if and while decide at run time too"
        low.fail(
            node,
            f"const_expr takes a value known at compile time, but got {operators.describe(value)}",
            hint=hint if isinstance(value, RUN_TIME) else None,
        )
    return value
