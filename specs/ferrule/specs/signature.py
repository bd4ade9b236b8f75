"""A function's name, parameters and result, with the names of its symbols in text.

Invariants (ValueError where they fail): names are identifiers; parameter names differ; symbols with
the same name have the same width, divisibility and bounds; the arguments of each call determine all
symbols, except symbols that occur only in the result; an env stream has a device; a caller can own
the result; the arguments of each call determine the sizes of all requirements.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from typing import Any

from ferrule.specs.binding import Binding, Place, bindings_of, places_of
from ferrule.specs.deferred import dataclass
from ferrule.specs.expr import Dim, Sym, ValueOf, format_dim, is_name, symbols_of
from ferrule.specs.params import EnvStream, Param, Scalar, Tensor
from ferrule.specs.params.base import LONGEST_NAME
from ferrule.specs.params.compound import KINDS
from ferrule.specs.requirements import Requirement, checked_requirements
from ferrule.specs.results import checked_result


@dataclass(frozen=True, slots=True, eq=False)
class Signature:
    """Name, parameters and result.  `str()` is the short form that messages show, `text()` the full
    one.

    `result` is the spec of the result, None for no result; the name of this spec has no meaning.
    `arguments` are the parameters that a call gives: all but env streams.
    `symbols` maps each symbol of the parameters to its name in text, in the order of first
    appearance.  A named symbol keeps its name; unnamed sizes are n0, n1, …, and unnamed symbols
    that occur only in strides are s0, s1, ….  `names` also has the symbols of the result.
    `positional_only` counts the first parameters, which Python passes only by position;
    `keyword_only` counts the last ones, which Python passes only by name.  Through C all are
    positional.  `requires` are relations that every call keeps, see `require`; conditions alone
    will do.  `bindings` says where each symbol gets its value.  Two signatures are equal if
    their full texts are equal, so unnamed symbols are compared by their positions.
    """

    name: str
    params: tuple[Param, ...]
    result: Param | None = None
    positional_only: int = 0
    keyword_only: int = 0
    requires: tuple[Requirement, ...] = ()
    arguments: tuple[Param, ...] = field(init=False, repr=False)
    symbols: dict[Sym, str] = field(init=False, repr=False)
    bindings: tuple[Binding, ...] = field(init=False, repr=False)
    names: dict[Sym, str] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "params", _checked_params(self.name, self.params))
        if not isinstance(self.result, (*KINDS, type(None))):
            raise TypeError(f"{self.name}: result must be a spec or None, but got {self.result!r}")
        arguments = (param for param in self.params if not isinstance(param, EnvStream))
        put(self, "arguments", tuple(arguments))
        _check_names(self.name, [param.name for param in self.params])
        _check_ways(self.name, len(self.params), self.positional_only, self.keyword_only)
        places = places_of(self.params)
        everywhere = places if self.result is None else (*places, *places_of((self.result,)))
        _check_symbols(self.name, everywhere)
        put(self, "names", _name_symbols(everywhere))
        put(self, "symbols", self._of_parameters(places))
        try:
            put(self, "result", checked_result(self.result))
            put(self, "bindings", bindings_of(self.params))
        except ValueError as error:
            raise ValueError(f"{self.name}: {error}") from None
        put(self, "requires", checked_requirements(self.name, self.requires))
        for each in self.requires:
            self._check_required(each)

    def _check_required(self, required: Requirement) -> None:
        """ValueError unless every call tells the sizes and integers of a requirement."""
        owners = {binding.symbol: binding.places for binding in self.bindings}
        for symbol in required.symbols:
            reason = ""
            if isinstance(symbol.key, ValueOf):
                reason = self._no_integer(symbol.key.param)
            elif symbol not in owners:
                reason = f"the symbol {symbol} is in no parameter"
            elif all(place.optional for place in owners[symbol]):
                reason = f"the symbol {symbol} of {owners[symbol][0].name} can be absent"
            if reason:
                raise ValueError(f"{self.name}: requires {required.text(self.known)}: {reason}")

    def _no_integer(self, name: str) -> str:
        """Why a parameter has no value that a requirement can compare; nothing if it has one."""
        param = next((each for each in self.params if each.name == name), None)
        if not isinstance(param, Scalar) or param.dtype.kind == "float":
            return f"{name} is no integer parameter"
        return ""

    @property
    def known(self) -> dict[Sym, str]:
        """The names of symbols in requirements: those of `symbols`, and of the integer parameters;
        `n.value` where a size has the name too."""
        taken = set(self.names.values())
        values = [
            each.value
            for each in self.params
            if isinstance(each, Scalar) and each.dtype.kind != "float"
        ]
        own = {each: f"{each}.value" if str(each) in taken else str(each) for each in values}
        return {**self.symbols, **own}

    def _of_parameters(self, places: tuple[Place, ...]) -> dict[Sym, str]:
        symbols = (symbol for place in places for symbol in symbols_of(place.dim))
        return {symbol: self.names[symbol] for symbol in symbols}

    def __str__(self) -> str:
        from ferrule.specs.text import marked

        described = [self.describe(param) for param in self.arguments]
        head = f"{self.name}({', '.join(marked(described, self.unnamed, self.positional))})"
        return head if self.result is None else f"{head} -> {self.kind_of_result()}"

    def _repr_html_(self) -> str:
        """As notebooks show it: each parameter with what a call checks."""
        from ferrule.specs.html.signatures import signature_html

        return signature_html(self)

    @property
    def ways(self) -> tuple[Signature, ...]:
        """The signatures that a call can match: this one, or the candidates of an overload."""
        return (self,)

    @property
    def unnamed(self) -> int:
        """The number of positional-only arguments; they are the first ones."""
        return _count_arguments(self.params[: self.positional_only])

    @property
    def positional(self) -> int:
        """The number of arguments that a call can pass by position; they are the first ones."""
        return _count_arguments(self.params[: len(self.params) - self.keyword_only])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Signature) and self.text() == other.text()

    def __hash__(self) -> int:
        return hash(self.text())

    def __getitem__(self, name: str) -> Any:
        """The spec of the parameter with this name.

        Raises KeyError; its message shows the whole signature.
        """
        for param in self.params:
            if param.name == name:
                return param
        raise KeyError(f"{name!r} is no parameter of {self}")

    __iter__ = None
    """A signature cannot be iterated over; use `params`."""

    def index(self, name: str) -> int:
        """The position of the parameter with this name."""
        param: Param = self[name]
        return self.params.index(param)

    def describe(self, param: Param) -> str:
        """One parameter as the short form shows it: `a: Tensor([n0, 8], float32)`."""
        from ferrule.specs.text import short_param

        return short_param(param, self.symbols)

    def kind(self, param: Param, *, full: bool = False) -> str:
        """The kind of a parameter: `Tensor([n0, 8], float32)`."""
        from ferrule.specs.text import kind_text

        return kind_text(param, self.symbols, full=full)

    def kind_of_result(self, *, full: bool = False) -> str:
        """The kind of the result; the text "None" if the function returns nothing."""
        from ferrule.specs.text import kind_text

        return "None" if self.result is None else kind_text(self.result, self.names, full=full)

    def format(self, dim: Dim) -> str:
        """A size with this signature's names of its symbols."""
        return format_dim(dim, self.symbols)

    def text(self) -> str:
        """The full form: strides, alignment, device, symbols too; `parse_signature` reads it."""
        from ferrule.specs.text import full_text

        return full_text(self)

    def required(self) -> list[str]:
        """The requirements in words, with the message of each that has one."""
        return [
            each.text(self.known) + (f": {each.message}" if each.message else "")
            for each in self.requires
        ]

    def renamed(self, name: str) -> Signature:
        """The same parameters and result under another name."""
        return self.altered(name=name)

    def altered(self, **values: Any) -> Signature:
        """A copy with another `name`, `result`, other `requires`, or as many other `params`."""
        names = ("name", "params", "result", "positional_only", "keyword_only", "requires")
        return Signature(**{name: values.get(name, getattr(self, name)) for name in names})


def _checked_params(function: str, params: object) -> tuple[Param, ...]:
    """The specs.  Raises TypeError for anything else."""
    if not isinstance(params, Iterable) or isinstance(params, str):
        kind = type(params).__name__
        raise TypeError(f"{function}: parameters must be in a list, but got a {kind} alone")
    listed = tuple(params)
    for position, param in enumerate(listed):
        if not isinstance(param, KINDS):
            raise TypeError(
                f"{function}: parameter #{position} must be a spec, such as "
                f"Tensor('x', (n,), 'float32'), but got {param!r}"
            )
        if isinstance(param, Tensor) and param.capacity is not None:
            raise ValueError(
                f"{function}: the parameter {param.name!r} has a capacity, which only a result "
                f"has: an argument has the size that it comes with"
            )
    return listed


def _count_arguments(params: Sequence[Param]) -> int:
    return sum(not isinstance(param, EnvStream) for param in params)


def _check_ways(function: str, count: int, positional_only: int, keyword_only: int) -> None:
    for name, value in (("positional_only", positional_only), ("keyword_only", keyword_only)):
        if type(value) is not int:
            raise TypeError(f"{function}: {name} must be an int, but got {value!r}")
    if min(positional_only, keyword_only) < 0 or positional_only + keyword_only > count:
        raise ValueError(
            f"{function}: {positional_only} positional-only and {keyword_only} keyword-only "
            f"parameters, expected together at most {count}"
        )


def _check_names(function: str, names: Sequence[str]) -> None:
    if not isinstance(function, str) or not is_name(function):
        raise ValueError(f"a function's name must be an identifier, but got {function!r}")
    if len(function) > LONGEST_NAME:
        raise ValueError(
            f"a function's name has {len(function)} characters, more than {LONGEST_NAME}"
        )
    seen: set[str] = set()
    for name in names:
        if not is_name(name):
            raise ValueError(
                f"{function}: a parameter's name must be an identifier, but got {name!r}"
            )
        if name in seen:
            raise ValueError(f"{function}: two parameters are named {name!r}")
        seen.add(name)


def _check_symbols(name: str, places: tuple[Place, ...]) -> None:
    seen: dict[Sym, Sym] = {}
    for symbol in (symbol for place in places for symbol in symbols_of(place.dim)):
        if isinstance(symbol.key, ValueOf):
            raise ValueError(
                f"{name}: the value of {symbol} is no size of a parameter: it can stand in the "
                f"arguments and launch sizes of a calling convention alone"
            )
        first = seen.setdefault(symbol, symbol)
        if first.facts != symbol.facts:
            bounded = (first.min, first.max) != (symbol.min, symbol.max)
            raise ValueError(
                f"{name}: the symbol {symbol} is used with different widths or "
                f"divisibilities{' or bounds' if bounded else ''}: {_facts(first, bounded)}, and "
                f"{_facts(symbol, bounded)}"
            )


def _facts(symbol: Sym, bounded: bool) -> str:
    bounds = f" in {symbol.bounds}" if symbol.bounds else " without bounds"
    text = f"int{symbol.width} divisible by {symbol.divisibility}"
    return text + bounds if bounded else text


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
