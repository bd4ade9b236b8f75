"""TVM's integer expressions as sizes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.specs import Dim, Sym, maximum, minimum
from ferrule.specs.expr import ExprOp, make

_OPS: Final[Mapping[str, ExprOp]] = {
    "Add": "add",
    "Sub": "sub",
    "Mul": "mul",
    "FloorDiv": "floordiv",
    "FloorMod": "mod",
}


def size_of(expression: Any, symbols: Mapping[str, Dim], what: str) -> Dim:
    """The size for an expression of TVM; variables are identified by their names.

    Raises CompileError for other expressions.
    """
    kind = type(expression).__name__
    if isinstance(expression, int):
        return expression
    if kind == "IntImm":
        return int(expression.value)
    if kind == "Var" and expression.name in symbols:
        return symbols[expression.name]
    if kind == "Cast":
        return size_of(expression.value, symbols, what)
    if kind in (*_OPS, "Min", "Max"):
        left, right = (size_of(each, symbols, what) for each in (expression.a, expression.b))
        if kind in _OPS:
            return make(_OPS[kind], left, right)
        return minimum(left, right) if kind == "Min" else maximum(left, right)
    raise CompileError(
        Diagnostic(
            f"{what} is {expression}, which is no size that a call tells",
            expected=f"+, -, *, //, %, min and max of {', '.join(symbols) or 'constants'}",
        )
    )


def variables_of(expression: Any) -> Iterator[Any]:
    """The variables in an expression of TVM."""
    if type(expression).__name__ == "Var":
        yield expression
        return
    for part in ("a", "b", "value"):
        inner = getattr(expression, part, None)
        if inner is not None and not isinstance(inner, (int, float)):
            yield from variables_of(inner)


def symbol_of(variable: Any) -> Sym:
    """The symbol for a variable of TVM."""
    from ferrule.specs import sym_int

    bits = 64 if "64" in str(variable.dtype) else 32
    return sym_int(bits, symbol=str(variable.name))
