"""What can be fuzzed.  A campaign turns a seed into a case, and a case into a verdict.

A case is plain data, which JSON can hold: what failed is saved and run again without the generator
that made it, which may be another one by then.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, Protocol

Case = dict[str, Any]


@dataclass(frozen=True)
class Failure:
    """A case that failed, and what is wrong, in words."""

    case: Case
    problem: str


class Campaign(Protocol):
    """A module of this package with these functions, and `UNIT`, the plural of what it counts."""

    UNIT: str

    def run(self, seed: int) -> Iterator[int | Failure]:
        """Runs what a seed stands for.  Yields how many more passed, and what failed."""

    def replay(self, case: Case) -> str | None:
        """What is wrong with a case that was saved; None where nothing is."""


SHARES: Final[Mapping[str, int]] = MappingProxyType(
    {
        "programs": 4,
        "ptx": 4,
        "constants": 4,
        "cooperation": 1,
        "neighbours": 1,
        "phases": 1,
        "calls": 4,
        "entries": 2,
        "files": 1,
    }
)
"""All campaigns, and how much of the time each gets."""
ASKED: Final[Mapping[str, int]] = MappingProxyType({"pipelines": 4, "recordings": 4})
"""Those that run only where they are asked for, since they need other packages."""


def campaign(name: str) -> Campaign:
    """A campaign by its name.  Raises ValueError for one that there is not."""
    if name not in {**SHARES, **ASKED}:
        raise ValueError(f"expected one of {', '.join([*SHARES, *ASKED])}, but got {name!r}")
    module: Any = importlib.import_module(f"fuzz.{name}")
    return module  # type: ignore[no-any-return]
