"""The leaves of parameters: the values that a body gets, as `artefacts.Body` documents them.

Between the checks and the call every leaf has a slot of 8 bytes, in the order of the parameters;
the symbols of the signature have slots after them.  Both the hot path and the checker write to
these slots; the call loads the ones that it needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field

from typing_extensions import assert_never

from ferrule.runtime.llvm.writer import Value, Writer, i64
from ferrule.specs import DType, Param, Signature, Sym
from ferrule.specs import params as kinds
from ferrule.specs.deferred import dataclass

SLOT_BYTES = 8


def leaves_of(param: Param) -> tuple[str, ...]:
    """The LLVM types of a parameter's leaves."""
    match param:
        case kinds.Scalar(dtype=dtype):
            return (_scalar(dtype),)
        case kinds.Shape() | kinds.Constant():
            return ()
        case kinds.Tensor():
            return ("ptr",)
        case kinds.Tuple(items=items):
            return tuple(leaf for item in items for leaf in leaves_of(item))
        case kinds.Optional(item=item):
            return ("i8", *leaves_of(item))
        case kinds.Union(members=members):
            return ("i32", *(leaf for member in members for leaf in leaves_of(member)))
        case kinds.WithTraits():
            return param.traits.leaves
        case _:
            assert_never(param)


def _scalar(dtype: DType) -> str:
    match dtype.kind, dtype.bits:
        case "float", 64:
            return "double"
        case "float", 32:
            return "float"
        case _, bits:
            return f"i{bits}"


@dataclass(slots=True)
class Slots:
    """The slots of one call.  `read` are the slots that the call needs."""

    signature: Signature
    writer: Writer
    base: Value = field(init=False)
    read: set[int] = field(init=False, default_factory=set)
    _first: dict[str, tuple[Param, int]] = field(init=False, default_factory=dict)
    _symbols: dict[Sym, int] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        position = 0
        for param in self.signature.params:
            self._first[param.name] = param, position
            position += len(leaves_of(param))
        for symbol in self.signature.symbols:
            self._symbols[symbol] = position
            position += 1
        self.base = self.writer.alloca("i64", max(1, position), name="out")

    def first(self, param: Param) -> int:
        """The slot of the first leaf of a parameter, or of an item inside one.

        Raises ValueError for a parameter that is not in the signature, or is equal to several
        items.
        """
        known, slot = self._first.get(param.name, (None, 0))
        if known is param:
            return slot
        places = list(first_slots(self.signature.params))
        found = [slot for each, slot in places if each is param]
        found = found or [slot for each, slot in places if each == param]
        if len(found) != 1:
            which = "is in no parameter" if not found else "stands at several places"
            raise ValueError(f"{param!r} {which} of {self.signature}")
        return found[0]

    def of(self, symbol: Sym) -> int | None:
        """The slot of a symbol; None if it is not a symbol of the signature."""
        return self._symbols.get(symbol)

    def address(self, slot: int) -> Value:
        """The address of a slot."""
        return self.writer.offset(self.base, SLOT_BYTES * slot)

    def preset(self, slot: int, value: int) -> None:
        """Store the initial value of a slot, at the entry of the function."""
        self.writer.store_at_entry(i64(value), self.base, SLOT_BYTES * slot)

    def load(self, slot: int, kind: str, name: str) -> Value:
        """Load the value of a slot at the insertion point."""
        self.read.add(slot)
        return self.writer.load(self.address(slot), kind, name)

    def load_leaves(self, param: Param) -> Iterator[Value]:
        """Load the leaves of a parameter of the signature, or of an item inside one."""
        first = self.first(param)
        for i, kind in enumerate(leaves_of(param)):
            yield self.load(first + i, kind, param.name)

    def load_symbol(self, symbol: Sym) -> Value:
        """The value of a symbol, i64."""
        return self.load(self._symbols[symbol], "i64", self.signature.symbols[symbol])


def first_slots(params: Iterable[Param], first: int = 0) -> Iterator[tuple[Param, int]]:
    """Parameters and all their items that have leaves of their own, with the slot of the first
    leaf."""
    for param in params:
        yield param, first
        match param:
            case kinds.Tuple(items=items):
                yield from first_slots(items, first)
            case kinds.Optional(item=item):
                yield from first_slots((item,), first + 1)
            case kinds.Union(members=members):
                yield from first_slots(members, first + 1)
        first += len(leaves_of(param))
