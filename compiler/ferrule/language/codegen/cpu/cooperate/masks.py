"""Checks that the lanes of a mask are present where the threads of a warp wait for each other."""

from __future__ import annotations

from ferrule.language.codegen.cpu.cooperate import warps
from ferrule.language.codegen.cpu.cooperate.numbering import Numbering
from ferrule.language.ir import ops
from ferrule.language.ir.builder import Builder
from ferrule.language.ir.rules import divergence
from ferrule.specs import Boolean, Int32, Int64, Uint32


def checks(
    kernel: str,
    op: ops.AnyWarpOp,
    number: Numbering,
    active: ops.Value | None,
    masks: ops.Value | None,
) -> list[ops.Op]:
    """Ops by which a thread ends the call if a lane of its mask, or its own lane, is missing.

    `active` has, at the first thread of each warp, the lanes that run the op; without it all do.
    `masks` has the masks of all threads; without it they share one.
    """
    b, warp = Builder(), number.warp
    with b.region() as region:
        lanes = b.binary("and", op.mask, number.present)
        there = lanes
        if active is not None:
            there = b.binary("and", lanes, b.load(active, (warp.first,)))
        if masks is not None:
            there = _alike(b, warp, there, masks, op.mask)
        with b.region() as excluded:
            _end_excluded(b, kernel, op)
        own = warps.has_bit(b, op.mask, warp.lane)
        b.if_(own, ops.Region(), excluded.freeze(), ())
        with b.region() as absent:
            _end_absent(b, kernel, op, number, lanes, there)
        b.if_(b.compare("eq", there, lanes), ops.Region(), absent.freeze(), ())
    return region.ops


def _alike(
    b: Builder, warp: warps.Warp, lanes: ops.Value, masks: ops.Value, mask: ops.Value
) -> ops.Value:
    """The lanes whose thread has the same mask."""
    return warp.gathered(b, lanes, lambda lane: b.compare("eq", b.load(masks, (lane,)), mask))


def _end_excluded(b: Builder, kernel: str, op: ops.AnyWarpOp) -> None:
    thread = [b.special("thread_idx", axis) for axis in range(3)]
    mask, never = b.cast(Int64, op.mask), b.constant(Boolean, False)
    b.check(never, divergence.excluded(kernel, op), mask, *_block(b), *thread)


def _end_absent(
    b: Builder,
    kernel: str,
    op: ops.AnyWarpOp,
    number: Numbering,
    lanes: ops.Value,
    there: ops.Value,
) -> None:
    missing = b.binary("xor", lanes, there)
    # `x & -x` is the lowest bit of x, and the number of bits below it is its position.
    lowest = b.binary("and", missing, b.binary("sub", b.constant(Uint32, 0), missing))
    below = b.unary("popc", b.binary("sub", lowest, b.constant(Uint32, 1)))
    thread = b.binary("add", number.warp.first, b.cast(Int32, below))
    rows = b.binary("floordiv", thread, number.width)
    coordinates = (
        b.binary("mod", thread, number.width),
        b.binary("mod", rows, number.height),
        b.binary("floordiv", rows, number.height),
    )
    counts = [b.cast(Int64, b.unary("popc", bits)) for bits in (there, lanes)]
    never = b.constant(Boolean, False)
    b.check(never, divergence.absent(kernel, op), *counts, *_block(b), *coordinates)


def _block(b: Builder) -> list[ops.Value]:
    return [b.special("block_idx", axis) for axis in range(3)]
