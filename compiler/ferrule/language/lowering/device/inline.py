"""`fe.arch.inline_ptx`: a piece of PTX, checked as far as LLVM and ptxas would end the process or
say nothing that helps."""

from __future__ import annotations

import ast
import re
from typing import Any, Final

from ferrule.language.faces import inline as faces
from ferrule.language.ir import ops
from ferrule.language.lowering.arguments import Intrinsic
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.descriptions import describe
from ferrule.language.lowering.device.threads import place, require_kernel
from ferrule.language.lowering.numbers import coercion
from ferrule.language.values import Number
from ferrule.specs import Boolean, DType, Int64, Uint32

_LETTERS: Final = {("int", 16): "h", ("int", 32): "r", ("int", 64): "l"}
_FLOATS: Final = {16: "h", 32: "f", 64: "d"}
_ANY: Final = {"r": "rni", "l": "lni", "h": "hni"}
"""What a program may write instead of a letter: a constant is in a register, too."""
_REFERENCE: Final = re.compile(r"\$(\$|\d+|\{\d+\}|.?)", re.DOTALL)


def _inline_ptx(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> Any:
    """`fe.arch.inline_ptx(text, result, *operands, constraints=None)`."""
    require_kernel(low, "inline_ptx", node)
    said = kwargs.pop("constraints", None)
    if kwargs or len(args) < 2:
        low.fail(node, "inline_ptx takes a text, a dtype and numbers", expected=_CALL)
    text, dtype, *operands = args
    if not isinstance(text, str) or not text.isascii() or "\0" in text:
        low.fail(node, f"the text of inline_ptx is {describe(text)}", expected="an ASCII str")
    if not isinstance(dtype, DType):
        low.fail(node, f"the result of inline_ptx is {describe(dtype)}", expected="a dtype")
    numbers = [_number(low, each, node) for each in operands]
    letters = [_letter(low, each, node) for each in (dtype, *(n.dtype for n in numbers))]
    _check_references(low, text, len(letters), node)
    if said is not None:
        _check_constraints(low, said, letters, node)
    low.state.writes += 1
    constraints = ",".join([f"={letters[0]}", *letters[1:]])
    result = ops.Value(dtype, "ptx")
    values = tuple(each.value for each in numbers)
    low.builder.append(ops.InlinePtx(result, text, constraints, values, place(low, node)))
    return Number(result)


def _number(low: Lowering, value: Any, node: ast.AST) -> Number:
    """An operand; an int that no Int32 has, such as a mask of lanes, is a Uint32 or wider."""
    if type(value) is int and not -(1 << 31) <= value < 1 << 31:
        return coercion.as_number(low, value, node, Uint32 if 0 <= value < 1 << 32 else Int64)
    return coercion.as_number(low, value, node)


_CALL: Final = 'inline_ptx("mov.u32 $0, %laneid;", fe.Uint32)'


def _letter(low: Lowering, dtype: DType, node: ast.AST) -> str:
    """The constraint of a register for numbers of this dtype."""
    found = None
    if dtype is Boolean:
        found = "r"
    elif dtype.is_integer:
        found = _LETTERS.get(("int", max(dtype.bits, 16)))
    elif dtype.kind == "float":
        found = _FLOATS.get(dtype.bits)
    if found is None:
        low.fail(
            node,
            f"PTX has no register for {dtype.__name__}",
            expected="a Boolean, an integer up to 64 bits, or a float from 16 bits on",
        )
    return found


def _check_references(low: Lowering, text: str, count: int, node: ast.AST) -> None:
    for match in _REFERENCE.finditer(text):
        number = match.group(1).strip("{}")
        if number == "$" or (number.isdigit() and int(number) < count):
            continue
        low.fail(
            node,
            f"the text of inline_ptx has {match.group(0)!r}",
            expected=f"$0 for the result, and up to ${count - 1} for the operands"
            if count > 1
            else "$0 for the result, and no other number",
            hint="a dollar itself is $$",
        )


def _check_constraints(low: Lowering, said: Any, letters: list[str], node: ast.AST) -> None:
    given = said.split(",") if isinstance(said, str) else []
    fits = len(given) == len(letters) and given[0] == f"={letters[0]}"
    each = zip(given[1:], letters[1:], strict=False)
    if not fits or not all(word in tuple(_ANY.get(letter, letter)) for word, letter in each):
        wanted = ",".join([f"={letters[0]}", *letters[1:]])
        low.fail(node, f"the constraints of inline_ptx are {said!r}", expected=repr(wanted))


TABLE: Final[dict[Any, Intrinsic]] = {faces.inline_ptx: _inline_ptx}
