"""Long loops of a host function check for signals (Ctrl-C) at intervals.

Loops around other loops, around launches and around calls check, and `while` loops: everything that
can run for more than a few seconds, except one loop of billions of simple iterations, which LLVM
can vectorise only without checks.  A counted loop checks between rounds of iterations; a round is
an ordinary loop.  The check is support code, which reads a clock first.
"""

from __future__ import annotations

from typing import Final

from llvmlite import ir

from ferrule.compiler.artefacts import Fault
from ferrule.compiler.threads.state import DONE, SIGNALS, SIGNALS_TYPE
from ferrule.language.codegen.cpu.sharing import threads_state
from ferrule.language.codegen.functions.lowering import FunctionLowering
from ferrule.language.ir import ops
from ferrule.language.ir.facts import all_ops
from ferrule.runtime.llvm.emitter import LIKELY, UNLIKELY
from ferrule.runtime.llvm.layouts import I32

_ROUND: Final = 256
"""The iterations of a loop around others between two reads of the clock, which takes about 25
ns."""
_LAUNCHES: Final = 16
"""The same for a loop around launches or calls."""
_WHILE: Final = 4096
"""The same for a `while` loop around none of these."""

_ENDED: Final = Fault("KeyboardInterrupt", "a signal ended the call")
"""A fault is needed because only a body with faults may return `RAISED`, as this code does."""


class Interrupts:
    """The watch of one host function, made at its beginning."""

    def __init__(self, lowering: FunctionLowering) -> None:
        self._ticks: Final = lowering.emitter.alloca(I32, name="ticks")
        lowering.emitter.store(ir.Constant(I32, 0), self._ticks)
        lowering.faults.number(_ENDED)

    def round(self, loop: ops.For) -> int | None:
        """The number of iterations after which a counted loop checks."""
        return _iterations(loop)

    def count(self, lowering: FunctionLowering, loop: ops.While) -> None:
        """At the end of an iteration: count it, and check at intervals."""
        # All `while` loops of the function share one count. Where an iteration is long it counts as
        # many, so that the clock is read as often.
        e, weight = lowering.emitter, _WHILE // (_iterations(loop) or _WHILE)
        ticks = e.builder.add(e.load(self._ticks, I32), ir.Constant(I32, weight))
        e.store(ticks, self._ticks)
        ask, on = e.block("ask"), e.block("on")
        e.cond_branch(e.icmp("sge", ticks, ir.Constant(I32, _WHILE)), ask, on, UNLIKELY)
        e.at(ask)
        e.store(ir.Constant(I32, 0), self._ticks)
        self.look(lowering)
        e.branch(on)
        e.at(on)

    def look(self, lowering: FunctionLowering) -> None:
        """Check; an error ends the function."""
        e = lowering.emitter
        status = e.call(e.symbol(SIGNALS, SIGNALS_TYPE), [threads_state(e)], "status")
        on, ended = e.block("on"), e.block("ended")
        e.cond_branch(e.icmp("eq", status, ir.Constant(I32, DONE)), on, ended, LIKELY)
        e.at(ended)
        lowering.end(status)
        e.at(on)


def watch(function: ops.Function, lowering: FunctionLowering) -> Interrupts | None:
    """The watch of a host function, made at its beginning; None if no loop checks."""
    for loop in function.facts.ops:
        if isinstance(loop, ops.While) or (isinstance(loop, ops.For) and _iterations(loop)):
            return Interrupts(lowering)
    return None


def _iterations(loop: ops.For | ops.While) -> int | None:
    """The number of iterations between checks for a loop around others, launches or calls; None for
    any other loop."""
    inner = list(all_ops(loop.body))
    if any("calls" in op.effects for op in inner):
        return _LAUNCHES
    return _ROUND if any(isinstance(op, (ops.For, ops.While)) for op in inner) else None
