"""The values of sizes in Python, also symbolic ones of a framework that traces."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, Final

from ferrule.specs.conditions import (
    Comparison,
    ComparisonOp,
    Condition,
    Junction,
    Negation,
)
from ferrule.specs.deferred import dataclass
from ferrule.specs.expr import Compound, Dim, Sym

Symbols = dict[Sym, Any]


class Mismatch(Exception):
    """The arguments do not fit a signature; its text is a short reason."""


@dataclass(frozen=True, slots=True)
class Symbolic:
    """What a framework does with sizes that may be symbolic: `smaller` and `larger` of two without
    a branch, whether a divisor `is_zero`, and what is true where a symbolic truth is not."""

    smaller: Callable[[Any, Any], Any]
    larger: Callable[[Any, Any], Any]
    is_zero: Callable[[Any], bool]
    negated: Callable[[Any], Any] = operator.not_

    def value(self, dim: Dim, symbols: Mapping[Sym, Any]) -> Any:
        """The value of a size, which is symbolic if a symbol's value is.

        Raises KeyError for a symbol without a value, and Mismatch for a division by zero.
        """
        match dim:
            case Sym():
                return symbols[dim]
            case Compound(op, lhs, rhs):
                return self._computed(op, self.value(lhs, symbols), self.value(rhs, symbols))
        return dim

    def holds(self, condition: Condition, symbols: Mapping[Sym, Any]) -> Any:
        """Whether a condition over sizes holds, which may be symbolic.  Raises as `value` does."""
        match condition:
            case Comparison(op, lhs, rhs):
                return _COMPARED[op](self.value(lhs, symbols), self.value(rhs, symbols))
            case Negation(inner):
                return self.value_of_not(self.holds(inner, symbols))
            case Junction(op, lhs, rhs):
                left, right = self.holds(lhs, symbols), self.holds(rhs, symbols)
                return left & right if op == "and" else left | right
        raise TypeError(f"{condition} is no condition over sizes")

    def value_of_not(self, holds: Any) -> Any:
        """The opposite of a truth."""
        return not holds if isinstance(holds, bool) else self.negated(holds)

    def _computed(self, op: str, left: Any, right: Any) -> Any:
        if op in ("min", "max"):
            if isinstance(left, int) and isinstance(right, int):
                return min(left, right) if op == "min" else max(left, right)
            return self.smaller(left, right) if op == "min" else self.larger(left, right)
        if op in ("floordiv", "mod", "ceildiv") and self.is_zero(right):
            raise Mismatch("a size is divided by zero")
        return _OPERATIONS[op](left, right)


_COMPARED: Final[Mapping[ComparisonOp, Callable[[Any, Any], Any]]] = {
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "eq": operator.eq,
    "ne": operator.ne,
}
_OPERATIONS: Final[Mapping[str, Any]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "floordiv": lambda a, b: a // b,
    "mod": lambda a, b: a % b,
    "ceildiv": lambda a, b: -(-a // b),
}
