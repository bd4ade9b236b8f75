"""Replaces bfloat16 in LLVM IR by integers, where code only moves the values.

LLVM's code generator keeps a bfloat16 that is live across blocks as a float, and converts it back
by a library function that few systems have.
"""

from __future__ import annotations

import re
from typing import Final

_TYPE: Final = re.compile(r"(?<![\w.%@$\"-])bfloat\b")
_CONSTANT: Final = re.compile(r"\b0xR([0-9A-Fa-f]{4})\b")
_STRING: Final = re.compile(r' c"')
_MOVED: Final = re.compile(
    r"(?:%[\w.]+ = )?(?:load|store|phi|select|bitcast|ret|insertvalue|extractvalue|insertelement|"
    r"extractelement|shufflevector|getelementptr|alloca|freeze|(?:\w+ )*?call)\b|define\b|@|"
    r"%[\w.]+ = type\b|\]"
)
_OUTSIDE: Final = re.compile(r"declare (?!.*@llvm\.)")
_INTRINSIC: Final = re.compile(r"@llvm\.[\w.]*bf16")
_DECIMAL: Final = re.compile(r"[-+]?\d+\.\d+(?:e[-+]\d+)?\b")


def without_bfloat(text: str) -> str:
    """The module with `i16` for `bfloat`; unchanged if it computes with bfloat16, or passes it to
    external functions."""
    lines = text.split("\n")
    used = [place for place, line in enumerate(lines) if _is_about(line)]
    if not all(_is_moved(lines[place].strip()) for place in used):
        return text
    for place in used:
        lines[place] = _TYPE.sub("i16", _CONSTANT.sub(_bits, lines[place]))
    return "\n".join(lines)


def _is_about(line: str) -> bool:
    return not _STRING.search(line) and bool(_TYPE.search(line) or _INTRINSIC.search(line))


def _is_moved(line: str) -> bool:
    """Whether a line only moves such floats, so that it can move their bits instead."""
    if _OUTSIDE.match(line) or _INTRINSIC.search(line) or _DECIMAL.search(line):
        return False
    return bool(_MOVED.match(line) or line.startswith("declare"))


def _bits(found: re.Match[str]) -> str:
    return str(int(found[1], 16))
