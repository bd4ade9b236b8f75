"""Assumptions of a function about its arguments beyond their types, and remarks for its author.

Both are texts. Assumptions are in the function's documentation and in `notes["assumes"]`, remarks
in `notes["remarks"]`, also in exported files. Some remarks are also a `BuildWarning`.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

from ferrule.compiler.conventions.arguments import listed, shown
from ferrule.compiler.wrapper.leaves import first_slots
from ferrule.specs import Condition, Signature, Tensor, aligned, divisible, format_condition

Assumption: TypeAlias = "str | Condition"

ASSUMES: Final = "assumes"
REMARKS: Final = "remarks"
_OURS: Final = str(Path(__file__).parents[1])


class BuildWarning(UserWarning):
    """A function can be built, but probably not as its author intends; for example, a C function
    writes a number that no caller gets."""


def assumed(
    signature: Signature, given: Sequence[Assumption], found: Iterable[str]
) -> tuple[str, ...]:
    """All assumptions, each once: from the specs, from the arguments of `build`, and from the
    calling conventions.

    Raises TypeError for an assumption that is neither a text nor a condition.
    """
    for each in listed(given, f"{signature.name}: assumes"):
        if not isinstance(each, str | Condition):
            raise TypeError(
                f"{signature.name}: an assumption is a text or a condition, but got {shown(each)}"
            )
    texts = (
        each if isinstance(each, str) else format_condition(each, signature.symbols)
        for each in (*_of_specs(signature), *given)
    )
    return tuple(dict.fromkeys((*texts, *found)))


def _of_specs(signature: Signature) -> Iterator[Condition]:
    """The conditions that the specs require beyond a dtype's own alignment: aligned addresses and
    divisible sizes."""
    for symbol in signature.symbols:
        if symbol.divisibility > 1:
            yield divisible(symbol, symbol.divisibility)
    for param, _ in first_slots(signature.params):
        if isinstance(param, Tensor) and param.align > param.dtype.itemsize:
            yield aligned(param.data, param.align)


def documented(doc: str | None, assumes: Sequence[str]) -> str | None:
    """A docstring with the assumptions appended."""
    if not assumes:
        return doc
    line = f"Assumes: {', '.join(assumes)}"
    return f"{doc.rstrip()}\n\n{line}" if doc else line


def noted(
    name: str, notes: Mapping[str, Any], assumes: Sequence[str], remarks: Sequence[str]
) -> dict[str, Any]:
    """Notes with assumptions and remarks, appended to the ones that the notes already have.

    Raises ValueError if a note has the same key, but is not a list of texts.
    """
    found = dict(notes)
    for key, texts in ((ASSUMES, assumes), (REMARKS, remarks)):
        before = found.get(key, [])
        if not isinstance(before, list) or not all(isinstance(each, str) for each in before):
            raise ValueError(f"{name}: notes[{key!r}] is a list of texts that `build` writes")
        if texts:
            found[key] = list(dict.fromkeys([*before, *texts]))
    return found


def warn(name: str, remarks: Sequence[str]) -> None:
    """A `BuildWarning` for each remark, at the line that called ferrule."""
    if not remarks:
        return
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_OURS):
        frame, level = frame.f_back, level + 1
    for each in remarks:
        warnings.warn(f"{name}: {each}", BuildWarning, stacklevel=level)
