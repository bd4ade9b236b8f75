"""Which values are the same for all threads of a block, and computed once for it.

The *frame* of a kernel is its body, and the regions of those of its branches and loops that hold an
op which waits for other threads.  If the frame's branches and loops go alike for all threads, the
kernel can run phase by phase (`cpu.cooperate.phases`).  A value is *uniform* if an op of the frame
makes it of uniform values and has no effect.  A load is uniform only as long as no thread can have
written since all waited for each other: between two such places threads do not write what others
read.

A branch that does not go alike is in the frame all the same if it waits within warps only: its
phases run in those threads that take it (it is *masked*).  Nothing there is computed for threads
that do not take it but plain arithmetic.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ferrule.language.ir import ops
from ferrule.language.ir.walk import all_ops, operands_of, regions_of


class Divergent(Exception):
    """The threads of a kernel may wait at different places."""


def waits(op: ops.Op) -> bool:
    """Whether an op waits for other threads, or one inside it does."""
    return isinstance(op, ops.Synchronising) or any(
        isinstance(inner, ops.Synchronising)
        for region in regions_of(op)
        for inner in all_ops(region)
    )


@dataclass(slots=True)
class Uniform:
    """What is uniform in a kernel; `hoisted` are the ops, with regions or not, that make it."""

    values: set[ops.Value] = field(default_factory=set)
    hoisted: set[ops.Op] = field(default_factory=set)

    @classmethod
    def of(cls, kernel: ops.Function) -> Uniform:
        """That of a kernel.  Raises Divergent where it cannot run phase by phase."""
        found = cls(set(kernel.params))
        found.region(kernel.body, dirty=False, masked=False)
        return found

    def __contains__(self, value: ops.Value) -> bool:
        return value in self.values

    def all(self, values: tuple[ops.Value, ...]) -> bool:
        """Whether all of these are uniform."""
        return self.values.issuperset(values)

    def region(self, region: ops.Region, *, dirty: bool, masked: bool) -> bool:
        """Goes through a region of the frame.

        `dirty`: a thread may have written since all waited; gives whether at its end.
        """
        for op in region.ops:
            dirty = self.op(op, dirty, masked)
        return dirty

    def op(self, op: ops.Op, dirty: bool, masked: bool) -> bool:
        """Goes through one op of the frame; gives whether a thread may have written since."""
        match op:
            case ops.Barrier(number, count):
                if masked or count is not None or not (number is None or number in self):
                    raise Divergent
                return False
            case ops.MBarrierWait():
                raise Divergent
            case _ if isinstance(op, ops.Synchronising):
                return False
            case ops.If() if waits(op):
                return self.branch(op, dirty, masked)
            case ops.For() if waits(op):
                return self.counted(op, dirty, masked)
            case ops.While() if waits(op):
                return self.conditional(op, dirty, masked)
        if isinstance(op, ops.Check) and op.inserted and not masked and op.condition in self:
            self.hoisted.add(op)
            return dirty
        if self.is_uniform(op, dirty or masked, masked):
            self.hoisted.add(op)
            self.values.update(results_of(op))
            return dirty
        return dirty or any(map(_writes, all_ops(ops.Region((op,)))))

    def is_uniform(self, op: ops.Op, dirty: bool, masked: bool) -> bool:
        """Whether an op can be done once for the block."""
        inside = ops.Region((op,))
        every = list(all_ops(inside))
        if not all(_is_pure(each, dirty, masked) for each in every):
            return False
        return self.values.issuperset(needs(inside))

    def branch(self, op: ops.If, dirty: bool, masked: bool) -> bool:
        alike = op.condition in self
        if not alike and any(
            isinstance(inner, ops.Barrier | ops.While) for inner in all_ops(ops.Region((op,)))
        ):
            raise Divergent
        inside = masked or not alike
        after = [self.region(each, dirty=dirty, masked=inside) for each in (op.then, op.otherwise)]
        pairs = zip(op.results, op.then.yields, op.otherwise.yields, strict=True)
        if alike:
            self.values.update(result for result, *yields in pairs if self.all(tuple(yields)))
        return any(after)

    def counted(self, op: ops.For, dirty: bool, masked: bool) -> bool:
        if not self.all((op.start, op.stop, op.step)):
            raise Divergent
        self.values.add(op.index)
        return self.loop(op, (op.body,), dirty, masked)

    def conditional(self, op: ops.While, dirty: bool, masked: bool) -> bool:
        if masked:
            raise Divergent  # where no thread takes the branch it need not end
        after = self.loop(op, (op.test, op.body), dirty, masked)
        if not self.all(op.test.yields):
            raise Divergent
        return after

    def loop(
        self, op: ops.For | ops.While, regions: tuple[ops.Region, ...], dirty: bool, masked: bool
    ) -> bool:
        """Finds the carried values that stay uniform: all at first, then those that are left."""
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
            if not lost and after <= dirty:
                break
            alike, dirty = alike - lost, dirty or after
        self.values.update(
            result for result, value in zip(op.results, op.carried, strict=True) if value in alike
        )
        return after


def results_of(op: ops.Op) -> tuple[ops.Value, ...]:
    """What an op gives."""
    match op:
        case ops.If(results=results) | ops.For(results=results) | ops.While(results=results):
            return results
    return (op.result,) if isinstance(op, ops.SimpleOp) else ()


def needs(region: ops.Region) -> dict[ops.Value, None]:
    """The values from outside that a region uses, in the order of their use."""
    made: set[ops.Value] = set()
    used: dict[ops.Value, None] = {}
    for op in all_ops(region):
        used.update(dict.fromkeys(operands_of(op)))
        made.update(results_of(op))
        match op:
            case ops.For(index=index, carried=carried):
                made.update((index, *carried))
            case ops.While(carried=carried):
                made.update(carried)
        for inner in regions_of(op):
            used.update(dict.fromkeys(inner.yields))
    used.update(dict.fromkeys(region.yields))
    return {value: None for value in used if value not in made}


def has_effect(region: ops.Region) -> bool:
    """Whether it is seen that a thread ran a region."""
    for op in all_ops(region):
        match op:
            case ops.Store() | ops.Atomic() | ops.Check() | ops.Print() | ops.Fence():
                return True
            case ops.Size(fault=fault) if fault is not None:
                return True
    return False


def _is_pure(op: ops.Op, dirty: bool, masked: bool) -> bool:
    """Whether an op has no effect, and gives the same to all threads if its operands are."""
    match op:
        case ops.Load(_, tensor):
            return not dirty and not tensor.tensor.is_own
        case ops.Special(_, register):
            return register != "thread_idx"
        case ops.Size(fault=fault):
            return fault is None or not masked
        case ops.Fragment() | ops.Atomic() | ops.Alloc() | ops.Call():
            return False
        case ops.While():
            return not masked
        case ops.If() | ops.For():
            return True
    return isinstance(op, ops.SimpleOp)


def _writes(op: ops.Op) -> bool:
    """Whether another thread may see that an op ran; what comes behind a check may not run."""
    match op:
        case ops.Store(tensor):
            return not tensor.tensor.is_own
        case ops.Check(inserted=inserted):
            return not inserted
        case ops.Atomic():
            return True
    return False
