"""Copies in the background, in the reference interpreter: as late as a program can bear.

Until a thread waits for a copy its target counts as unwritten, so that a program that reads it has
no meaning.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ferrule.language.ir import ops
from ferrule.specs import DType
from interpreter import declared, scalars
from interpreter.memory import Memory


@dataclass(frozen=True)
class Copy:
    """One copy; without a source, of zeros."""

    dtype: DType
    count: int
    target: Memory
    source: Memory | None
    op: ops.AsyncCopy

    def forget(self) -> None:
        """The target holds anything."""
        start = self.target.first
        assert self.target.written is not None, "a copy goes to shared memory"
        self.target.written[start : start + self.count * self.dtype.itemsize] = False

    def arrive(self) -> None:
        """Writes the elements."""
        with declared.running(self.op):
            for position in range(self.count):
                at = position * self.dtype.itemsize
                zero = scalars.number(self.dtype, 0)
                value = zero if self.source is None else self.source.read(self.dtype, at)
                self.target.write(self.dtype, at, value)


@dataclass
class Copies:
    """What a thread has begun: groups, the oldest first, and what is in none yet."""

    groups: list[list[Copy]] = field(default_factory=list)
    open: list[Copy] = field(default_factory=list)

    def run(
        self, op: ops.AsyncCopy | ops.Control | ops.Fence, values: Mapping[ops.Value, Any]
    ) -> None:
        """Begins a copy, ends a group, or waits for the older ones.

        One thread runs at a time, so fences do nothing.
        """
        match op:
            case ops.AsyncCopy(target, source, count, _, holds):
                taken = values[source] if holds is None or values[holds] else None
                copy = Copy(target.tensor.dtype, count, values[target], taken, op)
                copy.forget()
                self.open.append(copy)
            case ops.Control("cp_async_commit_group"):
                self.groups.append(self.open)
                self.open = []
            case ops.Control("cp_async_wait_group", most):
                self.wait(most)

    def finish(self) -> None:
        """All that was begun is there."""
        self.groups.append(self.open)
        self.open = []
        self.wait(0)

    def wait(self, most: int) -> None:
        """All groups but so many are there."""
        while len(self.groups) > most:
            for copy in self.groups.pop(0):
                copy.arrive()
