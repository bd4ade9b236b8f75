"""Kernels on the CPU: `void @kernel_<name>(arguments, symbols, grid x y z, block x y z)`.

The function runs the kernel's body for every block and thread: loops over blocks z, y, x and,
inside them, over threads z, y, x, as planned by `guards`.  Grid and block are i64.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Final

from llvmlite import ir

from ferrule.language.codegen import arithmetic, guards, metadata
from ferrule.language.codegen.functions import FunctionLowering
from ferrule.language.codegen.loops import ONE, ZERO, counted
from ferrule.language.codegen.scalars import dtype_of
from ferrule.language.ir import ops
from ferrule.language.ir.walk import all_ops, drive
from ferrule.runtime.llvm.layouts import I1, I64

_OUTER_FIRST: Final = (2, 1, 0)


def launched_blocks(program: ops.Program) -> dict[str, tuple[int | None, ...]]:
    """For each kernel, the sizes of a block that are one constant in all of its launches."""
    constants: dict[ops.Value, int] = {}
    found: dict[str, list[tuple[int | None, ...]]] = {}
    for op in all_ops(program.host.body):
        match op:
            case ops.Constant(result, int(value)):
                constants[result] = value
            case ops.Launch(kernel, _, block):
                found.setdefault(kernel, []).append(tuple(constants.get(b) for b in block))
    return {kernel: _common(blocks) for kernel, blocks in found.items()}


def _common(blocks: list[tuple[int | None, ...]]) -> tuple[int | None, ...]:
    by_axis = zip(*blocks, strict=True)
    return tuple(sizes[0] if len(set(sizes)) == 1 else None for sizes in by_axis)


@dataclass(frozen=True, slots=True)
class Shape:
    """The sizes of grid and block of a running kernel, as i64 for x, y, z."""

    grid: tuple[ir.Value, ...]
    block: tuple[ir.Value, ...]


def emit_threads(
    lowering: FunctionLowering, kernel: ops.Function, shape: Shape, plans: Sequence[guards.AxisPlan]
) -> None:
    """Emits the loops over blocks and threads around the kernel's body."""
    for axis in _OUTER_FIRST:
        lowering.coordinates["grid_dim", axis] = shape.grid[axis]
        lowering.coordinates["block_dim", axis] = shape.block[axis]
    lowering.group = metadata.access_group(lowering.emitter)
    with ExitStack() as open_loops:
        for axis in _OUTER_FIRST:
            open_loops.enter_context(_block_loop(lowering, plans[axis], shape))
        for axis in _OUTER_FIRST:
            open_loops.enter_context(_thread_loop(lowering, plans[axis], shape))
        drive(lowering.region(kernel.body))


@contextmanager
def _block_loop(
    lowering: FunctionLowering, plan: guards.AxisPlan, shape: Shape
) -> Iterator[None]:
    """The loop over the blocks of an axis; none where it is one with that over threads."""
    if plan.fused:
        # Only what is folded into the fused value reads these.
        lowering.coordinates["block_idx", plan.axis] = ZERO
        yield
        return
    name = f"block.{ops.AXES[plan.axis]}"
    with counted(lowering.emitter, ZERO, shape.grid[plan.axis], name) as index:
        lowering.coordinates["block_idx", plan.axis] = index
        yield


@contextmanager
def _thread_loop(
    lowering: FunctionLowering, plan: guards.AxisPlan, shape: Shape
) -> Iterator[None]:
    """The loop over the threads of an axis: in pieces, in each over those within the bounds."""
    name, count = f"thread.{ops.AXES[plan.axis]}", shape.block[plan.axis]
    if plan.fused:
        count = lowering.b.mul(shape.grid[plan.axis], count, flags=("nsw",))
    with ExitStack() as loops:
        piece = _Piece(ZERO, ZERO, count, {})
        if plan.points:
            piece = loops.enter_context(_pieces(lowering, plan, count, name))
        group = lowering.group if plan.axis == 0 else None
        loop = counted(lowering.emitter, piece.first, piece.end, name, group)
        thread = loops.enter_context(loop)
        lowering.coordinates["thread_idx", plan.axis] = ZERO if plan.fused else thread
        _define_points(lowering, plan, piece, thread)
        yield


@dataclass(frozen=True, slots=True)
class _Piece:
    """Threads first <= i < end of the piece that begins at `begin`; `starts`: points there, i64."""

    begin: ir.Value
    first: ir.Value
    end: ir.Value
    starts: dict[ops.Value, ir.Value]


@contextmanager
def _pieces(
    lowering: FunctionLowering, plan: guards.AxisPlan, count: ir.Value, name: str
) -> Iterator[_Piece]:
    """The loop over pieces, in none of which a point wraps."""
    e, before = lowering.emitter, lowering.b.block
    head, body, after = (e.block(f"{name}.piece.{part}") for part in ("head", "body", "end"))
    e.branch(head)
    e.at(head)
    begin = lowering.b.phi(I64, name=f"{name}.piece")
    begin.add_incoming(ZERO, before)
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
        lowering.simple(op)
    limits = (bound.limit for bound in plan.bounds)
    return {value: lowering.as_i64(value) for value in (*plan.points, *limits)}


def _piece_end(
    lowering: FunctionLowering,
    plan: guards.AxisPlan,
    starts: dict[ops.Value, ir.Value],
    begin: ir.Value,
    count: ir.Value,
) -> ir.Value:
    """Where a piece ends: at the end of all threads, or before a point wraps."""
    b = lowering.b
    steps = b.sub(b.sub(count, begin), ONE)
    for point in plan.points:
        largest = ir.Constant(I64, dtype_of(point).range[1])
        room = b.sub(largest, starts[point])  # as an unsigned number it never overflows
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
    low, high = ZERO, b.sub(end, begin)
    for bound in plan.bounds:
        limit, value = starts[bound.limit], starts[bound.value]
        distance = arithmetic.intrinsic(b, "llvm.ssub.sat", limit, value)
        if bound.slack:
            slack = ir.Constant(I64, bound.slack)
            distance = arithmetic.intrinsic(b, "llvm.sadd.sat", distance, slack)
        if bound.side == "below":
            high = b.select(b.icmp_signed("<", distance, high), distance, high)
        else:
            low = b.select(b.icmp_signed(">", distance, low), distance, low)
    # No further than the piece on either side, so that the additions are exact.
    high = b.select(b.icmp_signed(">", high, ZERO), high, ZERO)
    low = b.select(b.icmp_signed("<", low, high), low, high)
    return b.add(begin, low), b.add(begin, high)


def _define_points(
    lowering: FunctionLowering, plan: guards.AxisPlan, piece: _Piece, thread: ir.Value
) -> None:
    """Points as the thread's number plus something steady; the bounds as what they are."""
    b = lowering.b
    for point in plan.points:
        offset = b.sub(piece.starts[point], piece.begin)
        # Of 32 bits neither can overflow 64; an offset of 64 bits may have wrapped.
        flags = ("nsw",) if dtype_of(point).bits == 32 else ()
        lowering.define_integer(point, b.add(offset, thread, flags=flags))
    for bound in plan.bounds:
        lowering.values[bound.result] = ir.Constant(I1, int(bound.holds))
