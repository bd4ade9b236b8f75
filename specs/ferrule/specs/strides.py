"""Strides that a function is given as numbers.

In a dim of size 0 or 1 a stride moves no element, and so it is arbitrary there.  A kernel that is
told the stride may use it otherwise, as the distance of rows that it counts itself.  So the strides
that are such a number are a tensor's `exact_strides`: a call has them, or is refused.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Final

from ferrule.specs.binding import places_of
from ferrule.specs.copies import with_exact_dims, with_exact_strides, with_tensors
from ferrule.specs.expr import Dim, Sym, symbols_of
from ferrule.specs.params import Param, Tensor
from ferrule.specs.signature import Signature

_NONE: Final[Mapping[str, Sequence[int]]] = MappingProxyType({})


def exactly(
    params: tuple[Param, ...],
    signature: Signature,
    numbers: Collection[Sym],
    described: Collection[Sym] = (),
    exact: Mapping[str, Sequence[int]] = _NONE,
) -> tuple[Param, ...]:
    """The parameters, with exact strides where these are symbols that the body computes with.

    `described` are those that it hands on as strides of a tensor: they are exact where this refuses
    no call, because they are one stride alone, and any number.  Symbols of the requirements count
    among the numbers.  `exact` are dims of tensors whose strides are exact besides, by their names
    in messages.
    """
    required = {symbol for each in signature.requires for symbol in each.symbols}
    alone = {symbol for symbol in described if _is_free(symbol) and _count(signature, symbol) == 1}
    found = _of_strides(signature, {*numbers, *required, *alone})
    marked = (with_exact_strides(param, found) for param in params)
    return tuple(with_tensors(param, partial(_with_exact, exact)) for param in marked)


def _with_exact(exact: Mapping[str, Sequence[int]], name: str, tensor: Tensor) -> Tensor:
    return with_exact_dims(tensor, exact.get(name, ()))


def _of_strides(signature: Signature, symbols: Collection[Sym]) -> frozenset[Dim]:
    """Those of the symbols that strides alone bind."""
    bindings = (each for each in signature.bindings if each.places[0].kind == "strides")
    return frozenset(each.symbol for each in bindings if each.symbol in symbols)


def _is_free(symbol: Sym) -> bool:
    return symbol.width == 64 and symbol.divisibility == 1 and not symbol.bounds


def _count(signature: Signature, symbol: Sym) -> int:
    """How many strides are made of a symbol."""
    return sum(symbol in symbols for symbols in _symbols(signature))


def _symbols(signature: Signature) -> Iterator[set[Sym]]:
    return (
        set(symbols_of(each.dim)) for each in places_of(signature.params) if each.kind == "strides"
    )
