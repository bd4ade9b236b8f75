"""The base tensors of views, and the positions of their elements.

A *root* is a tensor that is not a view: a parameter, shared memory, a new tensor.  A view that
takes whole modes of another at an index is within it if that index is in range, so indices are
checked against the shapes.  They are checked where an element is read or written, because a view
alone reads nothing.  For a view in another layout, or with another dtype, and for a pointer, the
shape does not bound the memory: there the element's address is checked against the root.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace

from ferrule.language.codegen.facts.alignment import Multiples
from ferrule.language.ir import ops
from ferrule.language.ir.types import TensorType
from ferrule.specs.deferred import dataclass
from ferrule.specs.expr import INT64_MAX


@dataclass(frozen=True, slots=True)
class Index:
    """An index along a dim of a tensor, which must be in range."""

    tensor: ops.Value
    axis: int
    value: ops.Value


@dataclass(frozen=True, slots=True)
class Origin:
    """The origin of a tensor.

    `pending`: the indices at which it begins in others, outermost first.  `inside`: whether its
    elements are in the root if all indices are in range.  `claims`: the views on the way that claim
    more alignment than is known, with the bytes.
    """

    root: ops.Value
    pending: tuple[Index, ...] = ()
    inside: bool = True
    claims: tuple[tuple[ops.Value, int], ...] = ()


@dataclass(slots=True)
class Memory:
    """The tensors of one function."""

    multiples: Multiples = field(default_factory=Multiples)
    origins: dict[ops.Value, Origin] = field(default_factory=dict)
    offsets: dict[ops.Value, int] = field(default_factory=dict)
    """For views that begin at a known byte of their root, that byte."""

    def take(self, op: ops.Op) -> None:
        """Records an op."""
        if isinstance(op, ops.View):
            self._view(op)
        if isinstance(op, ops.SimpleOp):
            self.multiples.note(op)
        if isinstance(op, ops.For):
            self.multiples.note_index(op)

    def origin(self, tensor: ops.Value) -> Origin:
        """The origin of a tensor."""
        return self.origins.get(tensor, Origin(tensor))

    def indices(self, tensor: ops.Value, indices: Sequence[ops.Value]) -> list[Index]:
        """All indices that must be in range for an access, the tensor's own indices last."""
        own = [Index(tensor, axis, value) for axis, value in enumerate(indices)]
        return [*self.origin(tensor).pending, *own]

    def offset(self, tensor: ops.Value) -> int | None:
        """The byte of its root at which a tensor begins, if known."""
        return self.offsets.get(tensor, None if tensor in self.origins else 0)

    def _view(self, op: ops.View) -> None:
        outer, result = op.tensor, op.result
        if not isinstance(outer.type, TensorType):
            return
        origin = self.origin(outer)
        self._offset(op)
        pending, part = origin.pending, self._is_part(op)
        if part and op.indices:
            kept = self._kept(op)
            taken = [axis for axis in range(len(op.indices)) if axis not in kept]
            pending += tuple(Index(outer, axis, op.indices[axis]) for axis in taken)
        inside = (origin.inside and part) or self._fits(result, origin.root)
        claims, claimed = origin.claims, max(result.tensor.align, result.tensor.dtype.itemsize)
        if claimed > self.multiples.address(outer, op.indices):
            claims += ((result, claimed),)
        self.origins[result] = replace(origin, pending=pending, inside=inside, claims=claims)

    def _kept(self, op: ops.View) -> set[int]:
        """The dims a view keeps, in order: those whose start index is 0."""
        kept, wanted = set[int](), _modes(op.result.tensor)
        for axis, mode in enumerate(_modes(op.tensor.tensor)):
            begins = self.multiples.constants.get(op.indices[axis]) == 0
            if begins and wanted and mode == wanted[0]:
                kept.add(axis)
                wanted.pop(0)
        return kept

    def _is_part(self, op: ops.View) -> bool:
        """Whether a view only selects some of the modes of a tensor."""
        outer, part = op.tensor.tensor, op.result.tensor
        if outer.dtype is not part.dtype:
            return False
        if op.indices:
            return len(self._kept(op)) == len(part.shape)
        return sorted(map(str, _modes(outer))) == sorted(map(str, _modes(part)))

    def _offset(self, op: ops.View) -> None:
        known = self.offset(op.tensor)
        steps = [self.multiples.constants.get(index) for index in op.indices]
        total = known
        for step, stride in zip(steps, op.tensor.tensor.strides, strict=False):
            if total is None or step is None or not isinstance(stride, int):
                return
            total += step * stride * op.tensor.tensor.dtype.itemsize
        if total is not None:
            self.offsets[op.result] = total

    def _fits(self, tensor: ops.Value, root: ops.Value) -> bool:
        """Whether a tensor of constant sizes is known to be within its root."""
        offset = self.offsets.get(tensor)
        room, needed = reach(root.tensor), reach(tensor.tensor)
        if offset is None or room is None or needed is None or not self.origin(root).inside:
            return False
        return -room.before <= offset - needed.before and offset + needed.behind <= room.behind


@dataclass(frozen=True, slots=True)
class Reach:
    """The bytes of a tensor's elements: before the first one's address, and from it on."""

    before: int
    behind: int


def reach(type_: TensorType) -> Reach | None:
    """The bytes from the lowest to the highest element, if they are known."""
    before, behind = 0, 1
    for size, stride in zip(type_.shape, type_.strides, strict=True):
        if not isinstance(size, int) or not isinstance(stride, int) or size == INT64_MAX:
            return None
        if size == 0:
            return Reach(0, 0)
        before -= min(0, (size - 1) * stride)
        behind += max(0, (size - 1) * stride)
    return Reach(before * type_.dtype.itemsize, behind * type_.dtype.itemsize)


def _modes(type_: TensorType) -> list[tuple[object, object]]:
    return list(zip(type_.shape, type_.strides, strict=True))
