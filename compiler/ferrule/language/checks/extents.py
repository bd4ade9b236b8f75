"""The memory range of a tensor's elements: its start, and its size in bytes."""

from __future__ import annotations

from dataclasses import field

from ferrule.language.checks import sizes
from ferrule.language.checks.memory import Memory, reach
from ferrule.language.checks.proving import Prover
from ferrule.language.ir import ops
from ferrule.language.ir.builder import Builder
from ferrule.specs import Int64
from ferrule.specs.deferred import dataclass


@dataclass(frozen=True, slots=True)
class Room:
    """The bytes of a tensor's memory before its first element, and from it on: Int64 values."""

    before: ops.Value
    behind: ops.Value


@dataclass(slots=True)
class Extents:
    """The memory of a function's roots.

    `rooms`: for parameters that are views.  `dynamic`: the tensors in dynamic shared memory, by the
    byte where they begin; `smem`: its size in bytes.
    """

    memory: Memory
    prover: Prover
    rooms: dict[ops.Value, Room] = field(default_factory=dict)
    dynamic: dict[ops.Value, int] = field(default_factory=dict)
    smem: ops.Value | None = None

    def base(self, b: Builder, root: ops.Value) -> tuple[ops.Value, ops.Value] | None:
        """The start address of a root's memory, and its size in bytes, if known."""
        if root in self.rooms:
            room = self.rooms[root]
            begin = b.binary("sub", sizes.address(b, root), room.before)
            return begin, b.binary("add", room.before, room.behind)
        if root in self.dynamic:
            assert self.smem is not None, "a kernel with dynamic shared memory is told its size"
            offset = b.constant(Int64, self.dynamic[root])
            return b.binary("sub", sizes.address(b, root), offset), self.smem
        return sizes.memory_of(b, root)

    def is_inside(self, tensor: ops.Value, indices: tuple[ops.Value, ...], root: ops.Value) -> bool:
        """Whether an element is known to be in the memory of a root."""
        type_, room = tensor.tensor, None if root in self.rooms else reach(root.tensor)
        low = self.memory.offset(tensor)
        if room is None or low is None or root in self.dynamic:
            return False
        high = low + type_.dtype.itemsize
        for index, stride in zip(indices, type_.strides, strict=True):
            if not isinstance(stride, int):
                return False
            ends = [end * stride * type_.dtype.itemsize for end in self.prover.range(index)]
            low, high = low + min(ends), high + max(ends)
        return -room.before <= low and high <= room.behind
