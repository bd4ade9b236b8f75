"""The names of C++'s functions as its sources have them, templates' instances among them.

By the Itanium C++ ABI, 5.1.3 to 5.1.5: `_Z`, then a length and a name, or several of these between
`N` and `E`; behind a template's name its arguments between `I` and `E`.  Of arguments those are
read that are built-in types, names, and integers.
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
"""Of a longer symbol nobody wants to write the name."""


def spoken_name(symbol: str) -> str:
    """`ns::add` of `_ZN2ns3addEPf`, `scale<float, 4>` of `_Z5scaleIfLi4EEvPT_`; a symbol of
    another kind as it is."""
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
    """Symbols by their spoken names; by themselves where several are called alike."""
    listed = list(symbols)
    spoken = [spoken_name(symbol) for symbol in listed]
    return {
        name if spoken.count(name) == 1 else symbol: symbol
        for name, symbol in zip(spoken, listed, strict=True)
    }


def _named(text: str) -> tuple[str, str] | None:
    """The name that a text begins with, a template's with its arguments, and what is behind it."""
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
    """The name behind its length, and what is behind it."""
    length = _LENGTH.match(text)
    if length is None:
        return None
    end = length.end() + int(length[0])
    return (text[length.end() : end], text[end:]) if length.end() < end <= len(text) else None


def _argument(text: str) -> tuple[str, str] | None:
    """A template's argument, and what is behind it; None for one that is not read."""
    if text[:1] in BUILT_IN:
        return BUILT_IN[text[:1]], text[1:]
    literal = _LITERAL.match(text)
    if literal is None:
        return _named(text)
    number = f"{'-' if literal[2] else ''}{literal[3]}"
    is_bool = literal[1] == "b" and number in ("0", "1")
    return ("false", "true")[int(number)] if is_bool else number, text[literal.end() :]
