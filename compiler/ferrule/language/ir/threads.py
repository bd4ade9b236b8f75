"""Ops of the kernel IR by which the threads of a block work together; only kernels have them.

Meaning that all targets share, which is that of PTX for sm_70 and later:

* threads are numbered through their block, x fastest; 32 that follow each other are a warp, and
  the number modulo 32 is the lane; the last warp of a block may have fewer, and lanes that the
  block does not have do not count in masks;
* shared memory is one for all threads of a block, is undefined when the block begins, and is gone
  when it ends;
* what a thread wrote before a `Barrier` or `WarpBarrier` is seen behind it by all that took part;
* a barrier waits for as many threads as it names, whole warps, from wherever in the text; all that
  wait at one number wait for the same count;
* those of a warp op's mask run the same op together, with the same mask, which has the own lane;
* where threads cannot meet so, because one has returned or waits elsewhere, the program has no
  meaning: a target that can tell ends the call with a DivergenceError that says who is missing;
* an `Atomic` reads and writes an element in one step, seen by the threads of its scope.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from ferrule.compiler.artefacts import Location
from ferrule.language.ir.asynchronous import AsyncCopy, Control
from ferrule.language.ir.mbarriers import BulkCopy, MBarrier, MBarrierTry, MBarrierWait
from ferrule.language.ir.operation import Operation, Result
from ferrule.language.ir.peers import PeerLoad, PeerStore
from ferrule.language.ir.tensor_copies import BulkStore, TensorCopy
from ferrule.language.ir.tensor_cores import LoadMatrix, Mma, StoreMatrix
from ferrule.language.ir.values import Value

FenceScope = Literal["block", "device", "system"]
ShuffleOp = Literal["idx", "up", "down", "bfly"]
VoteOp = Literal["all", "any", "uni", "ballot"]
MatchOp = Literal["any", "all"]
AtomicOp = Literal["add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec"]
MemoryOrder = Literal["relaxed", "acquire", "release", "acq_rel"]
MemoryScope = Literal["cta", "cluster", "gpu", "sys"]

WARP_SIZE: Final = 32
MAX_BARRIERS: Final = 16
"""Barriers of a block, numbered from 0."""
MAX_SHARED_ALIGN: Final = 1024
"""Bytes: what a tensor in shared memory can be aligned to at most."""


@dataclass(frozen=True, slots=True, eq=False)
class Shared(Operation, text="shared{kept:flag}", effects=(), uniform=True, place="kernel"):
    """Static shared memory of the block: one place for each op in the text, however often it runs.

    A tensor in `smem` of constant sizes and strides, none negative.  With `kept` (on the CPU only)
    it is all zeros before the first block that a core runs, and keeps what that leaves for the
    next, as does all other shared memory of the kernel.
    """

    result: Result
    kept: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class DynamicShared(
    Operation, text="dynamic_shared {offset}", effects=(), uniform=True, place="kernel"
):
    """The dynamic shared memory of the block, from `offset` bytes on: a tensor in `smem`.

    How many bytes there are the launch says (`Launch.smem`), so the tensor may claim more: it has
    sizes of any kind, or one dim of 2**63 - 1.  Byte 0 is aligned to `MAX_SHARED_ALIGN`.
    """

    result: Result
    offset: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Barrier(Operation, text="barrier{id:word}{count:word}", effects=("waits",), place="kernel"):
    """Waits until `count` threads of the block wait at barrier `id`, both Int32.

    Without an id it is barrier 0, without a count all threads of the block.  An id is from 0 to 15,
    a count a multiple of 32.
    """

    id: Value | None = None
    count: Value | None = None
    location: Location | None = None


@dataclass(frozen=True, slots=True, eq=False)
class WarpBarrier(Operation, text="warp_barrier{mask:word}", effects=("waits",), place="kernel"):
    """Waits for the lanes of the mask, a Uint32 that names the own one and is alike in all."""

    mask: Value
    location: Location | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Fence(Operation, text="fence {scope}", effects=("orders",), place="kernel"):
    """What the thread wrote before is seen before what it writes after, by those in scope."""

    scope: FenceScope


@dataclass(frozen=True, slots=True, eq=False)
class Shuffle(
    Operation,
    text="shuffle {op} {value}, {lane}{mask:word}{clamp:word}",
    effects=("waits",),
    place="kernel",
):
    """The value that another lane of the mask gives: PTX's `shfl.sync`.

    `lane` (Int32) is its lane (`idx`), how far it is below (`up`) or above (`down`), or what the
    own lane is combined with by xor (`bfly`).  `clamp` (Int32) has the bound in bits 0 to 4, and in
    8 to 12 the bits of a lane that say to which segment of the warp it belongs.  From a lane that
    is out of the bound comes the own value; from one that is not in the mask, or that the block
    does not have, comes anything.  The value is any scalar.
    """

    result: Result
    op: ShuffleOp
    value: Value
    lane: Value
    mask: Value
    clamp: Value
    location: Location | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Vote(Operation, text="vote {op} {predicate}{mask:word}", effects=("waits",), place="kernel"):
    """Whether a Boolean is true in all or any lanes of the mask, or alike in all (`uni`).

    `ballot` is the Uint32 with the bits of those where it is true.
    """

    result: Result
    op: VoteOp
    predicate: Value
    mask: Value
    location: Location | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Match(Operation, text="match {op} {value}{mask:word}", effects=("waits",), place="kernel"):
    """The lanes of the mask with the own lane's value, a Uint32; values are alike bit by bit.

    `all`: the lanes of the mask that the block has, if all have one value, else 0.  The value is an
    integer or float of 32 or 64 bits.
    """

    result: Result
    op: MatchOp
    value: Value
    mask: Value
    location: Location | None = None


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
    """Arrives at a barrier of the block with a number and a count, both Int32, and goes on.

    The count is as in `Barrier`: of all threads that arrive, those that wait there among them.
    """

    id: Value
    count: Value
    location: Location | None = None


Cooperation = Shared | DynamicShared | Shuffle | Vote | Match | Atomic | MBarrierTry | PeerLoad
"""Those with one result.  All but `Shared` and `DynamicShared` have an effect too."""

BackgroundOp = TensorCopy | BulkStore | StoreMatrix | BarrierArrive | PeerStore
"""Those of `ArchOp` that only GPUs have since sm_90, and named barriers."""

ArchOp = Mma | LoadMatrix | AsyncCopy | Control | MBarrier | MBarrierWait | BulkCopy | BackgroundOp
"""Those that are no more than instructions of some GPUs."""

CooperationEffect = Barrier | WarpBarrier | Fence | ArchOp
"""Those without a result."""

Synchronising = (
    Barrier | WarpBarrier | Shuffle | Vote | Match | Mma | LoadMatrix | StoreMatrix | MBarrierWait
)
"""Those that wait for other threads."""
