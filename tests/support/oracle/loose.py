"""Symbols of a signature's expressions that no parameter is sure to tell."""

from __future__ import annotations

from collections.abc import Sequence

from ferrule.specs import Dim, Sym, symbols_of
from ferrule.specs.params import Param
from oracle.places import Spot, invertible, stated


def loose_symbols(params: Sequence[Param]) -> list[Sym]:
    """Symbols of expressions that no parameter is sure to tell."""
    found = list(stated(params))
    certain = {s.dim for s in found if s.size and not s.where.optional}
    return list(
        dict.fromkeys(
            symbol
            for spot in found
            if not isinstance(spot.dim, (int, Sym))
            for symbol in symbols_of(spot.dim)
            if symbol not in certain and symbol not in _beside(spot, found)
        )
    )


def _beside(spot: Spot, found: Sequence[Spot]) -> set[Dim]:
    """Symbols that are sizes of the same parameter."""
    return {s.dim for s in found if s.size and s.where == spot.where and isinstance(s.dim, Sym)}


def solvable(params: Sequence[Param], loose: Sequence[Sym]) -> bool:
    """Whether all of these stand bare nowhere and can be solved for."""
    found = list(stated(params))
    required = [s.dim for s in found if s.size and not s.where.optional]
    if any(spot.dim == symbol for spot in found for symbol in loose):
        return False
    return all(
        any(set(symbols_of(dim)) == {symbol} and invertible(dim, symbol) for dim in required)
        for symbol in loose
    )
