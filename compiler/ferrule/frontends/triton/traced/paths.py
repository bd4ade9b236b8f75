"""The paths through functions that compare values known only in a call: each outcome is traced."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field
from functools import reduce
from typing import Final, TypeVar

from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.frontends.strides import Read
from ferrule.frontends.triton.traced.knowledge import Knowledge, needed
from ferrule.specs import Condition, Dim, Sym
from ferrule.specs.conditions import Comparison
from ferrule.specs.deferred import dataclass
from ferrule.specs.intervals import Interval

T = TypeVar("T")
MOST: Final = 64
"""The greatest number of outcomes of a function: for each a kernel is compiled, launched
differently, or the call refused."""

MOST_VALUES: Final = 64
"""The greatest number of values of a size that may become a constant."""


@dataclass(slots=True)
class Path:
    """One path through traced functions: the outcome of each comparison.

    `forced` are the outcomes of the first comparisons; the outcome of each later one is true, if it
    does not follow from earlier ones and from bounds.  `asked` counts all comparisons, including
    repeated ones.  `sizes` are symbols that are sizes of tensors.  `what` is traced, for errors.
    `strides` are those that the functions read.
    """

    forced: tuple[bool, ...] = ()
    taken: list[tuple[Condition, bool]] = field(default_factory=list)
    asked: int = 0
    sizes: frozenset[Sym] = frozenset()
    what: str = "the launch"
    strides: set[Read] = field(default_factory=set)

    def decide(self, condition: Condition) -> bool:
        """The outcome of a comparison.

        Raises CompileError for one too many: each has another outcome, and a loop may have no end.
        """
        self.asked += 1
        for known, outcome in self.taken:
            if known == condition:
                return outcome
        follows = self._known.outcome(condition)
        if follows is not None:
            return follows
        number = len(self.taken)
        if number >= MOST:
            raise _too_many(self.what)
        outcome = self.forced[number] if number < len(self.forced) else True
        self.taken.append((condition, outcome))
        return outcome

    def interval(self, dim: Dim) -> Interval:
        """The smallest and the largest value of a size on this path."""
        return self._known.interval(dim)

    def value(self, dim: Dim) -> int | None:
        """The value of a size, which the call decides; None if it may have too many."""
        low, high = self.interval(dim)
        if high - low >= MOST_VALUES:
            return None
        while low < high:
            middle = (low + high) // 2
            if self.decide(Comparison("le", dim, middle)):
                high = middle
            else:
                low = middle + 1
        return low

    def again(self) -> Path:
        """The same path, for a function that is traced once more."""
        taken, strides = list(self.taken), self.strides
        return Path(self.forced, taken, sizes=self.sizes, what=self.what, strides=strides)

    @property
    def condition(self) -> Condition | None:
        """The condition that a call takes this path; None if every call does."""
        known = needed(self.taken, self.sizes)
        each = [condition if outcome else ~condition for condition, outcome in known]
        return reduce(lambda left, right: left & right, each) if each else None

    @property
    def _known(self) -> Knowledge:
        return Knowledge(self.taken, self.sizes)


def outcomes(
    run: Callable[[Path], T], what: str, sizes: frozenset[Sym] = frozenset()
) -> Iterator[tuple[Condition | None, T]]:
    """The results of traced functions for each outcome of their comparisons, with the conditions.

    The conditions exclude each other; the last one is None: its result is for every other call.
    `sizes` are symbols that are sizes of tensors.  Raises CompileError, which names `what`, for
    more outcomes than `MOST`.
    """
    waiting: list[tuple[bool, ...]] = [()]
    made = 0
    while waiting:
        path = Path(waiting.pop(), sizes=sizes, what=what)
        value = run(path)
        made += 1
        taken = tuple(outcome for _, outcome in path.taken)
        new = range(len(path.forced), len(taken))
        waiting += [(*taken[:number], False) for number in new]
        if made + len(waiting) > MOST:
            raise _too_many(what)
        yield path.condition if waiting else None, value


def _too_many(what: str) -> CompileError:
    return CompileError(
        Diagnostic(
            f"{what} depends on so many comparisons of a call's sizes that there are more "
            f"than {MOST} outcomes",
            hint="write minimum(a, b) for min(a, b) and maximum(a, b) for max(a, b), bound "
            'sizes, as in "*bf16[m, n<=4096]", or give values that heuristics compute in '
            "`constexprs`",
        )
    )
