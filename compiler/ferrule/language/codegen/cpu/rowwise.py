"""Values that are the same for a row of threads, though parameters are in them.

    row, place = t >> 4, t & 15
    up = (row * 32 + place) >> size & 1        # row * 32 >> size & 1, as size is at least 5

Of a constant LLVM sees it, and computes the value once for a row.  Of a parameter it does not:
such a value is computed here, in the loop over rows, without the place in the row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from math import gcd

from llvmlite import ir

from ferrule.language.codegen.functions.lowering import FunctionLowering
from ferrule.language.codegen.values import arithmetic
from ferrule.language.ir import ops
from ferrule.runtime.llvm.layouts import I32
from ferrule.specs import Int32
from ferrule.specs.deferred import dataclass


@dataclass(frozen=True, slots=True)
class _Sum:
    """A number that is never negative: that of its row, a multiple of `step`, and at most `rest`
    for the place in the row; `most` is the limit of both together.  `row` is the former in LLVM."""

    row: ir.Value
    step: int
    rest: int
    most: int


@dataclass(slots=True)
class Rowwise:
    """The values of a thread in the loop over rows, before the one along a row."""

    lowering: FunctionLowering
    constants: Mapping[ops.Value, int]
    row: ir.Value
    count: int
    sums: dict[ops.Value, _Sum] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        lowering: FunctionLowering,
        constants: Mapping[ops.Value, int],
        row: ir.Value,
        rows: int,
    ) -> Rowwise:
        """For the row of this number, i64, of so many."""
        return cls(lowering, constants, lowering.b.trunc(row, I32), rows)

    def rows(self, values: Iterable[ops.Value]) -> None:
        """These values are the number of the row."""
        self.sums.update(dict.fromkeys(values, _Sum(self.row, 1, 0, self.count - 1)))

    def places(self, values: Iterable[ops.Value], length: int) -> None:
        """These values are the place in a row of this length."""
        zero = ir.Constant(I32, 0)
        self.sums.update(dict.fromkeys(values, _Sum(zero, 0, length - 1, length - 1)))

    def define(self, body: Sequence[ops.Op]) -> None:
        """Defines the results of ops that are the same for the row and have parameters."""
        for op in body:
            if isinstance(op, ops.Binary) and op.result.type is Int32:
                self._note(op)

    def _note(self, op: ops.Binary) -> None:
        left, right = self._of(op.lhs), self._of(op.rhs)
        if left is None:
            return
        if op.rhs in self.lowering.numbers and _is_steady(
            op.op, left, self.lowering.numbers[op.rhs]
        ):
            rhs = self.lowering.values[op.rhs]
            made = arithmetic.binary(self.lowering.emitter, op.op, Int32, left.row, rhs)
            self.lowering.values[op.result] = made
        elif right is not None and (found := self._sum(op, left, right)) is not None:
            self.sums[op.result] = found

    def _of(self, value: ops.Value) -> _Sum | None:
        number = self.constants.get(value)
        if number is not None and 0 <= number <= Int32.range[1]:
            return _Sum(ir.Constant(I32, number), number, 0, number)
        return self.sums.get(value)

    def _sum(self, op: ops.Binary, left: _Sum, right: _Sum) -> _Sum | None:
        b = self.lowering.b
        match op.op:
            case "add":
                step, rest = gcd(left.step, right.step), left.rest + right.rest
                most = left.most + right.most
            case "shl" if op.rhs in self.constants and right.most < 31:
                return self._scaled(left, 1 << right.most)
            case "mul" if op.rhs in self.constants:
                return self._scaled(left, right.most)
            case _:
                return None
        if most > Int32.range[1]:
            return None
        return _Sum(b.add(left.row, right.row), step, rest, most)

    def _scaled(self, value: _Sum, factor: int) -> _Sum | None:
        if value.most * factor > Int32.range[1]:
            return None
        row = self.lowering.b.mul(value.row, ir.Constant(I32, factor))
        return _Sum(row, value.step * factor, value.rest * factor, value.most * factor)


def _is_steady(op: ops.BinaryOp, value: _Sum, numbers: Sequence[int]) -> bool:
    """Whether the place in the row never changes a result of these right operands: it is in bits
    below those of the row, which a shift drops and a mask hides."""
    bits = value.rest.bit_length()
    if value.step % (1 << bits):
        return False
    match op:
        case "shr":
            return all(number >= bits for number in numbers)
        case "and":
            return all(number % (1 << bits) == 0 for number in numbers)
    return False
