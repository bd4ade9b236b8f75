"""The results of a function with MLIR's C interface: a struct of numbers and memref descriptors.

The memrefs are copied into tensors of the caller's allocator, because the owner of a tensor must be
able to free it after the function's code is unloaded; then the memrefs are freed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from llvmlite import ir

from ferrule.compiler.conventions.base import Call
from ferrule.compiler.conventions.conversions import type_of
from ferrule.compiler.conventions.copies import Source, copied
from ferrule.runtime.llvm.layouts import (
    I8,
    I64,
    PTR,
    align_of,
    size_of,
)
from ferrule.specs import DType, Tensor
from ferrule.specs.deferred import dataclass

_STATIC: Final = 0xDEADBEEF
"""MLIR's marker in place of the allocation of a constant."""

_ALIGNED, _OFFSET, _SIZES = 1, 2, 3
"""The positions of the words of a descriptor, after its allocation."""


@dataclass(frozen=True, slots=True)
class Results:
    """The results of a function, as members of a C struct."""

    function: str
    given: tuple[DType | Tensor, ...]

    def room(self, call: Call) -> ir.Value:
        """Allocate the struct on the stack."""
        *_, (end, _) = self._placed()
        return call.emitter.alloca(I64, -(-end // 8), name="returned")

    def give(self, call: Call, place: ir.Value, addresses: Sequence[ir.Value]) -> None:
        """Return the results in the struct; `addresses` are the addresses of the arguments."""
        memrefs = [
            (call.emitter.index(place, I8, offset), each)
            for offset, each in self._placed()
            if isinstance(each, Tensor)
        ]

        def free(well: bool) -> None:
            call.steps.add(f"free what {self.function} allocated")
            self._free(call, [at for at, _ in memrefs], addresses)

        handles = []
        with call.undone(free):
            for at, tensor in memrefs:
                handles.append(_copied(call, at, tensor, self.function))
        waiting = iter(handles)
        for offset, each in self._placed():
            if isinstance(each, Tensor):
                call.give([next(waiting)])
            elif isinstance(each, DType):
                at = call.emitter.index(place, I8, offset)
                call.give([call.emitter.load(at, type_of(each))])

    def _placed(self) -> Iterator[tuple[int, DType | Tensor | None]]:
        """The offset of each result in bytes, and at last the end."""
        end = 0
        for each in self.given:
            size, align = 8, 8
            if isinstance(each, Tensor):
                size = 8 * (_SIZES + 2 * len(each.shape))
            else:
                size, align = size_of(type_of(each)), align_of(type_of(each))
            end = -(-end // align) * align
            yield end, each
            end += size
        yield end, None

    def _free(self, call: Call, memrefs: Sequence[ir.Value], addresses: Sequence[ir.Value]) -> None:
        """Free each allocation that belongs to the results once."""
        e = call.emitter
        kept = [*addresses, e.builder.inttoptr(e.const_i64(_STATIC), PTR)]
        for at in memrefs:
            allocated = e.load(at, PTR, name="allocated")
            mine = e.const_i1(True)
            for other in kept:
                mine = e.binary("and", mine, e.icmp("ne", allocated, other))
            with e.if_then(mine):
                e.call("free", [allocated])
            kept.append(allocated)


def _copied(call: Call, at: ir.Value, tensor: Tensor, function: str) -> ir.Value:
    """A new tensor with the elements of a memref; the body owns it."""
    e = call.emitter
    start = e.load(e.index(at, PTR, _ALIGNED), PTR)
    offset = e.load(e.index(at, I64, _OFFSET), I64)
    unit = tensor.dtype.itemsize
    first = e.index(start, I8, e.builder.mul(offset, e.const_i64(unit)))
    sizes, steps = (e.index(at, I64, position) for position in (_SIZES, _SIZES + len(tensor.shape)))
    return copied(call, Source(first, sizes, steps, unit), tensor, function)
