"""Pieces of support code stand in one assembly text, so no two may define the same label."""

from __future__ import annotations

import re
from collections import Counter

from ferrule.compiler import targets
from ferrule.compiler.support import library


def test_no_label_is_defined_twice() -> None:
    triple = targets.host_triple()
    pieces = [piece for piece in vars(library).values() if isinstance(piece, library.Support)]
    texts = [library.support_assembly((library.Need(piece),), triple) for piece in pieces]
    labels = Counter(
        label for text in texts for label in set(re.findall(r'^module asm "([\w.$]+):', text, re.M))
    )
    assert len(pieces) > 4
    assert [label for label, count in labels.items() if count > 1] == []
