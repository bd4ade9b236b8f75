"""Proves facts about the integers of a function: intervals, and order relations.

A `Prover` traverses a function together with the pass: it records each op, and the conditions under
which the ops of a region run.  Its facts hold in every call; facts that it does not know may hold
too.  Values that are computed by the same ops from the same values have one key (value numbering),
so that the second `bx * 16 + tx` of a kernel is known to equal the first.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field
from typing import Final

from ferrule.compiler.artefacts import Relation
from ferrule.language.checks.ranges import FULL, binary, clipped, is_integer
from ferrule.language.codegen.facts.launched import Launched
from ferrule.language.ir import ops
from ferrule.language.ir.scalars import UNARY
from ferrule.specs import Dim, DType, Int32, Sym
from ferrule.specs.deferred import dataclass
from ferrule.specs.intervals import Interval, interval

Key = Hashable
"""Equal for values that are always equal."""
Sizes = Mapping[tuple[ops.Register, int], Dim]
"""The sizes of grids and blocks, by register and axis."""

_MIRRORED: Final[dict[ops.CompareOp, ops.CompareOp]] = {
    "lt": "ge",
    "ge": "lt",
    "le": "gt",
    "gt": "le",
    "eq": "ne",
    "ne": "eq",
}
# What CUDA allows: a launch of an exported function may have any of these sizes.
_BLOCK: Final = ((1, 1024), (1, 1024), (1, 64))
_GRID: Final = ((1, 2**31 - 1), (1, 65535), (1, 65535))


@dataclass(slots=True)
class Prover:
    """The facts at the current position of the pass."""

    launched: Launched
    makers: dict[ops.Value, ops.Op] = field(default_factory=dict)
    keys: dict[ops.Value, Key] = field(default_factory=dict)
    ranges: dict[Key, Interval] = field(default_factory=dict)
    less: dict[Key, set[Key]] = field(default_factory=dict)
    """For a key, the keys that are greater."""
    spare: dict[Key, tuple[Key, int]] = field(default_factory=dict)
    """For indices of loops in whole steps: an upper bound, and the distance to it."""
    interned: dict[Key, Key] = field(default_factory=dict)
    """A short key for an op on other keys."""
    made: dict[Key, Key] = field(default_factory=dict)
    """The inverse of `interned`, by the short key."""

    equal: Mapping[Sym, Dim] = field(default_factory=dict)
    """For a symbol, the size that it equals in every call."""
    extents: frozenset[Dim] = frozenset()
    """Sizes of tensors, which are never negative."""

    @classmethod
    def of(
        cls,
        known: Launched,
        relations: Iterable[Relation],
        sizes: Sizes | None = None,
        extents: Iterable[Dim] = (),
    ) -> Prover:
        """The facts at the beginning of a function; relations hold in every call.

        `sizes`: the sizes of grid and block that all launches agree on, by register and axis;
        `extents`: dims of tensors in the function.
        """
        equal: dict[Sym, Dim] = {}
        for relation in relations:
            left, right = (_plain(side, equal) for side in (relation.left, relation.right))
            if isinstance(right, Sym) and right != left:
                equal[right] = left
            elif isinstance(left, Sym) and isinstance(right, int):
                equal[left] = right
        prover = cls(known, equal=equal, extents=frozenset(extents))
        for (register, axis), dim in (sizes or {}).items():
            index = ("block_idx" if register == "grid_dim" else "thread_idx", axis)
            prover.less[index] = {prover._size_key(dim)}
        return prover

    # ---- recording ----

    def take(self, op: ops.Op) -> None:
        """Records an op without regions, or the results of one with regions."""
        if not isinstance(op, ops.SimpleOp) or not is_integer(op.result):
            if isinstance(op, (ops.Compare, ops.Binary, ops.Unary)):
                self.makers[op.result] = op
            return
        self.makers[op.result] = op
        key = self._key_of(op)
        self.keys[op.result] = key
        if key not in self.ranges:
            self.ranges[key] = clipped(self._range_of(op), op.result)

    def index(self, op: ops.For) -> None:
        """Records the index of a loop, for the ops inside."""
        start, end, step = (self.range(value) for value in (op.start, op.stop, op.step))
        key = self.keys[op.index] = op.index
        if step[0] > 0:
            self.ranges[key] = clipped((start[0], max(start[0], end[1] - 1)), op.index)
            stop = self.key(op.stop)
            self.less[key] = {stop, *self.less.get(stop, ())}
            match self.made.get(stop):
                case ("mul", DType() as dtype, _, int(size)) if self._is_exact(stop, dtype):
                    if start == (0, 0) and step == (size, size):
                        self.spare[key] = (stop, size - 1)
        elif step[1] < 0:
            self.ranges[key] = clipped((min(start[1], end[0] + 1), start[1]), op.index)
            self.less[key] = set(self.less.get(self.key(op.start), ()))

    def bounded(self, value: ops.Value, extent: ops.Value) -> None:
        """Records that a value is at least 0 and below an extent."""
        self.keys[value] = value
        self.ranges[value] = (0, max(0, self.range(extent)[1] - 1))
        self.less[value] = {self.key(extent)}

    @contextmanager
    def under(self, condition: ops.Value, holds: bool) -> Iterator[None]:
        """Inside, a condition is known to be true, or false."""
        with self.scope():
            self._assume(condition, holds)
            yield

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Facts found inside are dropped after it."""
        ranges, less = dict(self.ranges), {key: set(known) for key, known in self.less.items()}
        yield
        self.ranges, self.less = ranges, less

    def passed(self, value: ops.Value, dim: Dim) -> None:
        """Records that a value was found to be at least 0 and less than a size."""
        low, high = self.range(value)
        most = interval(dim)[1] - 1
        self.ranges[self.key(value)] = (max(low, 0), min(high, most))
        self.less.setdefault(self.key(value), set()).add(self._size_key(dim))

    def _assume(self, condition: ops.Value, holds: bool) -> None:
        match self.makers.get(condition):
            case ops.Binary(_, "and", lhs, rhs) if holds:
                self._assume(lhs, True)
                self._assume(rhs, True)
            case ops.Binary(_, "or", lhs, rhs) if not holds:
                self._assume(lhs, False)
                self._assume(rhs, False)
            case ops.Unary(_, "not", operand):
                self._assume(operand, not holds)
            case ops.Compare(_, op, lhs, rhs) if is_integer(lhs):
                self._compare(op if holds else _MIRRORED[op], lhs, rhs)

    def _compare(self, op: ops.CompareOp, lhs: ops.Value, rhs: ops.Value) -> None:
        (a, b), (c, d) = self.range(lhs), self.range(rhs)
        x, y = self.key(lhs), self.key(rhs)
        match op:
            case "lt":
                self.ranges[x], self.ranges[y] = (a, min(b, d - 1)), (max(c, a + 1), d)
                self.less.setdefault(x, set()).update({y, *self.less.get(y, ())})
            case "le":
                self.ranges[x], self.ranges[y] = (a, min(b, d)), (max(c, a), d)
                self.less.setdefault(x, set()).update(self.less.get(y, ()))
            case "gt":
                self._compare("lt", rhs, lhs)
            case "ge":
                self._compare("le", rhs, lhs)
            case "eq":
                both = (max(a, c), min(b, d))
                self.ranges[x] = self.ranges[y] = both
            case "ne" if (c, d) == (0, 0) and a == 0:
                self.ranges[x] = (1, b)

    # ---- queries ----

    def range(self, value: ops.Value) -> Interval:
        """The interval of a value."""
        return self.ranges.get(self.key(value), clipped(FULL, value))

    def key(self, value: ops.Value) -> Key:
        """The key of a value."""
        return self.keys.get(value, value)

    def is_below(self, value: ops.Value, dim: Dim) -> bool:
        """Whether a value is less than a size."""
        if self.range(value)[1] < interval(dim)[0]:
            return True
        return self._is_less(value, self._size_key(dim))

    def _size_key(self, dim: Dim) -> Key:
        dim = _plain(dim, self.equal)
        return dim if isinstance(dim, int) else ("size", dim)

    def _is_less(self, value: ops.Value, wanted: Key) -> bool:
        if any(self._at_most(key, wanted) for key in self.less.get(self.key(value), ())):
            return True
        match self.makers.get(value):
            case ops.Cast(_, operand) if is_integer(operand):
                return self.key(operand) == self.key(value) and self._is_less(operand, wanted)
            case ops.Binary(_, "min", lhs, rhs):
                return self._is_less(lhs, wanted) or self._is_less(rhs, wanted)
            case ops.Binary(_, "add", lhs, rhs):
                return self._has_room(lhs, rhs, wanted) or self._has_room(rhs, lhs, wanted)
            case ops.Select(_, _, one, other):
                return self._is_less(one, wanted) and self._is_less(other, wanted)
        return False

    def _has_room(self, value: ops.Value, more: ops.Value, wanted: Key) -> bool:
        """Whether a value is less than `wanted` minus the number that is added to it."""
        low, high = self.range(more)
        for key in self.less.get(self.key(value), ()) if low >= 0 else ():
            match self.made.get(key):
                case ("sub", DType() as dtype, minuend, int(number)) if (
                    minuend == wanted and number >= high
                ):
                    if self._is_exact(key, dtype):
                        return True
        stop, room = self.spare.get(self.key(value), (None, 0))
        return 0 <= low and high <= room and self._at_most(stop, wanted)

    def may_wrap(self, value: ops.Value) -> bool:
        """Whether a 32-bit number depends on the block's index, and may have wrapped around."""
        if value.type is not Int32 or self.range(value)[0] > Int32.range[0]:
            return False
        inner, seen = [value], set[ops.Value]()
        while inner:
            each = inner.pop()
            match self.makers.get(each):
                case ops.Special(_, "block_idx", _):
                    return True
                case ops.Binary(_, _, lhs, rhs) if each not in seen:
                    inner += (lhs, rhs)
            seen.add(each)
        return False

    def _is_exact(self, key: Key, dtype: DType) -> bool:
        """Whether a computed value cannot have wrapped: else its range is that of the dtype."""
        return self.ranges.get(key, FULL)[0] > dtype.range[0]

    def _at_most(self, key: Key, wanted: Key) -> bool:
        """Whether a key is at most another, for numbers, and for the smaller of two."""
        if key == wanted:
            return True
        if isinstance(key, int) and isinstance(wanted, int):
            return key <= wanted
        match self.made.get(key):
            case ("min", _, lhs, rhs):
                return self._at_most(lhs, wanted) or self._at_most(rhs, wanted)
            case ("mul", DType() as dtype, part, int(size)) if self._is_exact(key, dtype):
                match self.made.get(part):
                    case ("floordiv", _, whole, divisor):
                        return divisor == size > 0 and self._at_most(whole, wanted)
        return False

    # ---- ops ----

    def _key_of(self, op: ops.SimpleOp) -> Key:
        match op:
            case ops.Constant(_, value):
                return value
            case ops.Size(_, dim, None):
                return self._size_key(dim)
            case ops.Special(_, register, axis):
                return (register, axis)
            case ops.Cast(result, operand) if is_integer(operand):
                low, high = clipped(FULL, result)
                known = self.range(operand)
                if low <= known[0] and known[1] <= high:
                    return self.key(operand)
            case ops.Binary(result, name, lhs, rhs):
                key = (name, result.type, self.key(lhs), self.key(rhs))
                short = self.interned.setdefault(key, ("made", len(self.interned)))
                self.made[short] = key
                return short
        return op.result

    def _range_of(self, op: ops.SimpleOp) -> Interval:
        match op:
            case ops.Constant(_, int(value)):
                return value, value
            case ops.Size(_, dim):
                low, high = interval(dim)
                return (max(low, 0), high) if dim in self.extents else (low, high)
            case ops.Special(_, register, axis):
                return self._special(register, axis)
            case ops.Cast(_, operand) if is_integer(operand):
                return self.range(operand)
            case ops.Select(_, _, one, other):
                (a, b), (c, d) = self.range(one), self.range(other)
                return min(a, c), max(b, d)
            case ops.Unary(_, "neg", operand):
                low, high = self.range(operand)
                return -high, -low
            case ops.Unary(_, counting, _) if UNARY[counting].counts:
                return 0, 64
            case ops.Binary(_, name, lhs, rhs):
                return binary(name, self.range(lhs), self.range(rhs))
        return FULL

    def _special(self, register: ops.Register, axis: int) -> Interval:
        grid, block = (
            (max(known[axis][0], least[axis][0]), min(known[axis][1], least[axis][1]))
            for known, least in ((self.launched.grid, _GRID), (self.launched.block, _BLOCK))
        )
        match register:
            case "thread_idx":
                return 0, block[1] - 1
            case "block_idx":
                return 0, grid[1] - 1
            case "block_dim":
                return block
            case "grid_dim":
                return grid
            case _:
                return FULL


def _plain(dim: Dim, equal: Mapping[Sym, Dim]) -> Dim:
    """A size, with symbols replaced by their known values."""
    while isinstance(dim, Sym) and dim in equal:
        dim = equal[dim]
    return dim
