"""`ferrule explain`: the number, the cause and the fix of an error of a call, from its message."""

from __future__ import annotations

import argparse
import re
import sys
from textwrap import wrap

from ferrule.commands.output import Failure, Output
from ferrule.compiler.messages.advice import ADVICE
from ferrule.compiler.messages.catalogue import Entry
from ferrule.compiler.messages.finding import entry_of, neighbours, numbered
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
