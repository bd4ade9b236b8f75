"""Kernels whose threads all wait at the same places, cut into phases there.

    for block:                        for block:
        for thread:                       for thread: s[thread] = a[thread]
            s[thread] = a[thread]         for thread: b[thread] = s[n - thread]
            sync_threads()
            b[thread] = s[n - thread]

`split` makes of a kernel the ops that run once for a block.  A phase is a `Parallel` without
indices: its body is a kernel of its own, which each thread of the block runs, in any order.  What a
thread makes in one phase and uses in a later one is made again there, if that is only arithmetic on
its coordinates; else it has a place in a *slot*, a tensor with a place for each thread.  What the
lanes of a warp give each other goes through slots too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce

from ferrule.language.codegen.cooperate import matrices, spread, strided, warps
from ferrule.language.codegen.cooperate.kept import Draft, Guard, Slot, Values, new_slot
from ferrule.language.codegen.cooperate.masks import AnyWarpOp, checks
from ferrule.language.codegen.cooperate.numbering import Numbering
from ferrule.language.codegen.cooperate.uniform import (
    Divergent,
    Uniform,
    has_effect,
    results_of,
    waits,
)
from ferrule.language.ir import ops
from ferrule.language.ir.builder import Builder
from ferrule.language.ir.rewrite import rewrite
from ferrule.language.ir.walk import all_ops
from ferrule.specs import Boolean, DType, Int32, Int64, Uint32

Mask = ops.Value | int
"""The mask of a warp op: its number where that is a constant."""

Copies = list[tuple[ops.Value, ops.Value]]
"""Slots, and what goes into them."""


@dataclass(frozen=True, slots=True)
class Split:
    """A kernel in phases, the slots that these have in common, and the number of a thread."""

    body: ops.Region
    slots: tuple[Slot, ...]
    thread: ops.Value


def split(
    kernel: ops.Function, *, flat: bool = False, threads: int = warps.MOST_THREADS
) -> Split | None:
    """The kernel in phases; None where its threads may wait at different places.

    `flat`: blocks have one row of threads; `threads`: how many of them there are at most.
    """
    try:
        uniform = Uniform.of(kernel)
    except Divergent:
        return None
    splitter = _Splitter(kernel.name, uniform, Numbering(flat=flat))
    splitter.spread, splitter.pitch = spread.found(kernel), spread.pitch(threads)
    return splitter.split(kernel.body)


@dataclass(slots=True)
class _Open:
    """A region of the frame that is being cut; `pending` are the ops of the next phase.

    `checked` are the masks of which it is known that their lanes all run the region.
    """

    guards: tuple[Guard, ...] = ()
    checked: set[Mask] = field(default_factory=set)
    done: list[ops.Op] = field(default_factory=list)
    pending: list[ops.Op] = field(default_factory=list)


@dataclass(slots=True)
class _Splitter:
    """Cuts the frame of a kernel; `kept.Values` finds what phases then need of each other."""

    name: str
    uniform: Uniform
    number: Numbering
    drafts: list[Draft] = field(default_factory=list)
    slots: dict[ops.Value, Slot] = field(default_factory=dict)
    """By value: where it is between phases."""
    scratch: list[Slot] = field(default_factory=list)
    makers: dict[ops.Value, ops.Op] = field(default_factory=dict)
    """The op that makes each value."""
    iterations: list[tuple[int, int, tuple[ops.Value, ...]]] = field(default_factory=list)
    """Of each loop the first and the last phase of its body, and what is carried in slots."""
    own: list[ops.Op] = field(default_factory=list)
    """Ops that a thread does wherever it needs their results."""
    spread: frozenset[ops.Value] = frozenset()
    pitch: int = 0

    def split(self, body: ops.Region) -> Split:
        """The phases of a kernel with this body."""
        self.makers = {result: op for op in all_ops(body) for result in results_of(op)}
        self.own += self.number.own
        frame = _Open(done=list(self.number.uniform))
        for op in self.number.uniform:
            self.uniform.values.update(results_of(op))
        self.cut(body, frame)
        self.flush(frame)
        values = Values(
            self.uniform,
            self.number.thread,
            self.own,
            self.drafts,
            self.slots,
            self.spread,
            self.pitch,
        )
        for draft in self.drafts:
            values.phase(draft)  # finds out what has to be kept
        for iteration in self.iterations:
            values.join(*iteration)
        phases: dict[ops.Op, ops.Parallel] = {d.place: values.phase(d) for d in self.drafts}

        def placed(b: Builder, op: ops.Op) -> None:
            found = phases.get(op, op)
            if op not in phases or has_effect(phases[op].body):
                b.append(found)

        filled = rewrite(ops.Region(tuple(frame.done)), placed)
        slots = (*dict.fromkeys(self.slots.values()), *self.scratch)
        return Split(filled, slots, self.number.thread)

    def cut(self, region: ops.Region, into: _Open) -> None:
        """Cuts the ops of a region."""
        for op in region.ops:
            match op:
                case ops.Check() if op in self.uniform.hoisted:
                    into.done += self.first(op)
                case _ if op in self.uniform.hoisted:
                    into.done.append(op)
                case ops.Barrier():
                    self.flush(into)
                case ops.WarpBarrier():
                    self.flush(into)
                    self.check(op, into)
                case ops.Shuffle() | ops.Vote() | ops.Match():
                    self.warp_op(op, into)
                case ops.Mma() | ops.LoadMatrix():
                    self.matrix_op(op, into)
                case ops.If() if waits(op):
                    self.branch(op, into)
                case ops.For() | ops.While() if waits(op):
                    self.loop(op, into)
                case ops.For() if form := strided.find(op, self.uniform, self.makers):
                    self.strided(op, form, into)
                case _:
                    into.pending.append(op)

    def first(self, op: ops.Check) -> list[ops.Op]:
        """A check that goes alike for all threads, as the first one does it."""
        b = Builder()
        with b.region() as region:
            values = [
                value if value in self.uniform else b.constant(Int32, 0) for value in op.values
            ]
            b.append(replace(op, values=tuple(values)))
        return region.ops

    def flush(self, into: _Open, copies: Copies | None = None) -> None:
        """Ends the phase before a place where threads wait."""
        if into.pending or copies:
            draft = Draft(into.guards, into.pending, copies or [])
            into.pending = []
            self.drafts.append(draft)
            into.done.append(draft.place)

    def slot(self, value: ops.Value) -> ops.Value:
        """The slot of a value; it has one from now on."""
        if value not in self.slots:
            self.slots[value] = new_slot(value)
        return self.slots[value].tensor

    def scratch_slot(self, dtype: DType, hint: str) -> ops.Value:
        """A slot for what is no value of the kernel."""
        self.scratch.append(new_slot(ops.Value(dtype, hint)))
        tensor = self.scratch[-1].tensor
        self.uniform.values.add(tensor)
        return tensor

    # ---- branches and loops ----

    def branch(self, op: ops.If, into: _Open) -> None:
        """A branch that all threads take alike, or two masked ones, one after the other."""
        kept = [result in self.uniform for result in op.results]
        alike = op.condition in self.uniform
        self.flush(into)
        sides = []
        for side, holds in ((op.then, True), (op.otherwise, False)):
            own: tuple[Guard, ...] = () if alike else ((op.condition, holds),)
            inner = _Open((*into.guards, *own), set(into.checked) if alike else set())
            self.cut(side, inner)
            self.flush(inner, self.moves(op.results, side.yields))
            sides.append(inner.done)
        if not alike:
            into.done += [*sides[0], *sides[1]]
            return
        then, otherwise = (
            ops.Region(tuple(done), _chosen(side.yields, kept))
            for done, side in zip(sides, (op.then, op.otherwise), strict=True)
        )
        into.done.append(ops.If(_chosen(op.results, kept), op.condition, then, otherwise))

    def loop(self, op: ops.For | ops.While, into: _Open) -> None:
        """A loop that all threads run alike; what they carry on their own is in slots."""
        kept = [value in self.uniform for value in op.carried]
        for result, value in zip(op.results, op.carried, strict=True):
            if value not in self.uniform:
                self.slot(value)
                self.slots[result] = self.slots[value]
        self.flush(into, self.moves(op.carried, op.initial))
        results, initial, carried = (
            _chosen(values, kept) for values in (op.results, op.initial, op.carried)
        )
        changed = replace(op, results=results, initial=initial, carried=carried)
        if isinstance(changed, ops.While):
            changed = replace(changed, test=self.iteration(changed.test, into, [], [True]))
        moves = self.moves(op.carried, op.body.yields)
        first = len(self.drafts)
        into.done.append(replace(changed, body=self.iteration(op.body, into, moves, kept)))
        if moves:
            own = tuple(value for value in op.carried if value not in self.uniform)
            self.iterations.append((first, len(self.drafts) - 1, own))

    def strided(self, op: ops.For, form: strided.Strided, into: _Open) -> None:
        """A loop in which the threads go through memory side by side."""
        for result, value in zip(op.results, op.carried, strict=True):
            self.slot(value)
            self.slots[result] = self.slots[value]
        self.flush(into, self.moves(op.carried, op.initial))
        for each in (*form.first, *form.begin):
            self.uniform.values.update(results_of(each))
        self.uniform.values.add(form.base)
        self.own += form.own
        inner = _Open((*into.guards, (form.runs, True)), pending=[form.index, *op.body.ops])
        self.flush(inner, self.moves(op.carried, op.body.yields))
        body = ops.Region((*form.begin, *inner.done))
        into.done += form.first
        bounds = form.start, op.stop, op.step
        into.done.append(ops.For((), form.base, *bounds, (), (), body))

    def iteration(
        self, region: ops.Region, outer: _Open, moves: Copies, kept: Sequence[bool]
    ) -> ops.Region:
        """What an iteration runs; `kept` says which of its yields are uniform."""
        inner = _Open(outer.guards, set(outer.checked))
        self.cut(region, inner)
        self.flush(inner, moves)
        return ops.Region(tuple(inner.done), _chosen(region.yields, kept))

    def moves(self, targets: Sequence[ops.Value], sources: Sequence[ops.Value]) -> Copies:
        """What goes into the slots of those targets that are not uniform."""
        pairs = zip(targets, sources, strict=True)
        return [(self.slot(to), source) for to, source in pairs if to not in self.uniform]

    # ---- warps ----

    def warp_op(self, op: warps.WarpOp, into: _Open) -> None:
        """What the lanes give goes into a slot; then each takes what it gets."""
        given = self.give(op, into)
        self.check(op, into)
        b, warp = Builder(), self.number.warp
        if isinstance(op, ops.Vote):
            ballots = self.scratch_slot(Uint32, "ballots")
            # No guards: the first thread of a warp need not run the op itself.
            self.everyone(into, self.number.ballots(given, ballots))
            with b.region() as region:
                lanes = b.binary("and", op.mask, self.number.present)
                bits = b.binary("and", b.load(ballots, (warp.first,)), lanes)
                result = warps.voted(b, op.op, bits, lanes)
        else:
            with b.region() as region:
                result = self.received(b, op, given)
        into.pending += [*region.ops, ops.Cast(op.result, result)]

    def received(self, b: Builder, op: ops.Shuffle | ops.Match, given: ops.Value) -> ops.Value:
        """What a lane gets."""
        warp = self.number.warp
        if isinstance(op, ops.Shuffle) and (far := warps.distance(op, self.number_of)):
            return warp.neighbour(b, op, far, given)
        return warps.emit(b, op, warp, given)

    def give(self, op: warps.WarpOp, into: _Open) -> ops.Value:
        """The slot in which each thread leaves its value."""
        match op:
            case ops.Shuffle(value=value) | ops.Vote(predicate=value):
                assert isinstance(value.type, DType)
                given = self.scratch_slot(value.type, "given")
            case ops.Match(value=wanted):
                b, given = Builder(), self.scratch_slot(Int64, "given")
                with b.region() as region:
                    value = warps.as_bits(b, wanted)
                into.pending += region.ops
        self.flush(into, [(given, value)])
        return given

    def matrix_op(self, op: matrices.MatrixOp, into: _Open) -> None:
        """What the lanes have of matrices goes into a slot; then each takes what it needs."""
        kind = matrices.given_type(op)
        self.scratch.append(Slot(ops.Value(kind, "matrices"), matrices.given_count(op)))
        given = self.scratch[-1].tensor
        self.uniform.values.add(given)
        b, warp = Builder(), self.number.warp
        with b.region() as gives:
            matrices.give(b, op, warp, given)
        into.pending += gives.ops
        self.flush(into)
        self.check(op, into)
        with b.region() as takes:
            matrices.take(b, op, warp, given)
        into.pending += takes.ops

    def check(self, op: AnyWarpOp, into: _Open) -> None:
        """Checks that the lanes of the mask are there, where that is not known."""
        mask = self.known(op.mask)
        if mask in into.checked or (mask == warps.ALL and not into.guards):
            return
        active = self.active(into) if into.guards else None
        masks = None
        if op.mask in self.uniform:
            into.checked.add(mask)
        else:
            masks = self.scratch_slot(Uint32, "masks")
            self.flush(into, [(masks, op.mask)])
        into.pending += checks(self.name, op, self.number, active, masks)
        self.flush(into)

    def known(self, mask: ops.Value) -> Mask:
        number = self.number_of(mask)
        return mask if number is None else number

    def number_of(self, value: ops.Value) -> int | None:
        """The number that a value is, where that is a constant."""
        match self.makers.get(value):
            case ops.Constant(_, int(number)):
                return number
        return None

    def active(self, into: _Open) -> ops.Value:
        """A slot that has, for the first thread of each warp, the lanes that run a region."""
        runs, ballots = self.scratch_slot(Boolean, "runs"), self.scratch_slot(Uint32, "active")
        b = Builder()
        with b.region() as region:
            conditions = [v if holds else b.unary("not", v) for v, holds in into.guards]
            value = reduce(partial(b.binary, "and"), conditions)
        self.everyone(into, region.ops, [(runs, value)])
        self.everyone(into, self.number.ballots(runs, ballots))
        return ballots

    def everyone(self, into: _Open, pending: list[ops.Op], copies: Copies | None = None) -> None:
        """A phase in all threads, whatever guards there are."""
        phase = _Open(pending=pending)
        self.flush(phase, copies)
        into.done += phase.done


def _chosen(values: Sequence[ops.Value], kept: Sequence[bool]) -> tuple[ops.Value, ...]:
    return tuple(value for value, keep in zip(values, kept, strict=True) if keep)
