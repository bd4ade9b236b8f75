"""The computations of a kernel's thread before its first effect, and their dependence on its
coordinates.

`guards` defines spine, bound and affine.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Final, Literal

from ferrule.language.codegen.facts.launched import AXIS_COUNT
from ferrule.language.ir import ops
from ferrule.language.ir.walk import is_plain
from ferrule.specs import DType, Int32, Int64
from ferrule.specs.deferred import dataclass

Side = Literal["below", "from"]


@dataclass(frozen=True, slots=True)
class Bound:
    """`value < limit + slack` ("below") or `value >= limit + slack` ("from"), if `holds`.

    From one thread to the next the value grows by `factor`.
    """

    value: ops.Value
    limit: ops.Value
    side: Side
    slack: int
    result: ops.Value
    holds: bool
    factor: int = 1


Coefficients = tuple["int | None", ...]
"""For each axis: 0 if a value does not depend on the coordinate, the factor of the coordinate if it
is affine, else None."""

_MOST: Final = 1 << 12
"""The largest factor.  A loop over threads is cut where a multiple of their number wraps: with this
factor after a million threads."""

_UNIFORM: Final[Coefficients] = (0,) * AXIS_COUNT


@dataclass(slots=True)
class Spine:
    """The ops of a kernel that a thread runs before its first effect, and the tests on the way."""

    kernel: ops.Function
    fused: tuple[tuple[ops.Value, ...], ...]
    order: list[ops.SimpleOp] = field(default_factory=list)
    tests: list[tuple[ops.Compare, bool]] = field(default_factory=list)
    coefficients: dict[ops.Value, Coefficients] = field(default_factory=dict)
    constants: dict[ops.Value, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for param in self.kernel.params:
            if isinstance(param.type, DType):
                self.coefficients[param] = _UNIFORM
        for axis, values in enumerate(self.fused):
            self.coefficients.update(dict.fromkeys(values, _basis(axis)))
        region: ops.Region | None = self.kernel.body
        while region is not None:
            region = self.follow(region)

    def follow(self, region: ops.Region) -> ops.Region | None:
        """Adds the pure ops at the start of a region; returns the region where the spine
        continues."""
        for op in region.ops:
            if is_plain(op):
                self.take(op)
                continue
            match op:
                case ops.If(results, condition, then, otherwise) if op is region.ops[-1]:
                    if results or bool(then.ops) == bool(otherwise.ops):
                        return None
                    self.tests += self.conjuncts(condition, holds=bool(then.ops))
                    return then if then.ops else otherwise
                case ops.For(body=body):
                    self.take_steady(body)
                    return None
                case ops.If() | ops.While() | ops.Parallel():
                    return None
                case ops.Store(tensor) if tensor.tensor.is_own:
                    pass
                case _ if isinstance(op, ops.SimpleOp) and not op.is_seen:
                    self.take(op)
                case _:
                    return None
        return None

    def take_steady(self, body: ops.Region) -> None:
        """Adds the loop-invariant ops of a loop's body."""
        for op in body.ops:
            match op:
                case ops.Constant() | ops.Binary() | ops.Cast():
                    self.take(op)
                case ops.Size(fault=None) | ops.Special():
                    self.take(op)

    def take(self, op: ops.SimpleOp) -> None:
        """Adds an op, and determines the dependence of its result."""
        self.order.append(op)
        if isinstance(op, ops.Constant) and isinstance(op.value, int):
            self.constants[op.result] = op.value
        if op.result in self.coefficients:
            return
        operands = [self.coefficients.get(operand) for operand in op.operands]
        if isinstance(op, ops.Load) or None in operands:
            return
        known = [operand for operand in operands if operand is not None]
        self.coefficients[op.result] = tuple(
            multiple(op, axis, [operand[axis] for operand in known], self.constants)
            for axis in range(AXIS_COUNT)
        )

    def conjuncts(self, condition: ops.Value, *, holds: bool) -> Iterator[tuple[ops.Compare, bool]]:
        """The comparisons, with their required truth, that must all hold for the condition to be
        `holds`."""
        makers = {op.result: op for op in self.order}
        todo = [(condition, holds)]
        while todo:
            value, wanted = todo.pop()
            match makers.get(value):
                case ops.Binary(_, "and", lhs, rhs) if wanted:
                    todo += [(rhs, True), (lhs, True)]
                case ops.Binary(_, "or", lhs, rhs) if not wanted:
                    todo += [(rhs, False), (lhs, False)]
                case ops.Unary(_, "not", operand):
                    todo.append((operand, not wanted))
                case ops.Compare() as test:
                    yield test, wanted

    def bound(self, test: ops.Compare, holds: bool, axis: int) -> Iterator[Bound]:
        """The bounds that a comparison represents for this axis: one, two for equality, or none."""
        ways = ((test.lhs, test.rhs, test.op), (test.rhs, test.lhs, _MIRRORED[test.op]))
        for value, limit, op in ways:
            sides = _SIDES.get((op, holds), ())
            if sides and self.affine(value, axis) and self.coefficient(limit, axis) == 0:
                if self.coefficient(limit, *range(axis)) == 0:
                    factor = self.factor(value, axis)
                    for side in sides:
                        yield Bound(value, limit, *side, test.result, holds, factor)

    def affine(self, value: ops.Value, axis: int) -> bool:
        """Whether a signed integer is affine in the axis and invariant along the axes inside it."""
        known = value.type is Int32 or value.type is Int64
        invariant = self.coefficient(value, *range(axis)) == 0
        return known and invariant and bool(self.coefficient(value, axis))

    def factor(self, value: ops.Value, axis: int) -> int:
        """What one more thread of the axis adds to an affine value."""
        found = self.coefficient(value, axis)
        assert found, "the value is affine"
        return found

    def coefficient(self, value: ops.Value, *axes: int) -> int | None:
        """The common coefficient of a value for all of these axes (0 for no axis), else None."""
        known = self.coefficients.get(value)
        if known is None:
            return None
        found = {known[axis] for axis in axes} or {0}
        return found.pop() if len(found) == 1 else None

    def threads(self, axis: int) -> Iterator[ops.Value]:
        """The values that are thread_idx of this axis."""
        for op in self.order:
            match op:
                case ops.Special(result, "thread_idx", at) if at == axis:
                    yield result

    def affine_indices(self, kernel: ops.Function, axis: int) -> Iterator[ops.Value]:
        """The values that index a tensor and are affine in the axis."""
        for op in kernel.facts.ops:
            match op:
                case (
                    ops.Load(indices=indices)
                    | ops.Store(indices=indices)
                    | ops.View(indices=indices)
                ):
                    yield from (index for index in indices if self.affine(index, axis))

    def slice(
        self, wanted: Iterable[ops.Value], given: Sequence[ops.Value]
    ) -> tuple[ops.SimpleOp, ...]:
        """The ops that compute the wanted values, in order; `given` are available already."""
        needed, found = set(wanted), []
        for op in reversed(self.order):
            if op.result in needed and op.result not in given:
                found.append(op)
                needed.update(op.operands)
        return tuple(reversed(found))


_MIRRORED: Final[dict[ops.CompareOp, ops.CompareOp]] = {
    "eq": "eq",
    "ne": "ne",
    "lt": "gt",
    "le": "ge",
    "gt": "lt",
    "ge": "le",
}
_SIDES: Final[dict[tuple[ops.CompareOp, bool], tuple[tuple[Side, int], ...]]] = {
    ("lt", True): (("below", 0),),
    ("le", True): (("below", 1),),
    ("gt", True): (("from", 1),),
    ("ge", True): (("from", 0),),
    ("lt", False): (("from", 0),),
    ("le", False): (("from", 1),),
    ("gt", False): (("below", 1),),
    ("ge", False): (("below", 0),),
    ("eq", True): (("from", 0), ("below", 1)),
    ("ne", False): (("from", 0), ("below", 1)),
}


def _basis(axis: int) -> Coefficients:
    return tuple(int(axis == other) for other in range(AXIS_COUNT))


def multiple(
    op: ops.SimpleOp,
    axis: int,
    operands: list[int | None],
    constants: Mapping[ops.Value, int],
) -> int | None:
    """The factor of a coordinate in a result, from those in its operands; None if there is none, or
    too large a one."""
    match op, operands:
        case ops.Binary(_, "mul", lhs, rhs), [x, y]:
            for factor, other in ((x, rhs), (y, lhs)):
                if factor and other in constants:
                    return _factor(factor * constants[other])
        case ops.Binary(_, "shl", _, rhs), [int(x), 0] if x and rhs in constants:
            count = constants[rhs]
            return _factor(x << count) if 0 <= count < _MOST.bit_length() else None
        case ops.Binary(_, "add", _, _), [int(x), int(y)]:
            return _factor(x + y)
        case ops.Binary(_, "sub", _, _), [int(x), int(y)]:
            return _factor(x - y)
        case ops.Cast(result, operand), [int(x)] if _widens(operand, result):
            return x
    return coefficient(op, axis, operands)


def _factor(found: int) -> int | None:
    return found if 0 <= found <= _MOST else None


def _widens(operand: ops.Value, result: ops.Value) -> bool:
    return operand.type is Int32 and result.type is Int64


def nearness(op: ops.SimpleOp, axis: int, operands: list[int | None]) -> int | None:
    """Like `coefficient`, but also 1 for an index that is kept inside of bounds, as those of an
    image are: those of neighbours are neighbours in nearly all places."""
    limits = isinstance(op, ops.Binary) and op.op in ("min", "max")
    return 1 if limits and operands in ([0, 1], [1, 0]) else coefficient(op, axis, operands)


def coefficient(op: ops.SimpleOp, axis: int, operands: list[int | None]) -> int | None:
    """The dependence of a result on a coordinate, from that of its operands."""
    match op, operands:
        case ops.Special(_, "thread_idx", at), _:
            return int(at == axis)
        case ops.Binary(_, "add", _, _), [0, 1] | [1, 0]:
            return 1
        case ops.Binary(_, "sub", _, _), [1, 0]:
            return 1
        case ops.Cast(result, operand), [1] if _widens(operand, result):
            return 1
        case _:
            return None if any(operand != 0 for operand in operands) else 0
