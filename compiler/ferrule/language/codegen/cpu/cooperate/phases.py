"""Kernels whose threads all wait at the same places, cut into phases there.

    for block:                        for block:
        for thread:                       for thread: s[thread] = a[thread]
            s[thread] = a[thread]         for thread: b[thread] = s[n - thread]
            sync_threads()
            b[thread] = s[n - thread]

`split` transforms a kernel into the ops that run once for a block.  A phase is a `Parallel` without
indices: its body is a kernel of its own, which each thread of the block runs, in any order.  A
value that a thread computes in one phase and uses in a later one is rematerialised there, if that
is only arithmetic on its coordinates; else it is stored in a *slot*, a tensor with a place for each
thread.  Exchanges between the lanes of a warp use slots too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace

from ferrule.language.codegen.cpu.cooperate import exchanges, guarded, spread, strided, trees
from ferrule.language.codegen.cpu.cooperate.cutting import Copies, Cut, Open
from ferrule.language.codegen.cpu.cooperate.frames import Frames
from ferrule.language.codegen.cpu.cooperate.kept import Guard, Slot, Values
from ferrule.language.codegen.cpu.cooperate.numbering import Numbering
from ferrule.language.codegen.cpu.cooperate.quotients import Quotients
from ferrule.language.codegen.cpu.cooperate.unread import without_unread
from ferrule.language.codegen.facts.extents import extents
from ferrule.language.codegen.facts.launched import Launched
from ferrule.language.codegen.facts.uniform import (
    Divergent,
    Uniform,
    has_effect,
)
from ferrule.language.ir import ops
from ferrule.language.ir.builder import Builder
from ferrule.language.ir.facts import all_ops
from ferrule.language.ir.rewrite import rewrite
from ferrule.language.ir.walk import is_plain
from ferrule.specs import Int32
from ferrule.specs.deferred import dataclass


@dataclass(frozen=True, slots=True)
class Split:
    """A kernel in phases, the slots that they share, and what does not wrap in a thread that runs:
    its number, and sums of it."""

    body: ops.Region
    slots: tuple[Slot, ...]
    fit: frozenset[ops.Value]
    trees: Mapping[ops.Op, trees.Tree]
    """Reductions over warps, by the only op of the `Parallel` that stands for each."""


def split(
    kernel: ops.Function,
    launched: Launched | None = None,
    *,
    flat: bool = False,
    with_trees: bool = True,
) -> Split | None:
    """The kernel in phases; None if its threads may wait at different places.

    `flat`: blocks have one row of threads.  `with_trees`: reductions over warps are found, which
    the caller emits by `trees.emit`; without it they stay loops.
    """
    try:
        uniform = Frames.of(kernel).uniform(kernel)
    except Divergent:
        return None
    cut = Cut(kernel.name, uniform, Numbering(flat=flat))
    launched = launched or Launched()
    threads = launched.most_threads
    many = threads >= guarded.FEWEST
    kernel = without_unread(kernel)
    splitter = _Splitter(cut, spread.found(kernel), spread.pitch(threads), many, with_trees)
    simple = (op for op in kernel.facts.ops if isinstance(op, ops.SimpleOp))
    splitter.fit.update(extents(simple, launched))
    return splitter.split(kernel.body)


@dataclass(slots=True)
class _Splitter:
    """Cuts the frame of a kernel; `kept.Values` then finds the data flow between phases."""

    cut: Cut
    spread: frozenset[ops.Value]
    pitch: int
    many: bool
    with_trees: bool
    iterations: list[tuple[int, int, tuple[ops.Value, ...]]] = field(default_factory=list)
    """For each loop the first and the last phase of its body, and the values that it carries in
    slots."""
    fit: set[ops.Value] = field(default_factory=set)
    trees: dict[ops.Op, trees.Tree] = field(default_factory=dict)

    def split(self, body: ops.Region) -> Split:
        """The phases of a kernel with this body."""
        cut, number = self.cut, self.cut.number
        cut.makers = {result: op for op in all_ops(body) for result in op.defined}
        cut.own += number.own
        frame = Open(done=list(number.uniform))
        for op in number.uniform:
            cut.uniform.values.update(op.defined)
        self.region(body, frame)
        cut.flush(frame)
        filled = self.filled(ops.Region(tuple(frame.done)))
        slots = (*dict.fromkeys(cut.slots.values()), *cut.scratch)
        return Split(filled, slots, frozenset((number.thread, *self.fit)), self.trees)

    def filled(self, frame: ops.Region) -> ops.Region:
        """The frame with its phases, with the data flow between them."""
        cut = self.cut
        found = (cut.uniform, cut.number.thread, cut.own, cut.drafts, cut.slots)
        values = Values(*found, self.spread, self.pitch)
        for draft in cut.drafts:
            values.phase(draft)  # finds out which values need slots
        for iteration in self.iterations:
            values.join(*iteration)
        # Made now, since `join` has changed which values have which slots.
        phases: dict[ops.Op, ops.Parallel] = {d.place: values.phase(d) for d in cut.drafts}

        def placed(b: Builder, op: ops.Op) -> None:
            phase = phases.get(op)
            if phase is None:
                b.append(op)
            # Of some phases nothing is left but arithmetic that others make again.
            elif has_effect(phase.body):
                b.append(phase)

        return rewrite(frame, placed)

    def region(self, region: ops.Region, into: Open) -> None:
        """Cuts the ops of a region."""
        uniform, makers = self.cut.uniform, self.cut.makers
        pieces = guarded.find(region, uniform, makers) if self.many else {}
        for op in region.ops:
            match op:
                case ops.Check() if op in self.cut.uniform.hoisted:
                    into.done += self.first(op)
                case _ if op in self.cut.uniform.hoisted:
                    into.done.append(op)
                case ops.Barrier():
                    self.cut.flush(into)
                case ops.WarpBarrier():
                    self.cut.flush(into)
                    exchanges.check(self.cut, op, into)
                case _ if isinstance(op, ops.Exchange):
                    exchanges.warp_op(self.cut, op, into)
                case _ if isinstance(op, ops.MatrixOp):
                    exchanges.matrix_op(self.cut, op, into)
                case ops.If() if self.cut.uniform.in_frame(op):
                    self.branch(op, into)
                case ops.If() if op in pieces:
                    self.piece(op, pieces[op], into)
                case ops.For() if (
                    self.with_trees and not into.guards and (tree := trees.find(op, makers))
                ):
                    self.cut.flush(into)
                    self.trees[tree.store] = tree
                    into.done.append(ops.Parallel((), (), ops.Region((tree.store,))))
                case ops.For() | ops.While() if self.cut.uniform.in_frame(op):
                    self.loop(op, into)
                case ops.For() if form := strided.find(op, self.cut.uniform, self.cut.makers):
                    self.strided(op, form, into)
                case _:
                    into.pending.append(op)

    def first(self, op: ops.Check) -> list[ops.Op]:
        """A check that is uniform, executed by the first thread."""
        b = Builder()
        with b.region() as region:
            values = [
                value if value in self.cut.uniform else b.constant(Int32, 0) for value in op.values
            ]
            b.append(replace(op, values=tuple(values)))
        return region.ops

    # ---- branches and loops ----

    def branch(self, op: ops.If, into: Open) -> None:
        """A branch that is uniform, or two masked ones, one after the other."""
        kept = [result in self.cut.uniform for result in op.results]
        alike = op.condition in self.cut.uniform
        self.cut.flush(into)
        sides = []
        for side, holds in ((op.then, True), (op.otherwise, False)):
            own: tuple[Guard, ...] = () if alike else ((op.condition, holds),)
            # Behind a condition that threads differ in, a mask may name lanes that are not there.
            inner = Open((*into.guards, *own), set(into.checked) if alike else set())
            self.region(side, inner)
            self.cut.flush(inner, self.cut.moves(op.results, side.yields))
            sides.append(inner.done)
        if not alike:
            into.done += [*sides[0], *sides[1]]
            return
        then, otherwise = (
            ops.Region(tuple(done), _chosen(side.yields, kept))
            for done, side in zip(sides, (op.then, op.otherwise), strict=True)
        )
        into.done.append(ops.If(_chosen(op.results, kept), op.condition, then, otherwise))

    def piece(self, op: ops.If, shared: Sequence[bool], into: Open) -> None:
        """A guard of accesses; `shared`: whether a result has the slot of the value before."""
        slots, kept = self.cut.slots, Copies()
        for result, value, share in zip(op.results, op.otherwise.yields, shared, strict=True):
            if share:
                slots[result] = slots[value]
            else:
                kept.append((self.cut.slot(result), value))
        into.pending += op.otherwise.ops
        self.cut.flush(into, kept)
        inner = Open((*into.guards, (op.condition, True)), pending=[*op.then.ops])
        self.cut.flush(inner, self.cut.moves(op.results, op.then.yields))
        into.done += inner.done

    def loop(self, op: ops.For | ops.While, into: Open) -> None:
        """A loop that is uniform; values that it carries per thread are in slots."""
        kept = [value in self.cut.uniform for value in op.carried]
        for result, value in zip(op.results, op.carried, strict=True):
            if value not in self.cut.uniform:
                self.cut.slot(value)
                # When the loop has ended, the slot holds what the result is.
                self.cut.slots[result] = self.cut.slots[value]
        self.cut.flush(into, self.cut.moves(op.carried, op.initial))
        results, initial, carried = (
            _chosen(values, kept) for values in (op.results, op.initial, op.carried)
        )
        if isinstance(op, ops.For) and (last := _guarded(op, self.cut.uniform)):
            into.done.append(
                replace(op, results=(), initial=(), carried=(), body=self.guarded(op, last, into))
            )
            return
        changed = replace(op, results=results, initial=initial, carried=carried)
        if isinstance(changed, ops.While):
            changed = replace(changed, test=self.iteration(changed.test, into, [], [True]))
        moves = self.cut.moves(op.carried, op.body.yields)
        first = len(self.cut.drafts)
        into.done.append(replace(changed, body=self.iteration(op.body, into, moves, kept)))
        if moves:
            own = tuple(value for value in op.carried if value not in self.cut.uniform)
            self.iterations.append((first, len(self.cut.drafts) - 1, own))

    def guarded(self, op: ops.For, last: ops.If, outer: Open) -> ops.Region:
        """An iteration in which threads do everything behind a condition, or nothing."""
        uniform = [each for each in op.body.ops[:-1] if each in self.cut.uniform.hoisted]
        own = [each for each in op.body.ops[:-1] if each not in self.cut.uniform.hoisted]
        before = Open(outer.guards, pending=own)
        self.cut.flush(before, [])  # the condition: it must be known where it is a guard
        inner = Open((*outer.guards, (last.condition, True)), pending=[*last.then.ops])
        made = dict(zip(last.results, last.then.yields, strict=True))
        pairs = [
            (carried, made[value])
            for carried, value in zip(op.carried, op.body.yields, strict=True)
            if value is not carried
        ]
        self.cut.flush(inner, [(self.cut.slot(carried), value) for carried, value in pairs])
        return ops.Region((*uniform, *before.done, *inner.done))

    def strided(self, op: ops.For, form: strided.Strided, into: Open) -> None:
        """A loop in which the threads access memory side by side."""
        for result, value in zip(op.results, op.carried, strict=True):
            self.cut.slot(value)
            self.cut.slots[result] = self.cut.slots[value]
        self.cut.flush(into, self.cut.moves(op.carried, op.initial))
        # These run once for the block, so that a phase reads their results and does not compute
        # them.
        for each in (*form.first, *form.begin):
            self.cut.uniform.values.update(each.defined)
        self.cut.uniform.values.add(form.base)
        self.cut.own += form.own
        # Only threads whose index is below the end of the loop run.
        self.fit.update(form.index.defined)
        quotients = Quotients(self.cut.uniform, self.cut.makers)
        body = quotients.replaced(op.body).ops
        inner = Open((*into.guards, (form.runs, True)), pending=[form.index, *body])
        self.cut.flush(inner, self.cut.moves(op.carried, op.body.yields))
        into.done += (*form.first, *quotients.first)
        bounds, whole = (form.start, op.stop, op.step), ops.Region((*form.begin, *inner.done))
        loop = ops.For((), form.base, *bounds, (), (), whole)
        if form.goes_up is None:
            into.done.append(loop)
            return
        # Results of its own: those of the loop are in slots, which a copy of them may share.
        results = tuple(ops.Value(value.type, value.hint) for value in op.results)
        other = Open(into.guards, pending=[replace(op, results=results)])
        self.cut.flush(other, self.cut.moves(op.carried, results))
        sides = ops.Region((loop,)), ops.Region(tuple(other.done))
        into.done.append(ops.If((), form.goes_up, *sides))

    def iteration(
        self, region: ops.Region, outer: Open, moves: Copies, kept: Sequence[bool]
    ) -> ops.Region:
        """The ops of an iteration; `kept` tells which of its yields are uniform."""
        inner = Open(outer.guards, set(outer.checked))
        self.region(region, inner)
        self.cut.flush(inner, moves)
        return ops.Region(tuple(inner.done), _chosen(region.yields, kept))


def _guarded(loop: ops.For, uniform: Uniform) -> ops.If | None:
    """The condition at the end of an iteration without which a thread keeps all that it carries."""
    last = loop.body.ops[-1] if loop.body.ops else None
    if not isinstance(last, ops.If) or uniform.in_frame(last) or last.otherwise.ops:
        return None
    kept = dict(zip(last.results, last.otherwise.yields, strict=True))
    pairs = list(zip(loop.carried, loop.body.yields, strict=True))
    stays = all(value is carried or kept.get(value) is carried for carried, value in pairs)
    own = (each for each in loop.body.ops[:-1] if each not in uniform.hoisted)
    simple = all(map(is_plain, own)) and not any(isinstance(e, ops.Check) for e in loop.body.ops)
    alike = any(carried in uniform for carried in loop.carried)
    return last if stays and simple and not alike else None


def _chosen(values: Sequence[ops.Value], kept: Sequence[bool]) -> tuple[ops.Value, ...]:
    return tuple(value for value, keep in zip(values, kept, strict=True) if keep)
