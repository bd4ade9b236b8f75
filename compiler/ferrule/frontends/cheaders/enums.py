"""The values of enums in a header, which tell the integer that C takes for each."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

_SUFFIXES: Final = "uUlL"
_BINARY: Final[Mapping[str, Callable[[int, int], int]]] = MappingProxyType(
    {
        "+": operator.add, "-": operator.sub, "*": operator.mul, "|": operator.or_,
        "&": operator.and_, "^": operator.xor,
    }
)  # fmt: skip
_SHIFTS: Final[Mapping[str, Callable[[int, int], int]]] = MappingProxyType(
    {"<<": operator.lshift, ">>": operator.rshift}
)
_UNARY: Final[Mapping[str, Callable[[int], int]]] = MappingProxyType(
    {"-": operator.neg, "+": operator.pos, "~": operator.invert}
)
_MOST_SHIFTED: Final = 64


def enum_dtypes(nodes: list[Any]) -> Mapping[str, str]:
    """The dtype of each enum by its name: an `int32` if that has all of its values."""
    found = (each for node in nodes for each in _enums(node))
    known: dict[str, int] = {}
    return {enum.name: dtype_of(enum, known) for enum in found if enum.name and enum.values}


def dtype_of(enum: Any, known: dict[str, int] | None = None) -> str:
    """The dtype of an enum, by its values.  `known` has the values of names, and gets more."""
    names = {} if known is None else known
    values = list(_values(enum, names))
    low, high = min(values, default=0), max(values, default=0)
    if low < 0:
        return "int32" if low >= -(1 << 31) and high < 1 << 31 else "int64"
    return "int32" if high < 1 << 31 else "uint32" if high < 1 << 32 else "uint64"


def _enums(node: Any) -> Iterator[Any]:
    if type(node).__name__ == "Enum":
        yield node
    for _, child in node.children():
        yield from _enums(child)


def _values(enum: Any, known: dict[str, int]) -> Iterator[int]:
    """The values that can be computed; one behind another is one more."""
    following: int | None = 0
    for each in getattr(enum.values, "enumerators", ()):
        value = following if each.value is None else _value(each.value, known)
        following = None if value is None else value + 1
        if value is not None:
            known[each.name] = value
            yield value


def _value(node: Any, known: Mapping[str, int]) -> int | None:
    """The value of a constant expression; None for one that is not computed here."""
    match type(node).__name__:
        case "Constant":
            return _number(node.value)
        case "ID":
            return known.get(node.name)
        case "Cast":
            return _value(node.expr, known)
        case "UnaryOp" if node.op in _UNARY:
            inner = _value(node.expr, known)
            return None if inner is None else _UNARY[node.op](inner)
        case "BinaryOp":
            left, right = _value(node.left, known), _value(node.right, known)
            return None if left is None or right is None else _both(node.op, left, right)
    return None


def _both(op: str, left: int, right: int) -> int | None:
    if op in _SHIFTS:
        return _SHIFTS[op](left, right) if 0 <= right < _MOST_SHIFTED else None
    return _BINARY[op](left, right) if op in _BINARY else None


def _number(text: str) -> int | None:
    plain = text.rstrip(_SUFFIXES)
    if plain.startswith("'"):
        return ord(plain[1]) if len(plain) == 3 else None
    # C's octal literals begin with 0, which Python refuses with base 0.
    base = 8 if plain.startswith("0") and plain.isdigit() else 0
    try:
        return int(plain, base)
    except ValueError:
        return None
