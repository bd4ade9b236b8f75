"""Floats that a host function gets or makes of sizes, while it is recorded.

Arithmetic is followed in float64, as Python computes it, and so is `math.sqrt`, which is rounded
once.  Comparisons are remembered.  All others, as `float(x)`, a text or `math.exp`, take the
number.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from typing import Any, Final

from ferrule.frontends.triton.recorded.log import Log
from ferrule.frontends.triton.recorded.nodes import FLOAT, Leaf, Node, Tree, is_float
from ferrule.frontends.triton.recorded.numbers.base import (
    Number,
    are_numbers,
    fill,
    fill_alone,
    fill_comparisons,
    name_of_kind,
    number_of,
    taken,
)
from ferrule.specs.conditions import Real

EXACT: Final = 1 << 53
"""Integers up to this one are floats without rounding."""
_BEYOND: Final = 1 << 62
"""No size is as large."""


class Float(Number):
    """A float of a host function."""

    __slots__ = ()

    number: float

    def __init__(self, number: float, tree: Tree | None, log: Log) -> None:
        self.number, self.tree, self.log = number, tree, log

    __class__: Any = property(lambda _: float)

    def _compared(self, op: str, other: Any) -> Any:
        plain = number_of(other)
        if not are_numbers(plain):
            return NotImplemented
        compare: Callable[..., Any] = getattr(operator, op)
        left, right = tree_of(self), tree_of(other)
        if left is None or right is None or not _is_exact(self.log, other):
            return bool(taken(compare, self, other))
        outcome = bool(compare(self.number, plain))
        compared(self.log, op, left, right, outcome)
        return outcome

    def _made(self, op: str, left: Any, right: Any) -> Any:
        return combined(op, left, right, self.log)

    def __neg__(self) -> Any:
        return self._alone("fneg", -self.number)

    def __abs__(self) -> Any:
        return self._alone("fabs", abs(self.number))

    def _alone(self, op: str, result: float) -> Any:
        tree = self.as_float()
        if tree is None:
            self.take()
            return result
        return Float(result, Node(op, tree, 0), self.log)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __round__(self, *digits: Any) -> Any:
        self.take()
        return round(self.number, *digits)

    def __trunc__(self) -> Any:
        self.take()
        return int(self.number)


def float_of(log: Log, name: str, value: float) -> Float:
    """A float argument of a host function."""
    leaf = Leaf(name, FLOAT)
    log.values[leaf] = value
    return Float(value, leaf, log)


def tree_of(value: Any) -> Tree | None:
    """How a number was made, as a float; None where nobody knows."""
    if isinstance(value, Number):
        return value.as_float()
    try:
        return Real.of(float(value))
    except OverflowError:
        return None


def combined(op: str, left: Any, right: Any, log: Log) -> Any:
    """An operation of two numbers, one of which is followed, that gives a float."""
    if not are_numbers(number_of(left), number_of(right)):
        return NotImplemented
    top, bottom = tree_of(left), tree_of(right)
    if top is None or bottom is None:
        return taken(_OPERATORS[op], left, right)
    if op == "fdiv" and isinstance(right, Number):  # a division by zero raises
        is_zero = number_of(right) == 0
        compared(log, "eq", bottom, Real.of(0.0), is_zero)
    result = _OPERATORS[op](number_of(left), number_of(right))
    return Float(result, Node(op, top, bottom), log)


def root(own: Callable[..., float], value: Number) -> Any:
    """`math.sqrt`, which `own` is, of a number that is followed."""
    tree = value.as_float()
    if tree is None:
        value.take()
        return own(value.number)
    compared(value.log, "lt", tree, Real.of(0.0), value.number < 0)
    return Float(own(value.number), Node("fsqrt", tree, 0), value.log)


def compared(log: Log, op: str, left: Tree, right: Tree, outcome: bool) -> None:
    """Remember a comparison of floats; one with a size that is a comparison of sizes, as that."""
    if op == "eq" and right == Real.of(0.0):
        while isinstance(left, Node) and left.op in ("fsqrt", "fabs", "fneg"):
            left = left.left
    if isinstance(left, Node) and left.op == "float" and isinstance(right, Real):
        op, number = of_integers(op, right.number)
        log.compare(op, left.left, number, outcome)
    else:
        log.compare(op, left, right, outcome)


def of_integers(op: str, number: float) -> tuple[str, int]:
    """The comparison of an integer with a float, as one with an integer."""
    if not math.isfinite(number):
        return op, int(math.copysign(_BEYOND, number)) if number == number else _BEYOND
    if number.is_integer():
        return op, int(number)
    if op in ("lt", "le"):
        return "le", math.floor(number)
    if op in ("gt", "ge"):
        return "ge", math.ceil(number)
    return op, _BEYOND  # equal to no size


def _is_exact(log: Log, other: Any) -> bool:
    """Whether a comparison with a number is one of floats; with sizes it is, up to a bound."""
    tree = other.tree if isinstance(other, Number) else None
    if tree is not None and not is_float(tree):
        bound(log, tree)
    return isinstance(other, float) or abs(number_of(other)) <= EXACT


def bound(log: Log, tree: Tree) -> None:
    """An integer is one that a float has without rounding."""
    for op, most in (("le", EXACT), ("ge", -EXACT)):
        log.compare(op, tree, most, True)


_OPERATORS: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "fadd": operator.add,
    "fsub": operator.sub,
    "fmul": operator.mul,
    "fdiv": operator.truediv,
}
_OTHERS: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "pow": operator.pow,
}
FOLLOWED: Final = {"add": "fadd", "sub": "fsub", "mul": "fmul", "truediv": "fdiv"}
"""The operators whose result is followed."""


def _operator(name: str, *, swapped: bool = False) -> Callable[..., Any]:
    def method(self: Float, other: Any) -> Any:
        left, right = (other, self) if swapped else (self, other)
        return self._made(FOLLOWED[name], left, right)

    return method


def _number(name: str, *, swapped: bool = False) -> Callable[..., Any]:
    def method(self: Float, other: Any, *modulus: Any) -> Any:
        if not are_numbers(number_of(other)):
            return NotImplemented
        return taken(_OTHERS[name], *((other, self) if swapped else (self, other)), *modulus)

    return method


fill(Float, " ".join(FOLLOWED), _operator)
fill(Float, " ".join(_OTHERS), _number)
fill_comparisons(Float)
name_of_kind(Float, "float")
fill_alone(Float, "pos neg abs divmod rdivmod")
