"""The values of sizes in Python, also symbolic ones of a framework that traces."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from ferrule.specs.deferred import dataclass
from ferrule.specs.expr import Compound, Dim, Sym

Symbols = dict[Sym, Any]


class Mismatch(Exception):
    """The arguments do not fit a signature; its text is a short reason."""


@dataclass(frozen=True, slots=True)
class Symbolic:
    """What a framework does with sizes that may be symbolic: `smaller` and `larger` of two without
    a branch, and whether a divisor `is_zero`."""

    smaller: Callable[[Any, Any], Any]
    larger: Callable[[Any, Any], Any]
    is_zero: Callable[[Any], bool]

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

    def _computed(self, op: str, left: Any, right: Any) -> Any:
        if op in ("min", "max"):
            if isinstance(left, int) and isinstance(right, int):
                return min(left, right) if op == "min" else max(left, right)
            return self.smaller(left, right) if op == "min" else self.larger(left, right)
        if op in ("floordiv", "mod", "ceildiv") and self.is_zero(right):
            raise Mismatch("a size is divided by zero")
        return _OPERATIONS[op](left, right)


_OPERATIONS: Final[Mapping[str, Any]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "floordiv": lambda a, b: a // b,
    "mod": lambda a, b: a % b,
    "ceildiv": lambda a, b: -(-a // b),
}
