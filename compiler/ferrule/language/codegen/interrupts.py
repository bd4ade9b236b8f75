"""Loops of a host function that can take long ask now and then whether a signal came (Ctrl-C).

Asked are loops around others, around launches and around calls, and `while` loops: whatever can
run for more than a few seconds, but for one loop of billions of simple iterations, which stays a
loop that LLVM makes vectors of.  What is asked is support code, which looks at a clock first.
"""

from __future__ import annotations

from typing import Final

from llvmlite import ir

from ferrule.compiler.artefacts import Fault
from ferrule.compiler.threads.state import DONE, SIGNALS, SIGNALS_TYPE
from ferrule.language.codegen.functions import FunctionLowering
from ferrule.language.codegen.sharing import threads_state
from ferrule.language.ir import ops
from ferrule.language.ir.walk import all_ops
from ferrule.runtime.llvm.emitter import UNLIKELY
from ferrule.runtime.llvm.layouts import I32

_FULL: Final = 4096
"""How much is done between two looks at the clock, of which one takes about 25 ns."""
_LARGE: Final = 256
"""What an iteration around other loops counts; one of a simple `while` counts 1."""

_ENDED: Final = Fault("KeyboardInterrupt", "a signal ended the call")
"""Only a body that has a fault may say that it has set the error itself, as it does here."""

_LONG: Final = (ops.For, ops.While, ops.Parallel, ops.Launch, ops.Call, ops.CallBody)


class Interrupts:
    """The counter of one host function; made where it begins."""

    def __init__(self, lowering: FunctionLowering) -> None:
        self._ticks: Final = lowering.emitter.alloca(I32, name="ticks")
        lowering.emitter.store(ir.Constant(I32, 0), self._ticks)
        lowering.faults.number(_ENDED)

    def __call__(self, lowering: FunctionLowering, loop: ops.For | ops.While) -> None:
        """At the end of an iteration: counts it, and asks; an error ends the function."""
        weight = _weight(loop)
        if weight == 0:
            return
        e = lowering.emitter
        ticks = e.builder.add(e.load(self._ticks, I32), ir.Constant(I32, weight))
        e.store(ticks, self._ticks)
        ask, on = e.block("ask"), e.block("on")
        e.cond_branch(e.icmp("sge", ticks, ir.Constant(I32, _FULL)), ask, on, UNLIKELY)
        e.at(ask)
        e.store(ir.Constant(I32, 0), self._ticks)
        status = e.call(e.symbol(SIGNALS, SIGNALS_TYPE), [threads_state(e)], "status")
        ended = e.block("ended")
        e.cond_branch(e.icmp("eq", status, ir.Constant(I32, DONE)), on, ended)
        e.at(ended)
        lowering.end(status)
        e.at(on)


def has_long_loops(function: ops.Function) -> bool:
    """Whether some loop asks."""
    loops = (op for op in all_ops(function.body) if isinstance(op, (ops.For, ops.While)))
    return any(_weight(loop) for loop in loops)


def _weight(loop: ops.For | ops.While) -> int:
    """What an iteration counts; 0 for a loop that does not ask."""
    if any(isinstance(op, _LONG) for op in all_ops(loop.body)):
        return _LARGE
    return 1 if isinstance(loop, ops.While) else 0
