"""Functions that are defined inside a compiled function."""

from __future__ import annotations

from dataclasses import dataclass

from ferrule.language.source import Source


@dataclass(frozen=True, slots=True, eq=False)
class Closure:
    """A lambda or a nested def: its source, with the names that were visible at its definition."""

    source: Source
