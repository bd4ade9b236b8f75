"""Pieces of support code stand in one assembly text, so no two may define the same label."""

from __future__ import annotations

import re
from collections import Counter

from ferrule.compiler import support, targets


def test_no_label_is_defined_twice() -> None:
    triple = targets.host_triple()
    pieces = [piece for piece in vars(support).values() if isinstance(piece, support.Support)]
    texts = [support.support_assembly((support.Need(piece),), triple) for piece in pieces]
    labels = Counter(
        label for text in texts for label in set(re.findall(r'^module asm "([\w.$]+):', text, re.M))
    )
    assert len(pieces) > 4
    assert [label for label, count in labels.items() if count > 1] == []
