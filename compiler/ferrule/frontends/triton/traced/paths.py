"""The paths through functions that compare values known only in a call: each outcome is traced."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field
from functools import reduce
from typing import Final, TypeVar

from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.specs import Condition
from ferrule.specs.deferred import dataclass

T = TypeVar("T")
MOST: Final = 16
"""The greatest number of outcomes of a function: for each a kernel is compiled, or launched
differently."""


@dataclass(slots=True)
class Path:
    """One path through traced functions: the outcome of each comparison.

    `forced` are the outcomes of the first comparisons; the outcome of each later one is true.
    `asked` counts all comparisons, including repeated ones.
    """

    forced: tuple[bool, ...] = ()
    taken: list[tuple[Condition, bool]] = field(default_factory=list)
    asked: int = 0

    def decide(self, condition: Condition) -> bool:
        """The outcome of a comparison."""
        self.asked += 1
        for known, outcome in self.taken:
            if known == condition:
                return outcome
        number = len(self.taken)
        outcome = self.forced[number] if number < len(self.forced) else True
        self.taken.append((condition, outcome))
        return outcome

    def again(self) -> Path:
        """The same path, for a function that is traced once more."""
        return Path(self.forced, list(self.taken))

    @property
    def condition(self) -> Condition | None:
        """The condition that a call takes this path; None if every call does."""
        each = [condition if outcome else ~condition for condition, outcome in self.taken]
        return reduce(lambda left, right: left & right, each) if each else None


def outcomes(run: Callable[[Path], T], what: str) -> Iterator[tuple[Condition | None, T]]:
    """The results of traced functions for each outcome of their comparisons, with the conditions.

    The conditions exclude each other; the last one is None: its result is for every other call.
    Raises CompileError, which names `what`, for more outcomes than `MOST`.
    """
    waiting: list[tuple[bool, ...]] = [()]
    made = 0
    while waiting:
        path = Path(waiting.pop())
        value = run(path)
        made += 1
        taken = tuple(outcome for _, outcome in path.taken)
        new = range(len(path.forced), len(taken))
        waiting += [(*taken[:number], False) for number in new]
        if made + len(waiting) > MOST:
            raise CompileError(
                Diagnostic(
                    f"{what} depends on so many comparisons of a call's sizes that there are more "
                    f"than {MOST} outcomes",
                    hint="write minimum(a, b) for min(a, b) and maximum(a, b) for max(a, b), or "
                    "give values that heuristics compute in `constexprs`",
                )
            )
        yield path.condition if waiting else None, value
