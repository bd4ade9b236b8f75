"""Arrays with a place for each thread of a group, for values that parts of a kernel hand on.

Other threads have places of their own, so that accesses to them are independent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from llvmlite import ir

from ferrule.language.codegen.cpu.strips import LINE
from ferrule.language.codegen.functions import hints
from ferrule.language.codegen.functions.lowering import FunctionLowering
from ferrule.language.codegen.values.scalars import dtype_of, memory_type
from ferrule.language.ir import ops
from ferrule.runtime.llvm.layouts import I1, I8
from ferrule.specs import Boolean


class Rooms:
    """An array for each of some values, of `count` places."""

    def __init__(self, lowering: FunctionLowering, values: Iterable[ops.Value], count: int) -> None:
        self.lowering: Final = lowering
        self.arrays: Final = {value: _array(lowering, value, count) for value in values}

    def __contains__(self, value: ops.Value) -> bool:
        return value in self.arrays

    def load(self, value: ops.Value, place: ir.Value) -> ir.Value:
        """The value at a place."""
        kind = memory_type(dtype_of(value))
        loaded = self.lowering.b.load(self._at(value, place), name=value.hint, typ=kind)
        self._mark(loaded)
        return self.lowering.b.trunc(loaded, I1) if value.type is Boolean else loaded

    def store(self, value: ops.Value, place: ir.Value, stored: ir.Value) -> None:
        """Sets the value at a place."""
        b = self.lowering.b
        # A byte: LLVM makes no vectors of accesses to an i1, which does not fill the memory that it
        # has.
        wide = b.zext(stored, I8) if value.type is Boolean else stored
        self._mark(b.store(wide, self._at(value, place)))

    def define(self, values: Iterable[ops.Value], place: ir.Value) -> None:
        """Defines those of these values that have an array."""
        for value in values:
            if value in self.arrays:
                self.lowering.values[value] = self.load(value, place)

    def keep(self, values: Mapping[ops.Value, ops.Value], place: ir.Value) -> None:
        """Stores each value in the array of the value that it becomes, if that has one."""
        for to, of in values.items():
            if to in self.arrays:
                self.store(to, place, self.lowering.values[of])

    def _at(self, value: ops.Value, place: ir.Value) -> ir.Value:
        kind = memory_type(dtype_of(value))
        return self.lowering.b.gep(self.arrays[value], [place], source_etype=kind)

    def _mark(self, access: ir.Instruction) -> None:
        assert self.lowering.group is not None, "the threads of a group run in parallel"
        hints.mark_access(access, self.lowering.group)


def _array(lowering: FunctionLowering, value: ops.Value, count: int) -> ir.Value:
    kind = memory_type(dtype_of(value))
    array = lowering.emitter.alloca(kind, count, name=f"{value.hint}.lanes")
    array.align = LINE
    return array
