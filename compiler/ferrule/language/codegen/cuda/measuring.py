"""Host code that measures layouts: how many elements the two lie apart that are furthest apart.

For strides of one sign these are the first and the last.  A number that 64 bits do not hold is too
large, whatever they hold then.  A tensor without elements may have any sizes and strides, and any
kernel does for it.
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
        every = [self.measure(reach)[1] for reach in reaches]
        return reduce(partial(self.lowering.emitter.binary, "and"), every)

    def require_fit(
        self, reach: Reach, tensor: ops.Value, doing: str, location: Location | None
    ) -> None:
        """Ends the function if offsets of 32 bits do not reach every element of a layout."""
        apart, fits = self.measure(reach)
        message = (
            f"two elements of {literal(tensor.hint)} are {{}} elements apart "
            f"{literal(doing)}, but --index-bitwidth 32 is for at most {FURTHEST}: compile without "
            "this option"
        )
        fine = self.lowering.emitter.binary("or", fits, self._is_empty(reach))
        self.lowering.check(fine, Fault("ValueError", message, location), [apart])

    def measure(self, reach: Reach) -> tuple[ir.Value, ir.Value]:
        """How far elements lie apart, an i64, and whether that is at most `FURTHEST`."""
        e = self.lowering.emitter
        total: ir.Value = ir.Constant(I64, 0)
        flags = []
        for number, (size, stride) in enumerate(reach.dims):
            step = e.binary("sub", self.lowering.dim(size), e.const_i64(1))
            if stride != 1:
                step, wrapped = e.overflowing("smul", step, self._absolute(stride))
                flags.append(wrapped)
            if number:
                total, wrapped = e.overflowing("sadd", total, step)
                flags.append(wrapped)
            else:
                total = step
        # As unsigned: a size of 0 can make the sum negative, and such a number counts as too far.
        fits = e.icmp("ule", total, ir.Constant(I64, FURTHEST))
        for flag in flags:
            fits = e.binary("and", fits, e.binary("xor", flag, ir.Constant(I1, 1)))
        return total, fits

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
