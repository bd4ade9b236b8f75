"""The end of a function where a step that support code made has failed."""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from ferrule.compiler.artefacts import RAISED, Fault
from ferrule.language.codegen.functions.lowering import FunctionLowering
from ferrule.runtime.llvm.emitter import LIKELY
from ferrule.runtime.llvm.layouts import I32


def end_if_failed(
    lowering: FunctionLowering, status: ir.Value, faults: Sequence[Fault], passed: str
) -> None:
    """Ends the function unless the i32 is 0: it is `RAISED`, or from 1 on the number of a fault.

    The code behind goes on in a block with the name `passed`.
    """
    e = lowering.emitter
    first, *_ = [lowering.faults.number(fault) for fault in faults]
    failed, on = e.block("failed"), e.block(passed)
    e.cond_branch(e.icmp("eq", status, ir.Constant(I32, 0)), on, failed, LIKELY)
    e.at(failed)
    number = e.binary("add", status, ir.Constant(I32, first - 1))
    raised = ir.Constant(I32, RAISED)
    e.ret(e.select(e.icmp("eq", status, raised), raised, number))
    e.at(on)
