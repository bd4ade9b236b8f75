"""Uniformity analysis: values that are the same for all threads of a block, and computed once for
it.

The *frame* of a kernel is its body, and the regions of its branches and loops that contain an op
which waits for other threads.  If the frame's branches and loops are uniform, the kernel can run
phase by phase (`cpu.cooperate.phases`).  A value is *uniform* if an op of the frame computes it
from uniform values without an effect.  A load is uniform only if no thread can have written since
all waited for each other: between two such places threads do not write memory that others read.

A caller can name further branches and counted loops for the frame, to cut a kernel where its
threads need not wait; a loop is in the frame only if it is uniform.

A branch that is not uniform may still be in the frame if it waits only within warps: its phases run
in the threads that take it (it is *masked*).  For other threads only plain arithmetic is computed
there.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from typing import Final

from ferrule.language.ir import ops
from ferrule.language.ir.facts import all_ops
from ferrule.language.ir.operation import Effects
from ferrule.language.ir.types import TensorType
from ferrule.specs.deferred import dataclass


class Divergent(Exception):
    """The threads of a kernel may wait at different places; `op` is the first that makes them."""

    def __init__(self, op: ops.Op) -> None:
        super().__init__()
        self.op: Final = op


def waits(op: ops.Op) -> bool:
    """Whether an op, or one inside it, waits for other threads."""
    return any("waits" in each.effects for each in all_ops(ops.Region((op,))))


@dataclass(slots=True)
class Uniform:
    """The uniform values of a kernel; `hoisted` are the ops, with or without regions, that compute
    them, `also` the branches and uniform loops of the frame in which no thread waits."""

    values: set[ops.Value] = field(default_factory=set)
    hoisted: set[ops.Op] = field(default_factory=set)
    also: set[ops.Op] = field(default_factory=set)

    @classmethod
    def of(cls, kernel: ops.Function, also: Iterable[ops.Op] = ()) -> Uniform:
        """The uniform values of a kernel, with these branches and loops in its frame where they are
        uniform.  Raises Divergent if it cannot run phase by phase."""
        found = cls(set(kernel.params), also=set(also))
        found.region(kernel.body, dirty=False, masked=False)
        return found

    def __contains__(self, value: ops.Value) -> bool:
        return value in self.values

    def all(self, values: tuple[ops.Value, ...]) -> bool:
        """Whether all of these are uniform."""
        return self.values.issuperset(values)

    def in_frame(self, op: ops.Op) -> bool:
        """Whether the regions of a branch or loop are parts of the frame."""
        return op in self.also or waits(op)

    def region(self, region: ops.Region, *, dirty: bool, masked: bool) -> bool:
        """Analyses a region of the frame.

        `dirty`: a thread may have written since all waited; returns this fact at its end.
        """
        for op in region.ops:
            dirty = self.op(op, dirty, masked)
        return dirty

    def op(self, op: ops.Op, dirty: bool, masked: bool) -> bool:
        """Analyses one op of the frame; returns whether a thread may have written since all
        waited."""
        if op in self.also and not self.is_cut(op):
            self.also.remove(op)
        match op:
            case ops.Barrier(number, count):
                if masked or count is not None or not (number is None or number in self):
                    raise Divergent(op)
                return False
            case _ if isinstance(op, ops.WarpMeeting):
                return False
            case _ if "waits" in op.effects:
                raise Divergent(op)  # it is unknown which threads it is for
            case ops.If() if self.in_frame(op):
                return self.branch(op, dirty, masked)
            case ops.For() if self.in_frame(op):
                return self.counted(op, dirty, masked)
            case ops.While() if waits(op):
                return self.conditional(op, dirty, masked)
        if isinstance(op, ops.Check) and op.inserted and not masked and op.condition in self:
            self.hoisted.add(op)
            return dirty
        if self.is_uniform(op, dirty or masked, masked):
            self.hoisted.add(op)
            self.values.update(op.defined)
            return dirty
        return dirty or any(map(_writes, all_ops(ops.Region((op,)))))

    def is_cut(self, op: ops.Op) -> bool:
        """Whether all threads that come to a loop make its iterations together; a branch may be
        masked."""
        return not isinstance(op, ops.For) or self.all((op.start, op.stop, op.step))

    def is_uniform(self, op: ops.Op, dirty: bool, masked: bool) -> bool:
        """Whether an op can run once for the block."""
        inside = ops.Region((op,))
        every = list(all_ops(inside))
        if not all(_is_alike(each, dirty, masked) for each in every):
            return False
        return self.values.issuperset(needs(inside))

    def branch(self, op: ops.If, dirty: bool, masked: bool) -> bool:
        alike = op.condition in self
        if not alike and any(
            isinstance(inner, ops.Barrier | ops.While) for inner in all_ops(ops.Region((op,)))
        ):
            raise Divergent(op)
        inside = masked or not alike
        after = [self.region(each, dirty=dirty, masked=inside) for each in (op.then, op.otherwise)]
        pairs = zip(op.results, op.then.yields, op.otherwise.yields, strict=True)
        if alike:
            self.values.update(result for result, *yields in pairs if self.all(tuple(yields)))
        return any(after)

    def counted(self, op: ops.For, dirty: bool, masked: bool) -> bool:
        if not self.all((op.start, op.stop, op.step)):
            raise Divergent(op)
        self.values.add(op.index)
        return self.loop(op, (op.body,), dirty, masked)

    def conditional(self, op: ops.While, dirty: bool, masked: bool) -> bool:
        if masked:
            raise Divergent(op)  # if no thread takes the branch, it need not end
        after = self.loop(op, (op.test, op.body), dirty, masked)
        if not self.all(op.test.yields):
            raise Divergent(op)
        return after

    def loop(
        self, op: ops.For | ops.While, regions: tuple[ops.Region, ...], dirty: bool, masked: bool
    ) -> bool:
        """Finds the carried values that stay uniform: all at first, then removes others until a
        fixed point."""
        carried = [pair for pair in zip(op.carried, op.initial, strict=True) if pair[1] in self]
        alike = {value for value, _ in carried}
        before = set(self.values), set(self.hoisted)
        while True:
            self.values, self.hoisted = before[0] | alike, set(before[1])
            after = dirty
            for region in regions:
                after = self.region(region, dirty=after, masked=masked)
            following = zip(op.carried, op.body.yields, strict=True)
            lost = {value for value, new in following if value in alike and new not in self}
            # A write in the loop is one before its next iteration: then all is looked at again, as
            # dirty.
            if not lost and after <= dirty:
                break
            alike, dirty = alike - lost, dirty or after
        self.values.update(
            result for result, value in zip(op.results, op.carried, strict=True) if value in alike
        )
        return after


def needs(region: ops.Region) -> dict[ops.Value, None]:
    """The values from outside that a region uses, in the order of their use."""
    made: set[ops.Value] = set()
    used: dict[ops.Value, None] = {}
    for op in all_ops(region):
        used.update(dict.fromkeys(op.operands))
        made.update((*op.defined, *op.defined_inside))
        for inner in op.regions:
            used.update(dict.fromkeys(inner.yields))
    used.update(dict.fromkeys(region.yields))
    return {value: None for value in used if value not in made}


def has_effect(region: ops.Region) -> bool:
    """Whether it is visible that a thread ran a region."""
    return any(op.is_seen for op in all_ops(region))


_MAY_REPEAT: Final[Effects] = frozenset(("reads", "fails", "blocks"))


def _is_alike(op: ops.Op, dirty: bool, masked: bool) -> bool:
    """Whether an op has the same results in all threads if its operands are uniform, and may run
    once for them.

    If a thread may have written since all waited, loads are not uniform; if only some threads
    execute it, a loop need not end, and an op must not fail.
    """
    effects = op.effects
    if not op.is_uniform or not effects <= _MAY_REPEAT:
        return False
    if "reads" in effects:
        return not dirty and not any(map(_is_own, op.operands))
    if masked:
        return "fails" not in effects and not isinstance(op, ops.While)
    return True


def _writes(op: ops.Op) -> bool:
    """Whether another thread may see that an op ran; ops after a check may not run."""
    if isinstance(op, ops.Check):
        return not op.inserted
    if not op.effects.isdisjoint(("fails", "ends", "calls")):
        return True
    return "writes" in op.effects and not (op.written and all(map(_is_own, op.written)))


def _is_own(value: ops.Value) -> bool:
    """Whether a value is a tensor private to the running thread."""
    return isinstance(value.type, TensorType) and value.type.is_own
