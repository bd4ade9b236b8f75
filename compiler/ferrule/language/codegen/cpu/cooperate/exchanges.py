"""Exchanges between the lanes of a warp, between the phases of a kernel.

Every thread stores in a slot the values that others may need; the phase ends there, and then each
thread loads.
"""

from __future__ import annotations

from functools import partial, reduce

from ferrule.language.codegen.cpu.cooperate import matrices, warps
from ferrule.language.codegen.cpu.cooperate.cutting import Cut, Open
from ferrule.language.codegen.cpu.cooperate.kept import Slot
from ferrule.language.codegen.cpu.cooperate.masks import checks
from ferrule.language.ir import ops
from ferrule.language.ir.builder import Builder
from ferrule.specs import Boolean, DType, Int64, Uint32


def warp_op(cut: Cut, op: ops.Exchange, into: Open) -> None:
    """The lanes store their values in a slot; then each computes its result."""
    given = _give(cut, op, into)
    check(cut, op, into)
    b, warp = Builder(), cut.number.warp
    if isinstance(op, ops.Vote):
        ballots = cut.scratch_slot(Uint32, "ballots")
        # No guards: the first thread of a warp may not run the op itself.
        cut.everyone(into, cut.number.ballots(given, ballots))
        with b.region() as region:
            lanes = b.binary("and", op.mask, cut.number.present)
            bits = b.binary("and", b.load(ballots, (warp.first,)), lanes)
            result = warps.voted(b, op.op, bits, lanes)
    else:
        with b.region() as region:
            result = _received(cut, b, op, given)
    into.pending += [*region.ops, ops.Cast(op.result, result)]


def _received(cut: Cut, b: Builder, op: ops.Shuffle | ops.Match, given: ops.Value) -> ops.Value:
    """The value that a lane receives."""
    warp = cut.number.warp
    if isinstance(op, ops.Shuffle) and (far := warps.distance(op, cut.number_of)):
        return warp.neighbour(b, op, far, given)
    return warps.emit(b, op, warp, given)


def _give(cut: Cut, op: ops.Exchange, into: Open) -> ops.Value:
    """The slot in which each thread stores its value."""
    match op:
        case ops.Shuffle(value=value) | ops.Vote(predicate=value):
            assert isinstance(value.type, DType)
            given = cut.scratch_slot(value.type, "given")
        case ops.Match(value=wanted):
            b, given = Builder(), cut.scratch_slot(Int64, "given")
            with b.region() as region:
                value = warps.as_bits(b, wanted)
            into.pending += region.ops
    cut.flush(into, [(given, value)])
    return given


def matrix_op(cut: Cut, op: ops.MatrixOp, into: Open) -> None:
    """The lanes store their parts of matrices in a slot; then each loads the parts that it
    needs."""
    kind = matrices.given_type(op)
    cut.scratch.append(Slot(ops.Value(kind, "matrices"), matrices.given_count(op)))
    given = cut.scratch[-1].tensor
    cut.uniform.values.add(given)
    b, warp = Builder(), cut.number.warp
    with b.region() as gives:
        matrices.give(b, op, warp, given)
    into.pending += gives.ops
    cut.flush(into)
    check(cut, op, into)
    with b.region() as takes:
        matrices.take(b, op, warp, given)
    into.pending += takes.ops


def check(cut: Cut, op: ops.AnyWarpOp, into: Open) -> None:
    """Checks that the lanes of the mask are present, unless this is known."""
    mask = cut.known(op.mask)
    if mask in into.checked or (mask == warps.ALL and not into.guards):
        return
    active = _active(cut, into) if into.guards else None
    masks = None
    if op.mask in cut.uniform:
        into.checked.add(mask)
    else:
        masks = cut.scratch_slot(Uint32, "masks")
        cut.flush(into, [(masks, op.mask)])
    into.pending += checks(cut.name, op, cut.number, active, masks)
    cut.flush(into)


def _active(cut: Cut, into: Open) -> ops.Value:
    """A slot that has, for the first thread of each warp, the lanes that run a region."""
    runs, ballots = cut.scratch_slot(Boolean, "runs"), cut.scratch_slot(Uint32, "active")
    b = Builder()
    with b.region() as region:
        conditions = [v if holds else b.unary("not", v) for v, holds in into.guards]
        value = reduce(partial(b.binary, "and"), conditions)
    cut.everyone(into, region.ops, [(runs, value)])
    cut.everyone(into, cut.number.ballots(runs, ballots))
    return ballots
