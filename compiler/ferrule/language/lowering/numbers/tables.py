"""Tables of Python's operators: the sign, Python's function, the op in the kernel IR."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any, Final

from ferrule.language.ir import ops
from ferrule.language.ir.scalars import BINARY
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
SIGNS: Final[dict[ops.BinaryOp, str]] = {
    name: row.sign for name, row in BINARY.items() if row.sign is not None
}
_BY_SIGN: Final = {sign: name for name, sign in SIGNS.items()}
IR_BINARY: Final[dict[type[ast.operator], ops.BinaryOp]] = {
    op: _BY_SIGN[sign] for op, (sign, _) in PYTHON_BINARY.items() if sign in _BY_SIGN
}
BITWISE: Final = ("and", "or", "xor", "shl", "shr")
OF_BOOLS: Final[dict[ops.BinaryOp, ops.BinaryOp]] = {"min": "and", "max": "or"}
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
