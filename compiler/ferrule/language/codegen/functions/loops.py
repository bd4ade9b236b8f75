"""Loops in LLVM: counters that never wrap, in LLVM's canonical form.

Counters are i64.  A loop tests at its head; LLVM rotates it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from llvmlite import ir

from ferrule.language.codegen.functions.hints import Group, mark_outer, mark_parallel
from ferrule.runtime.llvm.emitter import Emitter
from ferrule.runtime.llvm.layouts import I64
from ferrule.specs import DType
from ferrule.specs.deferred import dataclass

ZERO = ir.Constant(I64, 0)
ONE = ir.Constant(I64, 1)


def total(b: ir.IRBuilder, x: ir.Value, y: ir.Value, flags: tuple[str, ...] = ()) -> ir.Value:
    """x + y; no instruction if x is 0."""
    return y if _is_zero(x) else b.add(x, y, flags=flags)


def difference(b: ir.IRBuilder, x: ir.Value, y: ir.Value) -> ir.Value:
    """x - y; no instruction if y is 0."""
    return x if _is_zero(y) else b.sub(x, y)


def _is_zero(value: ir.Value) -> bool:
    return isinstance(value, ir.Constant) and value.constant == 0


@dataclass(frozen=True, slots=True)
class Range:
    """The iterations of a counted loop: a counter from `first` to below `end`, by 1.

    The index of an iteration is `base + counter * step`, in 64 bits.  Unsigned if the count may
    need all 64 bits.
    """

    first: ir.Value
    end: ir.Value
    base: ir.Value | None = None
    step: ir.Value | None = None
    signed: bool = True

    @property
    def count(self) -> int | None:
        """The number of iterations, if it is a constant."""
        if isinstance(self.first, ir.Constant) and isinstance(self.end, ir.Constant):
            return int(self.end.constant) - int(self.first.constant)
        return None

    def more(self, b: ir.IRBuilder, counter: ir.Value) -> ir.Value:
        """Whether the iteration with this counter runs."""
        test = b.icmp_signed if self.signed else b.icmp_unsigned
        return test("<", counter, self.end)

    def index(self, b: ir.IRBuilder, counter: ir.Value) -> ir.Value:
        """The index of the iteration with this counter."""
        if self.base is None:
            return counter
        return b.add(self.base, b.mul(counter, self.step))

    def piece(self, b: ir.IRBuilder, counter: ir.Value, size: int) -> Range:
        """The next iterations from this counter on (which runs), at most this many."""
        left, most = b.sub(self.end, counter), ir.Constant(I64, size)
        # The counter is below the end, so the difference is positive, and may need all 64 bits.
        last = b.icmp_unsigned("<=", left, most)
        return replace(self, first=counter, end=b.select(last, self.end, b.add(counter, most)))

    def next(self, b: ir.IRBuilder, counter: ir.Value) -> ir.Value:
        """The counter after this one; it is at most `end`."""
        return b.add(counter, ONE, flags=("nsw",) if self.signed else ("nuw",))


@contextmanager
def counted(
    emitter: Emitter,
    first: ir.Value,
    end: ir.Value,
    name: str,
    group: Group | None = None,
) -> Iterator[ir.Value]:
    """Emits a loop over first <= i < end (signed) and yields i.

    `group`: the loads and stores of its iterations, if they are independent; None for a loop around
    others.
    """
    with counted_by(emitter, Range(first, end), name, group) as counter:
        yield counter


@contextmanager
def counted_by(
    emitter: Emitter, limits: Range, name: str, group: Group | None = None
) -> Iterator[ir.Value]:
    """Emits a loop with these iterations and yields the counter; see `counted`."""
    before, b = emitter.builder.block, emitter.builder
    head, body, after = (emitter.block(f"{name}.{part}") for part in ("head", "body", "end"))
    emitter.branch(head)
    emitter.at(head)
    counter = b.phi(I64, name=name)
    counter.add_incoming(limits.first, before)
    emitter.cond_branch(limits.more(b, counter), body, after)
    emitter.at(body)
    yield counter
    counter.add_incoming(limits.next(b, counter), b.block)
    latch = b.branch(head)
    if group is None:
        mark_outer(emitter, latch)
    else:
        mark_parallel(emitter, latch, group, counter, limits.count)
    emitter.at(after)


def loop_end(counter: ir.PhiInstr) -> ir.Value | None:
    """The end of the loop that `counted` made with this counter; None for another phi."""
    branch = counter.parent.terminator
    test = branch.operands[0] if branch is not None and branch.opname == "br" else None
    if not isinstance(test, ir.ICMPInstr) or test.op != "slt" or test.operands[0] is not counter:
        return None
    return test.operands[1]


def python_range(
    b: ir.IRBuilder, dtype: DType, low: ir.Value, high: ir.Value, by: ir.Value
) -> Range:
    """The iterations of `range(low, high, by)` over integers of one dtype, given as i64.

    No counter wraps at either end of the dtype.  A step of 0 has no iterations.
    """
    if isinstance(by, ir.Constant) and by.constant == 1:
        # Unsigned integers of fewer bits are not negative in 64, so LLVM's signed counters do for
        # them.
        return Range(low, high, signed=dtype.kind == "int" or dtype.bits < 64)
    less = b.icmp_signed if dtype.kind == "int" else b.icmp_unsigned
    up = less(">", by, ZERO)
    distance = b.select(up, b.sub(high, low), b.sub(low, high))
    goes = b.select(up, less("<", low, high), b.and_(less("<", by, ZERO), less(">", low, high)))
    # As unsigned numbers: a distance may need all 64 bits, and so may the size of INT64_MIN.
    size = b.select(up, by, b.neg(by))
    divisor = b.select(b.icmp_signed("==", by, ZERO), ONE, size)
    count = b.add(b.udiv(b.sub(distance, ONE), divisor), ONE)
    return Range(ZERO, b.select(goes, count, ZERO), low, by, signed=False)
