"""Integers that live in the first lane of a vector register, where the CPU has what they need.

A minimum is one operation of a vector register, and two of the others: a comparison and a choice.
So a body keeps chains of them in numbers of the type `%ferrule_chain`, and computes with functions.
As emitted, the type is that of an integer, which is right for every CPU.  For x86 with SSE 4.1
`in_vectors` makes a vector of it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

TYPE: Final = "ferrule_chain"
DECLARED: Final = f'%"{TYPE}" = type '
PUT: Final = f"{TYPE}_put"
GET: Final = f"{TYPE}_get"
APART: Final = f"{TYPE}_apart"
CHOICE: Final = f"{TYPE}_choice"

COMPARISONS: Final = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
"""Of the first two numbers of a choice between the other two."""

EXTREMES: Final[Mapping[str, str]] = {"smin": "slt", "smax": "sgt", "umin": "ult", "umax": "ugt"}
"""The comparison of each function of two numbers that is the lesser or greater one."""

_VECTOR: Final = "<4 x i32>"
_DEFINED: Final = re.compile(
    rf'^define internal [^\n]*@"({TYPE}_\w+)"\([^\n]*\)[^\n]*\n\{{\n.*?^\}}\n',
    re.DOTALL | re.MULTILINE,
)


def in_vectors(text: str) -> str:
    """The text of a module with chains in vectors."""
    text = text.replace(f"{DECLARED}i32", f"{DECLARED}{_VECTOR}", 1)
    return _DEFINED.sub(_function, text)


def _function(found: re.Match[str]) -> str:
    """The definition of a function for vectors; that of a sum is the same."""
    name = found[1]
    body = _BODIES.get(name)
    if body is None:
        return found[0]
    result, parameters, lines = body
    code = "\n".join(f"  {line}" for line in lines)
    head = f'define internal {result} @"{name}"({parameters}) alwaysinline nounwind'
    return f"{head}\n{{\n{code}\n}}\n"


def _bodies() -> dict[str, tuple[str, str, tuple[str, ...]]]:
    # In two steps, through which LLVM does not see that what is computed of two such vectors could
    # be computed of the numbers; from memory it is read at once.
    put = (
        "%w = zext i32 %x to i64",
        "%p = insertelement <2 x i64> zeroinitializer, i64 %w, i64 0",
        f"%v = bitcast <2 x i64> %p to {_VECTOR}",
        f"ret {_VECTOR} %v",
    )
    get = f"%v = extractelement {_VECTOR} %x, i64 0", "ret i32 %v"
    apart = (
        f'%v = call {_VECTOR} asm "", "=x,0"({_VECTOR} %x)',
        f"ret {_VECTOR} %v",
    )
    found = {
        PUT: (_VECTOR, "i32 %x", put),
        GET: ("i32", f"{_VECTOR} %x", get),
        APART: (_VECTOR, f"{_VECTOR} %x", apart),
    }
    for name, comparison in EXTREMES.items():
        lines = (
            f"%c = icmp {comparison} {_VECTOR} %x, %y",
            f"%v = select <4 x i1> %c, {_VECTOR} %x, {_VECTOR} %y",
            f"ret {_VECTOR} %v",
        )
        found[f"{TYPE}_{name}"] = (_VECTOR, f"{_VECTOR} %x, {_VECTOR} %y", lines)
    for comparison in COMPARISONS:
        lines = (
            f"%c = icmp {comparison} {_VECTOR} %x, %y",
            f"%v = select <4 x i1> %c, {_VECTOR} %a, {_VECTOR} %b",
            f"ret {_VECTOR} %v",
        )
        parameters = ", ".join(f"{_VECTOR} %{name}" for name in "xyab")
        found[f"{CHOICE}_{comparison}"] = (_VECTOR, parameters, lines)
    return found


_BODIES: Final = _bodies()
