"""Barriers in shared memory, in the reference interpreter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from ferrule.language.ir import ops
from interpreter import declared
from interpreter.memory import Memory

Values: TypeAlias = Mapping[ops.Value, Any]


@dataclass
class Barrier:
    """A barrier for so many arrivals: what this phase still waits for."""

    count: int
    missing: int
    bytes: int = 0
    phase: int = 0

    def come(self, arrivals: int, size: int) -> None:
        """Somebody arrives, and bytes; what is expected comes as a negative size."""
        self.missing -= arrivals
        self.bytes -= size
        if self.missing == 0 and self.bytes == 0:
            self.missing, self.phase = self.count, 1 - self.phase


@dataclass
class Barriers:
    """Those of a block, by where they are."""

    known: dict[tuple[int, int], Barrier] = field(default_factory=dict)

    def at(self, memory: Memory) -> Barrier:
        return self.known[id(memory.bytes), memory.first]

    def run(self, op: ops.MBarrier | ops.BulkCopy, values: Values) -> None:
        """Changes one, or copies bytes that arrive at it."""
        memory = values[op.barrier]
        declared.seen("reads", memory=memory)
        declared.seen("writes", memory=memory)
        match op:
            case ops.MBarrier("init", _, ops.Value() as count):
                place = (id(memory.bytes), memory.first)
                self.known[place] = Barrier(values[count], values[count])
            case ops.MBarrier(kind, _, amount):
                expected = 0 if amount is None else values[amount]
                self.at(memory).come(int("arrive" in kind), -expected)
            case ops.BulkCopy(target, source, size):
                count = values[size]
                copy_bytes(values[source], values[target], count)
                self.at(memory).come(0, count)


def copy_bytes(source: Memory, target: Memory, count: int) -> None:
    """Copies bytes."""
    declared.seen("reads", memory=source)
    declared.seen("writes", memory=target)
    of, to = (slice(m.first, m.first + count) for m in (source, target))
    target.bytes[to] = source.bytes[of]
    if target.written is not None:
        target.written[to] = True
