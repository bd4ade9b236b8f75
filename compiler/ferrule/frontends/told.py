"""Ints that record their origin: variables, or `fixed`.

They are used to examine sizes of a launch: `fixed` marks one that is the same in every call on
purpose.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, Final

_KEPT: Final = (
    "add radd sub rsub mul rmul floordiv rfloordiv mod rmod neg pos abs "
    "lshift rlshift rshift rrshift and rand or ror xor rxor invert round trunc floor ceil"
).split()


class Told(int):
    """An int that keeps its origin through arithmetic.

    `sources` names the variables from which it was computed; if empty, it was marked by `fixed`.
    `compared`: whether a size of the call was compared with it, so that the call decides whether it
    has an effect.
    """

    sources: tuple[str, ...]
    compared: bool

    def __new__(cls, value: int, *sources: str) -> Told:
        """An int of this value."""
        made = super().__new__(cls, value)
        made.sources, made.compared = sources, False
        return made

    def __truediv__(self, other: Any) -> Any:
        return _Ratio(self, other) if isinstance(other, int) else NotImplemented

    def __rtruediv__(self, other: Any) -> Any:
        return _Ratio(other, self) if isinstance(other, int) else NotImplemented


class _Ratio(float):
    """A quotient of such ints, whose `math.ceil` and `math.floor` are such ints again."""

    parts: tuple[int, int]

    def __new__(cls, lhs: int, rhs: int) -> _Ratio:
        made = super().__new__(cls, int(lhs) / int(rhs))
        made.parts = lhs, rhs
        return made

    def __ceil__(self) -> int:
        return _like(math.ceil(Fraction(*map(int, self.parts))), self.parts)

    def __floor__(self) -> int:
        return _like(math.floor(Fraction(*map(int, self.parts))), self.parts)


def _keeping(name: str) -> Callable[..., Any]:
    operation = getattr(int, f"__{name}__")

    def kept(self: Told, *others: Any) -> Any:
        found = operation(self, *others)
        return found if found is NotImplemented else _like(found, (self, *others))

    return kept


for _name in _KEPT:
    setattr(Told, f"__{_name}__", _keeping(_name))


def _like(value: int, parts: Sequence[int]) -> Told:
    """An int computed from these parts: its sources are those of the parts; without any it counts
    as `fixed`."""
    sources = (name for each in parts if isinstance(each, Told) for name in each.sources)
    return Told(value, *dict.fromkeys(sources))


def fixed(sizes: Any) -> Any:
    """Marks sizes of a grid, or of another launch, that are intended to be the same in every call.

    Takes an int or several; a number computed from such an int is marked, too.  Raises TypeError
    for other values.
    """
    if isinstance(sizes, tuple | list):
        return tuple(fixed(each) for each in sizes)
    if not isinstance(sizes, int) or isinstance(sizes, bool):
        raise TypeError(f"fixed takes an int or a tuple of ints, but got {sizes!r}")
    return Told(int(sizes))


def plain(dim: Any) -> Any:
    """A size without its origin; other values are unchanged."""
    return int(dim) if isinstance(dim, Told) else dim
