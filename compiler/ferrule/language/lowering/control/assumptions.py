"""The assumptions about names that loops carry, and the reasons to lower a loop again.

A Python number has no dtype until an operation determines it: as the initial value of a loop it is
assumed to be an Int32 or a Float32.  If a branch or an iteration inside gives it another dtype, the
loop is lowered again with that dtype.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field
from typing import Any

from ferrule.compiler.errors import CompileError
from ferrule.language.ir import ops
from ferrule.language.lowering.context import Lowering
from ferrule.language.promotion import weak
from ferrule.language.values import Undefined
from ferrule.specs import DType
from ferrule.specs.deferred import dataclass


@dataclass(slots=True)
class Assumed:
    """The assumptions about the names of a loop: dtypes by path, and names that cannot be read.

    `kinds` are `templates` by path, for values that are not numbers.  `settings` are the fields of
    tiled multiplications that an iteration uses as an earlier one has set them, with their owners;
    `attributes` are those of `value_objects` that an iteration changes.
    """

    dtypes: dict[str, DType] = field(default_factory=dict)
    kinds: dict[str, Any] = field(default_factory=dict)
    clashes: dict[str, CompileError] = field(default_factory=dict)
    settings: dict[Any, Any] = field(default_factory=dict)
    attributes: set[str] = field(default_factory=set)

    def any(self) -> bool:
        """Whether there are any assumptions."""
        found = self.dtypes or self.kinds or self.clashes or self.settings or self.attributes
        return bool(found)

    def add(self, other: Assumed) -> None:
        """Adds the findings of an attempt."""
        self.dtypes |= other.dtypes
        self.kinds |= other.kinds
        self.clashes |= other.clashes
        self.settings |= other.settings
        self.attributes |= other.attributes

    def undefined(self, name: str, line: int) -> Undefined:
        """The value of a name that does not keep its type."""
        return Undefined(f"it changes its type in the loop in line {line}", self.clashes[name])


class Retry(Exception):
    """The loop of `owner` must be lowered again, with these assumptions added."""

    def __init__(self, found: Assumed, owner: Assumed) -> None:
        self.found = found
        self.owner = owner


@dataclass(frozen=True, slots=True)
class Leaf:
    """A number that a loop carries: its initial value, and its value in an iteration.

    `number` is the Python number that is the initial value, if it is one.
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
    """A carried value that is not a number, of the kind of a template: its values."""

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
    """Raises Retry if an enclosing loop can begin with another dtype, so that a name keeps one
    dtype."""
    for loop in reversed(low.frame.loops):
        leaf = loop.leaves.get(path)
        if not isinstance(leaf, Leaf) or leaf.number is None:
            continue
        others = [dtype for dtype in dtypes if dtype is not leaf.dtype]
        known = path in loop.assumed.dtypes
        if len(others) == 1 and not known and weak(leaf.number, others[0]) is others[0]:
            raise Retry(Assumed({path: others[0]}), loop.assumed)
        return
