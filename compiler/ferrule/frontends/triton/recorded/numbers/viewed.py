"""The strides of a tensor in another shape, as PyTorch computes them.

PyTorch decides by sizes and strides: a dim is joined with the next one where its elements follow
upon those, or where it has one.  Each decision is kept, and a call is compared for them where the
host function reads a stride of the result: in a dim of size 1, and of what is empty, it is another.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from dataclasses import field
from functools import reduce
from typing import Any

from ferrule.frontends.triton.recorded.numbers.base import Number, plain
from ferrule.specs.deferred import dataclass

Sizes = tuple[Any, ...]
Decision = tuple[str, Any, Any, bool, Any]
"""A comparison of two numbers, with its outcome; it is also so where the last number is 1."""
_SWAPPED = {"lt": "gt"}


@dataclass(slots=True)
class Path:
    """Decisions, one after the other."""

    decisions: list[Decision] = field(default_factory=list)

    def asks(self, op: str, one: Any, other: Any) -> bool:
        """The outcome of a comparison, which is kept unless it is the same in each call."""
        outcome = bool(getattr(operator, op)(plain(one), plain(other)))
        if not same(one, other):
            if not isinstance(one, Number):
                op, one, other = _SWAPPED.get(op, op), other, one
            if isinstance(one, Number):
                self.decisions.append((op, one, other, outcome, None))
        return outcome

    def asks_joined(self, size: Any, step: Any, wanted: Any) -> bool:
        """Whether a dim is joined with the next one: it is where its size is 1."""
        if same(step, wanted) or (not isinstance(size, Number) and size == 1):
            return True
        outcome = bool(plain(size) == 1 or plain(step) == plain(wanted))
        self.decisions.append(("eq", step, wanted, outcome, size))
        return outcome

    def asks_products(self, op: str, some: Sequence[Any], others: Sequence[Any]) -> bool:
        """The same of products of numbers above 0; factors of both are left out."""
        left, right = _rest(some, others), _rest(others, some)
        return self.asks(op, reduce(operator.mul, left, 1), reduce(operator.mul, right, 1))


def _rest(some: Sequence[Any], others: Sequence[Any]) -> list[Any]:
    """Factors without those that are among others."""
    left = [*some]
    for each in others:
        at = next((at for at, known in enumerate(left) if same(each, known)), None)
        if at is not None:
            left.pop(at)
    return left


def same(one: Any, other: Any) -> bool:
    """Whether two numbers are made in the same way."""
    return bool(getattr(one, "tree", plain(one)) == getattr(other, "tree", plain(other)))


def compare(path: Sequence[Decision]) -> None:
    """Calls are compared for these decisions."""
    for op, *numbers, outcome, unless in path:
        several = [each for each in (*numbers, unless) if isinstance(each, Number)]
        left, right, size = (getattr(each, "tree", each) for each in (*numbers, unless))
        for number in several[:1]:
            number.log.compare(op, left, right, outcome, size)


def is_empty(shape: Sequence[Any]) -> bool:
    """Whether a tensor of these sizes has no elements; calls are not compared for it."""
    return any(plain(size) == 0 for size in shape)


def of_elements(path: Path, shape: Sequence[Any]) -> None:
    """A tensor of these sizes has elements."""
    for size in shape:
        path.asks("ne", size, 0)


def compact_strides(path: Path, shape: Sequence[Any]) -> Sizes:
    """The strides of a new tensor, in which a size of 0 counts as 1."""
    strides: list[Any] = []
    step: Any = 1
    for at, size in reversed([*enumerate(shape)]):
        strides.append(step)
        if at and not path.asks("eq", size, 0):
            step = step * size
    return tuple(reversed(strides))


def strides_of_nothing(path: Path, shape: Sizes, strides: Sizes, new: Sizes) -> Sizes:
    """The strides of an empty tensor in another shape: in the same one it keeps its own."""
    path.asks("eq", next(size for size in shape if plain(size) == 0), 0)
    known = compact_strides(path, shape)
    if tuple(map(plain, strides)) == tuple(map(plain, known)):  # then it is so in each shape
        for step, wanted in zip(strides, known, strict=True):
            path.asks("eq", step, wanted)
        return compact_strides(path, new)
    if len(shape) == len(new):
        if all(path.asks("eq", *each) for each in zip(shape, new, strict=True)):
            return strides
    return compact_strides(path, new)


@dataclass(slots=True)
class Viewing:
    """A tensor with elements in another shape.  `joined` are the size and stride of each dim that
    was joined with the next one, and the stride that it needs for it."""

    shape: Sizes
    old: Sizes
    new: Sizes
    path: Path
    joined: list[tuple[Any, Any, Any]] = field(default_factory=list)

    def strides(self) -> Sizes | None:
        """The strides; None where the elements have to be copied."""
        left = [*self.new]
        found: list[Any] = []
        for base, sizes in self._chunks():
            taken: list[Any] = []
            while left and self._takes(left[-1], taken, sizes):
                found.append(reduce(operator.mul, taken, 1) * base)
                taken.append(left.pop())
            if self.path.asks_products("ne", taken, sizes):
                return None
        return None if left else tuple(reversed(found))

    def _chunks(self) -> Iterator[tuple[Any, list[Any]]]:
        """Dims that are joined, the last ones first: the stride of the last, and the sizes."""
        base, sizes = self.old[-1], list[Any]()
        for at in reversed(range(len(self.shape))):
            sizes.append(self.shape[at])
            if at == 0:
                yield base, sizes
            else:
                wanted = reduce(operator.mul, sizes, 1) * base
                dim = self.shape[at - 1], self.old[at - 1], wanted
                if self.path.asks_joined(*dim):
                    self.joined.append(dim)
                else:
                    yield base, sizes
                    base, sizes = self.old[at - 1], []

    def _takes(self, size: Any, taken: Sequence[Any], sizes: Sequence[Any]) -> bool:
        """Whether a new dim is a part of these dims: while others are left of them, or a 1.  One of
        the sizes that are left is so in each call."""
        is_part = all(same(each, 1) for each in _rest(taken, sizes))
        if is_part and any(same(size, each) for each in _rest(sizes, taken)):
            return True
        return self.path.asks_products("lt", taken, sizes) or self.path.asks("eq", size, 1)
