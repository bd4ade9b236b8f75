"""What each of Python's operators is: its sign, what Python computes, its op in the kernel IR."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any, Final

from ferrule.language.ir import ops
from ferrule.specs.expr import ExprOp

PYTHON_BINARY: Final[dict[type[ast.operator], tuple[str, Callable[[Any, Any], Any]]]] = {
    ast.Add: ("+", operator.add),
    ast.Sub: ("-", operator.sub),
    ast.Mult: ("*", operator.mul),
    ast.Div: ("/", operator.truediv),
    ast.FloorDiv: ("//", operator.floordiv),
    ast.Mod: ("%", operator.mod),
    ast.Pow: ("**", operator.pow),
    ast.MatMult: ("@", operator.matmul),
    ast.BitAnd: ("&", operator.and_),
    ast.BitOr: ("|", operator.or_),
    ast.BitXor: ("^", operator.xor),
    ast.LShift: ("<<", operator.lshift),
    ast.RShift: (">>", operator.rshift),
}
IR_BINARY: Final[dict[type[ast.operator], ops.BinaryOp]] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "div",
    ast.FloorDiv: "floordiv",
    ast.Mod: "mod",
    ast.BitAnd: "and",
    ast.BitOr: "or",
    ast.BitXor: "xor",
    ast.LShift: "shl",
    ast.RShift: "shr",
}
BITWISE: Final = ("and", "or", "xor", "shl", "shr")
OF_BOOLS: Final[dict[ops.BinaryOp, ops.BinaryOp]] = {"min": "and", "max": "or"}
SIGNS: Final = {IR_BINARY[op]: PYTHON_BINARY[op][0] for op in IR_BINARY}
SIZE_BINARY: Final[dict[ops.BinaryOp, ExprOp]] = {
    "add": "add",
    "sub": "sub",
    "mul": "mul",
    "floordiv": "floordiv",
    "mod": "mod",
    "min": "min",
    "max": "max",
}
PYTHON_UNARY: Final[dict[type[ast.unaryop], Callable[[Any], Any]]] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Invert: operator.inv,
}
