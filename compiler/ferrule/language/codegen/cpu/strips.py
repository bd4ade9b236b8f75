"""Kernels in which each thread runs a loop, as a loop in which many threads run.

    for thread:                            for strip of threads:
        total = 0                              for thread in strip: totals[thread] = 0
        for k:                                 for k:
            total += a[k] * b[k, thread]           for thread in strip: totals[thread] += …
        c[thread] = total                      for thread in strip: c[thread] = totals[thread]

On the left LLVM sees a chain of additions, which it must not reorder, and accesses b with a large
stride.  On the right the innermost loop is vectorised (the loop over threads is strip-mined).
Threads run in any order and do not see each other; each still does the same operations in the same
order.

`find` looks for kernels of this form: after the guards some ops without effect, then one loop
without effect whose bounds are the same for all threads, then anything.  Reads up to the end of the
loop must be the same for all threads or side by side: a thread that sums a row of a matrix would
not become faster.  A loop without reads pays if it is not unrolled anyway.  The ops before the loop
are computed again in each part, except those that are the same for all threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import field
from typing import Final

from llvmlite import ir

from ferrule.language.codegen.cpu.steady import Knowledge, define, without_effect
from ferrule.language.codegen.facts import guards
from ferrule.language.codegen.facts.spine import nearness
from ferrule.language.codegen.functions import hints, loops
from ferrule.language.codegen.functions.dispatch import emit_region, emit_simple
from ferrule.language.codegen.functions.lowering import FunctionLowering
from ferrule.language.codegen.values.arithmetic import intrinsic
from ferrule.language.codegen.values.scalars import dtype_of, value_type
from ferrule.language.ir import ops
from ferrule.language.ir.facts import all_ops
from ferrule.language.ir.walk import drive
from ferrule.runtime.llvm.layouts import I64
from ferrule.specs import Boolean
from ferrule.specs.deferred import dataclass

WIDTH: Final = 256
"""The threads of a strip: enough for vectors, and their carried values fit into the first-level
cache."""

LINE: Final = 64
"""The alignment of carried values, in bytes: a vector in two cache lines takes twice as long."""

FEWEST: Final = 8
"""The number of threads in a block below which strips do not pay off."""

MOST_CARRIED: Final = 8
"""The limit of values that a thread carries through its loop."""

MOST_REPEATED: Final = 24
"""The limit of ops before the loop that depend on the thread."""

Threads = Callable[[ir.Value, ir.Value], "AbstractContextManager[ir.Value]"]
"""Opens a loop over the threads from one number to below another, and yields the number."""


@dataclass(frozen=True, slots=True)
class Guard:
    """A condition that is the same for all threads, and the truth with which they continue."""

    condition: ops.Value
    holds: bool


@dataclass(frozen=True, slots=True)
class Form:
    """The parts of a kernel: before its loop, the loop, and after it.

    Of the ops before, `alike` are the same for all threads, with the guards between them, and `own`
    are not; `known` are conditions.  `each` are ops of an iteration that are the same for all.
    """

    alike: tuple[ops.SimpleOp | Guard, ...]
    own: tuple[ops.SimpleOp, ...]
    known: Mapping[ops.Value, bool]
    loop: ops.For
    after: ops.Region
    each: tuple[ops.SimpleOp, ...]


# ---- analysis ----


def find(
    kernel: ops.Function, plan: guards.AxisPlan, known: Mapping[ops.Value, bool]
) -> Form | None:
    """The parts of a kernel of this form.  `known`: conditions of the loops outside."""
    knowledge = Knowledge.of(plan, known)
    alike, own = list[ops.SimpleOp | Guard](), list[ops.SimpleOp]()
    rest = list(reversed(kernel.body.ops))
    while rest:
        op = rest.pop()
        match op:
            # Nothing may stand behind a guard: threads that fail it would still run that.
            case ops.If(results=()) if not rest and (holds := passes(op, knowledge)) is not None:
                if op.condition not in knowledge.truths:
                    alike.append(Guard(op.condition, holds))
                rest = list(reversed((op.then if holds else op.otherwise).ops))
            case ops.For():
                degrees, after = Degrees.of_plan(plan), ops.Region(tuple(reversed(rest)))
                alike_ops = (op for op in alike if not isinstance(op, Guard))
                if not degrees.fit((*alike_ops, *own), op, kernel):
                    return None
                each = tuple(degrees.alike(op.body))
                return Form(tuple(alike), tuple(own), knowledge.truths, op, after, each)
            # An effect before the loop would happen once for each part that computes these ops
            # again.
            case _ if not without_effect(op):
                return None
            case _:
                (alike if knowledge.note(op) else own).append(op)
    return None


def passes(op: ops.If, knowledge: Knowledge) -> bool | None:
    """The side of a guard on which the kernel continues; None if it is not a guard for all
    threads."""
    truth = knowledge.truths.get(op.condition)
    if truth is not None or op.condition in knowledge.varying:
        return truth
    return None if bool(op.then.ops) == bool(op.otherwise.ops) else bool(op.then.ops)


@dataclass(slots=True)
class Degrees:
    """The dependence of values on the thread's number: 0, none; 1, a sum of it and an invariant;
    None, anything else.  Parameters and the loop's index have 0."""

    plan: guards.AxisPlan
    known: dict[ops.Value, int | None] = field(default_factory=dict)
    ones: set[ops.Value] = field(default_factory=set)

    @classmethod
    def of_plan(cls, plan: guards.AxisPlan) -> Degrees:
        """The degrees at the start of a kernel."""
        return cls(plan, dict.fromkeys(plan.fused, 1))

    def of(self, value: ops.Value) -> int | None:
        """The degree of a value."""
        return self.known.get(value, 0)

    def fit(self, before: Sequence[ops.SimpleOp], loop: ops.For, kernel: ops.Function) -> bool:
        """Whether the loop can run for many threads at once, and whether that pays off."""
        loads = list[int | None]()
        for op in before:
            self.take(op, loads)
        repeated = sum(self.of(op.result) != 0 for op in before)
        steady = all(self.of(value) == 0 for value in (loop.start, loop.stop, loop.step))
        booleans = any(dtype_of(value) is Boolean for value in loop.carried)
        if not steady or booleans or not 0 < len(loop.carried) <= MOST_CARRIED:
            return False
        if repeated > MOST_REPEATED:
            return False
        # After the first iteration a carried value may depend on the thread in any way.
        self.known.update(dict.fromkeys(loop.carried))
        for inner in all_ops(loop.body):
            if isinstance(inner, ops.If):
                self.known.update(dict.fromkeys(inner.results))
            elif without_effect(inner):
                self.take(inner, loads)
            else:
                return False
        if loads:
            return None not in loads and 1 in loads
        makers = {result: op for op in kernel.facts.ops for result in op.defined}
        return not hints.is_short(loop, makers)

    def alike(self, region: ops.Region) -> Iterator[ops.SimpleOp]:
        """The ops of a region, without nested ones, that are the same for all threads."""
        for op in region.ops:
            if without_effect(op) and self.of(op.result) == 0:
                yield op

    def take(self, op: ops.SimpleOp, loads: list[int | None]) -> None:
        """Records the degree of an op's result; adds the access order of a load to `loads`."""
        operands = [self.of(operand) for operand in op.operands]
        degree = nearness(op, self.plan.axis, operands)
        match op:
            case ops.Load(_, tensor, indices):
                loads.append(self.order(tensor, indices))
            # Indices of layouts are multiplied by strides, and a stride of 1 keeps neighbours side
            # by side.
            case ops.Constant(result, 1):
                self.ones.add(result)
            case ops.Binary(_, "mul", lhs, rhs) if not self.ones.isdisjoint((lhs, rhs)):
                degree = self.of(rhs if lhs in self.ones else lhs)
        self.known.setdefault(op.result, degree)

    def order(self, tensor: ops.Value, indices: tuple[ops.Value, ...]) -> int | None:
        """1 for adjacent elements, 0 for one that all threads read, None for others."""
        moving = [
            (self.of(index), stride)
            for index, stride in zip(indices, tensor.tensor.strides, strict=True)
            if self.of(index) != 0
        ]
        if self.of(tensor) != 0 or moving not in ([], [(1, 1)]):
            return None
        return len(moving)


# ---- emission ----


def emit(
    lowering: FunctionLowering, form: Form, first: ir.Value, end: ir.Value, threads: Threads
) -> None:
    """The kernel for the threads first <= i < end."""
    e, done = lowering.emitter, lowering.emitter.block("threads.none")
    some = e.block("threads")
    # What is alike for all threads is loaded once, before them: without a thread it may be
    # outside of its tensor.
    e.cond_branch(lowering.b.icmp_signed("<", first, end), some, done)
    e.at(some)
    with lowering.scope():
        begin(lowering, form.alike, form.known, done)
        _emit_strips(lowering, form, first, end, threads)
    e.branch(done)
    e.at(done)


def begin(
    lowering: FunctionLowering,
    alike: Sequence[ops.SimpleOp | Guard],
    known: Mapping[ops.Value, bool],
    done: ir.Block,
) -> None:
    """The ops that are the same for all threads; branches to `done` if a guard fails."""
    # These ops stand outside of the loops over threads, whose accesses the group marks.
    group, lowering.group = lowering.group, None
    define(lowering, known)
    for op in alike:
        match op:
            case Guard(condition, holds):
                on = lowering.emitter.block("guarded")
                ways = (on, done) if holds else (done, on)
                lowering.emitter.cond_branch(lowering.values[condition], *ways)
                lowering.emitter.at(on)
            case _:
                emit_simple(lowering, op)
    lowering.group = group


def _emit_strips(
    lowering: FunctionLowering, form: Form, first: ir.Value, end: ir.Value, threads: Threads
) -> None:
    """The loop over strips; there is at least one strip."""
    loop, carried = form.loop, _Carried(lowering, form.loop)
    with _strips(lowering, first, end) as (low, high):
        with _part(lowering, form, threads, low, high) as place:
            carried.store(place, loop.initial)
        with lowering.inside(loop, "strips"):
            lowering.say(f"its lanes are threads, in strips of {WIDTH}")
            with _iterations(lowering, form), _part(lowering, form, threads, low, high) as place:
                carried.load(place, loop.carried)
                drive(emit_region(lowering, loop.body))
                carried.store(place, loop.body.yields)
        with _part(lowering, form, threads, low, high) as place:
            carried.load(place, loop.results)
            drive(emit_region(lowering, form.after))


@contextmanager
def _strips(
    lowering: FunctionLowering, first: ir.Value, end: ir.Value
) -> Iterator[tuple[ir.Value, ir.Value]]:
    """The loop over strips; yields the first thread of one, and its end.  No loop for a single
    strip."""
    if isinstance(end, ir.Constant) and first is loops.ZERO and end.constant <= WIDTH:
        yield first, end
        return
    b, width = lowering.b, ir.Constant(I64, WIDTH)
    # There is a thread, so this is not negative, and the signed division rounds down.
    more = b.sub(b.sub(end, first), ir.Constant(I64, 1))
    strips = b.add(b.sdiv(more, width), ir.Constant(I64, 1))
    with loops.counted(lowering.emitter, loops.ZERO, strips, "strip") as number:
        low = b.add(first, b.mul(number, width))
        yield low, intrinsic(b, "llvm.smin", b.add(low, width), end)


@contextmanager
def _part(
    lowering: FunctionLowering, form: Form, threads: Threads, low: ir.Value, high: ir.Value
) -> Iterator[ir.Value]:
    """A loop over the threads of a strip; yields a thread's place in it."""
    with lowering.scope(), threads(low, high) as thread:
        for op in form.own:
            emit_simple(lowering, op)
        yield lowering.b.sub(thread, low)


@contextmanager
def _iterations(lowering: FunctionLowering, form: Form) -> Iterator[None]:
    """The kernel's loop, with its index and all ops that are the same for all threads."""
    loop = form.loop
    bounds = (lowering.as_i64(value) for value in (loop.start, loop.stop, loop.step))
    limits = loops.python_range(lowering.b, dtype_of(loop.index), *bounds)
    with loops.counted_by(lowering.emitter, limits, loop.index.hint) as counter:
        with lowering.scope():
            lowering.define_integer(loop.index, limits.index(lowering.b, counter))
            for op in form.each:
                emit_simple(lowering, op)
            yield


class _Carried:
    """The values that the threads of a strip carry through the loop, an array for each."""

    def __init__(self, lowering: FunctionLowering, loop: ops.For) -> None:
        self.lowering = lowering
        kinds = [value_type(dtype_of(value)) for value in loop.carried]
        self.arrays = [lowering.emitter.alloca(kind, WIDTH, name="carried") for kind in kinds]
        for array in self.arrays:
            array.align = LINE
        self.kinds = kinds

    def store(self, place: ir.Value, values: tuple[ops.Value, ...]) -> None:
        """Stores these values of the thread at this place."""
        for address, value in zip(self.addresses(place), values, strict=True):
            self.mark(self.lowering.b.store(self.lowering.values[value], address))

    def load(self, place: ir.Value, values: tuple[ops.Value, ...]) -> None:
        """Loads the carried values of the thread at this place."""
        for address, kind, value in zip(self.addresses(place), self.kinds, values, strict=True):
            loaded = self.lowering.b.load(address, name=value.hint, typ=kind)
            self.mark(loaded)
            self.lowering.values[value] = loaded

    def mark(self, access: ir.Instruction) -> None:
        """Marks an access as independent: other threads have places of their own."""
        assert self.lowering.group is not None, "the threads of a kernel run in parallel"
        hints.mark_access(access, self.lowering.group)

    def addresses(self, place: ir.Value) -> Iterator[ir.Value]:
        """The addresses of the elements at a place."""
        for array, kind in zip(self.arrays, self.kinds, strict=True):
            yield self.lowering.b.gep(array, [place], source_etype=kind)
