"""Known alignments of addresses, so that neighbours are accessed together.

LLVM merges several accesses into a wide one if it knows that the first is aligned for it.  It knows
numbers that the code computes, but not the specs of pointers, strides and sizes.  So this analysis
follows the powers of two that divide each integer from op to op.  Only powers of two: they still
divide a value after it wrapped around.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Final

from ferrule.language.ir import ops
from ferrule.language.ir.types import TensorType
from ferrule.specs import Dim, DType, divisibility_of
from ferrule.specs.deferred import dataclass

_MOST: Final = 12
"""The largest relevant number of zero bits; the number 0 has this many."""


@dataclass(slots=True)
class Multiples:
    """For integers, the number of low bits that are known to be 0; for views, their alignment.

    `begins`: the tensor and the indices of each view.  `makers`: the sums and products of integers.
    """

    zeros: dict[ops.Value, int] = field(default_factory=dict)
    constants: dict[ops.Value, int] = field(default_factory=dict)
    aligns: dict[ops.Value, int] = field(default_factory=dict)
    begins: dict[ops.Value, tuple[ops.Value, tuple[ops.Value, ...]]] = field(default_factory=dict)
    makers: dict[ops.Value, ops.Binary] = field(default_factory=dict)

    def note(self, op: ops.SimpleOp) -> None:
        """Records the facts about the result of an op."""
        match op:
            case ops.View(result, tensor, indices):
                known = isinstance(tensor.type, TensorType)
                start = self.address(tensor, indices) if known else 1
                self.aligns[result] = max(start, _power(result.tensor.align))
                self.begins[result] = (tensor, indices)
            case _ if isinstance(op.result.type, DType) and op.result.type.is_integer:
                found = self._of_result(op)
                if found:
                    self.zeros[op.result] = min(found, _MOST)

    def note_index(self, op: ops.For) -> None:
        """Records the facts about the index of a loop."""
        self.zeros[op.index] = min(self._bits(op.start), self._bits(op.step))

    def address(self, tensor: ops.Value, indices: Sequence[ops.Value]) -> int:
        """The largest power of two that is known to divide the address of an element."""
        type_ = tensor.tensor
        size, bits = _zeros(type_.dtype.itemsize), _MOST
        for index, stride in zip(indices, type_.strides, strict=False):
            bits = min(bits, self._bits(index) + _zeros(divisibility_of(stride)) + size)
        return min(self.align(tensor), 1 << bits)

    def align(self, tensor: ops.Value) -> int:
        """The largest power of two that is known to divide the address of a tensor."""
        return self.aligns.get(tensor, _power(tensor.tensor.align))

    def divides(self, bits: int, value: ops.Value) -> bool:
        """Whether so many low bits of an integer are known to be 0."""
        return self._bits(value) >= bits

    def _bits(self, value: ops.Value) -> int:
        return self.zeros.get(value, 0)

    def _of_result(self, op: ops.SimpleOp) -> int:
        match op:
            case ops.Constant(result, int(value)):
                self.constants[result] = value
                return _zeros(value)
            case ops.Size(_, dim):
                return _zeros(divisibility_of(dim))
            # An integer keeps its low bits in any other width. Of a float none are known.
            case ops.Cast(_, operand) | ops.Unary(_, "neg", operand):
                return self._bits(operand)
            case ops.Select(_, _, one, other):
                return min(self._bits(one), self._bits(other))
            case ops.Binary():
                if op.op in ("add", "mul"):
                    self.makers[op.result] = op
                return self._of_binary(op)
        return 0

    def _of_binary(self, op: ops.Binary) -> int:
        lhs, rhs = self._bits(op.lhs), self._bits(op.rhs)
        match op.op:
            # With a power of two that divides both sides each of these results is a multiple of it,
            # too.
            case "add" | "sub" | "or" | "xor" | "mod" | "max" | "min":
                return min(lhs, rhs)
            case "mul":
                return lhs + rhs
            case "and":
                return max(lhs, rhs)
            case "shl":
                return lhs + max(0, self.constants.get(op.rhs, 0))
        return 0


def _power(align: int) -> int:
    """The largest power of two in an alignment."""
    return align & -align


def _zeros(number: Dim) -> int:
    """The number of low zero bits in a number."""
    if not isinstance(number, int) or number == 0:
        return _MOST
    return min((number & -number).bit_length() - 1, _MOST)
