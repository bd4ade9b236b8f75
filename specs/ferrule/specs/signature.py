"""A function's name and parameters, with the names that its symbols have in text.

Invariants (ValueError where they fail): parameter names differ; symbols of one name agree in
width and divisibility; a call tells every symbol's value; an env stream knows its device.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ferrule.specs.binding import Binding, Place, bindings_of, places_of
from ferrule.specs.expr import Dim, Sym, format_dim, symbols_of
from ferrule.specs.params import EnvStream, Param


@dataclass(frozen=True, slots=True, eq=False)
class Signature:
    """Name and parameters.  `str()` is the short form that messages show, `text()` the full one.

    `arguments` are the parameters that a call gives: all but env streams.
    `symbols` maps each symbol to its name in text, in the order of first appearance: a named
    symbol keeps its own, sizes are n0, n1, … and symbols that appear only in strides s0, s1, ….
    `bindings` says where each symbol gets its value.  Two signatures are equal if their full texts
    are: unnamed symbols are compared by where they stand.
    """

    name: str
    params: tuple[Param, ...]
    arguments: tuple[Param, ...] = field(init=False, repr=False)
    symbols: dict[Sym, str] = field(init=False, repr=False)
    bindings: tuple[Binding, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "params", tuple(self.params))
        arguments = (param for param in self.params if not isinstance(param, EnvStream))
        put(self, "arguments", tuple(arguments))
        names = [param.name for param in self.params]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"{self.name}: two parameters are named {name!r}")
        places = places_of(self.params)
        _check_symbols(self.name, places)
        put(self, "symbols", _name_symbols(places))
        try:
            put(self, "bindings", bindings_of(self.params))
        except ValueError as error:
            raise ValueError(f"{self.name}: {error}") from None

    def __str__(self) -> str:
        return f"{self.name}({', '.join(self.describe(param) for param in self.arguments)})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Signature) and self.text() == other.text()

    def __hash__(self) -> int:
        return hash(self.text())

    def __getitem__(self, name: str) -> Param:
        """The parameter with this name.  Raises KeyError naming those that there are."""
        for param in self.params:
            if param.name == name:
                return param
        raise KeyError(f"{name!r} is no parameter of {self}")

    def index(self, name: str) -> int:
        """The position of the parameter with this name."""
        return self.params.index(self[name])

    def describe(self, param: Param) -> str:
        """One parameter as the short form shows it: `a: Tensor([n0, 8], float32)`."""
        from ferrule.specs.text import short_param

        return short_param(param, self.symbols)

    def format(self, dim: Dim) -> str:
        """A size with this signature's names of its symbols."""
        return format_dim(dim, self.symbols)

    def text(self) -> str:
        """The full form: strides, alignment, device, symbols too; `parse_signature` reads it."""
        from ferrule.specs.text import full_text

        return full_text(self)

    def renamed(self, name: str) -> Signature:
        """The same parameters under another name."""
        return Signature(name, self.params)


def _check_symbols(name: str, places: tuple[Place, ...]) -> None:
    seen: dict[Sym, Sym] = {}
    for symbol in (symbol for place in places for symbol in symbols_of(place.dim)):
        first = seen.setdefault(symbol, symbol)
        if (first.width, first.divisibility) != (symbol.width, symbol.divisibility):
            raise ValueError(
                f"{name}: the symbol {symbol} is used with different widths or "
                f"divisibilities: int{first.width} divisible by {first.divisibility}, and "
                f"int{symbol.width} divisible by {symbol.divisibility}"
            )


def _name_symbols(places: tuple[Place, ...]) -> dict[Sym, str]:
    names: dict[Sym, str] = {}
    taken = {symbol.name for place in places for symbol in symbols_of(place.dim)}
    fresh = {letter: _fresh(letter, taken) for letter in ("n", "s")}
    for place in places:
        letter = "s" if place.kind == "strides" else "n"
        for symbol in symbols_of(place.dim):
            if symbol not in names:
                names[symbol] = symbol.name or next(fresh[letter])
    return names


def _fresh(letter: str, taken: set[str | None]) -> Iterator[str]:
    number = 0
    while True:
        name = f"{letter}{number}"
        if name not in taken:
            yield name
        number += 1
