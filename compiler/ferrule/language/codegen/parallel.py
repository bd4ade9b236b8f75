"""`Parallel` on the CPU: nested loops, the one over neighbours in memory innermost."""

from __future__ import annotations

from contextlib import ExitStack

from ferrule.language.codegen import hints
from ferrule.language.codegen.functions import FunctionLowering
from ferrule.language.codegen.loops import ZERO, counted
from ferrule.language.ir import ops
from ferrule.language.ir.axes import loop_order
from ferrule.language.ir.walk import Work


def lower(lowering: FunctionLowering, op: ops.Parallel) -> Work:
    """The loops, and the body in the innermost."""
    lowering.group = hints.access_group(lowering.emitter)
    order = loop_order(op)
    with ExitStack() as loops:
        for axis in order:
            index, extent = op.indices[axis], lowering.values[op.extents[axis]]
            group = lowering.group if axis == order[-1] else None
            loop = counted(lowering.emitter, ZERO, extent, index.hint or "index", group)
            lowering.define_integer(index, loops.enter_context(loop))
        yield lowering.region(op.body)
    lowering.group = None
