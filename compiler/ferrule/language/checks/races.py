"""Which accesses to shared memory may meet another one that no barrier separates from it.

The text of a kernel is cut at barriers of the whole block.  Two places are in one *interval* if
there may be a way from the one to the other, or from a common beginning to both, without such a
barrier; that is found from the text alone, and may be said of more places than it is true of.  Only
where an interval has a write, or an atomic and a read, of one piece of shared memory, something has
to be watched while the kernel runs: tiles that are filled, and read behind a barrier, are not.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from ferrule.language.checks.linear import Forms
from ferrule.language.ir import ops
from ferrule.language.ir.walk import Work, drive

Kind = Literal["read", "write", "atomic"]

CLASHES: Final[Mapping[Kind, tuple[Kind, ...]]] = {
    "read": ("write", "atomic"),
    "write": ("write", "read", "atomic"),
    "atomic": ("write", "read"),
}
"""What may not happen in one interval with each, by another thread."""

Access = ops.Load | ops.Store | ops.Atomic


def kind_of(op: Access) -> Kind:
    """What an op does to memory."""
    match op:
        case ops.Load():
            return "read"
        case ops.Store():
            return "write"
        case ops.Atomic():
            return "atomic"


@dataclass(slots=True)
class Intervals:
    """The intervals of a kernel: by access to shared memory a number, see `same`."""

    numbers: dict[Access, int] = field(default_factory=dict)
    parents: list[int] = field(default_factory=list)
    now: int = 0

    @classmethod
    def of(cls, kernel: ops.Function) -> Intervals:
        """Those of a kernel."""
        found = cls()
        found.now = found.new()
        drive(found.region(kernel.body))
        return found

    def new(self) -> int:
        """A new interval."""
        self.parents.append(len(self.parents))
        return len(self.parents) - 1

    def find(self, number: int) -> int:
        """The number that stands for all that turned out to be one with this one."""
        while self.parents[number] != number:
            number = self.parents[number]
        return number

    def join(self, one: int, other: int) -> int:
        """Makes one interval of two."""
        first, second = sorted((self.find(one), self.find(other)))
        self.parents[second] = first
        return first

    def region(self, region: ops.Region) -> Work:
        """Goes through a region."""
        for op in region.ops:
            match op:
                case ops.Barrier(_, None):
                    self.now = self.new()
                case ops.Load(_, tensor) | ops.Store(tensor) | ops.Atomic(_, _, tensor):
                    if tensor.tensor.is_shared:
                        self.numbers[op] = self.now
                case ops.If(_, _, then, otherwise):
                    begin = self.now
                    yield self.region(then)
                    end, self.now = self.now, begin
                    yield self.region(otherwise)
                    self.now = self.join(end, self.now)
                case ops.For(body=body):
                    begin = self.now
                    yield self.region(body)
                    self.now = self.join(begin, self.now)
                case ops.While(test=test, body=body):
                    begin = self.now
                    yield self.region(test)
                    after = self.now
                    yield self.region(body)
                    self.join(begin, self.now)
                    self.now = after


Met = Mapping[Kind, tuple[Access, ...]]
"""The accesses that one may meet, by kind."""


def watched(
    kernel: ops.Function, pieces: Mapping[ops.Value, Hashable], forms: Forms
) -> dict[Access, Met]:
    """For each access that may meet others, those.

    `pieces`: of each tensor in shared memory, the piece that it is in.
    """
    intervals = Intervals.of(kernel)
    present: dict[tuple[int, Hashable], dict[Kind, tuple[Access, ...]]] = {}
    places = {
        op: (intervals.find(number), pieces[op.tensor])
        for op, number in intervals.numbers.items()
        if op.tensor in pieces
    }
    for op, place in places.items():
        kinds = present.setdefault(place, {})
        kinds[kind_of(op)] = (*kinds.get(kind_of(op), ()), op)
    found: dict[Access, Met] = {}
    for kinds in present.values():
        every = [op for accesses in kinds.values() for op in accesses]
        if forms.are_apart(forms.used(op.tensor, op.indices) for op in every):
            continue
        for op in every:
            met = {kind: kinds[kind] for kind in CLASHES[kind_of(op)] if kind in kinds}
            found |= {op: met} if met else {}
    return found
