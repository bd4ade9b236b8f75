"""Draws for random programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from draws import Source

T = TypeVar("T")


@dataclass(frozen=True)
class Choices:
    """Draws from a source; simpler things stand first, so that a failure shrinks to them."""

    source: Source

    def below(self, limit: int) -> int:
        """A number from 0 to below the limit."""
        return self.source.below(limit)

    def one(self, items: Sequence[T]) -> T:
        """One of these."""
        return items[self.below(len(items))]

    def weighted(self, weights: Mapping[T, int]) -> T:
        """One of these, by weight."""
        return self.one([item for item, weight in weights.items() for _ in range(weight)])

    def chance(self, percent: int) -> bool:
        """True in so many of a hundred cases."""
        return self.below(100) >= 100 - percent
