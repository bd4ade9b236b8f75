"""Remarks of frontends for the builder of a function."""

from __future__ import annotations

from ferrule.compiler.conventions.base import Call
from ferrule.compiler.cuda.code import DeviceCode
from ferrule.specs import Condition, Param
from ferrule.specs.deferred import dataclass


@dataclass(frozen=True, slots=True)
class Remark:
    """A `BuildWarning` with this text; calls nothing."""

    text: str
    when: Condition | None = None

    def codes(self) -> tuple[DeviceCode, ...]:
        """See `CallingConvention`."""
        return ()

    def results(self) -> tuple[Param, ...]:
        """See `CallingConvention`."""
        return ()

    def emit(self, call: Call) -> None:
        """See `CallingConvention`."""
        call.remark(self.text)
