"""The bytes of shared memory that each thread uses, if their addresses are linear in its numbers.

`tile[ty, tx] = …` writes the bytes from 64 * ty + 4 * tx on: no two threads of a block of 16 by 16
write the same byte.  Accesses that are proved disjoint in this way need not be watched at run time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise, product
from typing import Final

from ferrule.language.ir import ops
from ferrule.specs import DType
from ferrule.specs.deferred import dataclass

_MOST: Final = 1 << 20
"""The limit of a number in a form, so that sums of products with thread numbers do not wrap."""
_FEW: Final = 1000
"""The limit of accesses that are compared with each other."""
_PATIENCE: Final = 20_000
"""The limit of thread differences that are tried."""


@dataclass(frozen=True, slots=True)
class Form:
    """A number plus a multiple each of the thread's x, y, z."""

    number: int
    times: tuple[int, ...] = (0, 0, 0)

    def plus(self, other: Form, factor: int = 1) -> Form | None:
        """The sum with a multiple of another form."""
        number = self.number + factor * other.number
        pairs = zip(self.times, other.times, strict=True)
        times = tuple(a + factor * b for a, b in pairs)
        return None if max(abs(number), *map(abs, times)) > _MOST else Form(number, times)


@dataclass(frozen=True, slots=True)
class Used:
    """The bytes that a thread uses: `size` bytes from its form on."""

    form: Form
    size: int


@dataclass(frozen=True, slots=True)
class Forms:
    """The forms of the values of a kernel; `block`: its sizes, if all launches agree."""

    makers: Mapping[ops.Value, ops.Op]
    block: Sequence[int | None]

    def used(self, tensor: ops.Value, indices: Sequence[ops.Value]) -> Used | None:
        """The bytes of an element, from the beginning of its root."""
        form = self._element(tensor, indices)
        return None if form is None else Used(form, tensor.tensor.dtype.itemsize)

    def _start(self, tensor: ops.Value) -> Form | None:
        """The start of a tensor."""
        match self.makers.get(tensor):
            case ops.View(_, outer, indices):
                return self._element(outer, indices)
            case ops.DynamicShared(_, offset):
                return Form(offset)
        return Form(0)

    def _element(self, tensor: ops.Value, indices: Sequence[ops.Value]) -> Form | None:
        total = self._start(tensor)
        for index, stride in zip(indices, tensor.tensor.strides, strict=False):
            step = self.of(index)
            if total is None or step is None or not isinstance(stride, int):
                return None
            total = total.plus(step, stride * tensor.tensor.dtype.itemsize)
        return total

    def of(self, value: ops.Value) -> Form | None:
        """The form of an integer."""
        match self.makers.get(value):
            case ops.Constant(_, int(number)):
                return Form(0).plus(Form(number))
            case ops.Special(_, "thread_idx", axis):
                return Form(0, tuple(int(axis == other) for other in range(3)))
            case ops.Special(_, "block_dim", axis):
                size = self.block[axis]
                return None if size is None else Form(size)
            case ops.Cast(result, operand) if _holds_small(result) and _holds_small(operand):
                return self.of(operand)
            case ops.Binary(result, name, lhs, rhs) if _holds_small(result):
                return self._binary(name, self.of(lhs), self.of(rhs))
        return None

    def _binary(self, name: ops.BinaryOp, lhs: Form | None, rhs: Form | None) -> Form | None:
        if lhs is None or rhs is None:
            return None
        match name:
            case "add":
                return lhs.plus(rhs)
            case "sub":
                return lhs.plus(rhs, -1)
            case "mul" if not any(lhs.times):
                return Form(0).plus(rhs, lhs.number)
            case "mul" if not any(rhs.times):
                return Form(0).plus(lhs, rhs.number)
            case "shl" if not any(rhs.times) and 0 <= rhs.number < 20:
                return Form(0).plus(lhs, 1 << rhs.number)
        return None

    def are_apart(self, accesses: Iterable[Used | None]) -> bool:
        """Whether no two threads of a block use the same byte."""
        uses = set(accesses)
        if None in uses or len(uses) > _FEW or None in self.block:
            return False
        by_times: dict[tuple[int, ...], list[Used]] = {}
        for used in uses:
            if used is not None:
                by_times.setdefault(used.form.times, []).append(used)
        spans = sorted(self._span(group) for group in by_times.values())
        apart = all(one[1] <= other[0] for one, other in pairwise(spans))
        return apart and all(self._are_private(*each) for each in by_times.items())

    def _span(self, group: Sequence[Used]) -> tuple[int, int]:
        """The bytes that any thread uses: the first, and the end."""
        steps = list(zip(group[0].form.times, self._counts(), strict=True))
        low = min(used.form.number for used in group)
        high = max(used.form.number + used.size for used in group)
        return (
            low + sum(min(0, times * (count - 1)) for times, count in steps),
            high + sum(max(0, times * (count - 1)) for times, count in steps),
        )

    def _counts(self) -> tuple[int, ...]:
        return tuple(count or 1 for count in self.block)

    def _are_private(self, times: tuple[int, ...], group: Sequence[Used]) -> bool:
        """Whether each thread uses different bytes, for accesses with the same multiples."""
        size = max(used.size for used in group)
        numbers = [used.form.number for used in group]
        gaps = {abs(one - other) for one in numbers for other in numbers}
        *others, (step, count) = sorted(zip(times, self._counts(), strict=True), key=_count)
        moves = [range(1 - count, count) for _, count in others]
        if len(gaps) * len(moves[0]) * len(moves[1]) > _PATIENCE:
            return False
        for gap, first, second in product(gaps, *moves):
            rest = gap - first * others[0][0] - second * others[1][0]
            if _meets(step, count, rest, size, others=bool(first or second)):
                return False
        return True


def _count(step: tuple[int, int]) -> int:
    return step[1]


def _meets(step: int, count: int, rest: int, size: int, *, others: bool) -> bool:
    """Whether `step * move` is within `size` of `rest` for a move of less than `count`.

    `others`: the threads differ in another number already; else the move is not 0.
    """
    if step == 0:
        return abs(rest) < size and (others or count > 1)
    step = abs(step)  # moves have either sign
    moves = range((rest - size) // step + 1, -(-(rest + size) // step))
    return any((others or move != 0) and abs(move) < count for move in moves)


def _holds_small(value: ops.Value) -> bool:
    return isinstance(value.type, DType) and value.type.is_integer and value.type.bits >= 32
