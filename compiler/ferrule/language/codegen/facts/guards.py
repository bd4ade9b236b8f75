"""Plans the thread loops of a kernel: guards, counters, fused blocks.

A kernel begins with a guard, `if i < n`, that only the last block needs.  A loop over threads with
the guard inside is slow (masked stores); a loop over only the threads for which the guard holds is
as fast as a plain loop.  So `plan` looks for comparisons that hold exactly for a range of threads:

* the *spine* of a kernel is the prefix of its body without effects; if an `if` with one empty side
  follows, the spine continues in the other side.  A thread for which a condition on the spine fails
  has no effect at all;
* on the spine, a value is *affine* in a coordinate if it is that coordinate, or a positive multiple
  of it, plus something that does not depend on it (in wrapping arithmetic);
* a `Bound` is a comparison of a value that is affine in a coordinate with one that does not depend
  on it, which every thread that reaches an effect has passed.  The loop over the coordinate can run
  over only those threads, and the comparison is constant in it;
* this is valid only if the affine value does not wrap.  `points` are the values that must not: the
  loop runs in pieces, and a piece ends before one of them wraps (usually there is one piece).
  Indices are points too, because LLVM vectorises only loops whose counter does not wrap.

If block_idx and thread_idx are only used as `block_idx * block_dim + thread_idx`, the two loops of
that axis become one over this sum (`fused`).  Loops over z and y are outside that over x, so a
bound of y must not depend on the thread's x.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field
from typing import TypeAlias

from ferrule.language.codegen.facts.launched import AXIS_COUNT
from ferrule.language.codegen.facts.spine import Bound, Spine
from ferrule.language.ir import ops
from ferrule.specs import Int32
from ferrule.specs.deferred import dataclass

_Uses: TypeAlias = "dict[ops.Value, list[ops.Op | None]]"


@dataclass(frozen=True, slots=True)
class AxisPlan:
    """The plan for the loop over the threads of one axis.

    `fused` are the values that equal block_idx * block_dim + thread_idx; if there are any, the loop
    runs over that.  `counter` are the values that equal the loop's counter: these or thread_idx.
    `points` have what one more thread adds to them; those in `fit` are known not to wrap.  `needed`
    are the ops that compute `points` and the limits of `bounds`, in order.
    """

    axis: int
    fused: tuple[ops.Value, ...] = ()
    counter: tuple[ops.Value, ...] = ()
    bounds: tuple[Bound, ...] = ()
    points: Mapping[ops.Value, int] = field(default_factory=dict)
    needed: tuple[ops.SimpleOp, ...] = ()
    fit: Collection[ops.Value] = ()

    @property
    def single(self) -> bool:
        """Whether at most one thread is within the bounds: an equality has one on either side.

        A condition that is asked twice has two on the same side.
        """
        below, start = (
            {bound.result for bound in self.bounds if bound.side == side}
            for side in ("below", "from")
        )
        return not below.isdisjoint(start)


def plan(
    kernel: ops.Function, blocks: Sequence[int | None], *, fuse: bool = True
) -> tuple[AxisPlan, ...]:
    """The plans for x, y and z.  `blocks` are the sizes of a block if all launches agree.

    `fuse`: whether the loops over blocks and over threads may be fused.
    """
    axes = range(AXIS_COUNT)
    uses = _uses(kernel) if fuse else {}
    fused = tuple(_fused(kernel, uses, axis, blocks[axis]) if fuse else () for axis in axes)
    spine = Spine(kernel, fused)
    return tuple(_plan_axis(spine, kernel, axis, fused[axis]) for axis in axes)


def _plan_axis(
    spine: Spine, kernel: ops.Function, axis: int, fused: tuple[ops.Value, ...]
) -> AxisPlan:
    bounds = tuple(b for test, holds in spine.tests for b in spine.bound(test, holds, axis))
    affine = [*fused, *(bound.value for bound in bounds)]
    if axis == 0:
        affine += spine.affine_indices(kernel, axis)
    points = {value: spine.factor(value, axis) for value in affine}
    needed = spine.slice((*points, *(bound.limit for bound in bounds)), fused)
    for op in needed:
        if isinstance(op, ops.Cast) and (factor := spine.coefficients[op.operand][axis]):
            points[op.operand] = factor
    counter = fused or tuple(spine.threads(axis))
    return AxisPlan(axis, fused, counter, bounds, points, needed)


# ---- fused blocks ----


def _fused(
    kernel: ops.Function, uses: _Uses, axis: int, block: int | None
) -> tuple[ops.Value, ...]:
    """The values block_idx * block_dim + thread_idx, if the coordinates have no other use."""
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
    for op in kernel.facts.ops:
        match op:
            case ops.Special(result, register, at) if at == axis:
                found[register].append(result)
            # Where all launches have one size of a block, programs may write it as a number.
            case ops.Constant(result, value) if result.type is Int32 and value == block:
                found["block_dim"].append(result)
    return found["block_dim"], found["block_idx"], found["thread_idx"]


def _only(
    uses: _Uses,
    values: Iterable[ops.Value],
    name: ops.BinaryOp,
    others: Iterable[ops.Value],
) -> list[ops.Value] | None:
    """The results of `value name other`, if the values have no other use."""
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


def _uses(kernel: ops.Function) -> _Uses:
    """The users of each value; None stands for a yield."""
    uses: _Uses = defaultdict(list)
    for op in kernel.facts.ops:
        for value in op.operands:
            uses[value].append(op)
        for region in op.regions:
            for value in region.yields:
                uses[value].append(None)
    return uses
