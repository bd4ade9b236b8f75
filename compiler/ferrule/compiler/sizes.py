"""The one lowering of sizes to LLVM: expressions of `specs` in checked 64-bit arithmetic.

The meaning is `specs.evaluate`'s: floor division, and no result where any part overflows or
divides by zero.  Instead of an exception there is a flag.  Code is straight: no branches, and no
instruction that traps.

Symbols that were proved to be in their range let checks be left out: `n * m` of two 32-bit sizes
cannot overflow.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from llvmlite import ir

from ferrule.runtime.llvm.emitter import Emitter
from ferrule.runtime.llvm.layouts import I1, I64
from ferrule.specs import Compound, Dim, Sym
from ferrule.specs.expr import INT64_MAX, INT64_MIN, ExprOp

_FULL: Final = (INT64_MIN, INT64_MAX)


@dataclass(frozen=True, slots=True)
class Size:
    """The value of a size, i64, and the flag, i1, that says that it has none.

    Without a flag it always has one.  `low` and `high` bound the value.
    """

    value: ir.Value
    undefined: ir.Value | None = None
    low: int = INT64_MIN
    high: int = INT64_MAX

    @property
    def constant(self) -> int | None:
        """The value, where it is known."""
        return self.low if self.low == self.high else None


@dataclass(slots=True)
class Sizes:
    """Lowers sizes for these values of the symbols, each expression once.

    `ranges` are of those symbols that have been checked.
    """

    emitter: Emitter
    symbols: Mapping[Sym, ir.Value]
    ranges: dict[Sym, tuple[int, int]] = field(default_factory=dict)
    _known: dict[Dim, Size] = field(default_factory=dict)

    def lower(self, dim: Dim) -> Size:
        """The size, emitted at the insertion point."""
        match dim:
            case Sym():
                return Size(self.symbols[dim], None, *self.ranges.get(dim, _FULL))
            case Compound(op, lhs, rhs):
                known = self._known.get(dim)
                if known is None:
                    known = self._known[dim] = self._compound(op, self.lower(lhs), self.lower(rhs))
                return known
            case int() if INT64_MIN <= dim <= INT64_MAX:
                return Size(self.emitter.const_i64(dim), None, dim, dim)
            case int():
                return Size(self.emitter.const_i64(0), ir.Constant(I1, 1))

    def _compound(self, op: ExprOp, lhs: Size, rhs: Size) -> Size:
        match op:
            case "add" | "sub" | "mul":
                return self._arithmetic(op, lhs, rhs)
            case "min" | "max":
                return self._choose(op, lhs, rhs)
            case "floordiv" | "mod" | "ceildiv":
                return self._divide(op, lhs, rhs)

    def _flag(self, *flags: ir.Value | None) -> ir.Value | None:
        """The disjunction of those flags that there are."""
        found: ir.Value | None = None
        for flag in flags:
            if flag is not None:
                found = flag if found is None else self.emitter.builder.or_(found, flag)
        return found

    def _arithmetic(self, op: ExprOp, lhs: Size, rhs: Size) -> Size:
        build, flag = self.emitter.builder, self._flag(lhs.undefined, rhs.undefined)
        low, high = _interval(op, lhs, rhs)
        if INT64_MIN <= low and high <= INT64_MAX:
            plain = {"add": build.add, "sub": build.sub, "mul": build.mul}[op]
            return Size(plain(lhs.value, rhs.value), flag, low, high)
        checked = {
            "add": build.sadd_with_overflow,
            "sub": build.ssub_with_overflow,
            "mul": build.smul_with_overflow,
        }[op]
        pair = checked(lhs.value, rhs.value)
        return Size(build.extract_value(pair, 0), self._flag(flag, build.extract_value(pair, 1)))

    def _choose(self, op: ExprOp, lhs: Size, rhs: Size) -> Size:
        build = self.emitter.builder
        first = build.icmp_signed("<" if op == "min" else ">", lhs.value, rhs.value)
        pick = min if op == "min" else max
        flag = self._flag(lhs.undefined, rhs.undefined)
        value = build.select(first, lhs.value, rhs.value)
        return Size(value, flag, pick(lhs.low, rhs.low), pick(lhs.high, rhs.high))

    def _divide(self, op: ExprOp, lhs: Size, rhs: Size) -> Size:
        divisor, flag = self._divisor(op, lhs, rhs)
        build, zero = self.emitter.builder, self.emitter.const_i64(0)
        quotient = build.sdiv(lhs.value, divisor)
        rest = build.srem(lhs.value, divisor)
        flag = self._flag(lhs.undefined, rhs.undefined, flag)
        inexact = build.icmp_signed("!=", rest, zero)
        opposite = build.icmp_signed("<", build.xor(lhs.value, divisor), zero)
        match op:
            case "floordiv":
                below = build.zext(build.and_(inexact, opposite), I64)
                return Size(build.sub(quotient, below), flag)
            case "mod":
                moved = build.and_(inexact, opposite)
                value = build.select(moved, build.add(rest, divisor), rest)
                return Size(value, flag, *_modulo(rhs))
            case _:
                above = build.and_(inexact, build.not_(opposite))
                return Size(build.add(quotient, build.zext(above, I64)), flag)

    def _divisor(self, op: ExprOp, lhs: Size, rhs: Size) -> tuple[ir.Value, ir.Value | None]:
        """What to divide by so that nothing traps, and the flag of what would have."""
        build = self.emitter.builder
        if rhs.constant is not None and rhs.constant not in (0, -1):
            return rhs.value, None
        if rhs.constant == 0:
            return self.emitter.const_i64(1), ir.Constant(I1, 1)
        zero = build.icmp_signed("==", rhs.value, self.emitter.const_i64(0))
        least = build.icmp_signed("==", lhs.value, self.emitter.const_i64(INT64_MIN))
        minus = build.icmp_signed("==", rhs.value, self.emitter.const_i64(-1))
        unfit = build.or_(zero, build.and_(least, minus))
        divisor = build.select(unfit, self.emitter.const_i64(1), rhs.value)
        return divisor, zero if op == "mod" else unfit  # INT64_MIN % -1 is 0


def _interval(op: ExprOp, lhs: Size, rhs: Size) -> tuple[int, int]:
    match op:
        case "add":
            return lhs.low + rhs.low, lhs.high + rhs.high
        case "sub":
            return lhs.low - rhs.high, lhs.high - rhs.low
        case _:
            ends = [a * b for a in (lhs.low, lhs.high) for b in (rhs.low, rhs.high)]
            return min(ends), max(ends)


def _modulo(rhs: Size) -> tuple[int, int]:
    match rhs.constant:
        case int(divisor) if divisor > 0:
            return 0, divisor - 1
        case _:
            return _FULL
