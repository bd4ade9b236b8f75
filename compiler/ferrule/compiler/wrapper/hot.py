"""The hot path under construction: strict, without messages, with one way out.

What is not plainly right leaves for the checker, which decides again and says what is wrong.  So
the hot path may refuse anything, but what it accepts must be right.  Behind `require` its
condition holds: code that relies on it (a load through a pointer that must not be null) can follow
at once.  A check is a compare and a branch; a load in front of its only compare is folded into it.

Symbols are known from where they were first met on.  Inside a branch (an optional parameter that
is present, a member of a union) what is met first is known there alone; it is remembered in memory,
so that later branches must agree with it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from ferrule.compiler.sizes import Sizes
from ferrule.compiler.wrapper.leaves import Slots
from ferrule.runtime.llvm.arithmetic import Predicate
from ferrule.runtime.llvm.writer import Block, Value, Writer, const, i64
from ferrule.specs import Dim, Sym
from ferrule.specs.expr import symbols_of
from ferrule.specs.params import BIG_INT

DEVICE_INDEX: Final = Sym("device index", "device index")
"""The index of the device on which all tensors of a call are that are not on the CPU."""

UNBOUND: Final = 1
"""What a symbol reads as that nothing gives a value."""

_ALL_BITS: Final = (1 << 64) - 1


class Unfit(Exception):
    """Here every call is the checker's: the hot path has no code for this."""


@dataclass(frozen=True, slots=True)
class _Memory:
    """What an earlier branch found, if it ran."""

    given: Value
    value: Value


class Hot:
    """The checks of one wrapper; failures go to `slow`, or to `refused` where it is certain that
    the checker refuses the call too."""

    def __init__(
        self, writer: Writer, slots: Slots, slow: Block, refused: Block | None = None
    ) -> None:
        self.writer: Final = writer
        self.slots: Final = slots
        self.slow: Final = slow
        self._refused: Final = refused
        self.known: dict[Sym, Value] = {}
        self.sizes = Sizes(writer, self.known, refuse=self.refuse)
        self.reusable: dict[Hashable, Sequence[Value]] = {}  # values to use again, by their meaning
        self._memories: dict[Sym, _Memory] = {}
        self._pending: dict[int, Value] = {}
        self._certain: list[tuple[Value, int]] = []
        self._depth = 0
        self._in_strides = {
            binding.symbol
            for binding in slots.signature.bindings
            if binding.places[0].kind == "strides"
        }

    # ---- checks ----

    def require(self, ok: Value, *, certain: bool = False) -> None:
        """Go on only where an i1 holds; `certain`: else the checker refuses the call too."""
        behind = self.writer.block("ok")
        sure = certain and self._refused is not None and not self._depth
        self.writer.cond_branch(ok, behind, self._refused or self.slow if sure else self.slow)
        self.writer.at(behind)

    def refuse(self, flag: Value) -> None:
        """Go on only where an i1 does not hold."""
        behind = self.writer.block("ok")
        self.writer.cond_branch(flag, self.slow, behind)
        self.writer.at(behind)

    def require_that(
        self, left: Value, predicate: Predicate, right: Value | int, *, certain: bool = False
    ) -> None:
        """Go on only where a comparison holds."""
        other = const(left.type, right) if isinstance(right, int) else right
        self.require(self.writer.icmp(predicate, left, other), certain=certain)

    def require_kind(self, ok: Value, index: Value) -> None:
        """Go on only where a number is of the right kind; of others, big ints are in doubt."""
        if self._refused is None or self._depth:
            self.require(ok)
            return
        behind, other = self.writer.block("ok"), self.writer.block("other")
        self.writer.cond_branch(ok, behind, other)
        self.writer.at(other)
        is_big = self.writer.icmp("eq", index, const(index.type, BIG_INT))
        self.writer.cond_branch(is_big, self.slow, self._refused)
        self.writer.at(behind)

    def require_word(self, value: Value, wanted: int) -> None:
        """An i64 must be a constant too large for a comparison; one that was found to be it is in
        a register, and later ones are compared with that.  The checker refuses any other.
        """
        before = self.reusable.get(("word", wanted))
        self.require_that(value, "eq", wanted if before is None else before[0], certain=True)
        self.reusable["word", wanted] = before or (value,)

    def require_clear(self, value: Value, bits: int, *, certain: bool = False) -> None:
        """None of these bits of an i64 may be set; looked at in `settle`, for many values at once.

        So nothing may rely on it but what comes of the call if it is accepted.
        """
        before = self._pending.get(bits)
        self._pending[bits] = (
            value if before is None else self.writer.binary("or", before, value, "bits")
        )
        if certain and self._refused is not None and not self._depth:
            self._certain.append((value, bits))

    def settle(self) -> None:
        """Go on only where no bit is set that was to be clear."""
        target = self._doubt() if self._certain and self._pending else self.slow
        for bits, value in self._pending.items():
            clear = self.writer.icmp("eq", self.writer.binary("and", value, i64(bits)), i64(0))
            behind = self.writer.block("ok")
            self.writer.cond_branch(clear, behind, target)
            self.writer.at(behind)
        self._pending, self._certain = {}, []

    def _doubt(self) -> Block:
        """Where it is found out whether what was not clear is certainly wrong."""
        writer, refused = self.writer, self._refused
        assert refused is not None
        doubt, here = writer.block("doubt"), writer.here
        writer.at(doubt)
        found = i64(0)
        for value, bits in self._certain:
            found = writer.binary("or", found, writer.binary("and", value, i64(bits)))
        writer.cond_branch(writer.icmp("ne", found, i64(0)), refused, self.slow)
        writer.at(here)
        return doubt

    def require_multiple(self, value: Value, by: int, *, certain: bool = False) -> None:
        """An i64 must be a multiple of a positive number.

        One of an odd number has a quotient that does not wrap; dividing would cost far more.
        """
        odd = by // (by & -by)
        if by > odd:
            self.require_clear(value, by // odd - 1, certain=certain)
        if odd > 1:
            self.require_that(value, "sge", 0)
            quotient = self.writer.binary("mul", value, i64(pow(odd, -1, 1 << 64)))
            self.require_that(quotient, "ule", _ALL_BITS // odd, certain=certain)

    def require_fit(self, value: Value, width: int, *, signed: bool, certain: bool = False) -> None:
        """Go on only where an i64 fits fewer bits."""
        narrow = self.writer.cast("trunc", value, f"i{width}")
        again = self.writer.cast("sext" if signed else "zext", narrow, "i64")
        if width < 64:
            self.require_that(again, "eq", value, certain=certain)

    def leaf(self, slot: int, value: Value) -> None:
        """Keep the value of a leaf or symbol for the call, if that needs it."""
        if slot in self.slots.read:
            self.writer.store(value, self.slots.address(slot))

    # ---- symbols ----

    def knows(self, dim: Dim) -> bool:
        """Whether all symbols of a size have their values."""
        return all(symbol in self.known for symbol in symbols_of(dim))

    def binds_at_strides(self, symbol: Sym) -> bool:
        """Whether a symbol stands nowhere but in strides as a whole."""
        return symbol in self._in_strides

    def bind(
        self, found: Iterable[tuple[Sym, Value]], *, signed: bool, certain: bool = False
    ) -> None:
        """Give symbols their values, which must be in their ranges."""
        for symbol, value in found:
            high = (1 << (symbol.width - 1)) - 1
            if signed:
                self.require_fit(value, symbol.width, signed=True)
            else:
                self.require_clear(value, _ALL_BITS - high, certain=certain)
            self.require_multiple(value, symbol.divisibility, certain=certain)
            self.sizes.ranges[symbol] = (-high - 1 if signed else 0, high)
            self.agree(symbol, value)

    def agree(self, symbol: Sym, value: Value) -> None:
        """The symbol has this value, or gets it here."""
        known = self.known.get(symbol)
        if known is not None:
            self.require_that(value, "eq", known)
            return
        self.known[symbol] = value
        if self._depth:
            self._remember(symbol, value)
        slot = self.slots.of(symbol)
        if slot is not None:
            self.leaf(slot, value)

    def _remember(self, symbol: Sym, value: Value) -> None:
        writer, memory = self.writer, self._memories.get(symbol)
        if memory is None:
            memory = _Memory(writer.alloca("i8", name="given"), writer.alloca("i64", name="before"))
            writer.store_at_entry(const("i8", 0), memory.given)
            self._memories[symbol] = memory
        else:
            given = writer.icmp("ne", writer.load(memory.given, "i8"), const("i8", 0))
            differs = writer.icmp("ne", writer.load(memory.value, value.type), value)
            self.refuse(writer.binary("and", given, differs))
        writer.store(const("i8", 1), memory.given)
        writer.store(value, memory.value)

    def default_symbols(self) -> None:
        """The values of symbols that nothing gives one at a call."""
        for symbol in self.slots.signature.symbols:
            slot = self.slots.of(symbol)
            if slot is not None and slot in self.slots.read and symbol not in self.known:
                self.slots.preset(slot, UNBOUND)

    @contextmanager
    def branch(self) -> Iterator[None]:
        """What becomes known inside is not known behind it."""
        known, sizes, pending = self.known, self.sizes, self._pending
        reusable, self.reusable = self.reusable, dict(self.reusable)
        self.known, self._pending = dict(known), {}
        self.sizes = sizes.inner(self.known)
        self._depth += 1
        try:
            yield
        finally:
            self.known, self.sizes, self._pending = known, sizes, pending
            self.reusable = reusable
            self._depth -= 1
