"""What a wrapper has decoded when it makes the call: the values behind each parameter."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ferrule.compiler.wrapper.devices import device_index, index_or_named
from ferrule.compiler.wrapper.leaves import Slots
from ferrule.runtime.llvm.writer import Value
from ferrule.specs import (
    Device,
    EnvStream,
    Param,
    Signature,
    Sym,
)


@dataclass(frozen=True, slots=True)
class DecodedCall:
    """A call that was accepted.

    Leaves and symbols are read where they are asked for, and only what a callee asks for is
    kept on the way to it.  `values` is the buffer
    in which a callee leaves the numbers that the message of its fault shows, `results` the one for
    the leaves of what it returns, None for a function that returns nothing; `keep` gives room for
    values that the result lies in.
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
        """The index of the GPU on which the call's tensors are, else of the first parameter that is
        a device, i32; -1 without any."""
        writer = self.slots.writer
        index = device_index(writer, self.signature, self.args)
        named = next((p for p in self.signature.params if isinstance(p, Device)), None)
        return index if named is None else index_or_named(writer, index, self.leaves(named)[0])

    def symbol(self, symbol: Sym) -> Value:
        """The value of a symbol, with its own width."""
        value = self.slots.load_symbol(symbol)
        return self.slots.writer.cast("trunc", value, f"i{symbol.width}")
