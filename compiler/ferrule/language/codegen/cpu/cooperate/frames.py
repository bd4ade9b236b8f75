"""Which branches and loops of a kernel are cut, although no thread waits there.

Threads that do not wait for each other have no order, so all of them can make a uniform loop
together: an iteration is a phase, in which they are lanes of vectors. That pays

* around a loop of the form of `strided`;
* for a loop whose threads access memory side by side, and which has writes or other loops in it, or
  computes the index of the thread. A loop without these becomes vectors inside of a phase
  (`cpu.strips`), and one with few constant iterations is unrolled there.
"""

from __future__ import annotations

from dataclasses import field
from typing import Final

from ferrule.language.codegen.cpu.cooperate import strided
from ferrule.language.codegen.facts.spine import nearness
from ferrule.language.codegen.facts.uniform import Uniform, waits
from ferrule.language.codegen.functions.hints import is_short
from ferrule.language.ir import ops
from ferrule.language.ir.facts import all_ops
from ferrule.specs.deferred import dataclass


def pays(kernel: ops.Function) -> bool:
    """Whether a kernel whose threads do not wait should run in phases, for the sake of its loops.

    Errors and prints are those of the first thread, so there must be none.
    """
    if not kernel.facts.has(ops.For) or any(map(_is_ordered, kernel.facts.ops)):
        return False
    frames = Frames.of(kernel)
    if not frames.may_be:
        return False
    uniform = frames.uniform(kernel)
    return bool(uniform.also) or frames.has_strided(kernel.body, uniform)


@dataclass(slots=True)
class Frames:
    """What may be cut in a kernel.

    `makers` are the defining ops of values, `degrees` what they depend on: the thread's x plus
    something, 1; anything else of it, None.
    """

    makers: dict[ops.Value, ops.Op]
    degrees: dict[ops.Value, int | None] = field(default_factory=dict)
    candidates: set[ops.Op] = field(default_factory=set)
    may_be: bool = False

    @classmethod
    def of(cls, kernel: ops.Function) -> Frames:
        """The candidates of a kernel."""
        makers = {result: op for op in kernel.facts.ops for result in op.defined}
        frames = cls(makers)
        for op in kernel.facts.ops:
            frames.note(op)
        frames.may_be = frames.find(kernel.body)
        return frames

    def uniform(self, kernel: ops.Function) -> Uniform:
        """The uniform values, with those candidates in the frame that pay.  Raises Divergent."""
        also = self.candidates
        # Without one candidate, values are no longer uniform that others needed: until none is
        # lost.
        while True:
            uniform = Uniform.of(kernel, also)
            kept = {op for op in uniform.also if self.is_good(op, uniform)}
            if kept == also:
                return uniform
            also = kept

    # ---- candidates ----

    def note(self, op: ops.Op) -> None:
        """Records the degrees of the values that an op defines."""
        if isinstance(op, ops.SimpleOp):
            operands = [self.degrees.get(value, 0) for value in op.operands]
            degree = nearness(op, 0, operands)
            if degree != 0:
                self.degrees[op.result] = degree
        elif op.regions:
            carried = op.carried if isinstance(op, ops.For | ops.While) else ()
            self.degrees.update(dict.fromkeys((*op.defined, *carried)))

    def find(self, region: ops.Region) -> bool:
        """Adds the candidates of a region; whether it has any, or strided loops."""
        found = False
        for op in region.ops:
            if isinstance(op, ops.If | ops.For | ops.While):
                below = [self.find(inner) for inner in op.regions]
                holds = any(below) or self.is_nest(op)
                if holds and not isinstance(op, ops.While) and self.is_free(op):
                    self.candidates.add(op)
                found |= holds or self.is_strided(op, _Anything())
        return found

    def is_free(self, op: ops.Op) -> bool:
        """Whether no thread waits in an op, and nothing depends on the order of the threads."""
        inside = all_ops(ops.Region((op,)))
        return not waits(op) and not any(
            _is_ordered(each) or isinstance(each, ops.While) for each in inside
        )

    def is_nest(self, op: ops.Op) -> bool:
        """Whether threads access memory side by side in a loop, which has writes or other loops, or
        computes where: a phase proves that such an index does not wrap."""
        if not isinstance(op, ops.For) or self.is_short(op):
            return False
        inside = list(all_ops(op.body))
        deep = any(isinstance(each, ops.For) and not self.is_short(each) for each in inside)
        beside = [each for each in inside if self.is_side_by_side(each)]
        made = {result for each in inside for result in each.defined if result in self.degrees}
        moves = any(not made.isdisjoint(each.operands) for each in beside)
        return bool(beside) and (deep or moves or any(map(_writes, inside)))

    def is_short(self, op: ops.For) -> bool:
        """Whether a loop is unrolled."""
        return is_short(op, self.makers)

    def is_side_by_side(self, op: ops.Op) -> bool:
        """Whether neighbours read or write neighbouring elements."""
        if not isinstance(op, ops.Load | ops.Store) or op.tensor in self.degrees:
            return False
        strides = op.tensor.tensor.strides
        moving = [
            (self.degrees[index], stride)
            for index, stride in zip(op.indices, strides, strict=True)
            if index in self.degrees
        ]
        return moving == [(1, 1)]

    # ---- what pays ----

    def is_good(self, op: ops.Op, uniform: Uniform) -> bool:
        """Whether threads become lanes in a branch or loop of the frame."""
        if any(self.has_strided(region, uniform) for region in op.regions):
            return True
        if any(each in uniform.also for region in op.regions for each in region.ops):
            return True
        if not isinstance(op, ops.For) or not self.is_nest(op):
            return False
        inside = (each for each in all_ops(op.body) if isinstance(each, ops.For))
        return all(self.is_alike(each, uniform) for each in inside)

    def is_alike(self, loop: ops.For, uniform: Uniform) -> bool:
        """Whether all threads make the iterations of a loop together, or make few of them."""
        return self.is_short(loop) or all(
            value in uniform or self.degrees.get(value, 0) == 0
            for value in (loop.start, loop.stop, loop.step)
        )

    def has_strided(self, region: ops.Region, uniform: Uniform) -> bool:
        """Whether a region of the frame has strided loops, not counting those in other regions."""
        return any(self.is_strided(op, uniform) for op in region.ops)

    def is_strided(self, op: ops.Op, uniform: Uniform) -> bool:
        """Whether an op is a strided loop."""
        return isinstance(op, ops.For) and strided.find(op, uniform, self.makers) is not None


class _Anything(Uniform):
    """As if every value were uniform."""

    def __contains__(self, value: ops.Value) -> bool:
        return True


# Of threads that fail the first one's error is raised; nothing is known of what is called.
_ORDERED: Final = ("fails", "ends", "calls")


def _is_ordered(op: ops.Op) -> bool:
    """Whether it is visible which thread runs an op first."""
    return isinstance(op, ops.Print) or not op.effects.isdisjoint(_ORDERED)


def _writes(op: ops.Op) -> bool:
    return isinstance(op, ops.Store) and not op.tensor.tensor.is_own
