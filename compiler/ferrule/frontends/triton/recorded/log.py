"""What a host function did with sizes while it was recorded: comparisons with their outcomes,
numbers that it took, and the places."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import field, replace
from typing import Any, Final, TypeVar

from ferrule.frontends.triton.recorded.nodes import Leaf, Tree, leaves_of
from ferrule.specs.deferred import dataclass

T = TypeVar("T")
_LIBRARIES: Final = ("torch", "ferrule", "contextlib")


@dataclass(frozen=True, slots=True)
class Compared:
    """A comparison in a host function, `left op right`, with its outcome and its place.

    `unless`: it is also so where this size is 1, as in a question about elements alone.
    """

    op: str
    left: Tree
    right: Tree
    outcome: bool
    where: str
    unless: Tree | None = None


@dataclass(frozen=True, slots=True)
class Read:
    """What a host function read of a tensor, such as its numbers, and where."""

    what: str
    where: str


@dataclass(frozen=True, slots=True)
class Asked:
    """A number that C code asked for, by `call` of a frame, for what was made of sizes in this
    way."""

    call: tuple[Any, int, int]
    tree: Tree
    where: str


_running: Final[list[Any]] = []
"""The logs of the recordings that run now."""


@dataclass(slots=True, eq=False)
class Log:
    """What a host function did with sizes: their values, comparisons, and sizes whose number was
    taken, with the place; and its reads of tensors.

    `asked` are numbers that C code asked for: those that functions of PyTorch ask for, which are
    watched themselves, are taken out again.
    """

    values: dict[Leaf, Any] = field(default_factory=dict)
    foreign: dict[str, int] = field(default_factory=dict)
    """The memory of tensors without a name that the host function did not make, by what their
    sizes are `of`."""
    compared: list[Compared] = field(default_factory=list)
    escaped: dict[Leaf, str] = field(default_factory=dict)
    reads: list[Read] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    hashed: bool = False
    """Whether a number was a key, as of `lru_cache`."""
    ended: int | None = None
    """The number of comparisons at the end of the recording."""

    def begin(self) -> None:
        """The recording begins."""
        _running.append(self)

    def end(self) -> None:
        """The recording ends: who uses its numbers later has kept them."""
        _running.remove(self)
        self.ended = len(self.compared)

    @property
    def is_idle(self) -> bool:
        """Whether it has ended, and no other recording runs: what was kept is a plain number."""
        return self.ended is not None and not _running

    def compare(
        self, op: str, left: Tree, right: Tree, outcome: bool, unless: Tree | None = None
    ) -> None:
        """Numbers were compared."""
        if not self.is_idle:
            self.compared.append(Compared(op, left, right, outcome, place(), unless))

    def again(self, ask: Callable[[], T]) -> tuple[T, list[Compared]]:
        """What is asked after the recording as if in it, and what was compared for that."""
        before, ended = len(self.compared), self.ended
        self.ended = None
        try:
            return ask(), self.compared[before:]
        finally:
            del self.compared[before:]
            self.ended = ended

    def kept(self) -> str | None:
        """The place where a number of the recording was compared after it; None if none was."""
        late = [] if self.ended is None else self.compared[self.ended :]
        return late[0].where if late else None

    def decided(self) -> list[Compared]:
        """The comparisons with their outcomes, wherever they are."""
        return [replace(each, where="") for each in self.compared]

    def escape(self, tree: Tree) -> None:
        """The number itself was taken."""
        if self.is_idle:
            return
        for leaf in leaves_of(tree):
            self.escaped.setdefault(leaf, place())

    def ask(self, tree: Tree, frame: Any) -> None:
        """C code that this frame calls asks for the number."""
        if not self.is_idle:
            self.asked.append(Asked(_call(frame), tree, place()))

    def forgive(self, frame: Any) -> None:
        """It is a function that is watched, which this frame calls: it took no number."""
        call = _call(frame)
        self.asked = [each for each in self.asked if each.call != call]

    def taken(self) -> dict[Leaf, str]:
        """The sizes whose number was taken, with the place."""
        asked = {leaf: each.where for each in self.asked for leaf in leaves_of(each.tree)}
        return {**asked, **self.escaped}


def _call(frame: Any) -> tuple[Any, int, int]:
    """The call that a frame makes now, which no other has."""
    return frame.f_code, id(frame), frame.f_lasti


def place() -> str:
    """The line of the program that led here: outside of PyTorch, Triton and this package."""
    return next((at for module, at in _places() if module != "triton"), "?")


def is_of_triton() -> bool:
    """Whether it is Triton's own Python code that led here, and not what called it."""
    return next((module for module, _ in _places()), "") == "triton"


def _places() -> Iterator[tuple[str, str]]:
    for frame in frames():
        module = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if module and module not in _LIBRARIES:  # what Triton generates has none
            yield module, f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"


def frames() -> Iterator[Any]:
    """The frames that led here, the innermost first."""
    frame = sys._getframe(1)
    while frame is not None:
        yield frame
        frame = frame.f_back  # type: ignore[assignment]
