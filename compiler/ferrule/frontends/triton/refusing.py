"""The step of calls that a traced function refuses."""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from ferrule.compiler.artefacts import MAX_FAULT_VALUES, Fault, literal
from ferrule.compiler.conventions.base import Call
from ferrule.compiler.cuda.code import DeviceCode
from ferrule.frontends.triton.traced.refusals import Refusal
from ferrule.specs import Condition, Param
from ferrule.specs.deferred import dataclass


@dataclass(frozen=True, slots=True)
class Refusing:
    """Raises the error of a traced function, with the sizes of the call."""

    refusal: Refusal
    when: Condition | None = None

    def codes(self) -> Sequence[DeviceCode]:
        """See `CallingConvention`."""
        return ()

    def results(self) -> Sequence[Param]:
        """See `CallingConvention`."""
        return ()

    def emit(self, call: Call) -> None:
        """See `CallingConvention`."""
        call.say(f"refuse the call, as {self.refusal.what} does")
        names = call.signature.known
        shown = self.refusal.symbols[:MAX_FAULT_VALUES]
        values = [call.size(each, "a size of a condition") for each in shown]
        got = ", ".join(f"{literal(names.get(each, str(each)))} = {{}}" for each in shown)
        said = literal(f"{self.refusal.what} refuses the call: {self.refusal.message}")
        message = f"{said}; got {got}" if got else said
        call.refuse(ir.Constant(ir.IntType(1), 1), Fault(self.refusal.kind, message), values)
