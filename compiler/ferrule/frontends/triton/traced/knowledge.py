"""What earlier comparisons on a path, and the bounds of symbols, say about a size.

A comparison whose outcome is known needs no kernel for the other outcome: of
`64 if n <= 64 else 128 if n <= 128 else 256`, with `n` at most 128, two are left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from ferrule.specs import Condition, Dim, Signature, Sym, Tensor, divisibility_of
from ferrule.specs.conditions import Comparison, ComparisonOp
from ferrule.specs.deferred import dataclass
from ferrule.specs.expr import Compound
from ferrule.specs.intervals import Interval, interval

Taken = Sequence[tuple[Condition, bool]]
"""Comparisons with their outcomes."""

OPPOSITE: Final[dict[ComparisonOp, ComparisonOp]] = {
    "lt": "ge",
    "ge": "lt",
    "gt": "le",
    "le": "gt",
    "eq": "ne",
    "ne": "eq",
}
SWAPPED: Final[dict[ComparisonOp, ComparisonOp]] = {
    "lt": "gt",
    "gt": "lt",
    "le": "ge",
    "ge": "le",
    "eq": "eq",
    "ne": "ne",
}


@dataclass(frozen=True, slots=True)
class Knowledge:
    """Comparisons with their outcomes; `sizes` are symbols that are sizes of tensors, and so are
    at least 0."""

    taken: Taken
    sizes: frozenset[Sym] = frozenset()

    def interval(self, dim: Dim) -> Interval:
        """The smallest and the largest value that a size can have."""
        base, offset = _apart(dim)
        low, high = self._told(base, *self._by_bounds(base))
        return low + offset, high + offset

    def outcome(self, condition: Condition) -> bool | None:
        """The outcome of a comparison if it is known."""
        if not isinstance(condition, Comparison):
            return None
        (left_low, left_high), (low, high) = map(self.interval, (condition.lhs, condition.rhs))
        match condition.op:
            case "lt" | "ge":
                known = True if left_high < low else False if left_low >= high else None
            case "le" | "gt":
                known = True if left_high <= low else False if left_low > high else None
            case "eq" | "ne":
                apart = left_high < low or high < left_low
                known = False if apart else True if left_low == left_high == low == high else None
        negated = condition.op in ("ge", "gt", "ne")
        return known if known is None or not negated else not known

    def _by_bounds(self, base: Dim) -> Interval:
        match base:
            case Sym():
                bound = self._bounded(base)
                return interval(bound)
            case Compound("mod", lhs, int() as by) if by > 0 and divisibility_of(lhs) % by == 0:
                return 0, 0
        return interval(self._bounded(base))

    def _bounded(self, dim: Dim) -> Dim:
        """The expression over symbols whose bounds are what is known of each."""
        match dim:
            case Sym():
                low, high = dim.interval(signed=dim not in self.sizes)
                low, high = self._told(dim, low, high)
                return replace(dim, min=low, max=high)
            case Compound(op, lhs, rhs):
                return Compound(op, self._bounded(lhs), self._bounded(rhs))
        return dim

    def _told(self, base: Dim, low: int, high: int) -> Interval:
        """An interval with what the comparisons say of this size."""
        for condition, outcome in self.taken:
            if isinstance(condition, Comparison):
                of, least, most = _range(condition, outcome)
                if of == base:
                    low = low if least is None else max(low, least)
                    high = high if most is None else min(high, most)
        return low, high


def sizes_in(signature: Signature) -> frozenset[Sym]:
    """The symbols that are sizes of a signature's tensors."""
    tensors = (each for each in signature.params if isinstance(each, Tensor))
    return frozenset(dim for each in tensors for dim in each.shape if isinstance(dim, Sym))


def _apart(dim: Dim) -> tuple[Dim, int]:
    """A size without what is added to it, and that."""
    if isinstance(dim, Compound) and dim.op == "add" and isinstance(dim.rhs, int):
        return dim.lhs, dim.rhs
    return dim, 0


def _range(condition: Comparison, outcome: bool) -> tuple[Dim, int | None, int | None]:
    """The size that a comparison bounds, and its bounds."""
    op, lhs, rhs = condition.op, condition.lhs, condition.rhs
    if isinstance(lhs, int):
        op, lhs, rhs = SWAPPED[op], rhs, lhs
    if not isinstance(rhs, int):
        return lhs, None, None
    op = op if outcome else OPPOSITE[op]
    base, offset = _apart(lhs)
    bound = rhs - offset
    match op:
        case "lt" | "le":
            return base, None, bound - (op == "lt")
        case "gt" | "ge":
            return base, bound + (op == "gt"), None
        case "eq":
            return base, bound, bound
    return base, None, None


def needed(taken: Taken, sizes: frozenset[Sym]) -> list[tuple[Condition, bool]]:
    """The comparisons without those that follow from the others."""
    found = list(taken)
    for each in taken:
        others = [other for other in found if other is not each]
        if Knowledge(others, sizes).outcome(each[0]) is each[1]:
            found = others
    return found
