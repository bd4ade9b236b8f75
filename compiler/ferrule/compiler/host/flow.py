"""Ends straight-line code after an error."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field
from typing import Final

from llvmlite import ir

from ferrule.compiler.artefacts import RAISED, Fault, literal
from ferrule.runtime.llvm.emitter import LIKELY, UNLIKELY, Emitter
from ferrule.runtime.llvm.layouts import I32, I64
from ferrule.specs.deferred import dataclass

_DONE: Final = ir.Constant(I32, 0)


@contextmanager
def failed(e: Emitter, status: ir.Value, passed: str) -> Iterator[None]:
    """Emit code that runs if a status, i32, is not 0, and ends the function.

    Otherwise execution continues in a block with the name `passed`.
    """
    bad, on = e.block("failed"), e.block(passed)
    e.cond_branch(e.icmp("eq", status, _DONE), on, bad, LIKELY)
    e.at(bad)
    yield
    e.at(on)


def number_of(e: Emitter, status: ir.Value, numbers: Sequence[int]) -> ir.Value:
    """The number of the fault for a status: `RAISED`, or the number at its position, from 1 on.

    The numbers are consecutive, unless another step registered some of the faults before.
    """
    number = e.binary("add", status, ir.Constant(I32, numbers[0] - 1))
    for i, each in enumerate(numbers):
        if each != numbers[0] + i:
            is_it = e.icmp("eq", status, ir.Constant(I32, i + 1))
            number = e.select(is_it, ir.Constant(I32, each), number)
    raised = ir.Constant(I32, RAISED)
    return e.select(e.icmp("eq", status, raised), raised, number)


def return_if_failed(e: Emitter, status: ir.Value, numbers: Sequence[int], passed: str) -> None:
    """Return the number of the fault if a status is not 0, see `number_of`."""
    with failed(e, status, passed):
        e.ret(number_of(e, status, numbers))


@dataclass(slots=True)
class _Exit:
    """The target of a failure in the body: a block that gets the number of the fault."""

    block: ir.Block
    number: ir.PhiInstr | None = None


@dataclass(slots=True)
class Flow:
    """A function under construction that returns an i32: 0, the number of a fault, or `RAISED`.

    `values`: the buffer for the values of a fault.
    """

    emitter: Emitter
    values: ir.Value
    faults: dict[Fault, int] = field(default_factory=dict, kw_only=True)
    _exits: list[_Exit] = field(default_factory=list, kw_only=True)

    @contextmanager
    def undone(self, undo: Callable[[bool], None]) -> Iterator[None]:
        """Emit code after which `undo` runs whether or not it fails; the argument of `undo` tells
        whether it succeeded, and only then `undo` may fail itself."""
        way_out = _Exit(self.emitter.block("undo"))
        self._exits.append(way_out)
        yield
        self._exits.pop()
        undo(True)
        on = self.emitter.block("undone")
        self.emitter.branch(on)
        self.emitter.at(way_out.block)
        if way_out.number is None:
            self.emitter.builder.unreachable()
        else:
            undo(False)
            self.fail(way_out.number)
        self.emitter.at(on)

    def fail(self, number: ir.Value) -> None:
        """Branch to the exit for failures, with the number of a fault or `RAISED`, i32."""
        if not self._exits:
            self.emitter.ret(number)
            return
        way_out, here = self._exits[-1], self.emitter.builder.block
        if way_out.number is None:
            with self.emitter.within(way_out.block):
                way_out.number = self.emitter.builder.phi(I32, name="failed")
        way_out.number.add_incoming(number, here)
        self.emitter.branch(way_out.block)

    def fail_raised(self, what: str) -> None:
        """End the call with the error that tvm-ffi has been told of."""
        # A wrapper asks only a body that has faults for its status.
        self.fault(Fault("RuntimeError", literal(f"{what} failed")))
        self.fail(ir.Constant(I32, RAISED))

    def fault(self, fault: Fault) -> int:
        """The number of a fault, from 1 on."""
        return self.faults.setdefault(fault, len(self.faults) + 1)

    def refuse(self, flag: ir.Value, fault: Fault, values: Sequence[ir.Value] = ()) -> None:
        """End the call with a fault if a flag, i1, is set; its message shows these values."""
        e = self.emitter
        bad, on = e.block("refused"), e.block("fits")
        e.cond_branch(flag, bad, on, UNLIKELY)
        e.at(bad)
        for position, value in enumerate(values):
            e.store(value, e.index(self.values, I64, position))
        self.fail(ir.Constant(I32, self.fault(fault)))
        e.at(on)

    def require(self, status: ir.Value, faults: Sequence[Fault]) -> None:
        """End the call unless a status, i32, is 0: from 1 on it is the number of one of these
        faults, whose values are already stored, or it is `RAISED`."""
        e = self.emitter
        with failed(e, status, "went.well"):
            self.fail(number_of(e, status, [self.fault(fault) for fault in faults]))
