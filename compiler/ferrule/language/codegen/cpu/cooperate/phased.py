"""Runs the phases of a kernel: in each, a loop over the threads of the block."""

from __future__ import annotations

from dataclasses import field
from typing import Final

from llvmlite import ir

from ferrule.language.codegen.cpu import alike
from ferrule.language.codegen.cpu.cooperate import atomics, stages, trees
from ferrule.language.codegen.cpu.cooperate.phases import Split
from ferrule.language.codegen.cpu.cooperate.team import Team
from ferrule.language.codegen.cpu.kernels import emit_phase
from ferrule.language.codegen.facts.uniform import needs
from ferrule.language.codegen.functions.dispatch import emit_region
from ferrule.language.codegen.functions.lowering import FunctionLowering
from ferrule.language.ir import ops
from ferrule.language.ir.walk import Work, drive
from ferrule.runtime.llvm.layouts import I8, I64
from ferrule.specs.deferred import dataclass

_GRAIN: Final = 64
"""The number of places of a slot is a multiple of this, so that all slots are aligned."""

_ALIGN: Final = 64
"""The alignment of slots with a fixed size."""

_MARGIN: Final = 32
"""Places before and after those of the threads: reads at a distance of lanes need no bounds
check."""


@dataclass(frozen=True, slots=True)
class Phased:
    """The threads of a kernel that runs in phases."""

    team: Team
    split: Split
    alike: dict[ops.Op, alike.Alike] = field(default_factory=dict)
    """The phases that are calls of functions."""
    made: stages.Made = field(default_factory=dict)

    def places(self) -> ir.Value:
        """The number of places of a slot with its margins, i64."""
        b = self.team.lowering.b
        more = b.add(self.team.threads, ir.Constant(I64, 2 * _MARGIN + _GRAIN - 1))
        return b.and_(more, ir.Constant(I64, -_GRAIN))

    def room(self) -> ir.Value:
        """The bytes of the slots."""
        b, (each, fixed) = self.team.lowering.b, self._sizes(len(self.split.slots))
        return b.add(b.mul(self.places(), ir.Constant(I64, each)), ir.Constant(I64, fixed))

    def _sizes(self, count: int) -> tuple[int, int]:
        """The bytes of the first slots: for each place, and the fixed part."""
        slots = self.split.slots[:count]
        fixed = (-(-slot.size // _ALIGN) * _ALIGN for slot in slots if slot.pitch is not None)
        return sum(slot.size for slot in slots if slot.pitch is None), sum(fixed)

    def run(self, memory: ir.Value) -> None:
        """Runs the block at the current coordinates, with slots in this memory."""
        lowering, places = self.team.lowering, self.places()
        lowering.host_op, lowering.thread_op = self.phase, atomics.alone
        for number, slot in enumerate(self.split.slots):
            each, fixed = self._sizes(number)
            margin = _MARGIN * slot.size if slot.pitch is None else 0
            at = lowering.b.mul(places, ir.Constant(I64, each))
            at = lowering.b.add(at, ir.Constant(I64, fixed + margin))
            lowering.values[slot.tensor] = lowering.emitter.index(memory, I8, at)
        known = all(isinstance(size, ir.Constant) for size in self.team.shape.block)
        # A function that several phases call would tell the source lines of the first phase alone.
        if known and lowering.lines is None:
            self.alike.update(alike.find(self.split.body, self.split.fit))
        drive(emit_region(lowering, self.split.body))

    def phase(self, lowering: FunctionLowering, op: ops.HostOp) -> Work | None:
        """Emits a phase, or the steps of a reduction."""
        assert isinstance(op, ops.Parallel), "a kernel has no other of these"
        if tree := self.split.trees.get(op.body.ops[0]):
            trees.emit(lowering, tree, self.team.shape.block)
            return None
        if found := self.alike.get(op):
            stages.call(lowering, self.team, self.split.fit, found, op, self.made)
            return None
        outside = tuple(needs(op.body))
        function = ops.Function(self.team.kernel.name, "kernel", outside, op.body)
        with lowering.scope():
            emit_phase(lowering, function, self.team.shape, self.split.fit)
        lowering.group = None
        return None
