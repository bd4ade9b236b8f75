"""Shadows: ops that record the users of shared memory since the last barrier, and look them up.

For each *granule* of a piece of shared memory, which has the size of its smallest element, and for
each kind of access, a shadow has two Int64.  One is a stamp, the block and the barriers between
which an access was.  The other has up to two threads: each half has the thread's number plus one in
16 bits, and in 15 bits the number of times that its warp had met in a `sync_warp`.  Accesses that
no barrier separates do not conflict if one warp has met in between.  Shadows begin as zeros and are
never cleared, because the stamps of two blocks always differ.

If two threads have made an access, a third one is not recorded: a thread that conflicts with one of
the three conflicts with one of the first two as well, except for threads that a `sync_warp`
separates.  After a barrier of only some threads, or an mbarrier, a thread is not watched until all
have met.  So there are no false reports.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ferrule.language.checks.races import Kind
from ferrule.language.ir import ops
from ferrule.language.ir.builder import Builder
from ferrule.language.ir.types import TensorType
from ferrule.specs import AddressSpace, Int32, Int64
from ferrule.specs.deferred import dataclass
from ferrule.specs.expr import INT64_MAX

_KINDS: Final[tuple[Kind, ...]] = ("write", "read", "atomic")
WORDS: Final = 2 * len(_KINDS)
"""The number of Int64 for a granule."""
_EPOCHS: Final = 24
"""The bits of a stamp that count barriers."""
_THREAD: Final = 0xFFFF
_LOW: Final = 0xFFFFFFFF


def shadow_type(granules: int | None) -> TensorType:
    """The type of the shadow for this number of granules."""
    size = INT64_MAX if granules is None else granules * WORDS
    return TensorType(Int64, (size,), (1,), 16, AddressSpace.smem)


@dataclass(frozen=True, slots=True)
class Clock:
    """For the running thread: its number plus one, its block, and its counts of waits.

    `waits` is a tensor of its own: the count for the block, for its warp, and whether it has waited
    for only some threads.
    """

    me: ops.Value
    warp: ops.Value
    block: ops.Value
    waits: ops.Value
    in_warps: bool
    partly: bool

    @classmethod
    def begin(cls, b: Builder, kernel_ops: Sequence[ops.Op]) -> Clock:
        """The clock of a thread at its beginning; `kernel_ops` are all ops of the kernel."""
        x, y, z = (b.special("thread_idx", axis) for axis in range(3))
        width, height = (b.special("block_dim", axis) for axis in range(2))
        row = b.binary("add", b.binary("mul", z, height), y)
        number = b.binary("add", b.binary("mul", row, width), x)
        me = b.cast(Int64, b.binary("add", number, b.constant(Int32, 1)))
        warp = b.cast(Int64, b.binary("shr", number, b.constant(Int32, 5)))
        waits = ops.Value(TensorType(Int64, (3,), (1,), 8, AddressSpace.rmem), "waits")
        partly = any(map(_waits_for_some, kernel_ops))
        in_warps = any(isinstance(op, ops.WarpBarrier) for op in kernel_ops)
        return cls(me, warp, _block_stamp(b), waits, in_warps, partly)

    def start(self, b: Builder) -> None:
        """Begins to count; before this the thread has neither waited nor made a watched access."""
        b.append(ops.Fragment(self.waits))
        zero = b.constant(Int64, 0)
        for place in range(3):
            b.store(self.waits, (b.constant(Int32, place),), zero)

    def passed(self, b: Builder, op: ops.Op) -> None:
        """Records that the thread has waited."""
        match op:
            case ops.Barrier(_, None):
                self._count(b, 0)
                if self.partly:
                    b.store(self.waits, (b.constant(Int32, 2),), b.constant(Int64, 0))
            case ops.WarpBarrier():
                self._count(b, 1)
            case _ if _waits_for_some(op):
                b.store(self.waits, (b.constant(Int32, 2),), b.constant(Int64, 1))

    def _count(self, b: Builder, place: int) -> None:
        at = (b.constant(Int32, place),)
        b.store(self.waits, at, b.binary("add", b.load(self.waits, at), b.constant(Int64, 1)))

    def stamp(self, b: Builder) -> ops.Value:
        """The stamp of the current time of the thread."""
        return b.binary("add", self.block, b.load(self.waits, (b.constant(Int32, 0),)))

    def name(self, b: Builder) -> ops.Value:
        """The thread, and the count of its warp's meetings: one half of a word."""
        if not self.in_warps:
            return self.me
        met = b.load(self.waits, (b.constant(Int32, 1),))
        low = b.binary("and", met, b.constant(Int64, 0x7FFF))
        return b.binary("or", self.me, b.binary("shl", low, b.constant(Int64, 16)))

    def is_watched(self, b: Builder) -> ops.Value:
        """Whether the thread is watched now."""
        partly = b.load(self.waits, (b.constant(Int32, 2),))
        return b.compare("eq", partly, b.constant(Int64, 0))


def _waits_for_some(op: ops.Op) -> bool:
    """Whether a thread waits for an unknown subset of threads."""
    if isinstance(op, ops.Synchronising):
        return op.meets in ("some", "phase")
    return isinstance(op, ops.Control) and op.kind == "cluster_wait"


def _block_stamp(b: Builder) -> ops.Value:
    """The block's number plus one, above the bits that count barriers."""
    x, y, z = (b.cast(Int64, b.special("block_idx", axis)) for axis in range(3))
    width, height = (b.cast(Int64, b.special("grid_dim", axis)) for axis in range(2))
    row = b.binary("add", b.binary("mul", z, height), y)
    number = b.binary("add", b.binary("mul", row, width), x)
    return b.binary("shl", _plus(b, number, 1), b.constant(Int64, _EPOCHS))


def _plus(b: Builder, value: ops.Value, number: int) -> ops.Value:
    return value if number == 0 else b.binary("add", value, b.constant(Int64, number))


@dataclass(frozen=True, slots=True)
class Meeting:
    """The result of a lookup at a granule: whether threads conflict, and the other one's number."""

    clashes: ops.Value
    other: ops.Value


@dataclass(frozen=True, slots=True)
class Watch:
    """A current access by the running thread to a granule of a shadow."""

    b: Builder
    clock: Clock
    shadow: ops.Value
    granule: ops.Value
    stamp: ops.Value
    me: ops.Value

    def meet(self, kind: Kind) -> Meeting:
        """The accesses of a kind by other threads."""
        b = self.b
        same, who = self._found(kind)
        first, second = self._halves(who)
        clash_first, clash_second = self._clashes(first), self._clashes(second)
        clashes = b.binary("and", same, b.binary("or", clash_first, clash_second))
        other = b.select(clash_first, first, second)
        number = b.binary("and", other, b.constant(Int64, _THREAD))
        return Meeting(clashes, _plus(b, number, -1))

    def record(self, kind: Kind) -> None:
        """Records an access of a kind by the running thread."""
        b, who = self.b, self.me
        if kind != "write":  # a conflicting write of another thread was reported
            who = self._joined(kind)
        for place, value in ((0, self.stamp), (1, who)):
            b.atomic("exch", self.shadow, (self._place(kind, place),), value)

    def _joined(self, kind: Kind) -> ops.Value:
        """The threads that have made an access of a kind, including the running one."""
        b = self.b
        same, who = self._found(kind)
        first, second = self._halves(who)
        own = self._is_me(first)
        if self.clock.in_warps:
            own = b.binary("or", own, b.unary("not", self._may_clash(first)))
        high = b.binary("shl", second, b.constant(Int64, 32))
        replaced = b.binary("or", self.me, high)
        added = b.binary("or", first, b.binary("shl", self.me, b.constant(Int64, 32)))
        return b.select(same, b.select(own, replaced, added), self.me)

    def _place(self, kind: Kind, word: int) -> ops.Value:
        b, at = self.b, 2 * _KINDS.index(kind) + word
        return _plus(b, b.binary("mul", self.granule, b.constant(Int64, WORDS)), at)

    def _found(self, kind: Kind) -> tuple[ops.Value, ops.Value]:
        """Whether there was such an access since the last barrier, and its threads."""
        b, zero = self.b, self.b.constant(Int64, 0)
        # An atomic, because iterations of the loop over threads depend on each other here.
        stamp, who = (
            b.atomic("or", self.shadow, (self._place(kind, word),), zero) for word in range(2)
        )
        return b.compare("eq", stamp, self.stamp), who

    def _halves(self, who: ops.Value) -> tuple[ops.Value, ops.Value]:
        b = self.b
        low = b.binary("and", who, b.constant(Int64, _LOW))
        return low, b.binary("shr", who, b.constant(Int64, 32))

    def _thread(self, half: ops.Value) -> ops.Value:
        return self.b.binary("and", half, self.b.constant(Int64, _THREAD))

    def _is_me(self, half: ops.Value) -> ops.Value:
        return self.b.compare("eq", self._thread(half), self.clock.me)

    def _clashes(self, half: ops.Value) -> ops.Value:
        b = self.b
        there = b.compare("ne", half, b.constant(Int64, 0))
        other = b.binary("and", there, b.unary("not", self._is_me(half)))
        if not self.clock.in_warps:
            return other
        return b.binary("and", other, self._may_clash(half))

    def _may_clash(self, half: ops.Value) -> ops.Value:
        """Whether no `sync_warp` separates a thread's access from the current one."""
        b = self.b
        number = _plus(b, self._thread(half), -1)
        warp = b.binary("shr", number, b.constant(Int64, 5))
        met = b.binary("xor", half, self.me)
        same_round = b.compare("lt", met, b.constant(Int64, _THREAD + 1))
        return b.binary("or", b.compare("ne", warp, self.clock.warp), same_round)
