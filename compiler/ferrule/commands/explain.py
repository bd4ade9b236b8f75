"""`ferrule explain`: the number, the cause and the fix of an error of a call, from its message."""

from __future__ import annotations

import argparse
import re
import sys
from textwrap import wrap

from ferrule.commands.output import Failure, Output
from ferrule.compiler.messages.advice import ADVICE
from ferrule.compiler.messages.catalogue import CATALOGUE, Entry
from ferrule.compiler.messages.page import example


def run(given: argparse.Namespace, output: Output) -> int:
    """Run the command; returns the exit code."""
    text = sys.stdin.read() if given.message == ["-"] else " ".join(given.message)
    entry = _entry(text.strip())
    fix = ADVICE[entry.code].fix
    output.put(code=entry.code, error=entry.error, meaning=entry.meaning, fix=fix)
    output.line(f"{entry.code}, a {entry.error}: {entry.meaning}")
    output.line()
    for line in wrap(fix, 90, break_on_hyphens=False):
        output.line(line)
    output.line()
    output.line("for example:")
    for line in wrap(example(entry), 86, break_on_hyphens=False):
        output.line(f"    {line}")
    return 0


def _entry(text: str) -> Entry:
    if re.fullmatch(r"(?i)CALL\d+", text):
        found = numbered(text)
        if found is None:
            raise Failure(
                f"no error has the number {text.upper()}: those beside it are "
                f"{' and '.join(neighbours(text))}"
            )
        return found
    entry = entry_of(text)
    if entry is None:
        raise Failure(
            "this is no message of a call that a wrapper refused, which alone have numbers: give "
            "the whole message, with `when calling`. Errors of a compilation say themselves what "
            "to write instead"
        )
    return entry


# ---- the entry of the catalogue that a message is of ----


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
