"""Formulas in Python that emit the kernel IR: a `Num` is a value with Python's operators.

The other operand may be a Python number, which takes the dtype.  `&`, `|` and `^` are for integers
and Booleans; `==` and `!=` remain Python's, `equals` compares values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from ferrule.language.ir import ops
from ferrule.language.ir.builder import Builder
from ferrule.specs import DType
from ferrule.specs.deferred import dataclass

Operand: TypeAlias = "Num | bool | int | float"


@dataclass(frozen=True, slots=True, eq=False)
class Num:
    """A scalar of the kernel IR."""

    b: Builder
    value: ops.Value

    @property
    def dtype(self) -> DType:
        """The dtype of the scalar."""
        assert isinstance(self.value.type, DType)
        return self.value.type

    def like(self, other: Operand) -> Num:
        """A number of this dtype."""
        if isinstance(other, Num):
            return other
        return Num(self.b, self.b.constant(self.dtype, other))

    def unary(self, op: ops.UnaryOp, *, fast: bool = False) -> Num:
        """`op self`."""
        return Num(self.b, self.b.unary(op, self.value, fast=fast))

    def binary(self, op: ops.BinaryOp, other: Operand, *, fast: bool = False) -> Num:
        """`self op other`."""
        other = self.like(other)
        return Num(self.b, self.b.binary(op, self.value, other.value, fast=fast))

    def compare(self, op: ops.CompareOp, other: Operand) -> Num:
        """`self op other`, a Boolean."""
        return Num(self.b, self.b.compare(op, self.value, self.like(other).value))

    # ---- operators ----

    def __add__(self, other: Operand) -> Num:
        return self.binary("add", other)

    def __radd__(self, other: Operand) -> Num:
        return self.like(other) + self

    def __sub__(self, other: Operand) -> Num:
        return self.binary("sub", other)

    def __rsub__(self, other: Operand) -> Num:
        return self.like(other) - self

    def __mul__(self, other: Operand) -> Num:
        return self.binary("mul", other)

    def __rmul__(self, other: Operand) -> Num:
        return self.like(other) * self

    def __truediv__(self, other: Operand) -> Num:
        return self.binary("div", other)

    def __rtruediv__(self, other: Operand) -> Num:
        return self.like(other) / self

    def __mod__(self, other: Operand) -> Num:
        return self.binary("mod", other)

    def __neg__(self) -> Num:
        return self.unary("neg")

    def __invert__(self) -> Num:
        return self.unary("not")

    def __and__(self, other: Operand) -> Num:
        return self.binary("and", other)

    def __or__(self, other: Operand) -> Num:
        return self.binary("or", other)

    def __xor__(self, other: Operand) -> Num:
        return self.binary("xor", other)

    def __lshift__(self, other: Operand) -> Num:
        return self.binary("shl", other)

    def __rshift__(self, other: Operand) -> Num:
        return self.binary("shr", other)

    def __lt__(self, other: Operand) -> Num:
        return self.compare("lt", other)

    def __le__(self, other: Operand) -> Num:
        return self.compare("le", other)

    def __gt__(self, other: Operand) -> Num:
        return self.compare("gt", other)

    def __ge__(self, other: Operand) -> Num:
        return self.compare("ge", other)

    def equals(self, other: Operand) -> Num:
        """Whether they are equal; false for NaN."""
        return self.compare("eq", other)

    def differs(self, other: Operand) -> Num:
        """Whether they differ; true for NaN."""
        return self.compare("ne", other)

    # ---- conversions and choices ----

    def fma(self, factor: Operand, addend: Operand) -> Num:
        """`self * factor + addend`, rounded once in formulas with fma, otherwise twice."""
        if not self.b.formulas.contracts:
            return self * factor + addend
        return self._fused(factor, self.like(addend))

    def fms(self, factor: Operand, subtrahend: Num) -> Num:
        """`self * factor - subtrahend`, rounded as `fma`."""
        if not self.b.formulas.contracts:
            return self * factor - subtrahend
        return self._fused(factor, -subtrahend)

    def fnma(self, factor: Operand, minuend: Operand) -> Num:
        """`minuend - self * factor`, rounded as `fma`."""
        if not self.b.formulas.contracts:
            return minuend - self * factor
        return (-self)._fused(factor, self.like(minuend))

    def _fused(self, factor: Operand, addend: Num) -> Num:
        return Num(self.b, self.b.fma(self.value, self.like(factor).value, addend.value))

    def sqrt(self) -> Num:
        """The square root, correctly rounded."""
        return self.unary("sqrt")

    def to(self, dtype: DType) -> Num:
        """In another dtype."""
        return Num(self.b, self.b.cast(dtype, self.value))

    def bits(self, dtype: DType) -> Num:
        """The same bits in another dtype."""
        return Num(self.b, self.b.bitcast(dtype, self.value))

    def pick(self, yes: Num, no: Operand) -> Num:
        """`yes` if this Boolean is true, else `no`."""
        return Num(self.b, self.b.select(self.value, yes.value, yes.like(no).value))

    def is_nan(self) -> Num:
        """Whether it is NaN."""
        return self.differs(self)

    def unless(self, condition: Num, other: Operand) -> Num:
        """Itself, or `other` if the condition is true."""
        return condition.pick(self.like(other), self)

    def within(self, low: float, high: float) -> Num:
        """Clamped; NaN stays NaN, because its comparisons are false."""
        if self.b.formulas.contracts and self.b.formulas.on_gpu:
            return self.binary("max", low).binary("min", high)
        return self.unless(self < low, low).unless(self > high, high)


def polynomial(x: Num, coefficients: Sequence[float]) -> Num:
    """The polynomial with these coefficients, the highest power first, by Horner's rule."""
    first, *rest = coefficients
    result = x.like(first)
    for coefficient in rest:
        result = result.fma(x, coefficient)
    return result
