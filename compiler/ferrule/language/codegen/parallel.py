"""`Parallel` on the CPU: nested loops, the one over neighbours in memory innermost."""

from __future__ import annotations

from contextlib import ExitStack

from ferrule.language.codegen import hints
from ferrule.language.codegen.functions import FunctionLowering
from ferrule.language.codegen.loops import ZERO, counted
from ferrule.language.ir import ops
from ferrule.language.ir.walk import Work, all_ops
from ferrule.specs import Dim, symbols_of


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


def loop_order(op: ops.Parallel) -> tuple[int, ...]:
    """The axes from the outermost loop to the innermost: by falling stride of what is stored."""
    strides = _stored_strides(op)
    axes = range(len(op.indices))
    return tuple(sorted(axes, key=lambda axis: _size(strides.get(op.indices[axis])), reverse=True))


def _stored_strides(op: ops.Parallel) -> dict[ops.Value, Dim]:
    """The stride by which each index moves in the first tensor that is stored to."""
    for inner in all_ops(op.body):
        if isinstance(inner, ops.Store):
            return dict(zip(inner.indices, inner.tensor.tensor.strides, strict=True))
    return {}


def _size(stride: Dim | None) -> tuple[int, int]:
    """Orders strides: a size known at the call only counts as larger than a number.

    The more symbols, the larger: of a compact tensor a stride is a product of its sizes.
    """
    match stride:
        case None:
            return 1 << 31, 0
        case int():
            return 0, abs(stride)
        case _:
            return sum(1 for _ in symbols_of(stride)), 0
