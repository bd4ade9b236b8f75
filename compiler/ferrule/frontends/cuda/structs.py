"""Reads the members of plainly written structs from the text of a source.

A struct with methods, bases, arrays, bit fields or initialisers, in a template or packed, is not
read, and neither is one of a header.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

_PACKED: Final = re.compile(r"\bpack(?:ed)?\b|\balignas\b|\b__align__\b|\baligned\b")
_PLAIN: Final = re.compile(r"[\w\s*,]*")
_NAME: Final = re.compile(r"\w+")
_NAME_BEHIND: Final = re.compile(r"\w+\s*$")


def members_of(text: str, spelled: str) -> tuple[str, ...] | None:
    """The types of the members of a struct that a kernel takes by value, in their order; None
    where its definition is not found, not the only one, or not plain.  `text` has no comments."""
    name = spelled.removeprefix("struct ").strip()
    if not _NAME.fullmatch(name) or _PACKED.search(text):
        return None
    own = re.findall(rf"\bstruct\s+{name}\s*\{{([^{{}}]*)\}}", text)
    own += re.findall(rf"\btypedef\s+struct\s*\w*\s*\{{([^{{}}]*)\}}\s*{name}\s*;", text)
    if len(own) != 1 or len(re.findall(rf"\b(?:struct|class|union)\s+{name}\b\s*[{{:]", text)) > 1:
        return None
    lines = [each for each in own[0].split(";") if each.strip()]
    if not all(map(_PLAIN.fullmatch, lines)):
        return None
    return tuple(each for line in lines for each in _types(line))


def _types(line: str) -> Iterator[str]:
    """The types of what one declaration declares: of `float *x, y` float * and float."""
    first, *others = line.split(",")
    whole = _NAME_BEHIND.sub("", first)
    yield whole.strip()
    base = whole.partition("*")[0].strip()
    for each in others:
        stars = _NAME_BEHIND.sub("", each)
        yield f"{base} {stars}".strip()
