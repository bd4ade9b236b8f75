"""The lowering of sizes to LLVM: expressions of `specs` in checked 64-bit arithmetic.

The semantics is that of `specs.evaluate`: floor division, and no result if any part overflows or
divides by zero.  Instead of an exception there is a flag.  The code is straight-line: no branches,
and no instruction that traps.

Symbols with a proved range allow checks to be omitted: `n * m` of two 32-bit sizes cannot overflow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Final, Generic

from ferrule.runtime.llvm.arithmetic import Arithmetic, Binary, Overflowing, V
from ferrule.specs import Compound, Dim, Sym
from ferrule.specs.deferred import dataclass
from ferrule.specs.expr import INT64_MAX, INT64_MIN, ExprOp

FULL_RANGE: Final = (INT64_MIN, INT64_MAX)


@dataclass(frozen=True, slots=True)
class Size(Generic[V]):
    """The value of a size, i64, and a flag, i1, which is true if the size is undefined.

    Without a flag the size is always defined.  `low` and `high` bound the value.
    """

    value: V
    undefined: V | None = None
    low: int = INT64_MIN
    high: int = INT64_MAX

    @property
    def constant(self) -> int | None:
        """The value, if it is known at compile time."""
        return self.low if self.low == self.high else None


@dataclass(slots=True)
class Sizes(Generic[V]):
    """Lowers sizes, given the values of the symbols; it emits each expression once.

    `ranges` has the ranges of the symbols that have been checked.  With `refuse` no size has a
    flag: `refuse` gets each flag as soon as it is computed, and the code that follows runs only if
    the flag is false.
    """

    emitter: Arithmetic[V]
    symbols: Mapping[Sym, V]
    ranges: dict[Sym, tuple[int, int]] = field(default_factory=dict)
    refuse: Callable[[V], None] | None = None
    _known: dict[Dim, Size[V]] = field(default_factory=dict)

    def inner(self, symbols: Mapping[Sym, V]) -> Sizes[V]:
        """A copy for code that is dominated by the code emitted so far, with other symbols too."""
        return Sizes(self.emitter, symbols, dict(self.ranges), self.refuse, dict(self._known))

    def lower(self, dim: Dim) -> Size[V]:
        """The size, emitted at the insertion point."""
        match dim:
            case Sym():
                return Size(self.symbols[dim], None, *self.ranges.get(dim, FULL_RANGE))
            case Compound(op, lhs, rhs):
                known = self._known.get(dim)
                if known is None:
                    known = self._compound(op, self.lower(lhs), self.lower(rhs))
                    self._known[dim] = known
                return known
            case int() if INT64_MIN <= dim <= INT64_MAX:
                return Size(self.emitter.const_i64(dim), None, dim, dim)
            case int():
                return Size(self.emitter.const_i64(0), self._flag(self.emitter.const_i1(True)))

    def _compound(self, op: ExprOp, lhs: Size[V], rhs: Size[V]) -> Size[V]:
        match op:
            case "add" | "sub" | "mul":
                return self._arithmetic(op, lhs, rhs)
            case "min" | "max":
                return self._choose(op, lhs, rhs)
            case "floordiv" | "mod" | "ceildiv":
                return self._divide(op, lhs, rhs)

    def _flag(self, *flags: V | None) -> V | None:
        """The disjunction of the flags that are not None."""
        found: V | None = None
        for flag in flags:
            if flag is not None:
                found = flag if found is None else self.emitter.binary("or", found, flag)
        if found is None or self.refuse is None:
            return found
        self.refuse(found)
        return None

    def _arithmetic(self, op: ExprOp, lhs: Size[V], rhs: Size[V]) -> Size[V]:
        emitter, flag = self.emitter, self._flag(lhs.undefined, rhs.undefined)
        low, high = _interval(op, lhs, rhs)
        # The bounds of the operands show that it cannot wrap.
        if INT64_MIN <= low and high <= INT64_MAX:
            value = emitter.binary(_PLAIN[op], lhs.value, rhs.value)
            return Size(value, flag, low, high)
        value, wrapped = emitter.overflowing(_CHECKED[op], lhs.value, rhs.value)
        return Size(value, self._flag(flag, wrapped))

    def _choose(self, op: ExprOp, lhs: Size[V], rhs: Size[V]) -> Size[V]:
        emitter = self.emitter
        first = emitter.icmp("slt" if op == "min" else "sgt", lhs.value, rhs.value)
        pick = min if op == "min" else max
        flag = self._flag(lhs.undefined, rhs.undefined)
        value = emitter.select(first, lhs.value, rhs.value)
        return Size(value, flag, pick(lhs.low, rhs.low), pick(lhs.high, rhs.high))

    def _divide(self, op: ExprOp, lhs: Size[V], rhs: Size[V]) -> Size[V]:
        known = rhs.constant
        if known is not None and known > 0 and known & (known - 1) == 0:
            return self._shift(op, lhs, known)
        divisor, flag = self._divisor(op, lhs, rhs)
        emitter, zero = self.emitter, self.emitter.const_i64(0)
        flag = self._flag(lhs.undefined, rhs.undefined, flag)
        # LLVM's division rounds towards zero, and its rest has the sign of the dividend. Python
        # rounds down, so the results differ where there is a rest and the signs are different.
        quotient = emitter.binary("sdiv", lhs.value, divisor)
        rest = emitter.binary("srem", lhs.value, divisor)
        inexact = emitter.icmp("ne", rest, zero)
        opposite = emitter.icmp("slt", emitter.binary("xor", lhs.value, divisor), zero)
        match op:
            case "floordiv":
                below = emitter.widened(emitter.binary("and", inexact, opposite))
                return Size(emitter.binary("sub", quotient, below), flag)
            case "mod":
                moved = emitter.binary("and", inexact, opposite)
                value = emitter.select(moved, emitter.binary("add", rest, divisor), rest)
                return Size(value, flag, *_modulo(rhs))
            case _:
                above = emitter.binary("and", inexact, emitter.not_(opposite))
                above = emitter.widened(above)
                return Size(emitter.binary("add", quotient, above), flag)

    def _shift(self, op: ExprOp, lhs: Size[V], divisor: int) -> Size[V]:
        """A division by a power of two as a shift, which rounds down as Python does."""
        emitter, flag = self.emitter, self._flag(lhs.undefined)
        bits = emitter.const_i64(divisor.bit_length() - 1)
        mask = emitter.const_i64(divisor - 1)
        match op:
            case "mod":
                return Size(emitter.binary("and", lhs.value, mask), flag, 0, divisor - 1)
            case "floordiv":
                value = emitter.binary("ashr", lhs.value, bits)
                return Size(value, flag, lhs.low // divisor, lhs.high // divisor)
            case _:
                down = emitter.binary("ashr", lhs.value, bits)
                rest = emitter.binary("and", lhs.value, mask)
                more = emitter.widened(emitter.icmp("ne", rest, emitter.const_i64(0)))
                value = emitter.binary("add", down, more)
                return Size(value, flag, -(-lhs.low // divisor), -(-lhs.high // divisor))

    def _divisor(self, op: ExprOp, lhs: Size[V], rhs: Size[V]) -> tuple[V, V | None]:
        """A divisor that never traps, and the flag of the divisors that would have."""
        emitter = self.emitter
        if rhs.constant is not None and rhs.constant not in (0, -1):
            return rhs.value, None
        if rhs.constant == 0:
            return emitter.const_i64(1), emitter.const_i1(True)
        zero = (
            emitter.const_i1(False)
            if rhs.constant == -1
            else emitter.icmp("eq", rhs.value, emitter.const_i64(0))
        )
        least = emitter.icmp("eq", lhs.value, emitter.const_i64(INT64_MIN))
        minus = emitter.icmp("eq", rhs.value, emitter.const_i64(-1))
        unfit = emitter.binary("or", zero, emitter.binary("and", least, minus))
        divisor = emitter.select(unfit, emitter.const_i64(1), rhs.value)
        return divisor, zero if op == "mod" else unfit  # INT64_MIN % -1 is 0


_PLAIN: Final[dict[ExprOp, Binary]] = {"add": "add", "sub": "sub", "mul": "mul"}
_CHECKED: Final[dict[ExprOp, Overflowing]] = {"add": "sadd", "sub": "ssub", "mul": "smul"}


def _interval(op: ExprOp, lhs: Size[V], rhs: Size[V]) -> tuple[int, int]:
    match op:
        case "add":
            return lhs.low + rhs.low, lhs.high + rhs.high
        case "sub":
            return lhs.low - rhs.high, lhs.high - rhs.low
        case _:
            ends = [a * b for a in (lhs.low, lhs.high) for b in (rhs.low, rhs.high)]
            return min(ends), max(ends)


def _modulo(rhs: Size[V]) -> tuple[int, int]:
    match rhs.constant:
        case int(divisor) if divisor > 0:
            return 0, divisor - 1
        case _:
            return FULL_RANGE
