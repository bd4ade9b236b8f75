"""Bits of a size: its bit length, and the power of two to which `triton.next_power_of_2` rounds it
up.

Both have few values, between which the call decides.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Final

from ferrule.compiler.errors import CompileError
from ferrule.frontends.triton.traced.paths import Path
from ferrule.frontends.triton.traced.refusals import CallRefused, undecided
from ferrule.specs import Dim, format_dim
from ferrule.specs.conditions import Comparison

_FORWARDED: Final = "add sub mul floordiv mod truediv lt le gt ge eq ne".split()


def bit_length(dim: Dim, path: Path) -> int:
    """The bit length of a size, on a path on which it is known; no negative size has one here."""
    if path.decide(Comparison("lt", dim, 0)):
        what = format_dim(dim, {})
        raise CallRefused(what, "ValueError", f"{what} is negative, and has no power of two")
    low, high = (each.bit_length() for each in path.interval(dim))
    while low < high:
        middle = (low + high) // 2
        if path.decide(Comparison("lt", dim, 1 << middle)):
            high = middle
        else:
            low = middle + 1
    return low


class Smeared:
    """`n | n >> 1 | … | n >> ones - 1`: all bits below the first are 1 if there are enough."""

    __slots__ = ("dim", "ones", "path")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, dim: Dim, path: Path | None, ones: int) -> None:
        self.dim = dim
        self.path = path
        self.ones = ones

    def __rshift__(self, bits: int) -> Any:
        return Shifted(self, bits)

    def __or__(self, other: Any) -> Any:
        if isinstance(other, Shifted) and other.of is self and 0 <= other.bits <= self.ones:
            return Smeared(self.dim, self.path, self.ones + other.bits)
        return self.number() | other

    def number(self) -> int:
        """Its value on this path.  Raises CompileError where bits between may be 0."""
        if self.path is None or self.path.interval(self.dim)[1].bit_length() > self.ones:
            raise CompileError(undecided(f"the bits of {format_dim(self.dim, {})}"))
        return (1 << bit_length(self.dim, self.path)) - 1

    def __int__(self) -> int:
        return self.number()

    __index__ = __int__


class Shifted:
    """Such a number shifted to the right, of which the next one is made."""

    __slots__ = ("bits", "of")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, of: Smeared, bits: int) -> None:
        self.of = of
        self.bits = bits

    def number(self) -> int:
        """Its value on this path."""
        return self.of.number() >> self.bits

    def __int__(self) -> int:
        return self.number()

    __index__ = __int__


def _forwarding(name: str) -> Callable[[Any, Any], Any]:
    operation = getattr(operator, name)
    return lambda self, other: operation(self.number(), other)


for _name in _FORWARDED:
    for _kind in (Smeared, Shifted):
        setattr(_kind, f"__{_name}__", _forwarding(_name))
