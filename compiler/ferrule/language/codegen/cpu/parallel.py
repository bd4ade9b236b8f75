"""`Parallel` on the CPU: nested loops, the one over neighbours in memory innermost.

If it is more than a little work, the loops are in a function that runs some of the coordinates,
numbered in the order of the loops, so that several threads can share it.  Rows of a short constant
length are never divided: a loop with a constant number of iterations is vectorised without a
remainder.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import field
from typing import Final

from llvmlite import ir

from ferrule.language.codegen.cpu import sharing, strips
from ferrule.language.codegen.cpu.rows import rows
from ferrule.language.codegen.cpu.sharing import Frame
from ferrule.language.codegen.facts.costs import cost_of
from ferrule.language.codegen.functions import hints
from ferrule.language.codegen.functions.dispatch import emit_region
from ferrule.language.codegen.functions.loops import ONE, ZERO, counted
from ferrule.language.codegen.functions.lowering import FunctionLowering
from ferrule.language.ir import ops
from ferrule.language.ir.facts import all_ops
from ferrule.language.ir.passes.collapse import loop_order
from ferrule.language.ir.walk import Work
from ferrule.runtime.llvm.layouts import I64
from ferrule.specs import Sym
from ferrule.specs.deferred import dataclass

MOST_WHOLE: Final = 4096
"""The largest length of a row that is not divided."""


def lower(lowering: FunctionLowering, op: ops.Parallel) -> Work:
    """The loops, with the body in the innermost."""
    return _work(lowering, op) if lowering.lines is None else _told(lowering, op)


def _told(lowering: FunctionLowering, op: ops.Parallel) -> Work:
    with lowering.inside(op, "elements"):
        yield from _work(lowering, op)


def _work(lowering: FunctionLowering, op: ops.Parallel) -> Work:
    if not is_shared(lowering, op):
        lowering.say("one thread of the machine runs it: it is too little work to share")
        return _straight(lowering, op)
    extents = [lowering.values[op.extents[axis]] for axis in loop_order(op)]
    cost = cost_of(op.body)
    length = _whole_rows(extents)
    work = sharing.Work(
        count=sharing.product(lowering.b, extents if length is None else extents[:-1]),
        cost=ir.Constant(I64, cost.operations * (length or 1)),
        bounded=cost.bounded,
        grain=ir.Constant(I64, -(-strips.WIDTH // (length or 1))),
    )
    return _shared(lowering, op, work, whole=length is not None)


def _whole_rows(extents: Sequence[ir.Value]) -> int | None:
    """The length of rows that are not divided."""
    *outer, length = extents
    if outer and isinstance(length, ir.Constant) and 0 < length.constant <= MOST_WHOLE:
        return int(length.constant)
    return None


def is_shared(lowering: FunctionLowering, op: ops.Parallel) -> bool:
    """Whether several threads may share the work; else the loops are in the host function."""
    extents, cost = [lowering.values[extent] for extent in op.extents], cost_of(op.body)
    if not (cost.bounded and all(isinstance(extent, ir.Constant) for extent in extents)):
        return bool(extents)
    count = math.prod(extent.constant for extent in extents)
    return bool(extents) and count * cost.operations > sharing.LITTLE


def _straight(lowering: FunctionLowering, op: ops.Parallel) -> Work:
    """Loops in the host function itself."""
    lowering.group = hints.access_group(lowering.emitter)
    order = loop_order(op)
    with ExitStack() as loops:
        for axis in order:
            index, extent = op.indices[axis], lowering.values[op.extents[axis]]
            group = lowering.group if axis == order[-1] else None
            loop = counted(lowering.emitter, ZERO, extent, index.hint or "index", group)
            lowering.define_integer(index, loops.enter_context(loop))
        yield emit_region(lowering, op.body)
    lowering.group = None


def _shared(
    lowering: FunctionLowering, op: ops.Parallel, work: sharing.Work, *, whole: bool
) -> Work:
    """A function that runs some of the coordinates, or `whole` rows of them, and its call."""
    e, order = lowering.emitter, loop_order(op)
    captured = _Captured.of(lowering, op)
    name = e.module.get_unique_name("parallel")
    with sharing.part(e, name, captured.frame) as part:
        inner = FunctionLowering(
            e, lowering.faults, multiples=lowering.multiples, lines=lowering.lines
        )
        inner.fault_values = part.values
        captured.define(inner, lowering, part.frame)
        inner.group = hints.access_group(e)
        sizes = [inner.as_i64(op.extents[axis]) for axis in order]
        length = sizes[-1]
        if whole:
            sizes[-1] = ONE
        with rows(e, part.first, part.last, sizes, "coordinates") as row:
            for axis, at in zip(order, row.outer, strict=False):
                inner.define_integer(op.indices[axis], at)
            index = op.indices[order[-1]]
            limits = (ZERO, length) if whole else (row.begin, row.end)
            loop = counted(e, *limits, index.hint or "index", inner.group)
            with inner.inside(op, "elements"), loop as at:
                inner.define_integer(index, at)
                yield emit_region(inner, op.body)
    frame = captured.frame.store(e, captured.given)
    sharing.emit_work(lowering, part.function, frame, work)


@dataclass(slots=True)
class _Captured:
    """The values that a `Parallel` reads from the host function around it: values, then the
    symbols.

    Constants are not in the frame.  An integer that is known in 64 bits is stored in 64 bits.
    """

    values: list[ops.Value]
    symbols: list[Sym]
    given: list[ir.Value] = field(default_factory=list)
    names: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, lowering: FunctionLowering, op: ops.Parallel) -> _Captured:
        """The captured values of an op."""
        found = cls(list(_free_values(op)), list(lowering.symbols))
        for value in found.values:
            known = lowering.wide.get(value, lowering.values[value])
            if not isinstance(known, ir.Constant):
                found.given.append(known)
                found.names.append(value.hint)
        for symbol in found.symbols:
            found.given.append(lowering.symbols[symbol])
            found.names.append("symbol")
        return found

    @property
    def frame(self) -> Frame:
        """Types and names."""
        return Frame(tuple(value.type for value in self.given), tuple(self.names))

    def define(
        self, inner: FunctionLowering, outer: FunctionLowering, frame: Sequence[ir.Value]
    ) -> None:
        """Defines the values and symbols from a frame."""
        given = iter(frame)
        for value in self.values:
            known = outer.wide.get(value, outer.values[value])
            here = known if isinstance(known, ir.Constant) else next(given)
            if value in outer.wide:
                inner.define_integer(value, here)
            else:
                inner.values[value] = here
        inner.symbols = {symbol: next(given) for symbol in self.symbols}


def _free_values(op: ops.Parallel) -> dict[ops.Value, None]:
    """The values that are read inside and defined outside, in the order of the text."""
    read = dict.fromkeys(op.extents)
    own = set(op.indices)
    for inner in all_ops(op.body):
        read |= dict.fromkeys(inner.operands)
        for region in inner.regions:
            read |= dict.fromkeys(region.yields)
        match inner:
            case ops.If(results=results):
                own |= {*results}
            case ops.For(results=results, carried=carried, index=index):
                own |= {*results, *carried, index}
            case ops.While(results=results, carried=carried):
                own |= {*results, *carried}
            case ops.Parallel(indices=indices):
                own |= {*indices}
            case _ if isinstance(inner, ops.SimpleOp):
                own.add(inner.result)
    return {value: None for value in read if value not in own}
