"""How often a function launched each of its variants, counted on request in its machine code."""

from __future__ import annotations

import ctypes
from dataclasses import field

from llvmlite import ir

from ferrule.compiler.conventions.base import Call
from ferrule.compiler.conventions.protocol import PlainStep
from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.runtime.linking.links import Link
from ferrule.runtime.llvm.layouts import I64
from ferrule.specs import Condition
from ferrule.specs.deferred import dataclass


@dataclass(slots=True, eq=False)
class Counts:
    """The calls of each variant so far, of the functions that were compiled with these counts.

        counts = frontend.Counts()
        rms_norm = frontend.compile(kernel, …, specialize="dispatch", counts=counts)
        print(counts)  # {'all': 118, 'all but x': 2}

    A call is counted before its launch.  Functions that count are of this process alone: they are
    not kept in the cache and cannot be exported.
    """

    _numbers: dict[str, ctypes.c_uint64] = field(default_factory=dict)

    def __getitem__(self, name: str) -> int:
        return self._numbers[name].value

    def items(self) -> list[tuple[str, int]]:
        """The names of the variants, in order, with the number of their calls."""
        return [(name, number.value) for name, number in self._numbers.items()]

    def clear(self) -> None:
        """Count from zero again."""
        for number in self._numbers.values():
            number.value = 0

    def __str__(self) -> str:
        return str({name: number for name, number in self.items() if number})

    def place(self, name: str) -> ctypes.c_uint64:
        """The number of a variant, which is made where it is missing."""
        return self._numbers.setdefault(name, ctypes.c_uint64())


def check_counts(counts: object, specialize: object) -> None:
    """Raises TypeError for other objects, CompileError where there are no variants to count."""
    if not isinstance(counts, Counts | None):
        raise TypeError(f"counts must be frontend.Counts(), but got {counts!r}")
    if counts is not None and specialize == "check":
        raise CompileError(
            Diagnostic(
                'counts are of variants, and specialize="check" makes one',
                expected='specialize="dispatch", or a list of variants',
            )
        )


@dataclass(frozen=True, slots=True)
class Counted(PlainStep):
    """Adds one to a number of this process."""

    number: ctypes.c_uint64
    when: Condition | None = None

    def emit(self, call: Call) -> None:
        """See `CallingConvention`."""
        call.say("count the call of this variant")
        address = ctypes.addressof(self.number)
        symbol = f"ferrule_count_{address:x}"
        call.link(Link(symbol, None, address, self.number))
        e = call.emitter
        if symbol not in e.module.globals:
            ir.GlobalVariable(e.module, I64, symbol)
        place = e.module.globals[symbol]
        e.builder.atomic_rmw("add", place, ir.Constant(I64, 1), "monotonic")
