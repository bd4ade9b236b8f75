"""The hot path under construction: strict, without messages, with one exit.

Arguments that it does not accept go to the checker, which decides again and sets the error.  So the
hot path may refuse any argument, but it must accept only valid ones.  After `require` its condition
holds: code that relies on it (a load through a pointer that must not be null) can follow at once.
A check is a compare and a branch; a load with this compare as its only use is folded into it.

A symbol is known from its first occurrence on.  Inside a branch (an optional parameter that is
present, a member of a union) a symbol that occurs first is known only there; its value is stored in
memory, so that later branches can check that they agree.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from ferrule.compiler.sizes import Sizes
from ferrule.compiler.wrapper.leaves import Slots
from ferrule.runtime.llvm.arithmetic import Predicate
from ferrule.runtime.llvm.writer import Block, Value, Writer, const, i64
from ferrule.specs import Condition, Dim, Sym
from ferrule.specs.conditions import Comparison, ComparisonOp, Junction, Negation
from ferrule.specs.deferred import dataclass
from ferrule.specs.expr import symbols_of
from ferrule.specs.params import BIG_INT

DEVICE_INDEX: Final = Sym("device index", "device index")
"""The index of the device that all tensors of a call outside of the CPU must be on."""

_ALL_BITS: Final = (1 << 64) - 1
PREDICATES: Final[dict[ComparisonOp, Predicate]] = {
    "lt": "slt",
    "le": "sle",
    "gt": "sgt",
    "ge": "sge",
    "eq": "eq",
    "ne": "ne",
}


class Unfit(Exception):
    """The hot path has no code for this signature; every call goes to the checker."""


@dataclass(frozen=True, slots=True)
class _Memory:
    """The value of a symbol from an earlier branch, if that branch ran."""

    given: Value
    value: Value


class Hot:
    """The checks of one wrapper; failures go to `slow`, or to `refused` if the checker certainly
    refuses the call too."""

    def __init__(
        self, writer: Writer, slots: Slots, slow: Block, refused: Block | None = None
    ) -> None:
        self.writer: Final = writer
        self.slots: Final = slots
        self.slow: Final = slow
        self._refused: Final = refused
        self.known: dict[Sym, Value] = {}
        self.sizes = Sizes(writer, self.known, refuse=self.refuse)
        self.reusable: dict[Hashable, Sequence[Value]] = {}  # values to reuse, by their meaning
        self._memories: dict[Sym, _Memory] = {}
        self._pending: dict[int, Value] = {}
        self._certain: list[tuple[Value, int]] = []
        self._depth = 0
        self.param = ""
        self._in_strides = {
            binding.symbol
            for binding in slots.signature.bindings
            if binding.places[0].kind == "strides"
        }

    def about(self, what: str) -> None:
        """What the next instructions check, of the parameter at hand."""
        self.writer.topic = f"{self.param}: {what}" if self.param else what

    # ---- checks ----

    def require(self, ok: Value, *, certain: bool = False) -> None:
        """Go on only if an i1 is true; `certain` means that otherwise the checker refuses the call
        too."""
        behind = self.writer.block("ok")
        sure = certain and self._refused is not None and not self._depth
        self.writer.cond_branch(ok, behind, self._refused or self.slow if sure else self.slow)
        self.writer.at(behind)

    def refuse(self, flag: Value) -> None:
        """Go on only if an i1 is false."""
        behind = self.writer.block("ok")
        self.writer.cond_branch(flag, self.slow, behind)
        self.writer.at(behind)

    def require_that(
        self, left: Value, predicate: Predicate, right: Value | int, *, certain: bool = False
    ) -> None:
        """Go on only if a comparison is true."""
        other = const(left.type, right) if isinstance(right, int) else right
        self.require(self.writer.icmp(predicate, left, other), certain=certain)

    def require_one(self, value: Value, usual: int, others: Sequence[int]) -> None:
        """Go on only if a value is the usual one; the checker takes the others, too."""
        is_usual = self.writer.icmp("eq", value, const(value.type, usual))
        if self._refused is None or self._depth or not others:
            self.require(is_usual, certain=True)
            return
        behind, other = self.writer.block("ok"), self.writer.block("other")
        self.writer.cond_branch(is_usual, behind, other)
        self.writer.at(other)
        taken = self.writer.icmp("eq", value, const(value.type, others[0]))
        for each in others[1:]:
            is_it = self.writer.icmp("eq", value, const(value.type, each))
            taken = self.writer.binary("or", taken, is_it)
        self.writer.cond_branch(taken, self.slow, self._refused)
        self.writer.at(behind)

    def require_kind(self, ok: Value, index: Value) -> None:
        """Go on only if a number is of the right kind; of other kinds, only big ints may be
        valid."""
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
        """An i64 must equal a constant that is too large for an immediate operand.  After the first
        comparison the value itself is in a register, and later values are compared with it.  The
        checker refuses any other value."""
        before = self.reusable.get(("word", wanted))
        self.require_that(value, "eq", wanted if before is None else before[0], certain=True)
        self.reusable["word", wanted] = before or (value,)

    def require_clear(self, value: Value, bits: int, *, certain: bool = False) -> None:
        """None of these bits of an i64 may be set; `settle` checks many values at once.

        So until then no code may rely on it.
        """
        before = self._pending.get(bits)
        self._pending[bits] = (
            value if before is None else self.writer.binary("or", before, value, "bits")
        )
        if certain and self._refused is not None and not self._depth:
            self._certain.append((value, bits))

    def settle(self) -> None:
        """Go on only if all bits from `require_clear` are clear."""
        target = self._doubt() if self._certain and self._pending else self.slow
        for bits, value in self._pending.items():
            clear = self.writer.icmp("eq", self.writer.binary("and", value, i64(bits)), i64(0))
            behind = self.writer.block("ok")
            self.writer.cond_branch(clear, behind, target)
            self.writer.at(behind)
        self._pending, self._certain = {}, []

    def _doubt(self) -> Block:
        """The block that finds out whether the checker certainly refuses the values with set
        bits."""
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

        The test multiplies by the inverse of the odd factor modulo 2**64: the quotient of a
        multiple does not wrap.  A division would cost far more.
        """
        # `by & -by` is the largest power of two that divides it.
        odd = by // (by & -by)
        if by > odd:
            self.require_clear(value, by // odd - 1, certain=certain)
        if odd > 1:
            # The quotient is compared without a sign, by which a negative multiple looks like none.
            self.require_that(value, "sge", 0)
            quotient = self.writer.binary("mul", value, i64(pow(odd, -1, 1 << 64)))
            self.require_that(quotient, "ule", _ALL_BITS // odd, certain=certain)

    def require_fit(self, value: Value, width: int, *, signed: bool, certain: bool = False) -> None:
        """Go on only if an i64 fits into `width` bits."""
        narrow = self.writer.cast("trunc", value, f"i{width}")
        again = self.writer.cast("sext" if signed else "zext", narrow, "i64")
        if width < 64:
            self.require_that(again, "eq", value, certain=certain)

    def require_between(self, value: Value, low: int, high: int, *, certain: bool = False) -> None:
        """Go on only if an i64 is in an interval: one comparison without a sign, from its low end
        on; never if the interval is empty, as that of a size that is to be negative."""
        if high < low:
            self.require_that(value, "ult", 0, certain=certain)
            return
        above = value if low == 0 else self.writer.binary("sub", value, i64(low))
        self.require_that(above, "ule", high - low, certain=certain)

    def leaf(self, slot: int, value: Value) -> None:
        """Store the value of a leaf or symbol, if the call needs it."""
        if slot in self.slots.read:
            self.writer.store(value, self.slots.address(slot))

    # ---- requirements ----

    def condition(self, condition: Condition) -> Value:
        """Whether a condition over sizes holds, i1; its symbols are known."""
        writer = self.writer
        match condition:
            case Comparison(op, lhs, rhs):
                left, right = self.sizes.lower(lhs).value, self.sizes.lower(rhs).value
                return writer.icmp(PREDICATES[op], left, right)
            case Negation(inner):
                return writer.not_(self.condition(inner))
            case Junction(op, lhs, rhs):
                return writer.binary(op, self.condition(lhs), self.condition(rhs))
            case _:
                raise Unfit

    # ---- symbols ----

    def knows(self, dim: Dim) -> bool:
        """Whether all symbols of a size have values."""
        return all(symbol in self.known for symbol in symbols_of(dim))

    def binds_at_strides(self, symbol: Sym) -> bool:
        """Whether a symbol occurs only as a whole stride."""
        return symbol in self._in_strides

    def bind(
        self, found: Iterable[tuple[Sym, Value]], *, signed: bool, certain: bool = False
    ) -> None:
        """Bind symbols to values, which must be in their ranges."""
        for symbol, value in found:
            low, high = symbol.interval(signed=signed)
            if symbol.bounds:
                self.require_between(value, low, high, certain=certain)
            elif signed:
                self.require_fit(value, symbol.width, signed=True)
            else:
                self.require_clear(value, _ALL_BITS - high, certain=certain)
            self.require_multiple(value, symbol.divisibility, certain=certain)
            self.sizes.ranges[symbol] = (low, high)
            self.agree(symbol, value)

    def agree(self, symbol: Sym, value: Value) -> None:
        """Require that the symbol has this value, or bind it."""
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
        """Store default values for symbols that no argument binds."""
        for symbol in self.slots.signature.symbols:
            slot = self.slots.of(symbol)
            if slot is not None and slot in self.slots.read and symbol not in self.known:
                self.slots.preset(slot, symbol.fallback)

    @contextmanager
    def branch(self) -> Iterator[None]:
        """A branch: facts that become known inside are not known after it."""
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
