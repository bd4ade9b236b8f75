"""The threads of a block in the reference interpreter: each a generator that stops where it waits.

A block runs every thread until it waits or ends, lets go those that have what they wait for, and so
on.  What a thread that goes on gets is computed for all that go with it, straight from the meaning
of the op in `ferrule.language.ir.threads`.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

from ferrule.language.ir import ops
from ferrule.language.ir.rules import divergence
from ferrule.specs import DType
from interpreter import declared, foreign, matrices, scalars, warpgroups
from interpreter.copies import Copies
from interpreter.mbarriers import Barriers
from interpreter.memory import Memory
from interpreter.stops import Stopped, Undefined

Wait: TypeAlias = "tuple[ops.Synchronising, tuple[Any, ...]]"
"""The op at which a thread waits, and the values of its operands."""

Run: TypeAlias = "Generator[Wait, Any, list[Any]]"


@dataclass
class Block:
    """The memory that the threads of a block share, where each `Shared` is one place."""

    dynamic: Memory
    static: dict[ops.Value, Memory] = field(default_factory=dict)
    barriers: Barriers = field(default_factory=Barriers)
    uniform: dict[Any, Any] = field(default_factory=dict)
    """What uniform ops gave, see `declared`."""
    arrived: dict[int, list[int]] = field(default_factory=dict)
    """By the number of a barrier: the counts of those that arrived and do not wait."""

    def arrive(self, number: int, count: int) -> None:
        """A thread comes to a barrier and does not wait."""
        self.arrived.setdefault(number, []).append(count)


@dataclass(frozen=True)
class Thread:
    """What a thread of a kernel knows: its coordinates, and its block."""

    registers: Mapping[str, tuple[int, ...]]
    block: Block
    copies: Copies = field(default_factory=Copies)

    @cached_property
    def number(self) -> int:
        """Of the thread in its block, x fastest."""
        (x, y, z), (width, height, _) = (self.registers[r] for r in ("thread_idx", "block_dim"))
        return x + width * (y + height * z)

    @cached_property
    def is_compared(self) -> bool:
        """Whether what uniform ops give it is held against what they gave another."""
        return bool(self.registers) and self.number < 2


@dataclass
class Team:
    """The threads of one block that is running, by their numbers, x fastest."""

    kernel: str
    block: tuple[int, ...]
    shape: tuple[int, ...]
    runs: dict[int, Run]
    arrived: dict[int, list[int]] = field(default_factory=dict)
    waits: dict[int, Wait] = field(default_factory=dict)
    answers: dict[int, Any] = field(default_factory=dict)

    def run(self, order: Sequence[int]) -> None:
        """Runs all threads to their ends, these in this order.  Raises Stopped for divergence."""
        ready = list(order)
        while ready:
            for number in ready:
                self.advance(number)
            self.answers.clear()
            self.settle()
            if self.waits and not self.answers:
                raise self.blame()
            ready = [number for number in order if number in self.answers]
            for number in ready:
                del self.waits[number]

    def advance(self, number: int) -> None:
        """Runs a thread until it waits or ends."""
        try:
            run = self.runs[number]
            answer = self.answers.get(number)
            self.waits[number] = run.send(answer)
        except StopIteration:
            pass

    def settle(self) -> None:
        """Finds who may go on, and what they get."""
        asked = set[int]()
        for number in sorted(self.waits):
            op, operands = self.waits[number]
            if isinstance(op, ops.Barrier):
                barrier, _ = _barrier(op, operands)
                if barrier not in asked:
                    self.pass_barrier(op, operands)
                asked.add(barrier)
            elif isinstance(op, ops.MBarrierWait):
                waited, phase = operands
                if waited.phase != phase:
                    self.answers[number] = None
            elif number not in self.answers:
                together = self.named(number)
                if number in together and all(self.is_with(number, other) for other in together):
                    values = {other % 32: self.waits[other][1][0] for other in together}
                    its = matrices.given(op, values) if isinstance(op, matrices.KINDS) else None
                    for other in together:
                        wait, lane = self.waits[other], other % 32
                        self.answers[other] = its(lane) if its else given(wait, lane, values)

    # ---- barriers ----

    def at_barrier(self, number: int) -> list[int]:
        """The threads that wait at the barrier with this number."""
        waiting = ((n, *wait) for n, wait in sorted(self.waits.items()))
        return [
            thread
            for thread, op, operands in waiting
            if isinstance(op, ops.Barrier) and _barrier(op, operands)[0] == number
        ]

    def wanted(self, count: int | None) -> int:
        """For how many threads a barrier waits."""
        return len(self.runs) if count is None else count

    def pass_barrier(self, op: ops.Barrier, operands: tuple[Any, ...]) -> None:
        """Lets go those that wait at a barrier, if there are enough, and want the same count."""
        number, count = _barrier(op, operands)
        there = self.at_barrier(number)
        passing = self.arrived.get(number, [])
        counts = {self.wanted(_barrier(*self.waits[n])[1]) for n in there} | set(passing)
        wanted = self.wanted(count)
        if counts == {wanted} and len(there) + len(passing) >= wanted > 0:
            self.answers.update(dict.fromkeys(there[: wanted - len(passing)]))
            passing.clear()

    # ---- warps ----

    def named(self, number: int) -> list[int]:
        """The threads of the block that the mask of a thread's warp op names."""
        op, operands = self.waits[number]
        first, mask = number - number % 32, operands[-1]
        lanes = (first + lane for lane in range(32) if mask >> lane & 1)
        return [thread for thread in lanes if thread < len(self.runs)]

    def is_with(self, number: int, other: int) -> bool:
        """Whether another thread waits at the same warp op, with the same mask."""
        if other not in self.waits:
            return False
        (op, operands), (theirs, others) = self.waits[number], self.waits[other]
        return op is theirs and operands[-1] == others[-1]

    # ---- who is missing ----

    def blame(self) -> Stopped:
        """What the first thread that waits cannot have."""
        number = min(self.waits)
        op, operands = self.waits[number]
        if isinstance(op, ops.Barrier):
            there = self.at_barrier(_barrier(op, operands)[0])
            wanted = self.wanted(_barrier(op, operands)[1])
            candidates = list(self.runs)
        elif isinstance(op, ops.MBarrierWait):
            waits = sum(other is op for other, _ in self.waits.values())
            values = (waits, len(self.runs), *self.block, *self.coordinates(number))
            return Stopped(divergence.absent(self.kernel, op), values)
        else:
            candidates = self.named(number)
            if number not in candidates:
                values = (operands[-1], *self.block, *self.coordinates(number))
                return Stopped(divergence.excluded(self.kernel, op), values)
            there = [other for other in candidates if self.is_with(number, other)]
            wanted = len(candidates)
        missing = next((n for n in sorted(candidates) if n not in there), 0)
        values = (len(there), wanted, *self.block, *self.coordinates(missing))
        return Stopped(divergence.absent(self.kernel, op), values)

    def coordinates(self, number: int) -> tuple[int, int, int]:
        """x, y and z of a thread."""
        x, y, _ = self.shape
        return number % x, number // x % y, number // x // y


def _barrier(op: ops.Synchronising, operands: tuple[Any, ...]) -> tuple[int, int | None]:
    """The number of a barrier, and for how many threads it waits; None for all."""
    assert isinstance(op, ops.Barrier)
    left = list(operands)
    number = 0 if op.id is None else left.pop(0)
    return number, None if op.count is None else left.pop(0)


def given(wait: Wait, lane: int, values: Mapping[int, Any]) -> Any:
    """What a lane gets of a warp op, from what each lane that takes part brings.

    The mask is the last of the operands.
    """
    op, operands = wait
    match op:
        case ops.WarpBarrier():
            return None
        case ops.Shuffle():
            source = shuffled(op.op, lane, operands[1], operands[2])
            if source not in values:
                raise Undefined(f"lane {lane} shuffles from lane {source}, which takes no part")
            return values[source]
        case ops.Vote(op=name):
            return _vote(name, values)
        case ops.Match(op=name):
            dtype = op.value.type
            assert isinstance(dtype, DType)
            words = {each: scalars.bits(dtype, value) for each, value in values.items()}
            alike = [each for each, word in words.items() if word == words[lane]]
            if name == "all":
                return sum(1 << each for each in words) if len(alike) == len(words) else 0
            return sum(1 << each for each in alike)
        case ops.WarpgroupMma():
            return dict(values)
        case ops.InlinePtx():
            return operands[0]
    raise NotImplementedError(type(op).__name__)


def shuffled(op: str, lane: int, by: int, clamp: int) -> int:
    """The lane that a shuffle takes from, as the pseudocode of PTX's `shfl.sync` has it."""
    by, bound, segment = by & 31, clamp & 31, clamp >> 8 & 31
    lowest = lane & segment
    largest = lowest | bound & ~segment & 31
    match op:
        case "up":
            source = lane - by
            return source if source >= largest else lane
        case "down":
            source = lane + by
        case "bfly":
            source = lane ^ by
        case _:
            source = lowest | by & ~segment & 31
    return source if source <= largest else lane


def _vote(name: str, values: Mapping[int, bool]) -> Any:
    match name:
        case "all":
            return all(values.values())
        case "any":
            return any(values.values())
        case "uni":
            return len(set(values.values())) == 1
    return sum(1 << lane for lane, holds in values.items() if holds)


def waits_for(op: ops.Synchronising, values: Mapping[ops.Value, Any], lane: int = 0) -> Wait:
    """The wait of a thread: the mask of a warp op is the last operand."""
    match op:
        case ops.Barrier(number, count):
            return op, tuple(values[v] for v in (number, count) if v is not None)
        case ops.WarpBarrier(mask):
            return op, (None, values[mask])
        case ops.Mma(mask=mask) | ops.LoadMatrix(mask=mask) | ops.StoreMatrix(mask=mask):
            with declared.running(op):
                return op, (matrices.brought(op, lane, values), values[mask])
        case ops.WarpgroupMma():
            with declared.running(op):
                return op, (warpgroups.brought(op, values), 0xFFFFFFFF)
        case ops.InlinePtx(given=words):
            with declared.running(op):
                return op, (foreign.executed(op, [values[word] for word in words]), 0xFFFFFFFF)
        case ops.Shuffle(_, _, value, by, mask, clamp):
            return op, (values[value], values[by], values[clamp], values[mask])
        case ops.Vote(_, _, value, mask) | ops.Match(_, _, value, mask):
            return op, (values[value], values[mask])
