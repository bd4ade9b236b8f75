"""What a function of the kernel IR is made of: gathered in one traversal, read by every pass."""

from __future__ import annotations

from collections.abc import Iterator
from types import UnionType
from typing import TYPE_CHECKING, TypeVar

from ferrule.language.ir.operation import Operation, Synchronising
from ferrule.language.ir.values import Region
from ferrule.specs.deferred import dataclass

if TYPE_CHECKING:
    from ferrule.language.ir.ops import Op

_Kind = TypeVar("_Kind", bound=Operation)


def all_ops(region: Region) -> Iterator[Op]:
    """Every op of a region and of those inside it, in the order of the text."""
    stack = [iter(region.ops)]
    while stack:
        for op in stack[-1]:
            yield op
            if op.nests:
                stack.extend(iter(inner.ops) for inner in reversed(op.regions))
                break
        else:
            stack.pop()


@dataclass(frozen=True, slots=True)
class Facts:
    """The ops of a function, at any depth, in the order of the text; and their classes.

    A function is immutable, so its facts are too: `Function.facts` gathers them once, and a pass
    that asks whether there is an op of some class, or for all of them, does not walk again.
    """

    ops: tuple[Op, ...]
    classes: dict[type[Operation], tuple[Operation, ...]]

    @classmethod
    def of(cls, body: Region) -> Facts:
        """The facts of a function with this body."""
        every = tuple(all_ops(body))
        classes: dict[type[Operation], list[Operation]] = {}
        for op in every:
            classes.setdefault(type(op), []).append(op)
        return cls(every, {kind: tuple(found) for kind, found in classes.items()})

    def each(self, kind: type[_Kind]) -> tuple[_Kind, ...]:
        """The ops of one class, which no other class is derived from."""
        return self.classes.get(kind, ())  # type: ignore[return-value]

    def has(self, *kinds: type[Operation] | type[Synchronising] | UnionType) -> bool:
        """Whether there is an op of one of these classes, or of a class derived from one."""
        return any(issubclass(found, kinds) for found in self.classes)
