"""The state of cutting a kernel into phases: the phases so far, and the slots between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from ferrule.language.codegen.cpu.cooperate.kept import Draft, Guard, Slot, new_slot
from ferrule.language.codegen.cpu.cooperate.numbering import Numbering
from ferrule.language.codegen.facts.uniform import Uniform
from ferrule.language.ir import ops
from ferrule.specs import DType
from ferrule.specs.deferred import dataclass

Mask = ops.Value | int
"""The mask of a warp op: its number if it is a constant."""

Copies = list[tuple[ops.Value, ops.Value]]
"""Slots, and the values stored in them."""


@dataclass(slots=True)
class Open:
    """A region of the frame that is being cut; `pending` are the ops of the next phase.

    `checked` are the masks whose lanes are known to run the region.
    """

    guards: tuple[Guard, ...] = ()
    checked: set[Mask] = field(default_factory=set)
    done: list[ops.Op] = field(default_factory=list)
    pending: list[ops.Op] = field(default_factory=list)


@dataclass(slots=True)
class Cut:
    """The facts about a kernel that is being cut, and the results so far."""

    name: str
    uniform: Uniform
    number: Numbering
    drafts: list[Draft] = field(default_factory=list)
    slots: dict[ops.Value, Slot] = field(default_factory=dict)
    """By value: its place between phases."""
    scratch: list[Slot] = field(default_factory=list)
    makers: dict[ops.Value, ops.Op] = field(default_factory=dict)
    """The defining op of each value."""
    own: list[ops.Op] = field(default_factory=list)
    """Ops that a thread executes again wherever it needs their results."""

    def flush(self, into: Open, copies: Copies | None = None) -> None:
        """Ends the phase before a place where threads wait."""
        if into.pending or copies:
            draft = Draft(into.guards, into.pending, copies or [])
            into.pending = []
            self.drafts.append(draft)
            into.done.append(draft.place)

    def everyone(self, into: Open, pending: list[ops.Op], copies: Copies | None = None) -> None:
        """A phase in all threads, independent of guards."""
        # A region of its own has no guards.
        phase = Open(pending=pending)
        self.flush(phase, copies)
        into.done += phase.done

    def slot(self, value: ops.Value) -> ops.Value:
        """The slot of a value, which is created if necessary."""
        if value not in self.slots:
            self.slots[value] = new_slot(value)
        return self.slots[value].tensor

    def scratch_slot(self, dtype: DType, hint: str) -> ops.Value:
        """A slot for data that is not a value of the kernel."""
        self.scratch.append(new_slot(ops.Value(dtype, hint)))
        tensor = self.scratch[-1].tensor
        self.uniform.values.add(tensor)
        return tensor

    def moves(self, targets: Sequence[ops.Value], sources: Sequence[ops.Value]) -> Copies:
        """The copies into the slots of the targets that are not uniform."""
        pairs = zip(targets, sources, strict=True)
        return [(self.slot(to), source) for to, source in pairs if to not in self.uniform]

    def known(self, mask: ops.Value) -> Mask:
        number = self.number_of(mask)
        return mask if number is None else number

    def number_of(self, value: ops.Value) -> int | None:
        """The number that a value is, if it is a constant."""
        match self.makers.get(value):
            case ops.Constant(_, int(number)):
                return number
        return None
