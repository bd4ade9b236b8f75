"""Demangles the names of C++ functions, including instances of templates.

By the Itanium C++ ABI, 5.1.3 to 5.1.5: `_Z`, then a length and a name, or several of these between
`N` and `E`; a template's name is followed by its arguments between `I` and `E`.  Of arguments, only
built-in types, names and integers are read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from types import MappingProxyType
from typing import Final

_LENGTH: Final = re.compile(r"\d+")
BUILT_IN: Final = MappingProxyType(
    {
        "b": "bool",
        "c": "char",
        "a": "signed char",
        "h": "unsigned char",
        "s": "short",
        "t": "unsigned short",
        "i": "int",
        "j": "unsigned int",
        "l": "long",
        "m": "unsigned long",
        "x": "long long",
        "y": "unsigned long long",
        "f": "float",
        "d": "double",
    }
)
_LITERAL: Final = re.compile(r"L([bcahstijlmxy])(n?)(\d+)E")
LONGEST: Final = 512
"""Longer symbols are not demangled: nobody wants to write such a name."""


def spoken_name(symbol: str) -> str:
    """`ns::add` for `_ZN2ns3addEPf`, `scale<float, 4>` for `_Z5scaleIfLi4EEvPT_`; any other symbol
    is returned unchanged."""
    if len(symbol) > LONGEST:
        return symbol
    rest = symbol.removeprefix("_Z")
    nested = rest.startswith("N")
    rest, parts = rest[nested:], list[str]()
    while rest != symbol and (found := _named(rest)):
        part, rest = found
        parts.append(part)
        if not nested:
            break
    is_whole = parts and (rest[:1] == "E" or not nested)
    return "::".join(parts) if is_whole else symbol


def by_spoken_names(symbols: Iterable[str]) -> dict[str, str]:
    """Symbols by their demangled names; by the symbol itself if several have the same name."""
    listed = list(symbols)
    spoken = [spoken_name(symbol) for symbol in listed]
    return {
        name if spoken.count(name) == 1 else symbol: symbol
        for name, symbol in zip(spoken, listed, strict=True)
    }


def _named(text: str) -> tuple[str, str] | None:
    """The name at the start of a text, with template arguments, and the rest of the text."""
    found = _lengthy(text)
    if found is None or not found[1].startswith("I"):
        return found
    name, rest = found[0], found[1][1:]
    arguments = list[str]()
    while not rest.startswith("E"):
        argument = _argument(rest)
        if argument is None:
            return None
        arguments.append(argument[0])
        rest = argument[1]
    return f"{name}<{', '.join(arguments)}>", rest[1:]


def _lengthy(text: str) -> tuple[str, str] | None:
    """A name that its length precedes, and the rest of the text."""
    length = _LENGTH.match(text)
    if length is None:
        return None
    end = length.end() + int(length[0])
    return (text[length.end() : end], text[end:]) if length.end() < end <= len(text) else None


def _argument(text: str) -> tuple[str, str] | None:
    """A template argument, and the rest of the text; None if it is not supported."""
    if text[:1] in BUILT_IN:
        return BUILT_IN[text[:1]], text[1:]
    literal = _LITERAL.match(text)
    if literal is None:
        return _named(text)
    number = f"{'-' if literal[2] else ''}{literal[3]}"
    is_bool = literal[1] == "b" and number in ("0", "1")
    return ("false", "true")[int(number)] if is_bool else number, text[literal.end() :]
