"""`Item`: a parameter, or an item inside one, at its place on the hot path."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from functools import partial
from typing import TypeAlias

from ferrule.compiler.wrapper.hot import Hot, Unfit
from ferrule.runtime.abi import TypeIndex
from ferrule.runtime.llvm.layouts import ANY, OBJECT, SEQ
from ferrule.runtime.llvm.writer import FALSE, Value, Writer, i32
from ferrule.specs import Compound, Dim, Param, params
from ferrule.specs.deferred import dataclass

Load: TypeAlias = "Callable[[], Value]"
"""Emits the load of a number, i64."""


@dataclass(frozen=True, slots=True)
class Item:
    """A parameter, the place of its TVMFFIAny (bytes behind an address) and its first leaf's slot.

    Addresses are computed again for every load, because LLVM folds them into the load.
    """

    param: Param
    base: Value
    offset: int
    slot: int

    def at(self, hot: Hot, field_: str = "type_index") -> Value:
        """The address of a field."""
        return hot.writer.offset(self.base, self.offset + ANY.offset(field_))

    def index(self, hot: Hot) -> Value:
        """The type index, i32."""
        return hot.writer.load(self.at(hot), "i32", "index")

    def payload(self, hot: Hot, kind: str = "i64") -> Value:
        """The payload as an LLVM type."""
        return hot.writer.load(self.at(hot, "v_int64"), kind, "payload")

    def require_index(self, hot: Hot, index: TypeIndex) -> None:
        """Go on only for values of one kind."""
        hot.require_that(self.index(hot), "eq", int(index))

    def object(self, hot: Hot, index: TypeIndex) -> Value:
        """The object, after a check of its kind."""
        self.require_index(hot, index)
        return self.payload(hot, "ptr")

    def keep(self, hot: Hot, *values: Value) -> None:
        """Store the leaves of this parameter."""
        for i, value in enumerate(values):
            hot.leaf(self.slot + i, value)


@dataclass(slots=True)
class Level:
    """Items that are present together: the arguments, or the items of one branch.

    `sizes` loads the sizes of each parameter, by its identity and the axis.  `later` are checks
    that need symbols which are bound later, each with its size.  `branches` are the items that can
    be absent; they come last, when everything else is known.
    """

    sizes: dict[tuple[int, int], Load] = field(default_factory=dict)
    later: list[tuple[Dim, Callable[[], None]]] = field(default_factory=list)
    branches: list[tuple[Item, params.Optional | params.Union]] = field(default_factory=list)

    def require_dim(self, hot: Hot, dim: Dim, load: Load, *, signed: bool) -> None:
        """Go on only if a place holds this size; the check is emitted as soon as its symbols are
        known.

        `signed`: a negative value is not an error by itself.
        """
        if hot.knows(dim):
            _require_dim(hot, dim, load, signed)
        else:
            self.later.append((dim, partial(_require_dim, hot, dim, load, signed)))

    def finish(self) -> None:
        """Emit the postponed checks; those that can bind a symbol come first."""
        for _, check in sorted(self.later, key=lambda each: isinstance(each[0], Compound)):
            check()


def _require_dim(hot: Hot, dim: Dim, load: Load, signed: bool) -> None:
    if not hot.knows(dim):
        raise Unfit
    size, value = hot.sizes.lower(dim), load()
    hot.require_that(value, "eq", size.value, certain=isinstance(dim, int) and not signed)
    if size.low < 0 and not signed:
        hot.require_that(value, "sge", 0)


def is_one_of(writer: Writer, index: Value, wanted: frozenset[int]) -> Value:
    """Whether a type index is in this set; the result is false for registered types and big
    ints."""
    found = FALSE
    for each in sorted(wanted - {params.DYNAMIC, params.BIG_INT}):
        same = writer.icmp("eq", index, i32(each))
        found = same if found is FALSE else writer.binary("or", found, same)
    return found


def inside(writer: Writer, at: Value, position: int) -> Value:
    """The address of an item of the Array in this Any."""
    cell = writer.offset(writer.load_field(at, ANY, "v_ptr"), OBJECT.size)
    return writer.index(writer.load_field(cell, SEQ, "data"), ANY, position)


def object_at(writer: Writer, args: Value, place: Sequence[int]) -> Value:
    """The object of an accepted argument, or of an item of tuples; `place` are the positions."""
    first, *inner = place
    at = writer.index(args, ANY, first)
    for position in inner:
        at = inside(writer, at, position)
    return writer.load_field(at, ANY, "v_ptr")
