"""Ops of the kernel IR that copy boxes of tensors: PTX's `cp.async.bulk.tensor`.

A GPU reads the description of the tensor from a tensor map, which the launch encodes; so the tensor
must be an unchanged parameter of the kernel.
"""

from __future__ import annotations

from typing import Literal

from ferrule.compiler.cuda.tilings import Tiling
from ferrule.language.ir.operation import Operation
from ferrule.language.ir.values import Value
from ferrule.specs.deferred import dataclass

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
    " {boxes.tiling}",
    effects=("reads", "writes", "orders"),
    place="kernel",
):
    """Copies the box of a tensor that begins at these coordinates, Int32, one for each dim.

    The box is compact in shared memory, with the innermost dim fastest, and 16-byte chunks permuted
    by the tiling's swizzle.  `load`: to shared memory; elements outside of the tensor are zero, or
    NaN, and the bytes of the whole box arrive at a barrier.  With a `mask`, an Int32, the box and
    the arrival go to the same place in each block of the cluster whose bit is set.  `store`: from
    shared memory; elements outside are skipped.  It ends with the `cp_async_bulk` group of the
    thread.  `prefetch`: into the L2 cache.  `prefetch_map`: the tensor map.
    """

    kind: TensorCopyKind
    tensor: Value
    boxes: Boxes
    coordinates: tuple[Value, ...] = ()
    shared: Value | None = None
    barrier: Value | None = None
    mask: Value | None = None

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


@dataclass(frozen=True, slots=True, eq=False)
class BulkStore(
    Operation,
    text="bulk_store {target}, {source}, {size}",
    effects=("reads", "writes", "orders"),
    writes=("target",),
    place="kernel",
):
    """Copies `size` bytes, an Int32, from shared to global memory; see `TensorCopy` of a store.

    The size and both addresses are multiples of 16.
    """

    target: Value
    source: Value
    size: Value
