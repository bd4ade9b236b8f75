"""PTX text, cut into tokens that know their line."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from ferrule.emulator.ptx.module import PtxError


class Token(NamedTuple):
    """`kind` is one of loc, file, string, number, word, directive, mark, end."""

    kind: str
    text: str
    line: int


_TOKEN: Final = re.compile(
    r"(?P<space>[^\S\n]+|//[^\n]*)"
    r"|(?P<newline>\n)"
    r"|(?P<comment>/\*.*?\*/)"
    r"|(?P<loc>\.loc\b[^\n]*)"
    r"|(?P<file>\.file\b[^\n]*)"
    r'|(?P<string>"(?:\\.|[^"\\\n])*")'
    r"|(?P<number>0[fF][0-9a-fA-F]{8}\b|0[dD][0-9a-fA-F]{16}\b|0[xX][0-9a-fA-F]+U?\b|0[bB][01]+U?\b"
    r"|\d+\.\d*(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\d+U?\b)"
    r"|(?P<word>[%$_A-Za-z][\w$]*(?:(?:\.|::)[\w$]+)*)"
    r"|(?P<directive>\.[A-Za-z_]\w*(?:::\w+)?)"
    r"|(?P<mark>/(?!\*)|[-+*,;:{}()\[\]<>=@!|])",
    re.DOTALL,
)


def tokens(text: str) -> list[Token]:
    """All tokens, and one of kind `end`.  PtxError where no token begins."""
    found: list[Token] = []
    at, line = 0, 1
    for match in _TOKEN.finditer(text):
        if match.start() != at:
            break
        at = match.end()
        kind, word = match.lastgroup, match[0]
        if kind == "space":
            continue
        if kind == "newline" or kind == "comment":
            line += word.count("\n")
        else:
            found.append(Token(str(kind), word, line))
    if at < len(text):
        raise PtxError(_wrong(text, at), line)
    found.append(Token("end", "the end of the text", line))
    return found


def _wrong(text: str, at: int) -> str:
    if text.startswith("/*", at):
        return "the text ends inside of a /* comment"
    if text[at] == '"':
        return "a string without its end"
    return f"{text[at : at + 12].split()[0]!r} begins nothing that PTX has"
