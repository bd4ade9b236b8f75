"""Tables, their cells, whole pages, and parts of the pages of others. Cells are escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

FRAGMENT_STYLE: Final = """
.ferrule table { border-collapse: collapse; color: inherit; background: none; margin: .4em 0; }
.ferrule th, .ferrule td { text-align: left; padding: 2px 14px 2px 0; border: 0;
  background: none; color: inherit; vertical-align: top; }
.ferrule tr { background: none !important; }
.ferrule th { font-weight: 500; opacity: .7; }
.ferrule td.n { text-align: right; font-variant-numeric: tabular-nums; }
.ferrule td.c, .ferrule code { font-family: ui-monospace, monospace; background: none;
  color: inherit; border: 0; padding: 0; }
.ferrule td.c { padding-right: 14px; }
.ferrule .faint { opacity: .7; }
.ferrule .wide { overflow-x: auto; }
"""
"""The style of a part of a page, with the colours of that page."""

_NOTHING: Final = '<span class="faint">nothing</span>'


def page(title: str, style: str, body: str, script: str = "") -> str:
    """A whole page, which needs nothing from elsewhere and has light and dark colours."""
    ending = f"<script>{script}</script>\n" if script else ""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(title)}</title>\n<style>{style}</style>\n</head>\n<body>\n"
        f"{body}{ending}</body>\n</html>\n"
    )


def fragment(body: str) -> str:
    """A part of a page, with its style."""
    return f'<div class="ferrule">\n<style>{FRAGMENT_STYLE}</style>\n{body}</div>\n'


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of cells, in a box that scrolls sideways; without a head if no text is in it."""
    top = "".join(f'<th scope="col">{escape(each)}</th>' for each in heads)
    lines = "".join(f"<tr>{''.join(row)}</tr>\n" for row in rows)
    head = f"<tr>{top}</tr>\n" if any(heads) else ""
    return f'<div class="wide"><table>\n{head}{lines}</table></div>\n'


def cell(text: str) -> str:
    """A cell of text."""
    return f"<td>{escape(text)}</td>"


def number(value: int | str) -> str:
    """A cell of a number, at the right; ints get commas."""
    shown = f"{value:,}" if isinstance(value, int) else escape(value)
    return f'<td class="n">{shown}</td>'


def code(text: str) -> str:
    """A cell of code."""
    return f'<td class="c">{escape(text)}</td>'


def lines(texts: Iterable[str]) -> str:
    """A cell of several lines; "nothing" without any."""
    shown = "<br>".join(map(escape, texts))
    return f"<td>{shown or _NOTHING}</td>"
