"""Runs blocks of a kernel whose threads cooperate.

The memory that a block needs besides its arguments (shared memory, thread state across waits) is
one allocation, from `malloc`, for all blocks that one core runs; it is freed on every exit of the
run.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from llvmlite import ir

from ferrule.compiler.artefacts import Fault
from ferrule.language.codegen.cpu.cooperate import matrices
from ferrule.language.codegen.cpu.cooperate.coroutines import Coroutines
from ferrule.language.codegen.cpu.cooperate.frames import Frames
from ferrule.language.codegen.cpu.cooperate.phased import Phased
from ferrule.language.codegen.cpu.cooperate.phases import Split, split
from ferrule.language.codegen.cpu.cooperate.team import Team
from ferrule.language.codegen.cpu.kernels import Shape
from ferrule.language.codegen.facts.uniform import Divergent
from ferrule.language.codegen.functions.loops import counted
from ferrule.language.codegen.functions.lowering import FunctionLowering, Lines
from ferrule.language.ir import ops, shared
from ferrule.language.ir.facts import all_ops
from ferrule.language.ir.rules import divergence
from ferrule.language.ir.shared import cooperates
from ferrule.runtime.llvm.layouts import I8, I32, I64, PTR

ALIGN: Final = shared.LEAST_ALIGN


def emit_cooperating(
    lowering: FunctionLowering,
    kernel: ops.Function,
    shape: Shape,
    dynamic: ir.Value,
    blocks: tuple[ir.Value, ir.Value],
    thread_elsewhere: str | None = None,
) -> None:
    """Emits the loops around the kernel's body; `blocks` are the first block and the end.

    Blocks are numbered with x fastest.  `dynamic`: bytes of dynamic shared memory, i64.
    `thread_elsewhere`: the symbol of the thread's coroutine, if it is in another module.
    """
    e, b = lowering.emitter, lowering.b
    for axis in range(3):
        lowering.coordinates["grid_dim", axis] = shape.grid[axis]
        lowering.coordinates["block_dim", axis] = shape.block[axis]
    width, height, depth = shape.block
    threads = b.mul(b.mul(width, height), depth)
    if matrices.room(kernel.facts.ops):
        _require_whole_warps(lowering, kernel, threads)
    places, static = shared.places(kernel)
    team = Team(lowering, kernel, shape, tuple(places), threads)
    flat = all(_is_one(size) for size in shape.block[1:])
    phases = None if thread_elsewhere else split(kernel, shape.launched, flat=flat)
    if lowering.lines is not None and thread_elsewhere is None:
        lowering.say(_form(kernel, phases, lowering.lines))
    form: Coroutines | Phased
    form = Coroutines.of(team, thread_elsewhere) if phases is None else Phased(team, phases)
    start = b.add(e.const_i64(static), _rounded(b, dynamic))
    with _memory(lowering, kernel, b.add(start, form.room())) as memory:
        for tensor, offset in places.items():
            lowering.values[tensor] = e.index(memory, I8, offset)
        rest = e.index(memory, I8, start)
        with counted(e, *blocks, "block") as number:
            _locate(lowering, shape, number)
            form.run(rest)


def _form(kernel: ops.Function, phases: Split | None, lines: Lines) -> str:
    """How the threads run, for remarks."""
    if phases is not None:
        count = sum(isinstance(op, ops.Parallel) for op in all_ops(phases.body))
        cut = "where they wait" if cooperates(kernel) else "around its loops"
        many = f"{count} phases, cut {cut}: each is" if count > 1 else "one phase:"
        return f"its threads run in {many} a loop over the threads"
    where = ""
    try:
        Frames.of(kernel).uniform(kernel)
    except Divergent as why:
        where = lines.where(why.op)
    return (
        f"its threads are coroutines, one by one and not as lanes: they may wait at different "
        f"places{where}"
    )


@contextmanager
def _memory(lowering: FunctionLowering, kernel: ops.Function, size: ir.Value) -> Iterator[ir.Value]:
    """Memory of this size, aligned; every exit of the function frees it."""
    e, b = lowering.emitter, lowering.b
    align = shared.alignment(kernel)
    more = b.add(size, e.const_i64(align))
    memory = e.call("malloc", [more], "memory")
    got, none = e.block("got"), e.block("no.memory")
    e.cond_branch(e.is_null(memory), none, got)
    e.at(none)
    message = f"{kernel.name}: there is no memory for a block of threads, of {{}} bytes"
    e.store(more, lowering.fault_values)
    e.ret(ir.Constant(I32, lowering.faults.number(Fault("MemoryError", message))))
    e.at(got)

    def leave(status: ir.Value) -> None:
        e.call("free", [memory])
        e.ret(status)

    lowering.leave = leave
    aligned = b.and_(b.add(b.ptrtoint(memory, I64), e.const_i64(align - 1)), e.const_i64(-align))
    start = b.inttoptr(aligned, PTR)
    if any(shared.lasts for shared in kernel.facts.each(ops.Shared)):
        e.call("memset", [start, e.const_i32(0), size])
    yield start
    lowering.leave = None
    e.call("free", [memory])


def _require_whole_warps(
    lowering: FunctionLowering, kernel: ops.Function, threads: ir.Value
) -> None:
    """Matrices need all lanes of a warp."""
    b = lowering.b
    rest = b.and_(threads, ir.Constant(I64, ops.WARP_SIZE - 1))
    fault = divergence.partial_warps(kernel.name)
    lowering.check(b.icmp_unsigned("==", rest, ir.Constant(I64, 0)), fault, (threads,))


def _locate(lowering: FunctionLowering, shape: Shape, number: ir.Value) -> None:
    """The coordinates of a block from its number."""
    b, (width, height, _) = lowering.b, shape.grid
    rows = b.udiv(number, width)
    places = (b.urem(number, width), b.urem(rows, height), b.udiv(rows, height))
    for axis, place in enumerate(places):
        lowering.coordinates["block_idx", axis] = place


def _is_one(size: ir.Value) -> bool:
    return isinstance(size, ir.Constant) and size.constant == 1


def _rounded(b: ir.IRBuilder, size: ir.Value) -> ir.Value:
    return b.and_(b.add(size, ir.Constant(I64, ALIGN - 1)), ir.Constant(I64, -ALIGN))
