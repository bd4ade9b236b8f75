"""Host code that measures layouts: how many elements the last element is from the first.

In 64 bits, which suffice: a tensor in memory has fewer than 2^63 elements between its first and its
last.  One without elements may have any sizes and strides, and then any kernel does for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from functools import partial, reduce

from llvmlite import ir

from ferrule.compiler.artefacts import Fault, Location, literal
from ferrule.language.codegen.facts.offsets import FURTHEST, Reach
from ferrule.language.codegen.functions.lowering import FunctionLowering
from ferrule.language.ir import ops
from ferrule.runtime.llvm.layouts import I1, I64
from ferrule.specs import Dim, Sym
from ferrule.specs.deferred import dataclass
from ferrule.specs.intervals import interval


@dataclass(frozen=True, slots=True)
class Measuring:
    """Emits into a host function; `sizes` are symbols that are never negative."""

    lowering: FunctionLowering
    sizes: Set[Sym]

    def all_fit(self, reaches: Iterable[Reach]) -> ir.Value:
        """Whether offsets of 32 bits reach every element of these layouts, an i1."""
        every: ir.Value = ir.Constant(I1, 1)
        for number, reach in enumerate(reaches):
            one = self._fits(self.last(reach))
            every = one if number == 0 else self.lowering.emitter.binary("and", every, one)
        return every

    def require_fit(
        self, reach: Reach, tensor: ops.Value, doing: str, location: Location | None
    ) -> None:
        """Ends the function if offsets of 32 bits do not reach every element of a layout."""
        last = self.last(reach)
        message = (
            f"the last element of {literal(tensor.hint)} is {{}} elements from its first "
            f"{literal(doing)}, but --index-bitwidth 32 is for at most {FURTHEST}: compile without "
            "this option"
        )
        fine = self.lowering.emitter.binary("or", self._fits(last), self._is_empty(reach))
        self.lowering.check(fine, Fault("ValueError", message, location), [last])

    def last(self, reach: Reach) -> ir.Value:
        """How many elements the last one is from the first, an i64."""
        e = self.lowering.emitter
        total: ir.Value = ir.Constant(I64, 0)
        for number, (size, stride) in enumerate(reach.dims):
            steps = e.binary("sub", self.lowering.dim(size), e.const_i64(1))
            step = steps if stride == 1 else e.binary("mul", steps, self._absolute(stride))
            total = step if number == 0 else e.binary("add", total, step)
        return total

    def _fits(self, last: ir.Value) -> ir.Value:
        return self.lowering.emitter.icmp("sle", last, ir.Constant(I64, FURTHEST))

    def _is_empty(self, reach: Reach) -> ir.Value:
        e = self.lowering.emitter
        zeros = [e.icmp("eq", self.lowering.dim(size), e.const_i64(0)) for size, _ in reach.dims]
        return reduce(partial(e.binary, "or"), zeros)

    def _absolute(self, stride: Dim) -> ir.Value:
        """A stride without its sign."""
        if isinstance(stride, int):
            return ir.Constant(I64, abs(stride))
        e, value = self.lowering.emitter, self.lowering.dim(stride)
        if interval(stride)[0] >= 0 or (isinstance(stride, Sym) and stride in self.sizes):
            return value
        negative = e.icmp("slt", value, e.const_i64(0))
        return e.select(negative, e.binary("sub", e.const_i64(0), value), value)
