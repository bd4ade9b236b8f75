"""Runs some blocks of a kernel on the CPU: a loop over rows of blocks, and loops over their
threads.

Blocks are numbered with x innermost.  Inside a row come loops over its blocks and, inside them,
over threads z, y, x, as planned by `guards`.  Grid and block are i64.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from typing import Final

from llvmlite import ir

from ferrule.language.codegen.cpu import pitches, steady, strips
from ferrule.language.codegen.cpu.rows import rows
from ferrule.language.codegen.facts import guards, lanes
from ferrule.language.codegen.facts.extents import extents
from ferrule.language.codegen.facts.launched import AXIS_COUNT, Launched
from ferrule.language.codegen.functions import hints
from ferrule.language.codegen.functions.dispatch import emit_region, emit_simple
from ferrule.language.codegen.functions.loops import ONE, ZERO, counted, difference, total
from ferrule.language.codegen.functions.lowering import FunctionLowering
from ferrule.language.codegen.values.arithmetic import intrinsic
from ferrule.language.codegen.values.scalars import dtype_of
from ferrule.language.ir import ops
from ferrule.language.ir.walk import drive
from ferrule.runtime.llvm.layouts import I1, I64
from ferrule.specs import Int32
from ferrule.specs.deferred import dataclass

# x is innermost: neighbours along it access neighbouring elements, and become lanes of vectors.
_OUTER_FIRST: Final = (2, 1, 0)


@dataclass(frozen=True, slots=True)
class Shape:
    """The sizes of grid and block of a running kernel, as i64 for x, y, z."""

    grid: tuple[ir.Value, ...]
    block: tuple[ir.Value, ...]
    launched: Launched

    def counter_fits(self, plan: guards.AxisPlan) -> bool:
        """Whether the counter of a loop is always an Int32; the threads of one block are."""
        axis = plan.axis
        threads = self.launched.grid[axis][1] * self.launched.block[axis][1]
        return not plan.fused or threads - 1 <= Int32.range[1]

    def points_fit(self, plan: guards.AxisPlan) -> bool:
        """Whether no point of a loop can wrap."""
        fit = set(plan.fit)
        if self.counter_fits(plan):
            fit.update(plan.counter)
        if not plan.fused:
            fit.update(extents(plan.needed, self.launched))
        return set(plan.points) <= fit


def emit_blocks(
    lowering: FunctionLowering,
    kernel: ops.Function,
    shape: Shape,
    plans: Sequence[guards.AxisPlan],
    blocks: tuple[ir.Value, ir.Value],
) -> None:
    """Emits the loops around the kernel's body; `blocks` are the first block and the end."""
    for axis in _OUTER_FIRST:
        lowering.coordinates["grid_dim", axis] = shape.grid[axis]
        lowering.coordinates["block_dim", axis] = shape.block[axis]
    straight = lanes.has_wide_parts(kernel)
    lowering.group = hints.access_group(lowering.emitter, straight=straight)
    if plans[0].fused:
        lowering.say("its blocks along x are one loop over all their threads")
    sizes = [shape.grid[axis] for axis in _OUTER_FIRST]
    with ExitStack() as open_loops:
        row = open_loops.enter_context(rows(lowering.emitter, *blocks, sizes, "blocks"))
        for axis, block in zip(_OUTER_FIRST[:-1], row.outer, strict=True):
            lowering.coordinates["block_idx", axis] = block
        spans = {
            axis: _span(lowering, plans[axis], shape, block, None)
            for axis, block in zip(_OUTER_FIRST[:-1], row.outer, strict=True)
        }
        open_loops.enter_context(_block_loop(lowering, plans[0], row.begin, row.end, shape))
        spans[0] = _span(lowering, plans[0], shape, row.begin, row.end)
        _thread_loops(lowering, kernel, shape, plans, spans)


def emit_phase(
    lowering: FunctionLowering, phase: ops.Function, shape: Shape, fit: Collection[ops.Value]
) -> None:
    """Emits the loops over the threads of one block around a phase of a kernel.

    `fit`: values that do not wrap in threads that run.
    """
    inner, *outer = guards.plan(phase, (None,) * AXIS_COUNT, fuse=False)
    plans = (replace(inner, fit=fit), *outer)
    straight = lanes.has_wide_parts(phase)
    lowering.group = hints.access_group(lowering.emitter, straight=straight, body=phase.body)
    spans = {axis: (ZERO, shape.block[axis]) for axis in _OUTER_FIRST}
    _thread_loops(lowering, phase, shape, plans, spans)


def _thread_loops(
    lowering: FunctionLowering,
    kernel: ops.Function,
    shape: Shape,
    plans: Sequence[guards.AxisPlan],
    spans: Mapping[int, _Span],
) -> None:
    """Emits the loops over the threads of these spans."""
    with ExitStack() as open_loops:
        open_loops.enter_context(lowering.inside(kernel.body, "threads", kernel.name))
        for axis in _OUTER_FIRST[:-1]:
            piece = open_loops.enter_context(_piece(lowering, plans[axis], shape, spans[axis]))
            loop = _threads(lowering, plans[axis], piece, piece.first, piece.end)
            open_loops.enter_context(loop)
        _innermost(lowering, kernel, plans[0], shape, spans[0])


_Span = tuple[ir.Value, ir.Value]
"""The threads first <= i < end of an axis: of one block, or of all fused blocks."""


def _span(
    lowering: FunctionLowering,
    plan: guards.AxisPlan,
    shape: Shape,
    begin: ir.Value,
    end: ir.Value | None,
) -> _Span:
    """The threads to loop over for the blocks begin <= i < end; for the first block only if `end`
    is None."""
    b, block = lowering.b, shape.block[plan.axis]
    if not plan.fused:
        return ZERO, block
    first = begin if begin is ZERO else b.mul(begin, block, flags=("nsw",))
    if end is None:
        return first, total(b, first, block, ("nsw",))
    return first, b.mul(end, block, flags=("nsw",))


def _innermost(
    lowering: FunctionLowering,
    kernel: ops.Function,
    plan: guards.AxisPlan,
    shape: Shape,
    span: _Span,
) -> None:
    """The loop over the threads of x, with the body of the kernel."""
    with _piece(lowering, plan, shape, span) as piece:
        threads = partial(_threads, lowering, plan, piece)
        if _is_one(piece.end) or plan.single:
            with threads(piece.first, piece.end):
                drive(emit_region(lowering, kernel.body))
            return
        many = bool(plan.fused) or shape.launched.block[plan.axis][1] >= strips.FEWEST
        conditions = steady.conditions(lowering)
        form = strips.find(kernel, plan, conditions) if many else None
        limits = (piece.first, piece.end)
        if form is not None:
            strips.emit(lowering, form, *limits, threads)
            return
        if many and kernel.facts.has(ops.While) and _in_groups(lowering, kernel, plan, piece):
            return
        pitch = _pitch(lowering, kernel, plan, span)
        with steady.before_loop(lowering, kernel, plan, *limits):
            if pitch is None:
                with threads(*limits):
                    drive(emit_region(lowering, kernel.body))
            else:
                _by_rows(lowering, kernel, plan, piece, pitch)


def _pitch(
    lowering: FunctionLowering, kernel: ops.Function, plan: guards.AxisPlan, span: _Span
) -> pitches.Pitch | None:
    """The rows in which all threads of a block are arranged, if that pays."""
    constant = span[0] is ZERO and isinstance(span[1], ir.Constant)
    straight = lowering.group is not None and lowering.group.straight
    if not constant or plan.fused or straight:
        return None
    given = ((value, lowering.values.get(value)) for value in kernel.params if value.type is Int32)
    known = {value: int(c.constant) for value, c in given if isinstance(c, ir.Constant)}
    return pitches.find(kernel, plan.axis, known, int(span[1].constant))


def _by_rows(
    lowering: FunctionLowering,
    kernel: ops.Function,
    plan: guards.AxisPlan,
    piece: _Piece,
    pitch: pitches.Pitch,
) -> None:
    """Emits the loops over rows of threads, and one over a piece that has not all of them."""
    pitches.say(lowering, kernel, pitch)
    whole = pitches.whole(lowering, pitch, (piece.begin, piece.first, piece.end))
    name, define = f"thread.{ops.AXES[plan.axis]}", partial(_define_thread, lowering, plan, piece)
    for all_threads in whole:
        loop = (
            pitches.loops(lowering, pitch, name, kernel.body, define)
            if all_threads
            else _threads(lowering, plan, piece, piece.first, piece.end)
        )
        with lowering.scope(), loop:
            drive(emit_region(lowering, kernel.body))


def _in_groups(
    lowering: FunctionLowering, kernel: ops.Function, plan: guards.AxisPlan, piece: _Piece
) -> bool:
    """Emits a kernel whose threads end loops at different times, if it has the form."""
    from ferrule.language.codegen.cpu import divergent, masked

    form = divergent.find(kernel, plan, steady.conditions(lowering))
    if form is None or (lowering.group is not None and lowering.group.straight):
        return False
    at = partial(_define_thread, lowering, plan, piece)
    masked.emit(lowering, form, piece.first, piece.end, at)
    return True


@contextmanager
def _block_loop(
    lowering: FunctionLowering,
    plan: guards.AxisPlan,
    begin: ir.Value,
    end: ir.Value,
    shape: Shape,
) -> Iterator[None]:
    """The loop over the blocks of a row; no loop if it is fused with the one over threads."""
    if plan.fused or _is_one(shape.grid[plan.axis]):
        # With fused blocks, only the fused value depends on these.
        lowering.coordinates["block_idx", plan.axis] = ZERO
        yield
        return
    with counted(lowering.emitter, begin, end, f"block.{ops.AXES[plan.axis]}") as index:
        lowering.coordinates["block_idx", plan.axis] = index
        yield


@contextmanager
def _piece(
    lowering: FunctionLowering, plan: guards.AxisPlan, shape: Shape, span: _Span
) -> Iterator[_Piece]:
    """The threads of an axis within the bounds: in one piece, or a loop over pieces."""
    first, end = span
    if not plan.points or _is_one(end):
        yield _Piece(ZERO, first, end, None)
        return
    name = f"thread.{ops.AXES[plan.axis]}"
    form = _whole if shape.points_fit(plan) else _pieces
    with form(lowering, plan, span, name) as piece:
        yield piece


@contextmanager
def _threads(
    lowering: FunctionLowering,
    plan: guards.AxisPlan,
    piece: _Piece,
    first: ir.Value,
    end: ir.Value,
) -> Iterator[ir.Value]:
    """The loop over the threads first <= i < end of a piece; no loop if there is at most one."""
    name = f"thread.{ops.AXES[plan.axis]}"
    group = lowering.group if plan.axis == 0 else None
    with ExitStack() as loops:
        thread = ZERO
        if plan.single:
            runs = lowering.b.icmp_signed("<", first, end)
            loops.enter_context(lowering.emitter.if_then(runs))
            thread = first
        elif not _is_one(end):
            thread = loops.enter_context(counted(lowering.emitter, first, end, name, group))
        _define_thread(lowering, plan, piece, thread)
        yield thread


def _define_thread(
    lowering: FunctionLowering, plan: guards.AxisPlan, piece: _Piece, thread: ir.Value
) -> None:
    """Defines the coordinates of the thread with this number, and what is made of them."""
    lowering.coordinates["thread_idx", plan.axis] = ZERO if plan.fused else thread
    if piece.starts is not None:
        _define_points(lowering, plan, piece.begin, piece.starts, thread)


def _is_one(count: ir.Value) -> bool:
    return isinstance(count, ir.Constant) and count.constant == 1


@dataclass(frozen=True, slots=True)
class _Piece:
    """Threads first <= i < end of the piece that begins at `begin`.

    `starts`: the points and limits there, i64; None if nothing is known about them.
    """

    begin: ir.Value
    first: ir.Value
    end: ir.Value
    starts: dict[ops.Value, ir.Value] | None


@contextmanager
def _whole(
    lowering: FunctionLowering, plan: guards.AxisPlan, span: _Span, _name: str
) -> Iterator[_Piece]:
    """All threads in one piece, if no point can wrap."""
    begin, end = span
    with lowering.scope():
        starts = _starts(lowering, plan, ZERO)
        first, last = _within_bounds(lowering, plan, starts, ZERO, end)
    if begin is not ZERO:
        first = begin if first is ZERO else intrinsic(lowering.b, "llvm.smax", first, begin)
    yield _Piece(ZERO, first, last, starts)


@contextmanager
def _pieces(
    lowering: FunctionLowering, plan: guards.AxisPlan, span: _Span, name: str
) -> Iterator[_Piece]:
    """The loop over pieces; within a piece no point wraps."""
    e, before, (start, count) = lowering.emitter, lowering.b.block, span
    head, body, after = (e.block(f"{name}.piece.{part}") for part in ("head", "body", "end"))
    e.branch(head)
    e.at(head)
    begin = lowering.b.phi(I64, name=f"{name}.piece")
    begin.add_incoming(start, before)
    e.cond_branch(lowering.b.icmp_signed("<", begin, count), body, after)
    e.at(body)
    with lowering.scope():
        starts = _starts(lowering, plan, begin)
        end = _piece_end(lowering, plan, starts, begin, count)
        first, last = _within_bounds(lowering, plan, starts, begin, end)
    yield _Piece(begin, first, last, starts)
    begin.add_incoming(end, lowering.b.block)
    e.branch(head)
    e.at(after)


def _starts(
    lowering: FunctionLowering, plan: guards.AxisPlan, begin: ir.Value
) -> dict[ops.Value, ir.Value]:
    """The i64 values of points and limits for the first thread of a piece."""
    lowering.coordinates["thread_idx", plan.axis] = begin
    for value in plan.fused:
        lowering.define_integer(value, begin, fits=False)
    for op in plan.needed:
        emit_simple(lowering, op)
    limits = (bound.limit for bound in plan.bounds)
    return {value: lowering.as_i64(value) for value in (*plan.points, *limits)}


def _piece_end(
    lowering: FunctionLowering,
    plan: guards.AxisPlan,
    starts: dict[ops.Value, ir.Value],
    begin: ir.Value,
    count: ir.Value,
) -> ir.Value:
    """The end of a piece: the end of all threads, or before a point wraps."""
    b = lowering.b
    steps = b.sub(b.sub(count, begin), ONE)
    for point, factor in plan.points.items():
        largest = ir.Constant(I64, dtype_of(point).range[1])
        room = b.sub(largest, starts[point])  # as an unsigned number it never overflows
        if factor != 1:
            room = b.udiv(room, ir.Constant(I64, factor))
        steps = b.select(b.icmp_unsigned("<", room, steps), room, steps)
    return b.add(b.add(begin, steps), ONE)


def _within_bounds(
    lowering: FunctionLowering,
    plan: guards.AxisPlan,
    starts: dict[ops.Value, ir.Value],
    begin: ir.Value,
    end: ir.Value,
) -> tuple[ir.Value, ir.Value]:
    """The threads of a piece for which every bound holds: from the first to before the second."""
    b = lowering.b
    low, high = ZERO, difference(b, end, begin)
    for bound in plan.bounds:
        distance = _distance(b, starts[bound.limit], starts[bound.value], bound.slack)
        if bound.factor != 1:
            distance = _quotient(b, distance, bound.factor)
        if bound.side == "below":
            high = intrinsic(b, "llvm.smin", distance, high)
        else:
            low = intrinsic(b, "llvm.smax", distance, low)
    # Clamped to the piece on both sides, so that the additions are exact.
    high = high if not plan.bounds else intrinsic(b, "llvm.smax", high, ZERO)
    low = low if low is ZERO else intrinsic(b, "llvm.smin", low, high)
    return total(b, begin, low), total(b, begin, high)


def _distance(b: ir.IRBuilder, limit: ir.Value, value: ir.Value, slack: int) -> ir.Value:
    """The distance from a value to limit + slack, saturated at 64 bits."""
    distance = limit
    if not (isinstance(value, ir.Constant) and value.constant == 0):
        distance = intrinsic(b, "llvm.ssub.sat", limit, value)
    if slack:
        distance = intrinsic(b, "llvm.sadd.sat", distance, ir.Constant(I64, slack))
    return distance


def _times(b: ir.IRBuilder, number: ir.Value, factor: int) -> ir.Value:
    """A multiple of a thread's number, which 64 bits have room for."""
    if factor == 1 or number is ZERO:
        return number
    return b.mul(number, ir.Constant(I64, factor), flags=("nsw",))


def _quotient(b: ir.IRBuilder, distance: ir.Value, factor: int) -> ir.Value:
    """How many multiples of the factor, from 0 on, are below a distance; 0 or less for none."""
    more = intrinsic(b, "llvm.sadd.sat", distance, ir.Constant(I64, factor - 1))
    return b.sdiv(more, ir.Constant(I64, factor))


def _define_points(
    lowering: FunctionLowering,
    plan: guards.AxisPlan,
    begin: ir.Value,
    starts: dict[ops.Value, ir.Value],
    thread: ir.Value,
) -> None:
    """Defines points as the thread's number, or a multiple, plus an invariant, and bounds as
    constants."""
    b = lowering.b
    for point, factor in plan.points.items():
        before, number = (_times(b, value, factor) for value in (begin, thread))
        offset = difference(b, starts[point], before)
        # With 32 bits the sum cannot overflow 64 bits; an offset of 64 bits may have wrapped.
        flags = ("nsw",) if dtype_of(point).bits == 32 else ()
        lowering.define_integer(point, total(b, offset, number, flags))
    for bound in plan.bounds:
        lowering.values[bound.result] = ir.Constant(I1, int(bound.holds))
