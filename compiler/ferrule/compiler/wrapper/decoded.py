"""What a wrapper has decoded when it makes the call: the values behind each parameter."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from ferrule.compiler.sizes import Sizes
from ferrule.compiler.wrapper.devices import device_index, index_or_named
from ferrule.compiler.wrapper.leaves import Slots
from ferrule.runtime.llvm.writer import Value
from ferrule.specs import (
    Compound,
    Data,
    Device,
    Dim,
    EnvStream,
    Param,
    Signature,
    Sym,
    symbols_of,
)

Expression: TypeAlias = Data | Dim | Param
"""What a convention can ask a call for: `sig["a"].data`, `sig["a"].shape[0]`, `sig["k"]`."""


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
    sizes: Sizes[Value] = field(init=False)

    def __post_init__(self) -> None:
        sizes = Sizes(self.slots.writer, _SymbolSlots(self.slots))
        object.__setattr__(self, "sizes", sizes)

    def leaves(self, param: Param) -> list[Value]:
        """The leaves of a parameter, with the types that `artefacts.Body` documents."""
        if isinstance(param, EnvStream):
            return [self.streams[param.name]]
        return list(self.slots.load_leaves(param))

    def evaluate(self, expression: Expression, refuse: Callable[[Value], None]) -> list[Value]:
        """The values of an expression: of a parameter or an item of one its leaves, of its data the
        address, `ptr`; of a symbol its value with its own width, of another size its value, i64.

        `refuse` gets the flag, i1, of a size that overflows or divides by zero; its value means
        nothing then.  Raises ValueError for an expression of another signature.
        """
        match expression:
            case Data(tensor=tensor):
                return self.leaves(tensor)
            case int() | Sym() | Compound():
                return [self._size(expression, refuse)]
            case _:
                return self.leaves(expression)

    def _size(self, size: Dim, refuse: Callable[[Value], None]) -> Value:
        for symbol in symbols_of(size):
            if self.slots.of(symbol) is None:
                raise ValueError(f"the symbol {symbol} is in no parameter of {self.signature}")
        if isinstance(size, Sym):
            return self.symbol(size)
        ranges = {
            symbol: (-(1 << symbol.width - 1), (1 << symbol.width - 1) - 1)
            for symbol in self.signature.symbols
        }
        symbols = _SymbolSlots(self.slots)
        return Sizes(self.slots.writer, symbols, ranges, refuse).lower(size).value

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
