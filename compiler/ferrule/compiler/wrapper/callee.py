"""The callee of a wrapper: emits the call after the arguments are decoded and checked.

`DecodedCall` has the values of the arguments that the wrapper has decoded for the call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from ferrule.compiler.artefacts import Body, Fault
from ferrule.compiler.wrapper.devices import device_index, index_or_named
from ferrule.compiler.wrapper.items import object_at
from ferrule.compiler.wrapper.leaves import Slots
from ferrule.runtime.llvm.writer import Value, Writer
from ferrule.specs import (
    Device,
    EnvStream,
    Param,
    Signature,
    Sym,
)
from ferrule.specs.deferred import dataclass


@dataclass(frozen=True, slots=True)
class DecodedCall:
    """An accepted call.

    Leaves and symbols are loaded where the callee requests them, and only requested ones are stored
    before.  `values` is the buffer for the numbers in the message of a fault, `results` the buffer
    for the leaves of the result, None for a function without a result; `keep` allocates values that
    the result may refer to.
    """

    signature: Signature
    args: Value
    values: Value
    slots: Slots
    streams: Mapping[str, Value]
    results: Value | None = None
    keep: Callable[[int], Value] | None = None

    def leaves(self, param: Param) -> list[Value]:
        """The leaves of a parameter, with the types that `artefacts.Body` documents."""
        if isinstance(param, EnvStream):
            return [self.streams[param.name]]
        return list(self.slots.load_leaves(param))

    def device_index(self) -> Value:
        """The index of the GPU with the call's tensors, else of the first device parameter, i32; -1
        if there is neither."""
        writer = self.slots.writer
        index = device_index(writer, self.signature, self.args)
        named = next((p for p in self.signature.params if isinstance(p, Device)), None)
        return index if named is None else index_or_named(writer, index, self.leaves(named)[0])

    def symbol(self, symbol: Sym) -> Value:
        """The value of a symbol, in its own width."""
        value = self.slots.load_symbol(symbol)
        return self.slots.writer.cast("trunc", value, f"i{symbol.width}")


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
