"""Ops of the kernel IR for the cooperation of the threads of a block; only kernels have them.

The semantics of all targets, which is that of PTX for sm_70 and later:

* threads are numbered through their block, x fastest; 32 consecutive threads are a warp, and the
  number modulo 32 is the lane; the last warp of a block may have fewer lanes, and missing lanes do
  not count in masks;
* all threads of a block share its shared memory, which is undefined when the block begins, and is
  freed when it ends;
* a thread's writes before a `Barrier` or `WarpBarrier` are visible after it to all participants;
* a barrier waits for as many threads as it names, whole warps, at any place in the text; all that
  wait at one number must have the same count;
* the lanes in a warp op's mask run the same op together, with the same mask, which includes the
  running lane;
* if threads cannot meet in this way, because one has returned or waits elsewhere, the behaviour is
  undefined: a target that detects this ends the call with a DivergenceError that names the missing
  threads;
* an `Atomic` reads and writes an element in one step for the threads of its scope.
"""

from __future__ import annotations

from typing import Final, Literal

from ferrule.compiler.artefacts import Location
from ferrule.language.ir.asynchronous import Asynchronous
from ferrule.language.ir.mbarriers import MBarrierEffect, MBarrierTry
from ferrule.language.ir.operation import Operation, Result, Synchronising
from ferrule.language.ir.tensor_cores import MatrixOp, TensorCoreOp
from ferrule.language.ir.values import Value
from ferrule.specs.deferred import dataclass

__all__ = [  # names of `ops`
    "AnyWarpOp",
    "ArchOp",
    "Atomic",
    "AtomicOp",
    "Barrier",
    "BarrierArrive",
    "BlockEffect",
    "Cooperation",
    "CooperationEffect",
    "DynamicShared",
    "Exchange",
    "Fence",
    "FenceScope",
    "InlinePtx",
    "MAX_BARRIERS",
    "MAX_SHARED_ALIGN",
    "Match",
    "MatchOp",
    "MemoryOrder",
    "MemoryScope",
    "PeerLoad",
    "PeerStore",
    "Shared",
    "Shuffle",
    "ShuffleOp",
    "Synchronising",
    "Vote",
    "VoteOp",
    "WARP_SIZE",
    "WarpMeeting",
    "WarpBarrier",
]

FenceScope = Literal["block", "device", "system"]
ShuffleOp = Literal["idx", "up", "down", "bfly"]
VoteOp = Literal["all", "any", "uni", "ballot"]
MatchOp = Literal["any", "all"]
AtomicOp = Literal["add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec"]
MemoryOrder = Literal["relaxed", "acquire", "release", "acq_rel"]
MemoryScope = Literal["cta", "cluster", "gpu", "sys"]

WARP_SIZE: Final = 32
MAX_BARRIERS: Final = 16
"""The number of barriers of a block, numbered from 0."""
MAX_SHARED_ALIGN: Final = 1024
"""The largest alignment of a tensor in shared memory, in bytes."""


@dataclass(frozen=True, slots=True, eq=False)
class Shared(
    Operation, text="shared{lasts:flag=kept}{extra:flag}", effects=(), uniform=True, place="kernel"
):
    """Static shared memory of the block: one place for each op in the text, however often it runs.

    A tensor in `smem` of constant sizes and strides, none negative.  If it `lasts` (only on the
    CPU) it is all zeros before the first block that a core runs, and keeps its contents for the
    next block, like all other shared memory of the kernel.  What is `extra` (only on the CPU) does
    not count as shared memory of the kernel: a GPU uses registers instead.  No check watches it:
    threads may read there what nobody has written and not use it, and store what is there already.
    """

    result: Result
    lasts: bool = False
    extra: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class DynamicShared(
    Operation, text="dynamic_shared {offset}", effects=(), uniform=True, place="kernel"
):
    """The dynamic shared memory of the block, from `offset` bytes on: a tensor in `smem`.

    The launch determines its size (`Launch.smem`), so the type may claim more: it has sizes of any
    kind, or one dim of 2**63 - 1.  Byte 0 is aligned to `MAX_SHARED_ALIGN`.
    """

    result: Result
    offset: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Barrier(
    Synchronising,
    Operation,
    text="barrier{id:word}{count:word}",
    effects=("waits",),
    place="kernel",
):
    """Waits until `count` threads of the block wait at barrier `id`, both Int32.

    The default is barrier 0 and all threads of the block.  An id is from 0 to 15, a count a
    multiple of 32.
    """

    id: Value | None = None
    count: Value | None = None
    location: Location | None = None

    @property
    def called(self) -> str:
        """The name in the language."""
        return "sync_threads()" if self.id is None and self.count is None else "barrier()"

    @property
    def meets(self) -> Literal["block", "some"]:
        """All threads, unless the op has a count."""
        return "block" if self.count is None else "some"


@dataclass(frozen=True, slots=True, eq=False)
class WarpBarrier(
    Synchronising, Operation, text="warp_barrier{mask:word}", effects=("waits",), place="kernel"
):
    """Waits for the lanes of the mask, a Uint32 that includes the running lane and is the same in
    all of them."""

    mask: Value
    location: Location | None = None

    @property
    def called(self) -> str:
        """The name in the language."""
        return "sync_warp()"


@dataclass(frozen=True, slots=True, eq=False)
class Fence(Operation, text="fence {scope}", effects=("orders",), place="kernel"):
    """Makes the thread's earlier writes visible, before its later writes, to the threads in
    scope."""

    scope: FenceScope


@dataclass(frozen=True, slots=True, eq=False)
class Shuffle(
    Synchronising,
    Operation,
    text="shuffle {op} {value}, {lane}{mask:word}{clamp:word}",
    effects=("waits",),
    place="kernel",
):
    """The value of another lane of the mask: PTX's `shfl.sync`.

    `lane` (Int32) is the number of that lane (`idx`), its distance below (`up`) or above (`down`),
    or the number that is combined with the running lane's by xor (`bfly`).  `clamp` (Int32) has the
    bound in bits 0 to 4, and in 8 to 12 the bits of a lane's number that select its segment of the
    warp.  For a lane beyond the bound the result is the running lane's own value; for one that is
    not in the mask, or that the block does not have, it is undefined.  The value is any scalar.
    """

    result: Result
    op: ShuffleOp
    value: Value
    lane: Value
    mask: Value
    clamp: Value
    location: Location | None = None

    @property
    def called(self) -> str:
        """The name in the language."""
        return "shuffle_sync()" if self.op == "idx" else f"shuffle_sync_{self.op}()"


@dataclass(frozen=True, slots=True, eq=False)
class Vote(
    Synchronising,
    Operation,
    text="vote {op} {predicate}{mask:word}",
    effects=("waits",),
    place="kernel",
):
    """Whether a Boolean is true in all or any lanes of the mask, or the same in all (`uni`).

    `ballot` is the Uint32 with the bits of the lanes in which it is true.
    """

    result: Result
    op: VoteOp
    predicate: Value
    mask: Value
    location: Location | None = None

    @property
    def called(self) -> str:
        """The name in the language."""
        return f"vote_{self.op}_sync()"


@dataclass(frozen=True, slots=True, eq=False)
class Match(
    Synchronising,
    Operation,
    text="match {op} {value}{mask:word}",
    effects=("waits",),
    place="kernel",
):
    """The lanes of the mask with the running lane's value, a Uint32; values are compared bit by
    bit.

    `all`: the lanes of the mask that the block has, if all have one value, else 0.  The value is an
    integer or float of 32 or 64 bits.
    """

    result: Result
    op: MatchOp
    value: Value
    mask: Value
    location: Location | None = None

    @property
    def called(self) -> str:
        """The name in the language."""
        return f"match_{self.op}_sync()"


@dataclass(frozen=True, slots=True, eq=False)
class Atomic(
    Operation,
    text="atomic {op} {tensor}[{indices}], {compare:first}{value} {sem} {scope}",
    effects=("reads", "writes"),
    writes=("tensor",),
    place="kernel",
):
    """Replaces an element by `op` of it and `value` in one step; the result is the old element.

    `cas` writes the value if the element is `compare`, bit by bit.  `inc` is `0 if old >= value
    else old + 1`, `dec` is `value if old == 0 or old > value else old - 1`, of Uint32.  `add` of
    floats rounds as usual, to nearest; `min` and `max` of floats are those of `Binary`.
    """

    result: Result
    op: AtomicOp
    tensor: Value
    indices: tuple[Value, ...]
    value: Value
    compare: Value | None = None
    sem: MemoryOrder = "relaxed"
    scope: MemoryScope = "gpu"
    location: Location | None = None


@dataclass(frozen=True, slots=True, eq=False)
class BarrierArrive(
    Operation, text="barrier_arrive{id:word}{count:word}", effects=("orders",), place="kernel"
):
    """Arrives at a barrier of the block with a number and a count, both Int32, without waiting.

    The count is as in `Barrier`: of all threads that arrive, including those that wait there.
    """

    id: Value
    count: Value
    location: Location | None = None


@dataclass(frozen=True, slots=True, eq=False)
class PeerLoad(
    Operation,
    text="peer_load {source}, {peer}",
    effects=("reads",),
    uniform=True,
    place="kernel",
    since=("load_peer or store_peer", 90),
):
    """Reads an element of the shared memory of another block of the cluster.

    The element is the first of a compact tensor of one dim, at the same place in the block whose
    number in the cluster is `peer`, an Int32.  If a cluster is one block, that is the block itself.
    """

    result: Result
    source: Value
    peer: Value


@dataclass(frozen=True, slots=True, eq=False)
class PeerStore(
    Operation,
    text="peer_store {value}, {target}, {peer}",
    effects=("writes",),
    writes=("target",),
    place="kernel",
    since=("load_peer or store_peer", 90),
):
    """Writes an element of the shared memory of another block of the cluster; see `PeerLoad`."""

    target: Value
    value: Value
    peer: Value


@dataclass(frozen=True, slots=True, eq=False)
class InlinePtx(
    Synchronising,
    Operation,
    text="inline_ptx {text!r} {constraints!r}({given})",
    effects=("reads", "writes", "waits", "orders", "shows"),
    place="kernel",
):
    """A text of PTX instructions, which only a GPU can run.

    `$0` in it is the register of the result, `$1` and so on those of the numbers in `given`, all
    scalars.  `constraints` are those of LLVM, in this order: `=r,l`.  It may read and write any
    memory, and wait for others.
    """

    result: Result
    text: str
    constraints: str
    given: tuple[Value, ...]
    location: Location | None = None

    @property
    def called(self) -> str:
        """The name in the language."""
        return "inline_ptx()"


Exchange = Shuffle | Vote | Match
"""Ops by which the lanes of a warp exchange values: one result, and a mask."""

AnyWarpOp = WarpBarrier | Exchange | MatrixOp
"""Ops for which the lanes of a mask wait for each other, on every target."""

Cooperation = Shared | DynamicShared | Exchange | Atomic | MBarrierTry | PeerLoad | InlinePtx
"""Ops with one result.  All but `Shared` and `DynamicShared` have an effect too."""

ArchOp = TensorCoreOp | Asynchronous | MBarrierEffect | BarrierArrive | PeerStore
"""Ops without a result that are instructions of some GPUs."""

BlockEffect = Barrier | WarpBarrier | Fence
"""Ops without a result that every target has."""

CooperationEffect = BlockEffect | ArchOp
"""Ops without a result."""

WarpMeeting = WarpBarrier | Exchange | TensorCoreOp | InlinePtx
"""Ops that wait for threads of the same warp or warpgroup alone."""
