"""Division of many threads' integers by one divisor, as a product with its reciprocal.

A CPU has no vectors of integer divisions, and a division takes longer than everything else in most
loops. In float64 the product of a 32-bit integer and the reciprocal is so near to the quotient that
the nearest integer is at most one off, which the remainder tells.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Final

from ferrule.language.codegen.facts.uniform import Uniform
from ferrule.language.ir import ops
from ferrule.language.ir.builder import Builder
from ferrule.language.ir.rewrite import rewrite
from ferrule.specs import Float64, Int32, Int64
from ferrule.specs.deferred import dataclass

_UNITS: Final = 1.5 * 2**52
"""A float64 of this size has no bits below 1: a number that is added is rounded to an integer,
which is in the low bits."""


@dataclass(slots=True)
class Quotients:
    """Replaces divisions by uniform divisors; `first` are the ops that run once for the block."""

    uniform: Uniform
    makers: Mapping[ops.Value, ops.Op]
    first: list[ops.Op] = field(default_factory=list)
    _reciprocals: dict[ops.Value, ops.Value] = field(default_factory=dict)

    def replaced(self, region: ops.Region) -> ops.Region:
        """The region with products."""
        return rewrite(region, self._rule)

    def _rule(self, b: Builder, op: ops.Op) -> None:
        match op:
            case ops.Binary(result, "floordiv" | "mod" as name, lhs, rhs) if self._is_slow(rhs):
                quotient, remainder = self._divided(b, lhs, rhs)
                found = quotient if name == "floordiv" else remainder
                b.append(ops.Bitcast(result, found))
            case _:
                b.append(op)

    def _is_slow(self, divisor: ops.Value) -> bool:
        is_constant = isinstance(self.makers.get(divisor), ops.Constant)
        return divisor.type is Int32 and divisor in self.uniform and not is_constant

    def _divided(
        self, b: Builder, lhs: ops.Value, divisor: ops.Value
    ) -> tuple[ops.Value, ops.Value]:
        """Quotient and remainder as Python's, both 0 for a divisor of 0."""
        zero, one = b.constant(Int32, 0), b.constant(Int32, 1)
        product = b.binary("mul", b.cast(Float64, lhs), self._reciprocal(divisor))
        shifted = b.binary("add", product, b.constant(Float64, _UNITS))
        near = b.cast(Int32, b.bitcast(Int64, shifted))
        rest = b.binary("sub", lhs, b.binary("mul", near, divisor))
        signs = b.compare("lt", b.binary("xor", rest, divisor), zero)
        above = b.binary("and", signs, b.compare("ne", rest, zero))
        over = b.binary("and", b.unary("not", signs), self._is_whole(b, rest, divisor, zero))
        # The quotient is rounded to nearest: a remainder of the wrong sign says that it is one too
        # large, one that contains the divisor that it is one too small.
        step = b.select(over, one, zero)
        step = b.select(above, b.constant(Int32, -1), step)
        quotient = b.binary("add", near, step)
        remainder = b.binary("sub", rest, b.binary("mul", step, divisor))
        is_zero = b.compare("eq", divisor, zero)
        return b.select(is_zero, zero, quotient), b.select(is_zero, zero, remainder)

    def _is_whole(
        self, b: Builder, rest: ops.Value, divisor: ops.Value, zero: ops.Value
    ) -> ops.Value:
        """Whether a remainder of the divisor's sign still contains it."""
        up, down = b.compare("ge", rest, divisor), b.compare("le", rest, divisor)
        return b.select(b.compare("gt", divisor, zero), up, down)

    def _reciprocal(self, divisor: ops.Value) -> ops.Value:
        if divisor not in self._reciprocals:
            b = Builder()
            with b.region() as region:
                found = b.binary("div", b.constant(Float64, 1.0), b.cast(Float64, divisor))
            self.first += region.ops
            self._reciprocals[divisor] = found
            self.uniform.values.update(value for op in region.ops for value in op.defined)
        return self._reciprocals[divisor]
