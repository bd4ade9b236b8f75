"""Which entry of the catalogue a message is of: `ferrule explain` asks."""

from __future__ import annotations

import re

from ferrule.compiler.messages.catalogue import CATALOGUE, Entry


def entry_of(text: str) -> Entry | None:
    """The entry whose template a text has, wherever in it: of several the most special one.

    `text` may have a traceback around the message, and be broken into lines anywhere.
    """
    whole = " ".join(text.split())
    fitting = [each for each in CATALOGUE if _pattern(each).search(whole)]
    return max(fitting, key=_written, default=None)


def numbered(code: str) -> Entry | None:
    """The entry with this number, in letters of any case."""
    return next((each for each in CATALOGUE if each.code == code.upper()), None)


def neighbours(code: str) -> list[str]:
    """The numbers before and behind one that nothing has."""
    codes = [each.code for each in CATALOGUE]
    before = [each for each in codes if each < code.upper()]
    behind = [each for each in codes if each > code.upper()]
    return [*before[-1:], *behind[:1]]


def _pattern(entry: Entry) -> re.Pattern[str]:
    parts = (re.escape(text) + ("" if name is None else ".*") for text, name in entry.pieces)
    return re.compile("".join(parts))


def _written(entry: Entry) -> int:
    """How many characters of a message its template says."""
    return sum(len(text) for text, _ in entry.pieces)
