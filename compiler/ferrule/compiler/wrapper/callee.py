"""The callee of a wrapper: emits the call after the arguments are decoded and checked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ferrule.compiler.artefacts import Body, Fault
from ferrule.compiler.wrapper.decoded import DecodedCall
from ferrule.compiler.wrapper.items import object_at
from ferrule.runtime.llvm.writer import Value, Writer
from ferrule.specs import Signature
from ferrule.specs.deferred import dataclass


class Callee(Protocol):
    """Emits the call that follows the checks."""

    def emit(self, writer: Writer, call: DecodedCall) -> Value:
        """Make the call; the value is an i32, 0 or 1 + the number of the fault."""
        ...

    def faults(self, signature: Signature) -> Sequence[Fault]:
        """The faults that nonzero values of `emit` mean."""
        ...


@dataclass(frozen=True, slots=True)
class BodyCall:
    """Calls the function of a `Body`, with the C type that is documented there."""

    body: Body

    def emit(self, writer: Writer, call: DecodedCall) -> Value:
        """See `Callee`."""
        arguments = [call.values]
        if call.results is not None:
            arguments.append(call.results)
        if self.body.keeps:
            assert call.keep is not None, "a body without a result keeps values for it"
            arguments.append(call.keep(self.body.keeps))
        for param in call.signature.params:
            arguments += call.leaves(param)
        arguments += [call.symbol(symbol) for symbol in self.body.symbols]
        arguments += [object_at(writer, call.args, place) for place in self.body.objects]
        if self.body.device_code is not None or self.body.takes_device:
            arguments.append(call.device_index())
        return writer.call(self.body.symbol, "i32", arguments)

    def faults(self, signature: Signature) -> Sequence[Fault]:
        """The faults of the body."""
        return self.body.faults
