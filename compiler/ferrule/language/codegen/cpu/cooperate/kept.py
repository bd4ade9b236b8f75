"""The data flow between the phases of a kernel: values in slots, and values that are
rematerialised."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Final

from ferrule.compiler.cuda.limits import MAX_THREADS
from ferrule.language.codegen.cpu.cooperate import spread, warps
from ferrule.language.codegen.facts.uniform import Uniform, needs
from ferrule.language.ir import ops
from ferrule.language.ir.rewrite import substitute
from ferrule.language.ir.types import TensorType
from ferrule.specs import DType, Int32
from ferrule.specs.deferred import dataclass

Guard = tuple[ops.Value, bool]
"""A condition, and its required truth."""

MOST_REPEATED: Final = 24
"""The limit of ops for a value that a later phase rematerialises."""


@dataclass(frozen=True, slots=True, eq=False)
class Slot:
    """A tensor with a place, or places for several elements, for each thread of a block.

    `pitch`: the distance between elements of a thread; None if they are adjacent.
    """

    tensor: ops.Value
    elements: int = 1
    pitch: int | None = None

    @property
    def size(self) -> int:
        """Bytes for a thread; with a pitch, for all threads."""
        return self.elements * self.tensor.tensor.dtype.itemsize * (self.pitch or 1)


@dataclass(slots=True, eq=False)
class Draft:
    """A phase under construction: the threads for which all guards hold run the ops of `body`.

    `copies` are values that are stored in slots at its end.  `place` is a placeholder for the phase
    until it is finished.
    """

    guards: tuple[Guard, ...]
    body: list[ops.Op]
    copies: list[tuple[ops.Value, ops.Value]]
    # The frame needs an op here. A fence has neither operands nor results, so that no pass relates
    # it to anything.
    place: ops.Fence = field(default_factory=lambda: ops.Fence("block"))


@dataclass(slots=True)
class Values:
    """The sources of values that other phases compute.

    `thread`: the number of the running thread.  `own`: ops that a phase executes for itself.
    `slots`: the places of values between phases; `phase` adds the ones that it needs.
    """

    uniform: Uniform
    thread: ops.Value
    own: Sequence[ops.Op]
    drafts: Sequence[Draft]
    slots: dict[ops.Value, Slot]
    spread: frozenset[ops.Value] = frozenset()
    """The threads' private tensors whose elements are `pitch` apart."""
    pitch: int = 0
    makers: dict[ops.Value, ops.Op] = field(default_factory=dict)
    repeated: dict[ops.Value, int | None] = field(default_factory=dict)
    loaded: dict[ops.Value, set[int]] = field(default_factory=dict)
    """The drafts in which a value is loaded from its slot."""

    def __post_init__(self) -> None:
        every = (*self.own, *(op for draft in self.drafts for op in draft.body))
        self.makers = {result: op for op in every for result in op.defined}

    def phase(self, draft: Draft) -> ops.Parallel:
        """A phase, given the slots that are known so far."""
        return ops.Parallel((), (), _Body(self, draft).build())

    def join(self, first: int, last: int, carried: Sequence[ops.Value]) -> None:
        """Lets the yields of an iteration share the slots of the carried values, if possible.

        The drafts from `first` to `last` are those of the iteration; the last one has the copies
        from the slots of the yields to those of the carried values.
        """
        ends = self.drafts[last]
        makers = {r: place for place in range(first, last) for r in self._results(place)}
        yielded = [source for _, source in ends.copies]
        for value in carried:
            target = self.slots[value].tensor
            source = next((made for to, made in ends.copies if to is target), None)
            place = None if source is None else makers.get(source)
            # A value that two carried values get would need both of their slots.
            if source is None or place is None or yielded.count(source) > 1:
                continue
            # A phase behind the new value that reads the old one would find the new one in the
            # slot.
            late = any(place < other <= last for other in self.loaded.get(value, ()))
            same = self.drafts[place].guards == ends.guards
            if not late and same and last in self.loaded.get(source, ()):
                self.slots[source] = self.slots[value]
                ends.copies.remove((target, source))

    def _results(self, place: int) -> list[ops.Value]:
        return [result for op in self.drafts[place].body for result in op.defined]

    def repeats(self, value: ops.Value) -> int | None:
        """The number of ops to rematerialise a value from the thread's coordinates and uniform
        values, if it is small."""
        if value not in self.repeated:
            self.repeated[value] = self._count(value)
        return self.repeated[value]

    def _count(self, value: ops.Value) -> int | None:
        if value in self.uniform:
            return 0
        op = self.makers.get(value)
        if op is None or value in self.slots or not _is_arithmetic(op):
            return None
        total = 1
        for operand in op.operands:
            below = self.repeats(operand)
            if below is None or total + below > MOST_REPEATED:
                return None
            total += below
        return total

    def slot(self, value: ops.Value) -> ops.Value:
        """The slot of a value, which is created if necessary."""
        if value not in self.slots:
            self.slots[value] = new_slot(value)
        return self.slots[value].tensor

    def room(self, tensor: ops.Value) -> ops.Value:
        """The slot of a thread's private tensor."""
        if tensor not in self.slots:
            type_ = tensor.tensor
            # Up to the last element, with the gaps that strides leave.
            count = 1
            for size, stride in zip(type_.shape, type_.strides, strict=True):
                assert isinstance(size, int) and isinstance(stride, int)
                count += (size - 1) * stride
            shape, align = (MAX_THREADS, count), type_.dtype.itemsize
            pitch = self.pitch if tensor in self.spread else None
            strides = (count, 1) if pitch is None else (1, pitch)
            kind = TensorType(type_.dtype, shape, strides, align)
            self.slots[tensor] = Slot(ops.Value(kind, f"{tensor.hint}.slot"), count, pitch)
        return self.slots[tensor].tensor


def new_slot(value: ops.Value) -> Slot:
    """A slot for a scalar."""
    assert isinstance(value.type, DType), f"%{value.hint} is made again, not kept"
    return Slot(ops.Value(warps.given_type(value.type), f"{value.hint}.slot"))


class _Body:
    """The body of a phase under construction."""

    def __init__(self, values: Values, draft: Draft) -> None:
        self.values, self.draft = values, draft
        self.thread = values.thread
        self.ops: list[ops.Op] = []
        self.found: set[ops.Value] = set()
        self.spread: dict[ops.Value, ops.Value] = {}

    def build(self) -> ops.Region:
        """The values from other phases, then the ops, each within the guards."""
        levels = []
        for condition, _ in self.draft.guards:
            self.find(condition)
            levels.append(self.ops)
            self.ops = []
        self.fill()
        for outer, guard in zip(reversed(levels), reversed(self.draft.guards), strict=True):
            condition, holds = guard
            inner = ops.Region(tuple(self.ops))
            sides = (inner, ops.Region()) if holds else (ops.Region(), inner)
            self.ops = [*outer, ops.If((), condition, *sides)]
        whole = ops.Region(tuple(self.ops))
        return substitute(whole, self.spread) if self.spread else whole

    def fill(self) -> None:
        """The ops of the phase, and the stores for other phases."""
        draft, slots = self.draft, self.values.slots
        sources = tuple(source for _, source in draft.copies)
        for value in needs(ops.Region(tuple(draft.body), sources)):
            self.find(value)
        made = [result for op in draft.body for result in op.defined]
        if draft.copies or not slots.keys().isdisjoint(made):
            self.find(self.thread)
        for op in draft.body:
            self.take(op)
        for target, source in draft.copies:
            self.store(target, source)

    def take(self, op: ops.Op) -> None:
        """An op of the phase; its result is stored in its slot."""
        slots = self.values.slots
        if isinstance(op, ops.Fragment) and op.result in slots:
            self.find(op.result)
            return
        self.ops.append(op)
        for result in op.defined:
            if result in slots:
                self.store(slots[result].tensor, result)

    def store(self, slot: ops.Value, value: ops.Value) -> None:
        """Stores a value of the thread in a slot."""
        self.ops.append(ops.Store(slot, (self.thread,), value))

    def find(self, value: ops.Value) -> None:
        """Makes a value of another phase available."""
        values = self.values
        if value in values.uniform or value in self.found:
            return
        self.found.add(value)
        op = values.makers.get(value)
        if isinstance(op, ops.Fragment):
            self.own(value)
        elif op is not None and (isinstance(op, ops.View) or values.repeats(value) is not None):
            for operand in op.operands:
                self.find(operand)
            self.ops.append(op)
        else:
            self.find(self.thread)
            self.ops.append(ops.Load(value, values.slot(value), (self.thread,)))
            place = values.drafts.index(self.draft)
            values.loaded.setdefault(value, set()).add(place)

    def own(self, tensor: ops.Value) -> None:
        """A thread's private tensor that lives longer than a phase."""
        zero = ops.Value(Int32, "zero")
        self.find(self.thread)
        self.ops.append(ops.Constant(zero, 0))
        room, result = self.values.room(tensor), tensor
        if tensor in self.values.spread:
            result = self.spread[tensor] = spread.spread(tensor, self.values.pitch)
        self.ops.append(ops.View(result, room, (self.thread, zero)))


def _is_arithmetic(op: ops.Op) -> bool:
    """Whether an op is fast arithmetic on integers and Booleans."""
    match op:
        case ops.Constant() | ops.Special() | ops.Size(fault=None):
            return True
        case ops.Unary(op="not" | "neg"):
            pass
        case ops.Cast() | ops.Select() | ops.Compare() | ops.Binary():
            pass
        case _:
            return False
    types = [op.result.type, *(operand.type for operand in op.operands)]
    return all(isinstance(type_, DType) and type_.kind != "float" for type_ in types)
