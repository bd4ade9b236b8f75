"""Reads a header declaration by declaration, where pycparser does not read it whole.

Headers have declarations that are not C99: attributes of C23, types of one compiler.  Each is read
by itself, after typedefs of the names that it uses; one that cannot be read is left out, with the
parser's reason, and all others stay.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import field
from typing import Any, Final

from ferrule.specs.deferred import dataclass

_MARKER: Final = re.compile(r'#\s*(?:line\s+)?\d+\s+"([^"]*)"')
_TOKEN: Final = re.compile(r"""
    "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*' | ^[ \t]*\#[^\n]*$ | [{}()\[\];]
""", re.VERBOSE | re.MULTILINE)  # fmt: skip
_CALLED: Final = re.compile(r"([A-Za-z_]\w*)\s*\(")
_LAST: Final = re.compile(r"([A-Za-z_]\w*)\s*(?:\[[^\]]*\]\s*)*;\s*$")
_PLACE: Final = re.compile(r"^[^\n]*?:\d+:\d+:\s*")
_NAME: Final = re.compile(r"[A-Za-z_]\w*")
_NO_NAMES: Final = frozenset(
    {"__attribute__", "__attribute", "_BitInt", "__typeof__", "typeof", "_Alignas", "alignas"}
    | {"__declspec", "_Static_assert", "static_assert", "__asm__", "_Atomic", "__asm", "sizeof"}
)


@dataclass(frozen=True, slots=True)
class Piece:
    """A declaration: its text, with the line marker before it, and the file that it is from."""

    text: str
    file: str

    @property
    def function(self) -> str | None:
        """The name of the function that it declares, by its looks; None for other declarations."""
        if self.text.lstrip().startswith("typedef"):
            return None
        listed = (found[1] for found in _CALLED.finditer(_without_markers(self.text)))
        return next((each for each in listed if each not in _NO_NAMES), None)

    @property
    def typedef(self) -> str | None:
        """The name of the type that it declares, if it is that of a struct or union: an address of
        one can be handed over, whatever its members are."""
        text = _without_markers(self.text).strip()
        found = _LAST.search(text) if re.match(r"typedef\s+(struct|union)\b", text) else None
        return None if found is None else found[1]


@dataclass(slots=True)
class Read:
    """What of a header could be read: syntax trees, and why functions could not, by name, with the
    file of each."""

    trees: list[Any] = field(default_factory=list)
    odd: dict[str, tuple[str, str]] = field(default_factory=dict)


def read_pieces(text: str, name: str, parser: Any) -> Read:
    """The declarations of a text, each read by itself; `parser` is pycparser's module."""
    read, types = Read(), dict[str, None]()
    for piece in _pieces(text, name):
        used = set(_NAME.findall(piece.text))
        # pycparser must know which names are types; which types they are changes nothing in its
        # tree.
        before = "".join(f"typedef int {each};\n" for each in types if each in used)
        count = before.count("\n")
        try:
            found = parser.CParser().parse(before + piece.text, name).ext[count:]
        except parser.ParseError as error:
            opaque = piece.typedef
            if opaque is not None:
                types[opaque] = None
                shown = f"typedef struct ferrule_odd_{opaque} {opaque};"
                read.trees += parser.CParser().parse(shown, name).ext
            if piece.function is not None:
                read.odd[piece.function] = _reason(str(error)), piece.file
            continue
        types |= {each.name: None for each in found if type(each).__name__ == "Typedef"}
        read.trees += found
    return read


def _reason(error: str) -> str:
    """Why a declaration cannot be read; the parser says a place before it."""
    said = _PLACE.sub("", error).replace("before: ", "at ")
    return f"its declaration cannot be read: {said}"


def _without_markers(text: str) -> str:
    return re.sub(r"^[ \t]*#[^\n]*$", "", text, flags=re.MULTILINE)


def _pieces(text: str, name: str) -> Iterator[Piece]:
    """The declarations of a preprocessed text, in their order."""
    depth = start = 0
    file, marker, is_body = name, "", False
    for found in _TOKEN.finditer(text):
        token, end = found[0].strip(), found.end()
        if token.startswith("#"):
            if not text[start : found.start()].strip() and depth == 0:
                start = end
            known = _MARKER.match(token)
            file, marker = (known[1], token) if known is not None else (file, marker)
            continue
        if token in "([{":
            is_body = (
                token == "{" and depth == 0 and text[start : found.start()].endswith((")", ") "))
            )
            depth += 1
        elif token in ")]}":
            depth -= 1
        if depth == 0 and (token == ";" or (token == "}" and is_body)):
            yield Piece(f"{marker}\n{text[start:end]}\n", file)
            start = end
