"""What is assumed of the names that loops carry, and what makes a loop be lowered again.

A Python number has no dtype until something decides: one that begins a loop is taken for an Int32
or a Float32.  Where a branch or an iteration inside then makes another dtype of it, the loop that
it begins is lowered again with that one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from ferrule.compiler.errors import CompileError
from ferrule.language.ir import ops
from ferrule.language.lowering.context import Lowering
from ferrule.language.promotion import weak
from ferrule.language.values import Undefined
from ferrule.specs import DType


@dataclass(slots=True)
class Assumed:
    """What is assumed of the names of a loop: dtypes by path, and names that cannot be read.

    `kinds` are `templates` by path, of what is no number.
    """

    dtypes: dict[str, DType] = field(default_factory=dict)
    kinds: dict[str, Any] = field(default_factory=dict)
    clashes: dict[str, CompileError] = field(default_factory=dict)

    def any(self) -> bool:
        """Whether anything is assumed."""
        return bool(self.dtypes or self.kinds or self.clashes)

    def add(self, other: Assumed) -> None:
        """Takes in what an attempt has found."""
        self.dtypes |= other.dtypes
        self.kinds |= other.kinds
        self.clashes |= other.clashes

    def undefined(self, name: str, line: int) -> Undefined:
        """What a name is that cannot keep its type."""
        return Undefined(f"it changes its type in the loop in line {line}", self.clashes[name])


class Retry(Exception):
    """A loop must be lowered again: that of `owner`, with these assumptions added."""

    def __init__(self, found: Assumed, owner: Assumed) -> None:
        self.found = found
        self.owner = owner


@dataclass(frozen=True, slots=True)
class Leaf:
    """A number that a loop carries: what it begins with and is in an iteration.

    `number` is the Python number that it begins with, if it is one.
    """

    initial: ops.Value
    inside: ops.Value
    number: Any

    @property
    def dtype(self) -> DType:
        """The dtype of the number."""
        assert isinstance(self.inside.type, DType)
        return self.inside.type


@dataclass(frozen=True, slots=True)
class Kept:
    """What a loop carries that is no number, of the kind of a template: its values."""

    template: Any
    initial: tuple[ops.Value, ...]
    inside: tuple[ops.Value, ...]


@dataclass(frozen=True, slots=True)
class ActiveLoop:
    """A loop whose body is being lowered: its assumptions, and its numbers by path."""

    assumed: Assumed
    leaves: Mapping[str, Leaf | Kept]


@contextmanager
def active(low: Lowering, assumed: Assumed, leaves: Mapping[str, Leaf | Kept]) -> Iterator[None]:
    """Marks that the code inside is the body of this loop."""
    loops = low.frame.loops
    loops.append(ActiveLoop(assumed, leaves))
    try:
        yield
    finally:
        loops.pop()


def retype(low: Lowering, path: str, dtypes: tuple[DType, DType]) -> None:
    """Raises Retry where a loop around can begin with another dtype, so that a name keeps one."""
    for loop in reversed(low.frame.loops):
        leaf = loop.leaves.get(path)
        if not isinstance(leaf, Leaf) or leaf.number is None:
            continue
        others = [dtype for dtype in dtypes if dtype is not leaf.dtype]
        known = path in loop.assumed.dtypes
        if len(others) == 1 and not known and weak(leaf.number, others[0]) is others[0]:
            raise Retry(Assumed({path: others[0]}), loop.assumed)
        return
