"""What requirements imply, for compilers: bounds and divisors of single sizes, limits of products.

The code of a function runs only after its requirements were found to hold, so these facts are as
good as those of the symbols themselves.  A condition that is not understood implies nothing.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Final, TypeAlias

from ferrule.specs.conditions import Comparison, ComparisonOp, Condition, Junction, Negation
from ferrule.specs.copies import substitute, substituted
from ferrule.specs.deferred import dataclass
from ferrule.specs.expr import INT64_MAX, INT64_MIN, Compound, Dim, Sym, symbols_of
from ferrule.specs.intervals import Interval, interval
from ferrule.specs.params import SIGNED_KINDS, Shape, Tensor

if TYPE_CHECKING:
    from ferrule.specs.requirements import Requirement
    from ferrule.specs.signature import Signature

_OPPOSITE: Final[dict[ComparisonOp, ComparisonOp]] = {
    "lt": "ge",
    "ge": "lt",
    "le": "gt",
    "gt": "le",
    "eq": "ne",
    "ne": "eq",
}
_ROUNDS: Final = 3
"""A fact about one size can bound another; more rounds than this find little."""
Known: TypeAlias = "dict[Sym, Sym]"


@dataclass(frozen=True, slots=True)
class Product:
    """`factor` times these symbols, with repetitions, is at most `limit` in every call."""

    factor: int
    symbols: tuple[Sym, ...]
    limit: int


def comparisons(requires: Iterable[Requirement]) -> tuple[Comparison, ...]:
    """The comparisons that hold in every call that keeps the requirements."""
    return tuple(each for one in requires for each in _certain(one.condition, holds=True))


def implied(signature: Signature) -> Known:
    """For each size that the requirements restrict further, a symbol that is equal to the old one
    and has the tighter bounds and divisibility."""
    facts, own = comparisons(signature.requires), signature.symbols
    known: Known = {}
    tighten = _Tighten(known, frozenset(_sizes(signature)))
    for _ in range(_ROUNDS if facts else 0):
        before = {symbol: symbol.facts for symbol in known.values()}
        for fact in facts:
            tighten.take(fact)
        if before == {symbol: symbol.facts for symbol in known.values()}:
            break
    return {symbol: tight for symbol, tight in known.items() if symbol in own}


def tightened(signature: Signature) -> Signature:
    """The signature with what its requirements imply in its symbols, for what compiles the code
    that runs after the checks; its text is another one."""
    known = implied(signature)
    if not known:
        return signature
    return signature.altered(params=tuple(substituted(each, known) for each in signature.params))


def products(facts: Iterable[Comparison]) -> tuple[Product, ...]:
    """The limits of products of two symbols and more."""
    found = []
    for fact in facts:
        for small, large, less in _ordered(fact):
            factor, symbols = monomial(small)
            if isinstance(large, int) and factor > 0 and len(symbols) > 1:
                found.append(Product(factor, symbols, large - less))
    return tuple(found)


def most(dim: Dim, positive: Collection[Sym], limits: Iterable[Product]) -> int | None:
    """The largest value of a product of sizes by these limits, if the symbols in `positive` are at
    least 1; None if they do not say."""
    factor, symbols = monomial(dim)
    wanted = Counter(symbols)
    found = [
        factor * (each.limit // each.factor)
        for each in limits
        if factor > 0
        and wanted <= Counter(each.symbols)
        and all(one in positive or one.interval()[0] >= 1 for one in each.symbols)
    ]
    return min(found, default=None)


def monomial(dim: Dim) -> tuple[int, tuple[Sym, ...]]:
    """A product as its constant factor and its symbols; the factor is 0 for another expression."""
    match dim:
        case int():
            return dim, ()
        case Sym():
            return 1, (dim,)
        case Compound("mul", lhs, rhs):
            (factor, left), (times, right) = monomial(lhs), monomial(rhs)
            return factor * times, (*left, *right)
    return 0, ()


def _sizes(signature: Signature) -> Iterator[Sym]:
    """The symbols of the sizes that every call gives; a size is never negative."""
    for param in signature.params:
        match param:
            case Tensor(shape=shape):
                yield from (each for each in shape if isinstance(each, Sym))
            case Shape(dims=dims, kind=kind) if kind not in SIGNED_KINDS:
                yield from (each for each in dims if isinstance(each, Sym))


def _certain(condition: Condition, *, holds: bool) -> Iterator[Comparison]:
    match condition:
        case Comparison(op, lhs, rhs):
            yield condition if holds else Comparison(_OPPOSITE[op], lhs, rhs)
        case Negation(inner):
            yield from _certain(inner, holds=not holds)
        case Junction(op, lhs, rhs) if (op == "and") == holds:
            yield from _certain(lhs, holds=holds)
            yield from _certain(rhs, holds=holds)


def _ordered(fact: Comparison) -> Iterator[tuple[Dim, Dim, int]]:
    """A comparison as `small <= large - less`."""
    match fact:
        case Comparison("le" | "lt" as op, lhs, rhs):
            yield lhs, rhs, int(op == "lt")
        case Comparison("ge" | "gt" as op, lhs, rhs):
            yield rhs, lhs, int(op == "gt")
        case Comparison("eq", lhs, rhs):
            yield lhs, rhs, 0
            yield rhs, lhs, 0


@dataclass(frozen=True, slots=True)
class _Tighten:
    """Adds what comparisons say to the symbols in `known`; `sizes` are never negative."""

    known: Known
    sizes: Collection[Sym]

    def take(self, fact: Comparison) -> None:
        """Adds what a comparison says."""
        for small, large, less in _ordered(fact):
            self.at_most(small, self.interval(large)[1] - less)
            self.at_least(large, self.interval(small)[0] + less)
        match fact:
            case Comparison("eq", Compound("mod", size, int(by)), 0) if by > 0:
                self.divisible(size, by)

    def interval(self, dim: Dim) -> Interval:
        """The interval of a size, by all that is known so far."""
        low = {each: self.symbol(each) for each in symbols_of(dim)}
        return interval(substitute(dim, low))

    def symbol(self, symbol: Sym) -> Sym:
        """A symbol with what is known of it."""
        found = self.known.get(symbol, symbol)
        return _with(found, low=0) if found in self.sizes else found

    def at_most(self, dim: Dim, most: int) -> None:
        """A size is at most this."""
        match dim:
            case Sym():
                self.note(dim, high=most)
            case Compound("add", part, int(more)):
                self.at_most(part, most - more)
            case Compound("sub", part, int(less)):
                self.at_most(part, most + less)
            case Compound("sub", int(whole), part):
                self.at_least(part, whole - most)
            case Compound("mul", part, int(times)) if times > 0:
                self.at_most(part, most // times)
            case Compound("mul", lhs, rhs) if most >= 0:
                self.factor_at_most(lhs, rhs, most)
                self.factor_at_most(rhs, lhs, most)
            case Compound("floordiv", part, int(by)) if by > 0:
                self.at_most(part, most * by + by - 1)
            case Compound("ceildiv", part, int(by)) if by > 0:
                self.at_most(part, most * by)
            case Compound("max", lhs, rhs):
                self.at_most(lhs, most)
                self.at_most(rhs, most)

    def factor_at_most(self, factor: Dim, other: Dim, most: int) -> None:
        """A product is at most this: so is a factor if the other one is at least 1."""
        if not isinstance(other, int) and (least := self.interval(other)[0]) >= 1:
            self.at_most(factor, most // least)

    def at_least(self, dim: Dim, least: int) -> None:
        """A size is at least this."""
        match dim:
            case Sym():
                self.note(dim, low=least)
            case Compound("add", part, int(more)):
                self.at_least(part, least - more)
            case Compound("sub", part, int(less)):
                self.at_least(part, least + less)
            case Compound("sub", int(whole), part):
                self.at_most(part, whole - least)
            case Compound("mul", part, int(times)) if times > 0:
                self.at_least(part, -(-least // times))
            case Compound("mul", lhs, rhs) if least >= 1:
                self.factor_at_least(lhs, rhs, least)
                self.factor_at_least(rhs, lhs, least)
            case Compound("floordiv", part, int(by)) if by > 0:
                self.at_least(part, least * by)
            case Compound("ceildiv", part, int(by)) if by > 0:
                self.at_least(part, (least - 1) * by + 1)
            case Compound("min", lhs, rhs):
                self.at_least(lhs, least)
                self.at_least(rhs, least)

    def factor_at_least(self, factor: Dim, other: Dim, least: int) -> None:
        """A product is at least 1, and its factors are not negative: so is each of them."""
        low, high = self.interval(other)
        if not isinstance(other, int) and low >= 0 and high >= 1:
            if self.interval(factor)[0] >= 0:
                self.at_least(factor, -(-least // high))

    def divisible(self, dim: Dim, by: int) -> None:
        """A size is a multiple of this."""
        match dim:
            case Sym():
                self.note(dim, by=by)
            case Compound("mul", part, int(times)) if times > 0:
                self.divisible(part, by // math.gcd(by, times))

    def note(
        self, symbol: Sym, *, low: int = INT64_MIN, high: int = INT64_MAX, by: int = 1
    ) -> None:
        """Adds to what is known of a symbol."""
        found = _with(self.known.get(symbol, symbol), low=low, high=high, by=by)
        is_possible = symbol not in self.sizes or found.interval()[1] >= 0
        if is_possible and found.facts != symbol.facts:
            self.known[symbol] = found


def _with(symbol: Sym, *, low: int = INT64_MIN, high: int = INT64_MAX, by: int = 1) -> Sym:
    """A symbol that is also in this interval and a multiple of `by`.  As it was, if no value of it
    is left: then every call is refused."""
    (least, largest), divisor = symbol.interval(), math.lcm(symbol.divisibility, by)
    first, last = max(low, least), min(high, largest)
    # The first multiple of the divisor from `first` on.
    if -(-first // divisor) * divisor > last or divisor >= 1 << symbol.width - 1:
        return symbol
    return Sym(
        symbol.key,
        symbol.name,
        symbol.width,
        divisor,
        symbol.min if first == least else first,
        symbol.max if last == largest else last,
    )
