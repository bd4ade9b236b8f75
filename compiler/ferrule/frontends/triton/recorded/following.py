"""What host functions did with sizes, as conditions of a call over the symbols of several
recordings.

A recording is what a host function does for its sizes, and for all others with which each of its
comparisons comes out the same.  So a call is right if it is like one of the recordings in all of
them.  Where a comparison cannot be written over symbols, the sizes in it are the recorded ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from functools import reduce
from typing import Any, Final

from ferrule.frontends.triton.recorded.log import Compared, Log
from ferrule.frontends.triton.recorded.nodes import (
    Leaf,
    Node,
    Tree,
    evaluated,
    grows,
    leaves_of,
    replaced,
)
from ferrule.frontends.triton.recorded.sizes import Sizes
from ferrule.frontends.triton.traced.knowledge import OPPOSITE, SWAPPED, Knowledge, needed
from ferrule.specs import Condition, Dim, Requirement, symbols_of
from ferrule.specs.conditions import Comparison
from ferrule.specs.deferred import dataclass
from ferrule.specs.expr import make

_OVER_SIZES: Final = ("add", "mul", "floordiv", "ceildiv", "mod")
_MOST: Final = 1 << 40
"""No size is larger."""

Case = dict[Condition, str]
"""The conditions of one recording, each with the message for a call that does not meet it."""


@dataclass(slots=True)
class Following:
    """The sizes of recordings and what was done with them; `compared` are the comparisons of each.

    `alone`: conditions over numbers that are no sizes here are left out.
    """

    sizes: Sizes
    logs: Sequence[Log]
    compared: list[list[Compared]]
    alone: bool = False
    _dims: dict[Leaf, Dim | None] = field(default_factory=dict)

    def dim(self, trees: Sequence[Tree | None], values: Sequence[int]) -> Dim | None:
        """The number that was made in this way in all recordings, over symbols; None for one that
        is none, or was made in several ways."""
        first = trees[0]
        if first is None or any(each != first for each in trees):
            return None
        found = self._over(first)
        if found is None or not self.sizes.symbols or self.sizes.values(found) != tuple(values):
            return None
        return found

    def pin(self, trees: Sequence[Tree | None], values: Sequence[int], what: str) -> None:
        """A call is one in which these numbers are what they were in a recording."""
        for at, (tree, value) in enumerate(zip(trees, values, strict=True)):
            if tree is not None:
                self.compared[at].append(Compared("eq", tree, value, True, what))

    def requirements(self) -> list[Requirement]:
        """What calls must be like."""
        if not self.sizes.symbols:
            return []
        cases = [self._needed(self._case(at)) for at in range(len(self.logs))]
        shared = [each for each in cases[0] if all(each in case for case in cases)]
        found = [Requirement(each, cases[0][each]) for each in shared]
        left = [[each for each in case if each not in shared] for case in cases]
        if all(left):
            several = [reduce(lambda a, b: a & b, case) for case in left]
            either = reduce(lambda a, b: a | b, dict.fromkeys(several))
            found.append(Requirement(either, "the recordings have no call of this kind: add one"))
        return found

    # ---- cases ----

    def _case(self, at: int) -> Case:
        """The conditions under which a call is like one recording."""
        case: Case = {}
        pinned: dict[Tree, int] = {
            each.left: each.right
            for each in self.compared[at]
            if isinstance(each.left, Node) and isinstance(each.right, int) and _is_pin(each)
        }
        for each in self.compared[at]:
            said = f"a recording has no other case: {each.where}"
            if not _is_pin(each):
                sides = replaced(each.left, pinned), replaced(each.right, pinned)
                each = replace(each, left=sides[0], right=sides[1])
            case |= dict.fromkeys(self._conditions(at, each), said)
        return case | self._of_numbers_taken(at)

    def _needed(self, case: Case) -> Case:
        """The conditions that follow neither from bounds of the symbols nor from others."""
        symbols = frozenset(self.sizes.symbols)
        known = Knowledge((), symbols)
        open_ones = [(each, True) for each in case if known.outcome(each) is not True]
        return {each: case[each] for each, _ in needed(open_ones, symbols)}

    def _of_numbers_taken(self, at: int) -> Case:
        """Sizes whose number the host function took are the recorded ones: it may be a key, or
        what a list is repeated by."""
        case: Case = {}
        for leaf, where in self.logs[at].taken().items():
            dim = self._of_leaf(leaf)
            if isinstance(dim, int) or self._is_general(dim):
                continue
            said = f"the host function takes the number at {where}: record this size, or name it "
            case |= dict.fromkeys(self._points(at, [leaf]), said + "in general=")
        return case

    def _is_general(self, dim: Dim | None) -> bool:
        named = self.sizes.general
        if isinstance(named, bool) or dim is None:
            return False
        return all(each.name in named for each in symbols_of(dim))

    def _conditions(self, at: int, each: Compared) -> list[Condition]:
        """A comparison with its outcome in one recording, as conditions over symbols."""
        open_ones = self._open(each.left, each.right)
        if not open_ones:
            return []
        op: Any = each.op if each.outcome else OPPOSITE[each.op]  # type: ignore[index]
        left, right = self._over(each.left), self._over(each.right)
        if left is not None and right is not None:
            is_told = left == right and op in ("eq", "le", "ge")
            return [] if is_told else [Comparison(op, left, right)]
        found = self._by_threshold(at, op, each.left, each.right)
        if found is None:
            found = self._by_threshold(at, SWAPPED[op], each.right, each.left)
        return self._points(at, open_ones) if found is None else found

    def _points(self, at: int, leaves: Sequence[Leaf]) -> list[Condition]:
        """Sizes are what they were in one recording."""
        dims = {leaf: self._of_leaf(leaf) for leaf in leaves}
        found = [
            Comparison("eq", dim, self.logs[at].values[leaf])
            for leaf, dim in dims.items()
            if dim is not None and not isinstance(dim, int)
        ]
        if None in dims.values() and not self.alone:
            symbols = self.sizes.symbols.items()
            found += [Comparison("eq", symbol, values[at]) for symbol, values in symbols]
        return list(found)

    def _by_threshold(self, at: int, op: Any, left: Tree, right: Tree) -> list[Condition] | None:
        """`f(size) op number` as a bound of the size, for a function that never shrinks."""
        leaves, known = self._open(left), self._constants(at)
        if len(leaves) != 1 or self._open(right) or not grows(left, leaves[0], known):
            return None
        (leaf,) = leaves
        dim = self._of_leaf(leaf)
        if dim is None or isinstance(dim, int):
            return None
        number = evaluated(right, known)
        most, below = (self._last(left, leaf, known, each) for each in (number, number - 1))
        bounds: dict[str, list[Condition]] = {
            "le": [dim <= most],
            "lt": [dim <= below],
            "ge": [dim > below],
            "gt": [dim > most],
            "eq": [dim > below, dim <= most],
            "ne": [(dim <= below) | (dim > most)],
        }
        return bounds[op]

    def _last(self, tree: Tree, leaf: Leaf, known: Mapping[Leaf, int], number: int) -> int:
        """The largest size for which the function is at most a number; -1 if there is none."""
        low, high = -1, _MOST
        while low < high:
            middle = (low + high + 1) // 2
            if evaluated(tree, {**known, leaf: middle}) <= number:
                low = middle
            else:
                high = middle - 1
        return low

    # ---- sizes ----

    def _open(self, *trees: Tree) -> list[Leaf]:
        """The sizes in these numbers that are no constants."""
        leaves = dict.fromkeys(leaf for tree in trees for leaf in leaves_of(tree))
        return [leaf for leaf in leaves if not isinstance(self._of_leaf(leaf), int)]

    def _constants(self, at: int) -> dict[Leaf, int]:
        values = self.logs[at].values
        return {leaf: each for leaf, each in values.items() if isinstance(self._of_leaf(leaf), int)}

    def _values(self, leaf: Leaf) -> tuple[int, ...]:
        """The values of a size in the recordings that have it."""
        return tuple(log.values[leaf] for log in self.logs if leaf in log.values)

    def _of_leaf(self, leaf: Leaf) -> Dim | None:
        if leaf not in self._dims:
            values = self._values(leaf)
            known = len(values) == len(self.logs) and not leaf.unknown
            self._dims[leaf] = self.sizes.found(values) if known else None
        return self._dims[leaf]

    def _over(self, tree: Tree) -> Dim | None:
        """A number over symbols; None for one that sizes of a call cannot be."""
        if isinstance(tree, Leaf):
            return self._of_leaf(tree)
        if not isinstance(tree, Node):
            return tree
        left, right = self._over(tree.left), self._over(tree.right)
        if left is None or right is None or tree.op not in _OVER_SIZES:
            return None
        if tree.op in ("floordiv", "ceildiv", "mod") and isinstance(right, int) and right <= 0:
            return None
        op: Any = tree.op
        return make(op, left, right)


def _is_pin(each: Compared) -> bool:
    """Whether a number has one value."""
    return each.outcome is (each.op == "eq") and each.op in ("eq", "ne")
