"""Ops of the kernel IR for barriers in shared memory, PTX's `mbarrier` objects.

A barrier is an Int64 in shared memory, which only these ops read and write.  It has a phase, 0 at
first, and waits for the number of arrivals of its `init`, and for the expected bytes of copies.
When all have arrived the next phase begins, which alternates between 0 and 1, and waits for as many
arrivals again.
"""

from __future__ import annotations

from typing import Literal

from ferrule.compiler.artefacts import Location
from ferrule.language.ir.operation import Operation, Result, Synchronising
from ferrule.language.ir.values import Value
from ferrule.specs.deferred import dataclass

__all__ = [  # names of `ops`
    "BulkCopy",
    "MBarrier",
    "MBarrierKind",
    "MBarrierTry",
    "MBarrierWait",
]

MBarrierKind = Literal["init", "arrive", "expect_tx", "arrive_and_expect_tx", "copies_arrive"]
"""The operations of a thread on a barrier."""


@dataclass(frozen=True, slots=True, eq=False)
class MBarrier(
    Operation,
    text="mbarrier {kind} {barrier}{amount:more}{peer:word}",
    effects=("reads", "writes", "orders"),
    writes=("barrier",),
    place="kernel",
    since=("mbarrier", 90),
):
    """`init`: initialises a barrier for `amount` arrivals.  `arrive`: one of them.  `expect_tx`:
    the phase waits for `amount` bytes more.  An amount is an Int32.  An `arrive` with a `peer`, an
    Int32, is for the barrier at the same place of the block of the cluster with that number.
    `copies_arrive`: an arrival as soon as all that the thread's `AsyncCopy` so far copy is there.
    """

    kind: MBarrierKind
    barrier: Value
    amount: Value | None = None
    peer: Value | None = None


@dataclass(frozen=True, slots=True, eq=False)
class MBarrierWait(
    Synchronising,
    Operation,
    text="mbarrier wait {barrier}, {phase}",
    effects=("reads", "waits", "orders"),
    place="kernel",
    since=("mbarrier", 90),
):
    """Waits until the phase with this number, an Int32 of 0 or 1, has ended.

    After it, accesses of threads before their arrival, and copied data, are visible.
    """

    barrier: Value
    phase: Value
    location: Location | None = None

    @property
    def called(self) -> str:
        """The name in the language."""
        return "mbarrier_wait()"

    @property
    def meets(self) -> Literal["phase"]:
        """The threads and copies that the barrier counts."""
        return "phase"


@dataclass(frozen=True, slots=True, eq=False)
class MBarrierTry(
    Operation,
    text="mbarrier try {barrier}, {phase}",
    effects=("reads", "orders"),
    place="kernel",
    since=("mbarrier", 90),
):
    """Whether the phase with this number has ended, a Boolean, after waiting for a while.

    The target chooses the time; targets whose threads do not run concurrently wait for the end.
    """

    result: Result
    barrier: Value
    phase: Value
    location: Location | None = None


@dataclass(frozen=True, slots=True, eq=False)
class BulkCopy(
    Operation,
    text="bulk_copy {target}, {source}, {size}, {barrier}",
    effects=("reads", "writes", "orders"),
    writes=("target", "barrier"),
    place="kernel",
    since=("cp_async_bulk", 90),
):
    """Copies `size` bytes, an Int32, from global to shared memory, for which a barrier waits.

    The size and both addresses are multiples of 16.  The phase waits only for expected bytes, so
    the kernel must add them with `expect_tx` for each copy, in the same phase.
    """

    target: Value
    source: Value
    size: Value
    barrier: Value


MBarrierEffect = MBarrier | MBarrierWait | BulkCopy
"""Ops on mbarriers without a result."""
