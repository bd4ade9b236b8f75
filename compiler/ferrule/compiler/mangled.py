"""The names of C++'s functions as its sources have them, of those that are no templates.

By the Itanium C++ ABI, 5.1.3: `_Z`, then a length and a name, or several of these between `N` and
`E`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

_LENGTH: Final = re.compile(r"\d+")


def spoken_name(symbol: str) -> str:
    """`ns::add` of `_ZN2ns3addEPf`; a symbol of another kind as it is."""
    rest = symbol.removeprefix("_Z")
    nested = rest.startswith("N")
    rest, parts = rest[nested:], list[str]()
    while rest != symbol and (length := _LENGTH.match(rest)):
        end = length.end() + int(length[0])
        parts.append(rest[length.end() : end])
        rest = rest[end:]
        if not nested:
            break
    is_whole = parts and rest[:1] != "I" and (rest[:1] == "E" or not nested)
    return "::".join(parts) if is_whole else symbol


def by_spoken_names(symbols: Iterable[str]) -> dict[str, str]:
    """Symbols by their spoken names; by themselves where several are called alike."""
    listed = list(symbols)
    spoken = [spoken_name(symbol) for symbol in listed]
    return {
        name if spoken.count(name) == 1 else symbol: symbol
        for name, symbol in zip(spoken, listed, strict=True)
    }
