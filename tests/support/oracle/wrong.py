"""The first error of a call, as the oracle knows it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Wrong:
    """The class of an error and how its message may begin; `clause` stands in it.

    A message that begins in a way of its own for each kind is known by the words that say where:
    such an opening begins with `*`.
    """

    kind: str
    opening: str
    clause: str = ""

    def fits(self, kind: str, message: str) -> bool:
        """Whether this is that error."""
        somewhere = self.opening.startswith("*")
        begins = self.opening[1:] in message if somewhere else message.startswith(self.opening)
        return kind == self.kind and begins and self.clause in message


class Found(Exception):
    """Ends the search for errors with the first."""

    def __init__(self, kind: str, opening: str, clause: str = "") -> None:
        super().__init__(kind, opening, clause)
        self.wrong = Wrong(kind, opening, clause)
