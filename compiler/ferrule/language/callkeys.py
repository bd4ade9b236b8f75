"""Keys of direct calls: two calls with equal keys are served by the same compiled function."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ferrule.language.dependencies.snapshots import Same, snapshot
from ferrule.language.source import is_hashable
from ferrule.specs import Sym, params
from ferrule.specs.binding import Path
from ferrule.specs.copies import changed, mapped, substituted
from ferrule.specs.expr import Dim, symbols_of


def params_key(given: tuple[params.Param, ...]) -> tuple[object, ...]:
    """The parameters as a key; an unhashable default is replaced like a constant's value.

    Symbols are numbered in the order in which they come: each call makes symbols of its own for
    sizes that may be others in the next.
    """
    numbers: dict[Sym, Dim] = {}
    for param in given:
        for symbol in _symbols(param):
            numbers.setdefault(symbol, Sym((len(numbers), symbol.name, symbol.facts)))
    alike = [substituted(param, numbers) if numbers else param for param in given]
    return tuple(
        each if is_hashable(each) else (changed(each, default=params.REQUIRED), _told(each.default))
        for each in alike
    )


def _symbols(param: params.Param) -> Iterator[Sym]:
    """The symbols in the sizes and strides of a parameter, in order."""
    found: list[Sym] = []

    def look(each: params.Param) -> params.Param:
        match each:
            case params.Tensor(shape=shape, strides=strides):
                dims = (*shape, *strides)
            case params.Shape(dims=dims):
                pass
            case _:
                return each
        found.extend(symbol for dim in dims for symbol in symbols_of(dim))
        return each

    mapped(param, look)
    yield from found


def constants_key(constants: Mapping[str, Any]) -> tuple[object, ...]:
    """A key for the values of Constexpr parameters.

    An object of a user's class is compared by value if it has a hash, else by identity.
    """
    return tuple((name, _told(value)) for name, value in constants.items())


def classes_key(classes: Mapping[Path, Any]) -> tuple[object, ...]:
    """A key for what tuples become: classes, and objects, which are compared like constants."""
    return tuple(
        (path, each if isinstance(each, type) else _told(each)) for path, each in classes.items()
    )


def _told(value: Any) -> object:
    found = snapshot(value)
    known_by_value = isinstance(found, Same) and is_hashable(value)
    return (type(value), value) if known_by_value else found
