"""Random coordinates below a power of two: masks, shifts, remainders, blocks, bounds.

Compilers read much in such an index: LLVM 22.1 took it for one that grows by 1 and never wraps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from random_programs.choices import Choices

Write = Callable[[Choices, int, Sequence[str]], str]


def masked(choices: Choices, limit: int, integers: Sequence[str]) -> str:
    """A coordinate from 0 to below `limit`, a power of two up to 64, of these integers; most often
    of the first, which is the index of the innermost loop where there is one."""
    return choices.weighted(_FORMS)(choices, limit, integers)


def _and(choices: Choices, limit: int, integers: Sequence[str]) -> str:
    return f"{_moved(choices, integers)} & {_power(choices, limit) - 1}"


def _remainder(choices: Choices, limit: int, integers: Sequence[str]) -> str:
    return f"{_moved(choices, integers)} % {1 + choices.below(limit)}"


def _shift(choices: Choices, limit: int, integers: Sequence[str]) -> str:
    return f"({_moved(choices, integers)} >> {1 + choices.below(3)}) & {limit - 1}"


def _rest(choices: Choices, limit: int, integers: Sequence[str]) -> str:
    """What is left of whole multiples."""
    number, divisor = _one(choices, integers), 1 + choices.below(limit)
    return f"{number} - {number} // {divisor} * {divisor}"


def _narrowed(choices: Choices, limit: int, integers: Sequence[str]) -> str:
    return f"fe.Int32(fe.Uint8({_moved(choices, integers)})) & {limit - 1}"


def _bounded(choices: Choices, limit: int, integers: Sequence[str]) -> str:
    return f"min(max({_one(choices, integers)}, 0), {limit - 1})"


def _blocked(choices: Choices, limit: int, integers: Sequence[str]) -> str:
    """A place in a block, and the number of the block."""
    size = _power(choices, limit)
    block = f"fe.Int32({_moved(choices, integers[1:] or integers)} % {limit // size})"
    place = masked(choices, size, integers[:1] if choices.chance(70) else integers)
    return f"{block} * {size} + fe.Int32({place})"


def _moved(choices: Choices, integers: Sequence[str]) -> str:
    way = choices.weighted({"{}": 4, "({} + 1)": 2, "({} - 5)": 1, "({} * 3 + 2)": 1})
    return way.format(_one(choices, integers))


def _one(choices: Choices, integers: Sequence[str]) -> str:
    return integers[0] if choices.chance(50) else choices.one(integers)


def _power(choices: Choices, limit: int) -> int:
    """A power of two up to `limit`."""
    return max(limit >> choices.one((1, 1, 2, 2, 0, 3, 6)), 1)


_FORMS: Final[Mapping[Write, int]] = {
    _and: 4,
    _remainder: 2,
    _blocked: 6,
    _shift: 1,
    _rest: 1,
    _narrowed: 1,
    _bounded: 1,
}
