"""The end of a function where a step that support code made has failed."""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from ferrule.compiler.artefacts import Fault
from ferrule.compiler.host.flow import failed, number_of
from ferrule.language.codegen.functions.lowering import FunctionLowering
from ferrule.runtime.llvm.layouts import I64


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
    with failed(e, status, passed):
        if shown is not None and lowering.fault_values is not None:
            e.store(e.load(shown, I64), lowering.fault_values)
        e.ret(number_of(e, status, numbers))
