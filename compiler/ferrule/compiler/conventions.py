"""Calling conventions: how a wrapper hands decoded values to what it calls.

A convention is a small object with `emit`; adding one touches no other file.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from ferrule.compiler.artefacts import Body
from ferrule.compiler.wrapper.decoded import DecodedCall
from ferrule.runtime.llvm.writer import Value, Writer


class CallingConvention(Protocol):
    """Emits the call behind the checks."""

    def emit(self, writer: Writer, call: DecodedCall) -> Value:
        """Make the call; the value is an i32, 0 or 1 + the number of the fault."""
        ...


@dataclass(frozen=True, slots=True)
class BodyCall:
    """Calls the function of a `Body`, with the C type that is documented there."""

    body: Body

    def emit(self, writer: Writer, call: DecodedCall) -> Value:
        """See `CallingConvention`."""
        arguments = [call.values]
        for param in call.signature.params:
            arguments += call.leaves(param)
        arguments += [call.symbol(symbol) for symbol in self.body.symbols]
        return writer.call(self.body.symbol, "i32", arguments)
