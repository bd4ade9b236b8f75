"""Sizes that were seen in several recordings: which of them are symbols, and what follows from
these.

A size that is the same in all recordings is a constant.  Of the others each is a symbol, unless it
equals another one in every recording, or a product or quotient.  With one recording everything is
constant.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import combinations_with_replacement, product
from math import prod
from typing import Final

from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.specs import Dim, Sym, ceil_div, sym_int
from ferrule.specs.deferred import dataclass
from ferrule.specs.expr import evaluate

Values = tuple[int, ...]
"""One value for each recording."""

_PROBES: Final = (3, 5, 7, 11, 64, 1000, 4097, 12288)
"""Sizes with which different expressions over symbols have different values."""


@dataclass(slots=True)
class Sizes:
    """The symbols of several recordings, with their values in each.

    `constants` are numbers that are compiled into kernels, by which sizes are divided.  `covered`
    are the values of the symbols of which a grid is made.  Any other is at most the next constant,
    or what was recorded: what a host function derives from it may be another number beyond.  A
    power of two to which a symbol may have been rounded up bounds it in any case.  `names` are
    names for symbols by their values.  `closed`: what follows from no symbol is an error, not a new
    one.  `derived` are expressions that were found, of which others may be parts.  `general`: sizes
    may be others than those between the recorded ones; or the names of these.
    """

    constants: frozenset[int]
    names: Mapping[Values, str] = field(default_factory=dict)
    covered: frozenset[Values] = frozenset()
    symbols: dict[Sym, Values] = field(default_factory=dict)
    closed: bool = False
    derived: dict[Dim, None] = field(default_factory=dict)
    general: bool | frozenset[str] = False
    reserved: frozenset[str] = frozenset()
    """Names that no size gets: those of numbers that callers give."""
    numbers: dict[Sym, Values] = field(default_factory=dict)
    """Integers that callers give, with their values: numbers follow from them where it is known
    how, and never by their values alone."""

    def number(self, value: Sym, values: Values) -> Sym:
        """An integer that callers give, with its bounds."""
        named = str(value)
        is_general = named in self.general if isinstance(self.general, frozenset) else self.general
        symbol = value if is_general else replace(value, min=min(values), max=max(values))
        self.numbers[symbol] = values
        return symbol

    def dim(self, values: Values, name: str, width: int = 32) -> Dim:
        """A size of an argument: a constant, what follows from other sizes, or a new symbol."""
        if len(set(values)) == 1:
            return values[0]
        found = self.found(values)
        if found is not None:
            return found
        if self.closed:
            return self.following(values, f"the size {name}")
        symbol = self._new(values, name, width)
        self.symbols[symbol] = values
        return symbol

    def following(self, values: Values, what: str, *, grid: bool = False) -> Dim:
        """A number that is no size of an argument, as an expression over these.

        Raises CompileError if there is none, or several that differ for other sizes.
        """
        if len(set(values)) == 1:
            self._check_product(values, what)
            return values[0]
        found = self._matching(values, grid=grid)
        if len(found) == 1:
            self.derived[found[0]] = None
            return found[0]
        shown = ", ".join(map(str, values))
        if not found:
            raise CompileError(
                Diagnostic(
                    f"{what} was {shown}, which follows from no size of the tensors",
                    expected=f"a product or quotient of {self._shown()}",
                    hint="compile the launches one by one, each with its own signature= and grid=",
                )
            )
        raise CompileError(
            Diagnostic(
                f"{what} was {shown}, which is {' and also '.join(map(str, found[:3]))}",
                hint="record one more call, with sizes that tell these apart: no multiples of each "
                "other or of a block",
            )
        )

    def found(self, values: Values) -> Dim | None:
        """The size that had these values; None if there is none, or several."""
        if len(set(values)) == 1:
            return values[0] if self._product(values) is None else None
        equal = [symbol for symbol, known in self.symbols.items() if known == values]
        found = equal or self._matching(values, grid=False)
        return found[0] if len(found) == 1 else None

    def _product(self, values: Values) -> Dim | None:
        """A product of sizes that differ, and itself is the same in all recordings."""
        symbols = list(self.symbols)
        several = (each for n in (2, 3) for each in combinations_with_replacement(symbols, n))
        products: Iterator[Dim] = (prod(each) for each in several)
        return next((each for each in products if self.values(each) == values), None)

    def _check_product(self, values: Values, what: str) -> None:
        found = self._product(values)
        if found is not None:
            raise CompileError(
                Diagnostic(
                    f"{what} was {values[0]} in all recordings, which is {found} in all of them",
                    hint=f"record one more call, for which {found} is another number",
                )
            )

    def _shown(self) -> str:
        return ", ".join(f"{each} = {values}" for each, values in self.symbols.items()) or "nothing"

    def _new(self, values: Values, name: str, width: int) -> Sym:
        """A symbol of its own, with its bound."""
        taken = {*self.reserved, *(each.name for each in self.symbols)}
        named = self.names.get(values, name)
        while named in taken:
            named += "_"
        if named in self.general if isinstance(self.general, frozenset) else self.general:
            return sym_int(width, symbol=named, max=self._bound(values))
        return sym_int(width, symbol=named, min=min(values), max=max(values))

    def _bound(self, values: Values) -> int | None:
        """The largest value of a general size; None for any."""
        most = max(values)
        larger = [each for each in self.constants if each >= most]
        if values not in self.covered:
            return min(larger, default=most)
        rounded = (each for each in larger if each < 2 * most and each & (each - 1) == 0)
        return min(rounded, default=None)

    def _matching(self, values: Values, *, grid: bool) -> list[Dim]:
        """The simplest expressions with these values, one for each way to go on."""
        for level in self._levels(grid):
            found: dict[Values, Dim] = {}
            for each in level:
                if self.values(each) == values:
                    found.setdefault(self._probe(each), each)
            if found:
                return list(found.values())
        return []

    def _levels(self, grid: bool) -> Iterator[Iterator[Dim]]:
        """Expressions over the symbols, the simplest first.  Blocks of a grid cover a size, so that
        its quotients are rounded up."""
        symbols, numbers = list(self.symbols), sorted(each for each in self.constants if each > 1)
        parts: list[Dim] = [ceil_div(a, b) for a, b in product(symbols, numbers)]
        products: list[Dim] = [a * b for a, b in combinations_with_replacement(symbols, 2)]
        scaled: list[Dim] = [a * b for a, b in product(symbols, numbers)]
        floors: list[Dim] = [] if grid else [a // b for a, b in product(symbols, numbers)]
        yield iter([*symbols, *products, *scaled, *parts, *floors, *self._ratios()])
        known = [each for each in self.derived if each not in products]
        covered = [ceil_div(a, b) for a, b in product([*products, *known], numbers)]
        factors: list[Dim] = [*symbols, *parts]
        joined: list[Dim] = [a * b for a, b in product(parts, factors)]
        single: list[Dim] = [*numbers, *symbols]
        triples: list[Dim] = [a * b for a, b in product(products, single)]
        yield iter([*covered, *joined, *triples])

    def _ratios(self) -> Iterator[Dim]:
        """Multiples of a symbol by a whole number that no constant is, as the heads of a tensor."""
        known = list(self.symbols)
        for symbol in known:
            yield from (symbol * factor for factor in range(2, 129) if factor not in self.constants)

    def values(self, dim: Dim) -> Values:
        """The values of an expression in each recording."""
        known = {**self.symbols, **self.numbers}
        count = len(next(iter(known.values()), ()))
        each = ({s: values[at] for s, values in known.items()} for at in range(count))
        return tuple(evaluate(dim, values) for values in each)

    def _probe(self, dim: Dim) -> Values:
        several = []
        for shift in range(3):
            sizes = (_PROBES[(at + shift) % len(_PROBES)] for at in range(len(self.symbols)))
            several.append(evaluate(dim, dict(zip(self.symbols, sizes, strict=True))))
        return tuple(several)


def values_of(several: Sequence[int]) -> Values:
    """The values of one size in each recording."""
    return tuple(map(int, several))
