"""Kernels whose threads wait for each other, on the CPU: phases, each a loop over threads.

Besides its arguments a block needs one buffer: it holds the shared memory, and the slots for values
of each thread that are live across phases.  A kernel whose threads may wait at different places
cannot be cut into phases: see `coroutines`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from ferrule.compiler.artefacts import Fault
from ferrule.language.codegen.cpu.cooperate import matrices
from ferrule.language.codegen.cpu.cooperate.blocks import ALIGN
from ferrule.language.codegen.cpu.cooperate.kept import Slot
from ferrule.language.codegen.cpu.cooperate.phases import Split, split
from ferrule.language.ir import ops, shared
from ferrule.language.ir.rules import divergence
from ferrule.language.mlir import control, memory

if TYPE_CHECKING:
    from ferrule.language.mlir.functions import FunctionText
    from ferrule.language.mlir.kernels import CpuKernel

if TYPE_CHECKING:
    from ferrule.language.mlir.functions import FunctionText

_BUFFER: Final = "memref<?xi8>"
_GRAIN: Final = 64
_MARGIN: Final = 32
"""Elements of a slot before and after those of the threads, because a warp operation may read the
lanes beside the block's own."""


def emit(f: FunctionText, where: CpuKernel, dynamic: str, blocks: tuple[str, str]) -> None:
    """Emits the loops around the kernel's body; `dynamic` is the size of dynamic shared memory in
    bytes (i64)."""
    kernel = where.kernel
    phases = split(kernel, with_trees=False)  # MLIR has no text for them
    assert phases is not None, f"{kernel.name} has no phases: its threads are coroutines"
    count = thread_count(f)
    if matrices.room(kernel.facts.ops):
        rest = f.t.binary("and", count, f.t.const_i64(ops.WARP_SIZE - 1))
        whole = f.t.icmp("eq", rest, f.t.const_i64(0))
        where.check(f, whole, divergence.partial_warps(kernel.name), [count])
    where.phase = _phase
    _run(f, where, phases, dynamic, blocks)


def thread_count(f: FunctionText) -> str:
    """The number of threads of a block."""
    width, height, depth = (f.coordinates["block_dim", axis] for axis in range(3))
    return f.t.binary("mul", f.t.binary("mul", width, height), depth)


def _run(
    f: FunctionText, where: CpuKernel, phases: Split, dynamic: str, blocks: tuple[str, str]
) -> None:
    """Runs all blocks with one buffer, which is freed on every path."""
    t = f.t
    static, start = shared.places(where.kernel)
    slots, size = _slot_places(f, phases, t.binary("add", t.const_i64(start), _rounded(f, dynamic)))
    buffer = _allocated(f, where, size)
    if any(shared.lasts for shared in where.kernel.facts.each(ops.Shared)):
        _cleared(f, buffer, size)
    for tensor, offset in static.items():
        f.values[tensor] = memory.at_byte(f, tensor.tensor, buffer, t.const_i64(offset))
    for slot, place in zip(phases.slots, slots, strict=True):
        f.values[slot.tensor] = memory.at_byte(f, slot.tensor.tensor, buffer, place)

    def block(number: str) -> None:
        locate(f, number)
        f.region(phases.body)

    def every() -> Sequence[str]:
        control.counted(f, *blocks, block, fails=True, hint="block")
        return ()

    status, *_ = control.failing(f, every, ())
    t.line(f"memref.dealloc {buffer} : {_BUFFER}")
    control.leave_if(f, status)


def _phase(f: FunctionText, op: ops.Parallel) -> None:
    """Runs all threads of the block, one after the other."""
    threads(f, lambda: f.region(op.body), fails=f.fails(op))


# ---- memory ----


def _allocated(f: FunctionText, where: CpuKernel, size: str) -> str:
    """A buffer of `size` bytes; the launch fails if there is not enough memory."""
    t = f.t
    align = shared.alignment(where.kernel)
    buffer = t.op(
        f"memref.alloc({t.as_index(size)}) {{alignment = {align} : i64}} : {_BUFFER}", _BUFFER
    )
    found = t.op(f"memref.extract_aligned_pointer_as_index {buffer} : {_BUFFER} -> index", "index")
    there = t.icmp("ne", t.cast("index_cast", found, "i64"), t.const_i64(0))
    message = f"{where.kernel.name}: there is no memory for a block of threads, of {{}} bytes"
    where.check(f, there, Fault("MemoryError", message), [size])
    return buffer


def _cleared(f: FunctionText, buffer: str, size: str) -> None:
    """Fills the whole buffer with zeros."""
    t, zero = f.t, f.t.integer(0, "i8")

    def byte(number: str) -> None:
        t.line(f"memref.store {zero}, {buffer}[{t.as_index(number)}] : {_BUFFER}")

    control.counted(f, t.const_i64(0), size, byte, fails=False, hint="byte")


def _rounded(f: FunctionText, size: str) -> str:
    more = f.t.binary("add", size, f.t.const_i64(ALIGN - 1))
    return f.t.binary("and", more, f.t.const_i64(-ALIGN))


def _slot_places(f: FunctionText, phases: Split, start: str) -> tuple[list[str], str]:
    """Where each slot begins, in bytes, and the size of the whole buffer."""
    t, places, at = f.t, [], start
    more = t.binary("add", thread_count(f), t.const_i64(2 * _MARGIN + _GRAIN - 1))
    count = t.binary("and", more, t.const_i64(-_GRAIN))
    for slot in phases.slots:
        margin = _MARGIN * slot.size if slot.pitch is None else 0
        places.append(t.binary("add", at, t.const_i64(margin)))
        at = t.binary("add", at, _slot_size(f, slot, count))
    return places, at


def _slot_size(f: FunctionText, slot: Slot, places: str) -> str:
    if slot.pitch is not None:
        return f.t.const_i64(-(-slot.size // ALIGN) * ALIGN)
    return f.t.binary("mul", places, f.t.const_i64(slot.size))


# ---- blocks of a launch, and threads of a block, as loops ----


AXES: Final = range(len(ops.AXES))
_OUTER_FIRST: Final = (2, 1, 0)


def locate(f: FunctionText, number: str) -> None:
    """Sets the coordinates of a block from its number."""
    t, width, height = f.t, f.coordinates["grid_dim", 0], f.coordinates["grid_dim", 1]
    rows = t.arith("divui", number, width)
    places = (t.arith("remui", number, width), t.arith("remui", rows, height))
    for axis, place in enumerate((*places, t.arith("divui", rows, height))):
        f.coordinates["block_idx", axis] = place


def threads(f: FunctionText, body: Callable[[], None], *, fails: bool) -> None:
    """Loops over the threads of a block, x innermost."""

    def along(axes: tuple[int, ...]) -> None:
        if not axes:
            body()
            return
        axis, *rest = axes

        def each(number: str) -> None:
            f.coordinates["thread_idx", axis] = number
            along(tuple(rest))

        first, end = f.t.const_i64(0), f.coordinates["block_dim", axis]
        hint = f"thread_{ops.AXES[axis]}"
        control.counted(f, first, end, each, fails=fails, hint=hint)

    along(_OUTER_FIRST)
