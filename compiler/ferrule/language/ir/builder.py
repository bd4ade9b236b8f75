"""Builds regions of the kernel IR op by op; the builder owns the insertion point.

`with builder.region() as region:` collects ops into a nested region; after the block,
`region.freeze(yields)` is the `Region`.  Pure ops on constants are folded by the language, not
here: the builder only appends.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from ferrule.language.ir import ops
from ferrule.specs import Boolean, Dim, DType, Int32


@dataclass(slots=True)
class OpenRegion:
    """A region that is still being written."""

    ops: list[ops.Op] = field(default_factory=list)

    def freeze(self, *yields: ops.Value) -> ops.Region:
        """The finished region, yielding these values."""
        return ops.Region(tuple(self.ops), yields)


class Builder:
    """Appends ops to the innermost open region and returns their results."""

    def __init__(self) -> None:
        self._open: list[OpenRegion] = []

    @contextmanager
    def region(self, again: OpenRegion | None = None) -> Iterator[OpenRegion]:
        """Opens a nested region for the ops that follow, or goes on with one from before."""
        opened = OpenRegion() if again is None else again
        self._open.append(opened)
        try:
            yield opened
        finally:
            self._open.pop()

    def append(self, op: ops.Op) -> None:
        """Adds an op that is already made."""
        self._open[-1].ops.append(op)

    def constant(self, dtype: DType, value: bool | int | float, hint: str = "c") -> ops.Value:
        """A number of this dtype."""
        result = ops.Value(dtype, hint)
        self.append(ops.Constant(result, value))
        return result

    def size(self, dtype: DType, dim: Dim, fault: ops.Fault | None = None) -> ops.Value:
        """The value of a size."""
        result = ops.Value(dtype, "size")
        self.append(ops.Size(result, dim, fault))
        return result

    def special(self, register: ops.Register, axis: int) -> ops.Value:
        """A coordinate of the running thread."""
        result = ops.Value(Int32, f"{register}_{ops.AXES[axis]}")
        self.append(ops.Special(result, register, axis))
        return result

    def unary(self, op: ops.UnaryOp, operand: ops.Value) -> ops.Value:
        """`op operand`."""
        result = ops.Value(operand.type, op)
        self.append(ops.Unary(result, op, operand))
        return result

    def binary(self, op: ops.BinaryOp, lhs: ops.Value, rhs: ops.Value) -> ops.Value:
        """`lhs op rhs`."""
        result = ops.Value(lhs.type, op)
        self.append(ops.Binary(result, op, lhs, rhs))
        return result

    def compare(self, op: ops.CompareOp, lhs: ops.Value, rhs: ops.Value) -> ops.Value:
        """`lhs op rhs` as a Boolean."""
        result = ops.Value(Boolean, op)
        self.append(ops.Compare(result, op, lhs, rhs))
        return result

    def cast(self, dtype: DType, operand: ops.Value) -> ops.Value:
        """The operand in another dtype; itself if it has it already."""
        if operand.type is dtype:
            return operand
        result = ops.Value(dtype, operand.hint)
        self.append(ops.Cast(result, operand))
        return result

    def bitcast(self, dtype: DType, operand: ops.Value) -> ops.Value:
        """The operand's bits in another dtype of the same size."""
        result = ops.Value(dtype, operand.hint)
        self.append(ops.Bitcast(result, operand))
        return result

    def select(self, condition: ops.Value, on_true: ops.Value, on_false: ops.Value) -> ops.Value:
        """`on_true if condition else on_false`."""
        result = ops.Value(on_true.type, "select")
        self.append(ops.Select(result, condition, on_true, on_false))
        return result

    def load(self, tensor: ops.Value, indices: tuple[ops.Value, ...]) -> ops.Value:
        """An element of a tensor."""
        result = ops.Value(tensor.tensor.dtype, "load")
        self.append(ops.Load(result, tensor, indices))
        return result

    def store(self, tensor: ops.Value, indices: tuple[ops.Value, ...], value: ops.Value) -> None:
        """Writes an element of a tensor."""
        self.append(ops.Store(tensor, indices, value))

    def check(self, condition: ops.Value, fault: ops.Fault, *values: ops.Value) -> None:
        """Ends the call with the fault if the condition is false."""
        self.append(ops.Check(condition, fault, values))

    def if_(
        self, condition: ops.Value, then: ops.Region, otherwise: ops.Region, hints: tuple[str, ...]
    ) -> tuple[ops.Value, ...]:
        """One of two regions; the results are what they yield."""
        results = tuple(
            ops.Value(value.type, hint) for value, hint in zip(then.yields, hints, strict=True)
        )
        self.append(ops.If(results, condition, then, otherwise))
        return results
