"""Random values from a source of small integers, for Hypothesis and for a seed alike.

A generator is written once.  `hypothesised(drawn)` makes a strategy of Hypothesis of it, which
shrinks what fails; `seeded(drawn, seed)` draws a hundred times as fast, the same for a seed in
every process.  Names and meanings are those of `hypothesis.strategies`; a module imports this one
as `st`.  Simpler values stand first, so that Hypothesis shrinks to them.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Concatenate, Final, Generic, ParamSpec, Protocol, TypeVar

from hypothesis import assume
from hypothesis import strategies as hypothesis

T = TypeVar("T")
U = TypeVar("U")
P = ParamSpec("P")

_TRIES: Final = 20
"""As often as a filter draws again before the whole case is given up."""


class Source(Protocol):
    """Where random numbers come from."""

    def below(self, limit: int) -> int:
        """A number from 0 to below the limit."""


class GivenUp(Exception):
    """A seed whose case cannot be drawn: a filter refused every value."""


@dataclass(frozen=True)
class Seeded:
    """Numbers of Python's own generator."""

    random: random.Random

    def below(self, limit: int) -> int:
        """A number from 0 to below the limit."""
        return self.random.randrange(limit)


@dataclass(frozen=True)
class Hypothesised:
    """Numbers that Hypothesis draws, and shrinks."""

    draw: Callable[[hypothesis.SearchStrategy[Any]], Any]

    def below(self, limit: int) -> int:
        """A number from 0 to below the limit."""
        return int(self.draw(hypothesis.integers(0, limit - 1)))


@dataclass(frozen=True)
class Drawn(Generic[T]):
    """Values of a kind: a function of a source."""

    of: Callable[[Source], T]

    def __or__(self, other: Drawn[Any]) -> Drawn[Any]:
        return one_of(self, other)

    def map(self, function: Callable[[T], U]) -> Drawn[U]:
        """What a function makes of the values."""
        return Drawn(lambda source: function(self.of(source)))

    def filter(self, wanted: Callable[[T], object]) -> Drawn[T]:
        """Those of the values that a function wants."""

        def of(source: Source) -> T:
            for _ in range(_TRIES):
                value = self.of(source)
                if wanted(value):
                    return value
            raise GivenUp

        return Drawn(of)


class Draw(Protocol):
    """What `composite` hands to a function: it draws a value."""

    def __call__(self, drawn: Drawn[T], /) -> T: ...


def seeded(drawn: Drawn[T], seed: int) -> T:
    """The value of a seed.  Raises GivenUp where a filter refuses all that comes."""
    return drawn.of(Seeded(random.Random(seed)))


def hypothesised(drawn: Drawn[T]) -> hypothesis.SearchStrategy[T]:
    """The same values as a strategy of Hypothesis."""

    @hypothesis.composite
    def strategy(draw: Callable[[hypothesis.SearchStrategy[Any]], Any]) -> T:
        try:
            return drawn.of(Hypothesised(draw))
        except GivenUp:
            assume(False)
            raise

    return strategy()


def composite(function: Callable[Concatenate[Draw, P], T]) -> Callable[P, Drawn[T]]:
    """Values that a function makes of several draws."""

    def make(*args: P.args, **kwargs: P.kwargs) -> Drawn[T]:
        def of(source: Source) -> T:
            return function(lambda drawn: drawn.of(source), *args, **kwargs)

        return Drawn(of)

    return make


# ---- values ----


def just(value: T) -> Drawn[T]:
    """This value."""
    return Drawn(lambda _: value)


def none() -> Drawn[None]:
    """None."""
    return just(None)


def sampled_from(values: Sequence[T]) -> Drawn[T]:
    """One of these."""
    kept = tuple(values)
    return Drawn(lambda source: kept[source.below(len(kept))])


def booleans() -> Drawn[bool]:
    """False or True."""
    return sampled_from([False, True])


_NEAR: Final = 1 << 8
_MOST: Final = (1 << 64) - 1


def integers(low: int = -(1 << 70), high: int = 1 << 70) -> Drawn[int]:
    """Integers between these, both included; of a wide range the ends and small ones are often."""
    if high - low <= _NEAR:
        return Drawn(lambda source: low + source.below(high - low + 1))

    def of(source: Source) -> int:
        match source.below(4):
            case 0:
                return max(low, min(high, source.below(_NEAR) - _NEAR // 2))
            case 1:
                return low + source.below(_NEAR)
            case 2:
                return high - source.below(_NEAR)
        return low + source.below(high - low + 1)

    return Drawn(of)


_ODD: Final = (0.0, 1.0, -1.0, 0.5, -0.0, float("inf"), -float("inf"), 5e-324, 1.7e308, 65504.0)


def floats(*, allow_nan: bool = True) -> Drawn[float]:
    """Doubles of all bits, odd ones and small ones."""

    def of(source: Source) -> float:
        match source.below(4):
            case 0:
                return _ODD[source.below(len(_ODD))]
            case 1:
                return (source.below(2001) - 1000) / 8
        bits = source.below(1 << 64)
        value: float = struct.unpack("<d", struct.pack("<Q", bits))[0]
        return value if allow_nan or value == value else 0.25

    return Drawn(of)


def binary(*, max_size: int = 12) -> Drawn[bytes]:
    """Bytes."""
    return Drawn(lambda source: bytes(source.below(256) for _ in range(source.below(max_size + 1))))


# ---- values of values ----


def one_of(*choices: Drawn[Any]) -> Drawn[Any]:
    """A value of one of these."""
    return Drawn(lambda source: choices[source.below(len(choices))].of(source))


def builds(function: Callable[..., T], *arguments: Drawn[Any]) -> Drawn[T]:
    """What a function makes of such arguments."""
    return Drawn(lambda source: function(*(argument.of(source) for argument in arguments)))


def permutations(values: Sequence[T]) -> Drawn[list[T]]:
    """All of these, in any order."""

    def of(source: Source) -> list[T]:
        left = list(values)
        return [left.pop(source.below(len(left))) for _ in values]

    return Drawn(of)


def lists(item: Drawn[T], *, max_size: int) -> Drawn[list[T]]:
    """Lists of such items."""
    return Drawn(lambda source: [item.of(source) for _ in range(source.below(max_size + 1))])


def dictionaries(key: Drawn[T], value: Drawn[U], *, max_size: int) -> Drawn[dict[T, U]]:
    """Dictionaries of such keys and values."""
    return lists(tuples(key, value), max_size=max_size).map(dict)


def tuples(*items: Drawn[Any]) -> Drawn[tuple[Any, ...]]:
    """A tuple of one value of each."""
    return Drawn(lambda source: tuple(item.of(source) for item in items))


def recursive(
    base: Drawn[Any], extend: Callable[[Drawn[Any]], Drawn[Any]], *, depth: int = 3
) -> Drawn[Any]:
    """Values of `base`, and what `extend` makes of such values, at most so deep."""
    found = base
    for _ in range(depth):
        found = one_of(base, extend(found))
    return found


def weighted(weights: Mapping[T, int]) -> Drawn[T]:
    """One of these, by weight."""
    return sampled_from([item for item, weight in weights.items() for _ in range(weight)])
