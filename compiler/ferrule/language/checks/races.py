"""Finds accesses to shared memory that may conflict because no barrier separates them.

The text of a kernel is cut at barriers of the whole block.  Two places are in one *interval* if
there may be a path from the one to the other, or from a common start to both, without such a
barrier; this is a conservative analysis of the text.  Only if an interval has a write, or an atomic
and a read, of one piece of shared memory, accesses must be watched at run time.  Tiles that are
filled, and read after a barrier, need not.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import field
from typing import Final, Literal

from ferrule.language.checks.linear import Forms
from ferrule.language.ir import ops
from ferrule.language.ir.walk import Work, drive
from ferrule.specs.deferred import dataclass

Kind = Literal["read", "write", "atomic"]

CLASHES: Final[Mapping[Kind, tuple[Kind, ...]]] = {
    "read": ("write", "atomic"),
    "write": ("write", "read", "atomic"),
    "atomic": ("write", "read"),
}
"""For each kind, the kinds of accesses by other threads that conflict with it in one interval."""

Access = ops.Load | ops.Store | ops.Atomic


def kind_of(op: Access) -> Kind:
    """The kind of an op's memory access."""
    match op:
        case ops.Load():
            return "read"
        case ops.Store():
            return "write"
        case ops.Atomic():
            return "atomic"


@dataclass(slots=True)
class Intervals:
    """The intervals of a kernel: a number for each access to shared memory, see `same`."""

    numbers: dict[Access, int] = field(default_factory=dict)
    parents: list[int] = field(default_factory=list)
    now: int = 0

    @classmethod
    def of(cls, kernel: ops.Function) -> Intervals:
        """The intervals of a kernel."""
        found = cls()
        found.now = found.new()
        drive(found.region(kernel.body))
        return found

    def new(self) -> int:
        """A new interval."""
        self.parents.append(len(self.parents))
        return len(self.parents) - 1

    def find(self, number: int) -> int:
        """The representative of all intervals that were merged with this one (union-find)."""
        while self.parents[number] != number:
            number = self.parents[number]
        return number

    def join(self, one: int, other: int) -> int:
        """Merges two intervals."""
        first, second = sorted((self.find(one), self.find(other)))
        self.parents[second] = first
        return first

    def region(self, region: ops.Region) -> Work:
        """Traverses a region."""
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
"""The accesses with which one may conflict, by kind."""


def watched(
    kernel: ops.Function, pieces: Mapping[ops.Value, Hashable], forms: Forms
) -> dict[Access, Met]:
    """Maps each access to the accesses it may conflict with.

    `pieces`: for each tensor in shared memory, the piece that contains it.
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
