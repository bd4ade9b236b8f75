"""What a C++ function takes, as its symbol says it.

By the Itanium C++ ABI, 5.1: behind the name of a function stand the types of its parameters, behind
that of a template's instance that of its result before them.  What was said once is referred to by
its number (5.1.10), a template's parameter is `T_`.  A symbol with anything that is not read here,
such as expressions and member pointers, says nothing: the answer is None, never a guess.
"""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import Final

from ferrule.compiler.mangled import BUILT_IN, LONGEST

_MORE: Final = MappingProxyType(
    {
        "v": "void",
        "w": "wchar_t",
        "n": "__int128",
        "o": "unsigned __int128",
        "e": "long double",
        "g": "__float128",
        "DF16_": "_Float16",
        "DF16b": "__bf16",
        "Dh": "_Float16",
        "Ds": "char16_t",
        "Di": "char32_t",
        "Du": "char8_t",
        "Dn": "decltype(nullptr)",
    }
)
_SIMPLE: Final = MappingProxyType({**BUILT_IN, **_MORE})
_LENGTH: Final = re.compile(r"\d+")
_NUMBERED: Final = re.compile(r"([ST])([0-9A-Z]*)_")
_NUMBER: Final = re.compile(r"(n?)(\d+)E")
_BITS: Final = re.compile(r"([0-9a-f]+)E")
_ARRAY: Final = re.compile(r"A(\d*)_")
_VECTOR: Final = re.compile(r"Dv(\d+)_")
_QUALIFIERS: Final = re.compile(r"r?V?K?")
_WORDS: Final = (("K", "const"), ("V", "volatile"), ("r", "__restrict__"))
_NO_NAME: Final = "_GLOBAL__N_"
"""What a namespace without a name begins with: gcc and clang put a 1 behind, nvcc a file."""
_PACK: Final = "DpT_"


class _NotRead(Exception):
    """The symbol has something that is not read here."""


def parameter_types(symbol: str) -> tuple[str, ...] | None:
    """The types of the parameters, as C++ writes them: `("const float *", "unsigned int")` of
    `_Z3addPKfj`.  None for a symbol that does not say them, and for one that is not read."""
    if not symbol.startswith("_Z") or len(symbol) > LONGEST:
        return None
    try:
        return _Reader(symbol[2:]).parameters()
    except _NotRead:
        return None


class _Reader:
    """A symbol that is read from left to right."""

    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0
        self._said: Final = list[str]()
        """What can be referred to by its number."""
        self._given: tuple[str, ...] = ()
        """The arguments of the function's own template."""

    def parameters(self) -> tuple[str, ...]:
        """See `parameter_types`."""
        is_instance = self._function_name()
        if is_instance:
            self._type()
        types = self._types()
        if not types or self._at != len(self._text):
            raise _NotRead
        return () if types == ["void"] else tuple(types)

    # ---- the text ----

    def _starts(self, word: str) -> bool:
        return self._text.startswith(word, self._at)

    def _take(self, word: str) -> bool:
        """Go behind a word where the text goes on with it."""
        found = self._starts(word)
        self._at += len(word) if found else 0
        return found

    def _match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        found = pattern.match(self._text, self._at)
        if found is not None:
            self._at = found.end()
        return found

    def _keep(self, said: str) -> str:
        self._said.append(said)
        return said

    # ---- names ----

    def _function_name(self) -> bool:
        """Read the name of the function; whether it is a template's instance."""
        name, given = self._nested() if self._take("N") else self._plain()
        if not name:
            raise _NotRead
        self._given = given or ()
        return given is not None

    def _plain(self) -> tuple[str, tuple[str, ...] | None]:
        """A name that is in no namespace or in std, and the arguments of its template."""
        name = "std::" + self._identifier() if self._take("St") else self._identifier()
        if not self._starts("I"):
            return name, None
        self._keep(name)
        given = self._arguments()
        return f"{name}<{', '.join(given)}>", given

    def _nested(self) -> tuple[str, tuple[str, ...] | None]:
        """A name between N and E, and the arguments of its last template."""
        name, given, is_new = "", None, False
        self._match(_QUALIFIERS)
        while not self._take("E"):
            if is_new:
                self._keep(name)
            if self._starts("I"):
                given = self._arguments()
                name, is_new = f"{name}<{', '.join(given)}>", True
            elif not name and self._starts("S"):
                name, is_new = self._standard_or_said(), False
            else:
                part = self._identifier()
                name, given, is_new = f"{name}::{part}" if name else part, None, True
        return name, given

    def _standard_or_said(self) -> str:
        return "std" if self._take("St") else self._numbered()

    def _identifier(self) -> str:
        """A name behind its length; `L` before it says that it is static."""
        self._take("L")
        length = self._match(_LENGTH)
        end = self._at + (int(length[0]) if length and len(length[0]) < 4 else 0)
        if not self._at < end <= len(self._text):
            raise _NotRead
        name, self._at = self._text[self._at : end], end
        return "(anonymous namespace)" if name.startswith(_NO_NAME) else name

    # ---- types ----

    def _types(self) -> list[str]:
        """The types up to the end, or to an E."""
        found = list[str]()
        while self._at < len(self._text) and not self._starts("E"):
            if self._take(_PACK):
                raise _NotRead
            found.append(self._type())
        return found

    def _type(self) -> str:
        for width in (5, 2, 1):
            word = self._text[self._at : self._at + width]
            if word in _SIMPLE:
                self._at += len(word)
                return _SIMPLE[word]
        qualifiers = self._match(_QUALIFIERS)
        if qualifiers is not None and qualifiers[0]:
            return self._keep(_qualified(self._type(), qualifiers[0]))
        for word, sign in (("P", "*"), ("R", "&"), ("O", "&&")):
            if self._take(word):
                return self._keep(_pointing(self._type(), sign))
        return self._larger()

    def _larger(self) -> str:
        if self._take("F"):
            return self._keep(self._function())
        if self._take("C"):
            return self._keep(f"_Complex {self._type()}")
        if found := self._match(_ARRAY):
            return self._keep(f"{self._type()} [{found[1]}]")
        if found := self._match(_VECTOR):
            return self._keep(f"__vector({found[1]}) {self._type()}")
        if self._starts("T"):
            return self._keep(self._numbered())
        if self._starts("S") and not self._starts("St"):
            return self._instance_of_said()
        if self._take("u"):
            return self._keep(self._identifier())
        return self._class()

    def _function(self) -> str:
        self._take("Y")
        result, *taken = self._types()
        if not self._take("E") or not taken:
            raise _NotRead
        return f"{result} ({', '.join(taken)})"

    def _class(self) -> str:
        name, _ = self._nested() if self._take("N") else self._plain()
        return self._keep(name)

    def _instance_of_said(self) -> str:
        name = self._numbered()
        if not self._starts("I"):
            return name
        return self._keep(f"{name}<{', '.join(self._arguments())}>")

    def _numbered(self) -> str:
        """What `S_`, `S0_`, `T_` and so on stand for; the number has base 36."""
        found = self._match(_NUMBERED)
        if found is None:
            raise _NotRead
        number = int(found[2], 36) + 1 if found[2] else 0
        known = self._said if found[1] == "S" else self._given
        if number >= len(known):
            raise _NotRead
        return known[number]

    # ---- the arguments of templates ----

    def _arguments(self) -> tuple[str, ...]:
        if not self._take("I"):
            raise _NotRead
        found = list[str]()
        while not self._take("E"):
            found.append(self._literal() if self._take("L") else self._type())
        return tuple(found)

    def _literal(self) -> str:
        kind = self._type()
        if kind in ("float", "double") and (bits := self._match(_BITS)):
            return bits[1]
        number = self._match(_NUMBER)
        if number is None:
            raise _NotRead
        value = f"{'-' if number[1] else ''}{number[2]}"
        return ("false", "true")[int(value)] if kind == "bool" and value in ("0", "1") else value


def _qualified(kind: str, letters: str) -> str:
    words = " ".join(word for letter, word in _WORDS if letter in letters)
    return f"{kind} {words}" if kind.endswith("*") else f"{words} {kind}"


def _pointing(kind: str, sign: str) -> str:
    for bracket in ("(", "["):
        before, found, behind = kind.partition(f" {bracket}")
        if found and not before.endswith("("):
            return f"{before} ({sign}){bracket}{behind}"
    return f"{kind} {sign}"
