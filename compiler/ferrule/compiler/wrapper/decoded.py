"""What a wrapper has decoded when it makes the call: the values behind each parameter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ferrule.compiler.sizes import Sizes
from ferrule.compiler.wrapper.leaves import Slots
from ferrule.runtime.llvm.writer import Value
from ferrule.specs import Param, Signature, Sym


@dataclass(frozen=True, slots=True)
class _SymbolSlots(Mapping[Sym, Value]):
    slots: Slots

    def __getitem__(self, symbol: Sym) -> Value:
        return self.slots.load_symbol(symbol)

    def __iter__(self) -> Iterator[Sym]:
        return iter(self.slots.signature.symbols)

    def __len__(self) -> int:
        return len(self.slots.signature.symbols)


@dataclass(frozen=True, slots=True)
class DecodedCall:
    """A call that was accepted.

    Leaves and symbols are read where they are asked for, and only what a convention asks for is
    kept on the way to it.  `sizes` lowers any expression over the symbols.  `values` is the buffer
    in which a callee leaves the numbers that the message of its fault shows.
    """

    signature: Signature
    values: Value
    slots: Slots
    streams: Mapping[str, Value]
    sizes: Sizes[Value] = field(init=False)

    def __post_init__(self) -> None:
        sizes = Sizes(self.slots.writer, _SymbolSlots(self.slots))
        object.__setattr__(self, "sizes", sizes)

    def leaves(self, param: Param) -> list[Value]:
        """The leaves of a parameter, with the types that `artefacts.Body` documents."""
        stream = self.streams.get(param.name)
        return list(self.slots.load_leaves(param)) if stream is None else [stream]

    def symbol(self, symbol: Sym) -> Value:
        """The value of a symbol, with its own width."""
        value = self.slots.load_symbol(symbol)
        return self.slots.writer.cast("trunc", value, f"i{symbol.width}")
