"""Ops of the kernel IR for asynchronous work: copies, and the start of the next kernel.

A thread's copies since its last `commit` become a group when it commits.  `wait` with a number
waits until all groups of the thread except that many newest have arrived; other threads see the
copied data after a barrier.  Until then the contents of the target are undefined, and no thread may
write to source or target.

Copies of boxes of tensors are PTX's `cp.async.bulk.tensor`.  A GPU reads the description of the
tensor from a tensor map, which the launch encodes; so the tensor must be an unchanged parameter of
the kernel.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from ferrule.language.ir.operation import Effects, Operation
from ferrule.language.ir.values import Value
from ferrule.specs.deferred import dataclass

if TYPE_CHECKING:
    from ferrule.compiler.cuda.tilings import Tiling

__all__ = [  # names of `ops`
    "AsyncCopy",
    "Boxes",
    "BulkStore",
    "CacheMode",
    "Control",
    "ControlKind",
    "MapCopy",
    "MapEdit",
    "MapEditKind",
    "MapOp",
    "MapReader",
    "TensorCopy",
    "TensorCopyKind",
    "WITH_AMOUNT",
]

CacheMode = Literal["always", "global"]
ControlKind = Literal[
    "cp_async_commit_group",
    "cp_async_wait_group",
    "cp_async_bulk_commit_group",
    "cp_async_bulk_wait_group",
    "cp_async_bulk_wait_group_read",
    "griddepcontrol_wait",
    "griddepcontrol_launch_dependents",
    "cluster_arrive",
    "cluster_arrive_relaxed",
    "cluster_wait",
    "mbarrier_init_fence",
    "fence_proxy_alias",
    "fence_proxy_async",
    "fence_proxy_async_global",
    "fence_proxy_async_shared_cta",
    "fence_proxy_async_shared_cluster",
    "fence_proxy_tensormap_release",
    "setmaxregister_increase",
    "setmaxregister_decrease",
    "wgmma_fence",
    "wgmma_commit_group",
    "wgmma_wait_group",
]

_OLDER: Final[dict[ControlKind, int]] = {
    "cp_async_commit_group": 80,
    "cp_async_wait_group": 80,
    "fence_proxy_alias": 70,
}
"""The first architecture of the kinds that GPUs had before sm_90."""

WITH_AMOUNT: Final[tuple[ControlKind, ...]] = (
    "cp_async_wait_group",
    "cp_async_bulk_wait_group",
    "cp_async_bulk_wait_group_read",
    "setmaxregister_increase",
    "setmaxregister_decrease",
    "wgmma_wait_group",
)
"""The kinds with a number."""
COPY_BYTES: Final = (4, 8, 16)
"""The possible sizes of an `AsyncCopy`."""


@dataclass(frozen=True, slots=True, eq=False)
class AsyncCopy(
    Operation,
    text="async_copy {target}, {source}, {count}{holds:word=if} {cache}",
    effects=("reads", "writes", "orders"),
    writes=("target",),
    place="kernel",
    since=("cp_async", 80),
):
    """Copies the first `count` elements of a tensor of one dim to shared memory: PTX's `cp.async`.

    The size is 4, 8 or 16 bytes, and both addresses are a multiple of it.  If `holds`, a Boolean,
    is false, zeros are written and nothing is read.  `cache`: keep the lines in all caches, or,
    only for 16 bytes, in the caches that the GPU's multiprocessors share.
    """

    target: Value
    source: Value
    count: int
    cache: CacheMode = "always"
    holds: Value | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Control(Operation, text="{words}", effects=("orders",), place="kernel"):
    """Controls asynchronous work and has no operands; some kinds have an `amount`.

    `cp_async_commit_group`, `cp_async_wait_group`: see above; those with `bulk` are the same for
    copies from shared memory, and `…_read` waits only until they have read it.
    `griddepcontrol_wait`: waits until the preceding kernels, for whose end the launch did not wait,
    have ended, and sees their writes.  `griddepcontrol_launch_dependents`: the next kernel may
    begin once all blocks have executed this or ended.  The fences order memory accesses of the
    thread and of copies.  `cluster_wait`: waits until all threads of the cluster have executed
    `cluster_arrive`, or `cluster_arrive_relaxed`, which does not make their writes visible.
    `setmaxregister_…`: the warpgroup has `amount` registers for each thread from now on.  Those
    with `wgmma`: groups of `WarpgroupMma`, and the fence before the first of them.
    """

    kind: ControlKind
    amount: int = 0

    @property
    def since(self) -> tuple[str, int]:
        """Most kinds are Hopper's."""
        return self.kind, _OLDER.get(self.kind, 90)

    @property
    def effects(self) -> Effects:
        """See `Operation`."""
        waits: Effects = frozenset(("waits",))
        return self.facts.effects | waits if self.kind == "cluster_wait" else self.facts.effects

    @property
    def words(self) -> str:
        """The text of the op, with the number if it has one."""
        return f"{self.kind} {self.amount}" if self.kind in WITH_AMOUNT else self.kind


TensorCopyKind = Literal["load", "store", "prefetch", "prefetch_map"]


@dataclass(frozen=True, slots=True)
class Boxes:
    """The boxes of a tensor for copies: `order` are its dims in the order of `tiling`."""

    tiling: Tiling
    order: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class TensorCopy(
    Operation,
    text="tensor_copy {kind} {tensor}[{coordinates}]{shared:word}{barrier:word}{mask:word}"
    "{descriptor:word} {boxes.tiling}",
    effects=("reads", "writes", "orders"),
    place="kernel",
    since=("cp_async_bulk_tensor", 90),
):
    """Copies the box of a tensor that begins at these coordinates, Int32, one for each dim.

    The box is compact in shared memory, with the innermost dim fastest, and 16-byte chunks permuted
    by the tiling's swizzle.  `load`: to shared memory; elements outside of the tensor are zero, or
    NaN, and the bytes of the whole box arrive at a barrier.  With a `mask`, an Int32, the box and
    the arrival go to the same place in each block of the cluster whose bit is set.  `store`: from
    shared memory; elements outside are skipped.  It ends with the `cp_async_bulk` group of the
    thread.  `prefetch`: into the L2 cache.  `prefetch_map`: the tensor map.  With a
    `descriptor`, the address of a tensor map in global memory, the tensor is the one that this map
    describes, of the same dtype, rank and boxes.
    """

    kind: TensorCopyKind
    tensor: Value
    boxes: Boxes
    coordinates: tuple[Value, ...] = ()
    shared: Value | None = None
    barrier: Value | None = None
    mask: Value | None = None
    descriptor: Value | None = None

    @property
    def mapped(self) -> tuple[Value, Boxes] | None:
        """The tensor and boxes whose map is a parameter of the kernel; None for one in memory."""
        return None if self.descriptor is not None else (self.tensor, self.boxes)

    @property
    def written(self) -> tuple[Value, ...]:
        """Shared memory and the barrier, or the tensor; nothing for a prefetch."""
        match self.kind:
            case "load":
                return tuple(each for each in (self.shared, self.barrier) if each is not None)
            case "store":
                return (self.tensor,)
            case "prefetch" | "prefetch_map":
                return ()

    @property
    def writes_elsewhere(self) -> bool:
        """A store to what a tensor map in memory describes."""
        return self.kind == "store" and self.descriptor is not None


@dataclass(frozen=True, slots=True, eq=False)
class BulkStore(
    Operation,
    text="bulk_store {target}, {source}, {size}",
    effects=("reads", "writes", "orders"),
    writes=("target",),
    place="kernel",
    since=("cp_async_bulk", 90),
):
    """Copies `size` bytes, an Int32, from shared to global memory; see `TensorCopy` of a store.

    The size and both addresses are multiples of 16.
    """

    target: Value
    source: Value
    size: Value


@dataclass(frozen=True, slots=True, eq=False)
class MapCopy(
    Operation,
    text="map_copy {target}, {tensor} {boxes.tiling}",
    effects=("reads", "writes", "orders"),
    writes=("target",),
    place="kernel",
    since=("cp_async_bulk_tensor", 90),
):
    """Writes the tensor map of a tensor and its boxes to memory, 16 Int64.

    The lanes of a warp write it together, each 4 bytes.  `lane`: an Int32.
    """

    target: Value
    tensor: Value
    boxes: Boxes
    lane: Value

    @property
    def mapped(self) -> tuple[Value, Boxes]:
        """The tensor and boxes whose map is a parameter of the kernel."""
        return self.tensor, self.boxes


MapEditKind = Literal["address", "dim", "stride", "publish", "acquire"]


@dataclass(frozen=True, slots=True, eq=False)
class MapEdit(
    Operation,
    text="map_{kind} {place}{value:word} {dim}",
    effects=("reads", "writes", "orders"),
    writes=("place",),
    place="kernel",
    since=("tensormap_replace", 90),
):
    """Changes a tensor map in memory, 16 Int64, or makes it visible to copies.

    `address`, `dim`, `stride`: one field, an Int64; sizes are in elements and strides in bytes,
    both by `dim`, which counts from the innermost one.  The innermost dim has no stride.
    `publish`: the warp copies it from shared memory, `value`, and makes it visible.  `acquire`: the
    copies of the thread see what was released before, by `publish` or the fence
    `fence_proxy_tensormap_release`.
    """

    kind: MapEditKind
    place: Value
    value: Value | None = None
    dim: int = 0


MapOp = MapCopy | MapEdit

MapReader = TensorCopy | MapCopy
"""Ops that may read a tensor map that is a parameter of the kernel."""

Asynchronous = AsyncCopy | Control | TensorCopy | BulkStore | MapOp
"""The ops of this module; they have no result."""
