"""Prints the page of errors in Markdown: `python -m ferrule.compiler.messages.page`.

Each entry of the catalogue is a section: its code, the class of the error, its cause, an example,
and the fix.  The documentation contains this output, and a test compares the two.
"""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import wrap
from typing import Final

from ferrule.compiler.messages.advice import ADVICE
from ferrule.compiler.messages.catalogue import CATALOGUE, Entry

_HEAD: Final = """\
# Errors of a call, one by one

<!-- Made by python -m ferrule.compiler.messages.page; change the catalogue, not this page. -->

Everything that a wrapper refuses a call for. What the parts of a message are, in which order is
checked, and what Python refuses before the wrapper is called, is in
[errors of a call](call-errors.md). A code keeps its meaning; the words of a message may change.

**How errors are numbered.** `CALL` and two digits, the first for a group: 0 arguments and their
kinds, 1 rank, dtype and device, 2 sizes, strides and values, 3 addresses, 4 what the body needs,
5 bounds and requirements. A number is used once and is not used again for something else; there
are gaps. Messages do not contain them: every object carries its messages, and their texts are
what programs compare. `ferrule explain "…"` finds the number, the cause and the fix of a message,
and `ferrule explain CALL22` what a number means. A number that is not here, such as CALL17, means
nothing: no release has had it. Errors of a compilation have no numbers: each
says what to write instead.
"""
_GROUPS: Final = {
    "0": "Arguments and their kinds",
    "1": "Rank, dtype and device",
    "2": "Sizes, strides and values",
    "3": "Addresses",
    "4": "What the function's body needs",
    "5": "Bounds and requirements",
}


def example(entry: Entry) -> str:
    """A message of this entry."""
    return entry.template.format(**ADVICE[entry.code].example)


def opening(entry: Entry) -> str:
    """The start of the example: `Mismatched b.shape[0]`."""
    text = example(entry).partition(" when calling")[0]
    return text.partition(" on ")[0]


def page() -> str:
    """The whole page."""
    return "\n".join([_HEAD, *_table(), *(line for entry in CATALOGUE for line in _section(entry))])


def _table() -> Iterator[str]:
    yield "| code | class | when |"
    yield "|---|---|---|"
    for entry in CATALOGUE:
        yield f"| {entry.code} | `{entry.error}` | {entry.meaning} |"
    yield ""


def _section(entry: Entry) -> Iterator[str]:
    first = next(e for e in CATALOGUE if _group(e) == _group(entry))
    if entry is first:
        yield from (f"## {_group(entry)}", "")
    yield from (f"### {entry.code}: {opening(entry)}", "", entry.meaning, "")
    yield from ("```text", f"{entry.error}: {example(entry)}", "```", "")
    yield from (*wrap(ADVICE[entry.code].fix, 100, break_on_hyphens=False), "")


def _group(entry: Entry) -> str:
    return _GROUPS[entry.code.removeprefix("CALL")[0]]


if __name__ == "__main__":
    print(page(), end="")
