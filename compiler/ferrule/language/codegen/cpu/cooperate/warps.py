"""Exchanges between the lanes of a warp, in simple ops of the kernel IR.

Every thread of the block has stored its value in a shared place, and all lanes of the mask have
done so.  A lane of the mask beyond the end of the block has no value: it takes no part.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ferrule.compiler.cuda.limits import MAX_THREADS
from ferrule.language.codegen.values.scalars import dtype_of
from ferrule.language.ir import ops
from ferrule.language.ir.builder import Builder
from ferrule.language.ir.types import TensorType
from ferrule.specs import Boolean, DType, Int32, Int64, Uint8, Uint16, Uint32, Uint64
from ferrule.specs.deferred import dataclass

ALL: Final = 0xFFFFFFFF
"""The mask of a whole warp."""

_UNSIGNED: Final[dict[int, DType]] = {8: Uint8, 16: Uint16, 32: Uint32, 64: Uint64}


@dataclass(frozen=True, slots=True)
class Warp:
    """The running thread in its block, Int32: its number, its lane, the first thread of its warp.

    `count` is the number of threads in the block.
    """

    thread: ops.Value
    lane: ops.Value
    first: ops.Value
    count: ops.Value

    @classmethod
    def of(cls, b: Builder, thread: ops.Value, count: ops.Value) -> Warp:
        """The warp of the thread with this number."""
        lane = b.binary("and", thread, b.constant(Int32, ops.WARP_SIZE - 1))
        return cls(thread, lane, b.binary("sub", thread, lane), count)

    def present(self, b: Builder) -> ops.Value:
        """The present lanes, a Uint32."""
        one = b.constant(Uint32, 1)
        room = b.cast(Uint32, b.binary("sub", self.count, self.first))
        return b.binary("sub", b.binary("shl", one, room), one)  # a shift by 32 or more gives 0

    def shuffled(self, b: Builder, op: ops.Shuffle, given: ops.Value) -> ops.Value:
        """The value that a lane receives; `given` has those of all threads."""
        source, valid = _source(b, op, self.lane)
        lanes = b.binary("and", op.mask, self.present(b))
        reachable = b.binary("and", valid, has_bit(b, lanes, source))
        # As in PTX, which gives a lane its own value where the source is out of bounds. What comes
        # from a lane that takes no part PTX leaves open: here it is that, too.
        lane = b.select(reachable, source, self.lane)
        return b.load(given, (b.binary("add", self.first, lane),))

    def neighbour(self, b: Builder, op: ops.Shuffle, distance: int, given: ops.Value) -> ops.Value:
        """The result of `shuffled` if all lanes take part, and the distance is known.

        Adjacent threads read adjacent elements without conditions, so that these become vectors;
        `given` has margins before its first and after its last place.
        """
        far, own = b.constant(Int32, distance), b.load(given, (self.thread,))
        source, valid = _source(b, op, self.lane)
        there = b.compare("lt", b.binary("add", self.first, source), self.count)
        found = self._beside(b, op, far, given)
        return b.select(b.binary("and", valid, there), found, own)

    def _beside(self, b: Builder, op: ops.Shuffle, far: ops.Value, given: ops.Value) -> ops.Value:
        """The value of the thread at this distance."""
        if op.op == "up":
            return b.load(given, (b.binary("sub", self.thread, far),))
        above = b.load(given, (b.binary("add", self.thread, far),))
        if op.op == "down":
            return above
        below = b.load(given, (b.binary("sub", self.thread, far),))
        low = b.compare("eq", b.binary("and", self.lane, far), b.constant(Int32, 0))
        return b.select(low, above, below)

    def gathered(
        self, b: Builder, mask: ops.Value, holds: Callable[[ops.Value], ops.Value]
    ) -> ops.Value:
        """The bits of the present lanes of a mask for which a condition holds."""
        zero, one = b.constant(Int32, 0), b.constant(Int32, 1)
        none, bit = b.constant(Uint32, 0), b.constant(Uint32, 1)
        index, bits = ops.Value(Int32, "lane"), ops.Value(Uint32, "bits")
        result = ops.Value(Uint32, "bits")
        with b.region() as body:
            there = has_bit(b, mask, index)
            source = b.binary("add", self.first, b.select(there, index, self.lane))
            counts = b.binary("and", there, holds(source))
            own = b.binary("shl", bit, b.cast(Uint32, index))
            more = b.binary("or", bits, b.select(counts, own, none))
        stop = b.constant(Int32, ops.WARP_SIZE)
        initial, frozen = (none,), body.freeze(more)
        # There are many such loops; 32 copies of each would take LLVM long.
        hints = ops.LoopHints(unroll=1, vectorize=False)
        b.append(ops.For((result,), index, zero, stop, one, initial, (bits,), frozen, hints))
        return result


def distance(op: ops.Shuffle, known: Callable[[ops.Value], int | None]) -> int | None:
    """The distance between the lanes, if all take part and `neighbour` supports it."""
    lane = known(op.lane)
    if op.op == "idx" or lane is None or known(op.mask) != ALL or not 0 < lane < ops.WARP_SIZE:
        return None
    # Only with one bit is `lane ^ distance` the lane plus or minus the distance.
    return lane if op.op != "bfly" or lane & (lane - 1) == 0 else None


def emit(b: Builder, op: ops.Exchange, warp: Warp, given: ops.Value) -> ops.Value:
    """The result of a warp op for the running thread.  `given` is a tensor of all threads'
    values."""
    match op:
        case ops.Shuffle():
            return warp.shuffled(b, op, given)
        case ops.Vote():
            lanes = b.binary("and", op.mask, warp.present(b))
            bits = warp.gathered(b, lanes, lambda source: b.cast(Boolean, b.load(given, (source,))))
            return voted(b, op.op, bits, lanes)
        case ops.Match():
            lanes = b.binary("and", op.mask, warp.present(b))
            own = b.load(given, (warp.thread,))
            bits = warp.gathered(
                b, lanes, lambda source: b.compare("eq", b.load(given, (source,)), own)
            )
            if op.op == "any":
                return bits
            return b.select(b.compare("eq", bits, lanes), lanes, b.constant(Uint32, 0))


def given_by(op: ops.Exchange) -> ops.Value:
    """The value of the running thread."""
    return op.predicate if isinstance(op, ops.Vote) else op.value


def of_bits(
    b: Builder, op: ops.Exchange, thread: ops.Value, count: ops.Value, given: ops.Value
) -> ops.Value:
    """Like `emit` for the thread with this number, if all threads stored `as_bits` of their
    value."""
    found = emit(b, op, Warp.of(b, thread, count), given)
    return from_bits(b, dtype_of(op.result), found) if isinstance(op, ops.Shuffle) else found


def voted(b: Builder, op: ops.VoteOp, bits: ops.Value, lanes: ops.Value) -> ops.Value:
    """The result of a vote in which the predicate is true in `bits` of these lanes."""
    if op == "ballot":
        return bits
    every = b.compare("eq", bits, lanes)
    if op == "all":
        return every
    none = b.compare("eq", bits, b.constant(Uint32, 0))
    return b.unary("not", none) if op == "any" else b.binary("or", every, none)


def has_bit(b: Builder, bits: ops.Value, position: ops.Value) -> ops.Value:
    """Whether a bit of a Uint32 is 1, as a Boolean."""
    moved = b.binary("shr", bits, b.cast(Uint32, position))
    return b.cast(Boolean, b.binary("and", moved, b.constant(Uint32, 1)))


def _source(b: Builder, op: ops.Shuffle, lane: ops.Value) -> tuple[ops.Value, ops.Value]:
    """The source lane of a value, and whether it is within the bound (PTX's shfl.sync)."""
    five = b.constant(Int32, ops.WARP_SIZE - 1)
    by, bound = b.binary("and", op.lane, five), b.binary("and", op.clamp, five)
    # PTX's operand c: bits 0 to 4 are the bound, bits 8 to 12 the bits of a lane's number that say
    # in which segment of the warp it is.
    segment = b.binary("and", b.binary("shr", op.clamp, b.constant(Int32, 8)), five)
    within = b.binary("xor", segment, five)
    start = b.binary("and", lane, segment)
    limit = b.binary("or", start, b.binary("and", bound, within))
    match op.op:
        case "up":
            source = b.binary("sub", lane, by)
            # Going up the bound is the lowest lane of a segment, in the other modes the highest
            # one.
            return source, b.compare("ge", source, limit)
        case "down":
            source = b.binary("add", lane, by)
        case "bfly":
            source = b.binary("xor", lane, by)
        case "idx":
            source = b.binary("or", start, b.binary("and", by, within))
    return source, b.compare("le", source, limit)


# ---- values as bits ----


def as_bits(b: Builder, value: ops.Value) -> ops.Value:
    """Any scalar as an Int64: its bits, or the number."""
    dtype = value.type
    assert isinstance(dtype, DType)
    if dtype.kind == "float":
        value = b.bitcast(_UNSIGNED[dtype.bits], value)
    return b.cast(Int64, value)


def from_bits(b: Builder, dtype: DType, bits: ops.Value) -> ops.Value:
    """The inverse of `as_bits`."""
    if dtype.kind == "float":
        return b.bitcast(dtype, b.cast(_UNSIGNED[dtype.bits], bits))
    return b.cast(dtype, bits)


def given_type(dtype: DType, stride: int = 1) -> TensorType:
    """The type of a tensor with a value of each thread."""
    return TensorType(dtype, (MAX_THREADS,), (stride,), dtype.itemsize)
