"""The lines of source files that `.loc` and `.file` name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from ferrule.emulator.ptx.module import Place
from ferrule.emulator.ptx.tokens import Token

_LOC: Final = re.compile(r"\.loc\s+(\d+)\s+(\d+)\s+\d+(?=\s|,|$)")
_FILE: Final = re.compile(r'\.file\s+(\d+)\s+"((?:\\.|[^"\\])*)"')


def files(tokens: Iterable[Token]) -> dict[int, str]:
    """The names of all files by their numbers, wherever in the text they stand."""
    return {
        int(found[1]): found[2]
        for token in tokens
        if token.kind == "file" and (found := _FILE.match(token.text))
    }


def place(text: str, names: Mapping[int, str]) -> Place | None:
    """The place that a `.loc` says; none for line 0, which is no line."""
    found = _LOC.match(text)
    if found is None or not int(found[2]):
        return None
    return Place(names.get(int(found[1]), "?"), int(found[2]))
