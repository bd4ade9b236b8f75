"""The ways through functions that compare what only a call knows: each outcome is traced."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import reduce
from typing import Final, TypeVar

from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.specs import Condition

T = TypeVar("T")
MOST: Final = 16
"""So many outcomes a function can have: for each a kernel is compiled, or launched otherwise."""


@dataclass(slots=True)
class Path:
    """One way through traced functions: how each comparison turned out.

    `forced` are the outcomes of the first ones; any later one is true.  `asked` counts the
    comparisons, those that were made before among them.
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
        """The same way, for something that is traced once more."""
        return Path(self.forced, list(self.taken))

    @property
    def condition(self) -> Condition | None:
        """Whether a call goes this way; None where every call does."""
        each = [condition if outcome else ~condition for condition, outcome in self.taken]
        return reduce(lambda left, right: left & right, each) if each else None


def outcomes(run: Callable[[Path], T], what: str) -> Iterator[tuple[Condition | None, T]]:
    """What traced functions give, for each outcome of their comparisons, and when.

    The conditions exclude each other; that of the last one is None: it is for every other call.
    Raises CompileError, naming `what`, for more than `MOST`.
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
