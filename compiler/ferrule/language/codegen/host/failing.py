"""The end of a function where a step that support code made has failed."""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from ferrule.compiler.artefacts import RAISED, Fault
from ferrule.language.codegen.functions.lowering import FunctionLowering
from ferrule.runtime.llvm.emitter import LIKELY, Emitter
from ferrule.runtime.llvm.layouts import I32, I64


def end_if_failed(
    lowering: FunctionLowering,
    status: ir.Value,
    faults: Sequence[Fault],
    passed: str,
    shown: ir.Value | None = None,
) -> None:
    """Ends the function unless the i32 is 0: it is `RAISED`, or from 1 on the number of a fault.

    The code behind goes on in a block with the name `passed`; `shown` is where the int64 is that
    the messages show.
    """
    e = lowering.emitter
    numbers = [lowering.faults.number(fault) for fault in faults]
    failed, on = e.block("failed"), e.block(passed)
    e.cond_branch(e.icmp("eq", status, ir.Constant(I32, 0)), on, failed, LIKELY)
    e.at(failed)
    if shown is not None and lowering.fault_values is not None:
        e.store(e.load(shown, I64), lowering.fault_values)
    number = _number(e, status, numbers)
    raised = ir.Constant(I32, RAISED)
    e.ret(e.select(e.icmp("eq", status, raised), raised, number))
    e.at(on)


def _number(e: Emitter, status: ir.Value, numbers: Sequence[int]) -> ir.Value:
    """The number of the fault that a status stands for.

    They follow each other, unless another step of the same line has made some of them before.
    """
    number = e.binary("add", status, ir.Constant(I32, numbers[0] - 1))
    for i, each in enumerate(numbers):
        if each != numbers[0] + i:
            is_it = e.icmp("eq", status, ir.Constant(I32, i + 1))
            number = e.select(is_it, ir.Constant(I32, each), number)
    return number
