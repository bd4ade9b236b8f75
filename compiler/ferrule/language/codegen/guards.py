"""What the thread loops of a kernel can know before they run: guards, counters, fused blocks.

A kernel begins with a guard, `if i < n`, that only the last block needs.  A loop over threads with
the guard inside is slow (masked stores); the same loop over only those threads for which the guard
holds is as fast as a plain loop.  So `plan` looks for comparisons that a range of threads decides:

* the *spine* of a kernel is its body as long as it is ops without effect; if then an `if` with one
  empty side ends it, the spine goes on in the other side.  A thread for which a condition on the
  spine fails does nothing at all;
* on the spine, a value is *affine* in a coordinate if it is that coordinate plus something that
  does not depend on it (in wrapping arithmetic);
* a `Bound` is a comparison of a value that is affine in a coordinate with one that does not depend
  on it, which every thread that gets to an effect has passed.  The loop over the coordinate can
  run over only those threads, and the comparison is constant in it;
* that is right only where the affine value does not wrap.  `points` are the values that must not:
  the loop is run in pieces, and a piece ends where one of them wraps (there is one piece, but for
  kernels near the ends of their integers).  Indices are points too, since a counter that does not
  wrap is what LLVM can vectorise.

If block_idx and thread_idx are only used as `block_idx * block_dim + thread_idx`, the two loops of
that axis become one over this sum (`fused`).  Loops over z and y are outside that over x, so a
bound of y must not depend on the thread's x.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from ferrule.language.ir import ops
from ferrule.language.ir.walk import all_ops, operands_of, regions_of
from ferrule.specs import DType, Int32, Int64

Side = Literal["below", "from"]

AXIS_COUNT: Final = len(ops.AXES)


@dataclass(frozen=True, slots=True)
class Bound:
    """`value < limit + slack` ("below") or `value >= limit + slack` ("from"), if `holds`."""

    value: ops.Value
    limit: ops.Value
    side: Side
    slack: int
    result: ops.Value
    holds: bool


@dataclass(frozen=True, slots=True)
class AxisPlan:
    """How to loop over the threads of one axis.

    `fused` are the values that equal block_idx * block_dim + thread_idx; if there is any, the loop
    is over that.  `counter` are those that equal what the loop is over: these or thread_idx.
    `needed` are the ops that give `points` and the limits of `bounds`, in order.
    """

    axis: int
    fused: tuple[ops.Value, ...] = ()
    counter: tuple[ops.Value, ...] = ()
    bounds: tuple[Bound, ...] = ()
    points: tuple[ops.Value, ...] = ()
    needed: tuple[ops.SimpleOp, ...] = ()


Coefficients = tuple["int | None", ...]
"""For each axis: 0 if a value does not depend on the coordinate, 1 if it is affine, else None."""

_UNIFORM: Final[Coefficients] = (0,) * AXIS_COUNT


def plan(
    kernel: ops.Function, blocks: Sequence[int | None], *, fuse: bool = True
) -> tuple[AxisPlan, ...]:
    """The plans for x, y and z.  `blocks` are the sizes of a block, where every launch agrees.

    `fuse`: whether the loops over blocks and over threads may be one.
    """
    axes = range(AXIS_COUNT)
    fused = tuple(_fused(kernel, axis, blocks[axis]) if fuse else () for axis in axes)
    spine = _Spine(kernel, fused)
    return tuple(_plan_axis(spine, kernel, axis, fused[axis]) for axis in range(AXIS_COUNT))


def _plan_axis(
    spine: _Spine, kernel: ops.Function, axis: int, fused: tuple[ops.Value, ...]
) -> AxisPlan:
    bounds = tuple(b for test, holds in spine.tests for b in spine.bound(test, holds, axis))
    points = dict.fromkeys((*fused, *(bound.value for bound in bounds)))
    if axis == 0:
        points.update(dict.fromkeys(spine.affine_indices(kernel, axis)))
    needed = spine.slice((*points, *(bound.limit for bound in bounds)), fused)
    for op in needed:
        if isinstance(op, ops.Cast) and spine.coefficients[op.operand][axis] == 1:
            points[op.operand] = None
    counter = fused or tuple(spine.threads(axis))
    return AxisPlan(axis, fused, counter, bounds, tuple(points), needed)


# ---- fused blocks ----


def _fused(kernel: ops.Function, axis: int, block: int | None) -> tuple[ops.Value, ...]:
    """The values block_idx * block_dim + thread_idx, if the coordinates have no other use."""
    uses = _uses(kernel)
    sizes, blocks, threads = _coordinates(kernel, axis, block)
    products = _only(uses, blocks, "mul", sizes)
    sums = None if products is None else _only(uses, products, "add", threads)
    others = None if sums is None else _only(uses, threads, "add", products or ())
    return () if others is None or sums is None or set(others) != set(sums) else tuple(sums)


def _coordinates(
    kernel: ops.Function, axis: int, block: int | None
) -> tuple[list[ops.Value], list[ops.Value], list[ops.Value]]:
    """The values of a kernel that are block_dim, block_idx and thread_idx of this axis."""
    found: dict[str, list[ops.Value]] = defaultdict(list)
    for op in all_ops(kernel.body):
        match op:
            case ops.Special(result, register, at) if at == axis:
                found[register].append(result)
            case ops.Constant(result, value) if result.type is Int32 and value == block:
                found["block_dim"].append(result)
    return found["block_dim"], found["block_idx"], found["thread_idx"]


def _only(
    uses: dict[ops.Value, list[ops.Op | None]],
    values: Iterable[ops.Value],
    name: ops.BinaryOp,
    others: Iterable[ops.Value],
) -> list[ops.Value] | None:
    """The results of `value name other`, if nothing else is made of the values."""
    results: dict[ops.Value, None] = {}
    partners = set(others)
    for value in values:
        for use in uses[value]:
            match use:
                case ops.Binary(result, op, lhs, rhs) if op == name and (
                    (rhs if lhs is value else lhs) in partners
                ):
                    results[result] = None
                case _:
                    return None
    return list(results)


def _uses(kernel: ops.Function) -> dict[ops.Value, list[ops.Op | None]]:
    """What reads each value; None stands for a yield."""
    uses: dict[ops.Value, list[ops.Op | None]] = defaultdict(list)
    for op in all_ops(kernel.body):
        for value in operands_of(op):
            uses[value].append(op)
        for region in regions_of(op):
            for value in region.yields:
                uses[value].append(None)
    return uses


# ---- the spine ----


@dataclass(slots=True)
class _Spine:
    """The ops of a kernel that a thread runs before its first effect, and the tests on the way."""

    kernel: ops.Function
    fused: tuple[tuple[ops.Value, ...], ...]
    order: list[ops.SimpleOp] = field(default_factory=list)
    tests: list[tuple[ops.Compare, bool]] = field(default_factory=list)
    coefficients: dict[ops.Value, Coefficients] = field(default_factory=dict)
    ones: set[ops.Value] = field(default_factory=set)

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
        """Takes the pure ops at the start of a region; gives the region where the spine goes on."""
        for op in region.ops:
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
                case ops.Store() | ops.Check() | ops.Print() | ops.Launch() | ops.Return():
                    return None
                case ops.Barrier() | ops.WarpBarrier() | ops.Fence() | ops.Atomic():
                    return None
                case ops.Mma() | ops.LoadMatrix() | ops.AsyncCopy() | ops.Control():
                    return None
                case ops.MBarrier() | ops.MBarrierWait() | ops.BulkCopy():
                    return None
                case ops.TensorCopy() | ops.BulkStore() | ops.StoreMatrix() | ops.BarrierArrive():
                    return None
                case ops.PeerStore():
                    return None
                case ops.Shuffle() | ops.Vote() | ops.Match() | ops.MBarrierTry() | ops.PeerLoad():
                    return None
                case _:
                    self.take(op)
        return None

    def take_steady(self, body: ops.Region) -> None:
        """Takes what a loop computes again in each iteration though it does not depend on it."""
        for op in body.ops:
            match op:
                case ops.Constant() | ops.Binary() | ops.Cast():
                    self.take(op)
                case ops.Size(fault=None) | ops.Special():
                    self.take(op)

    def take(self, op: ops.SimpleOp) -> None:
        """Adds an op, and finds out what its result depends on."""
        self.order.append(op)
        if isinstance(op, ops.Constant) and op.value == 1:
            self.ones.add(op.result)
        if op.result in self.coefficients:
            return
        match op:
            case ops.Binary(result, "mul", lhs, rhs) if not self.ones.isdisjoint((lhs, rhs)):
                other = self.coefficients.get(rhs if lhs in self.ones else lhs)
                if other is not None:
                    self.coefficients[result] = other
                return
        operands = [self.coefficients.get(operand) for operand in operands_of(op)]
        if isinstance(op, ops.Load) or None in operands:
            return
        known = [operand for operand in operands if operand is not None]
        self.coefficients[op.result] = tuple(
            coefficient(op, axis, [operand[axis] for operand in known])
            for axis in range(AXIS_COUNT)
        )

    def conjuncts(self, condition: ops.Value, *, holds: bool) -> Iterator[tuple[ops.Compare, bool]]:
        """The comparisons that must all come out as said for the condition to be `holds`."""
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
        """The bound that a comparison is for this axis, if it is one."""
        ways = ((test.lhs, test.rhs, test.op), (test.rhs, test.lhs, _MIRRORED[test.op]))
        for value, limit, op in ways:
            sides = _SIDES.get((op, holds))
            if sides and self.affine(value, axis) and self.coefficient(limit, axis) == 0:
                if self.coefficient(limit, *range(axis)) == 0:
                    yield Bound(value, limit, *sides, test.result, holds)

    def affine(self, value: ops.Value, axis: int) -> bool:
        """Whether a signed integer is affine in the axis and steady along the axes inside it."""
        known = value.type is Int32 or value.type is Int64
        return (
            known
            and self.coefficient(value, axis) == 1
            and self.coefficient(value, *range(axis)) == 0
        )

    def coefficient(self, value: ops.Value, *axes: int) -> int | None:
        """The coefficient that a value has for all of these axes (0 for no axis), else None."""
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
        for op in all_ops(kernel.body):
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
        """The ops that the wanted values are made of, in order; `given` are there already."""
        needed, found = set(wanted), []
        for op in reversed(self.order):
            if op.result in needed and op.result not in given:
                found.append(op)
                needed.update(operands_of(op))
        return tuple(reversed(found))


_MIRRORED: Final[dict[ops.CompareOp, ops.CompareOp]] = {
    "eq": "eq",
    "ne": "ne",
    "lt": "gt",
    "le": "ge",
    "gt": "lt",
    "ge": "le",
}
_SIDES: Final[dict[tuple[ops.CompareOp, bool], tuple[Side, int]]] = {
    ("lt", True): ("below", 0),
    ("le", True): ("below", 1),
    ("gt", True): ("from", 1),
    ("ge", True): ("from", 0),
    ("lt", False): ("from", 0),
    ("le", False): ("from", 1),
    ("gt", False): ("below", 1),
    ("ge", False): ("below", 0),
}


def _basis(axis: int) -> Coefficients:
    return tuple(int(axis == other) for other in range(AXIS_COUNT))


def coefficient(op: ops.SimpleOp, axis: int, operands: list[int | None]) -> int | None:
    """How a result depends on a coordinate, when its operands do so."""
    match op, operands:
        case ops.Special(_, "thread_idx", at), _:
            return int(at == axis)
        case ops.Binary(_, "add", _, _), [0, 1] | [1, 0]:
            return 1
        case ops.Binary(_, "sub", _, _), [1, 0]:
            return 1
        case ops.Cast(result, operand), [1] if operand.type is Int32 and result.type is Int64:
            return 1
        case _:
            return None if any(operand != 0 for operand in operands) else 0
