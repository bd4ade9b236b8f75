"""The axes of a `Parallel`: their lengths, and their order by stride."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from functools import reduce

from ferrule.language.ir import ops
from ferrule.language.ir.facts import all_ops
from ferrule.specs import Dim, symbols_of


def known_sizes(function: ops.Function) -> dict[ops.Value, Dim]:
    """The size that each value of a function is, for values that are sizes."""
    sizes: dict[ops.Value, Dim] = {}
    for op in function.facts.ops:
        match op:
            case ops.Size(result, dim):
                sizes[result] = dim
            case ops.Constant(result, int(value)):
                sizes[result] = value
    return sizes


def product(dims: Iterable[Dim]) -> Dim:
    """The product of sizes; 1 for no sizes."""
    return reduce(operator.mul, dims, 1)


def loop_order(op: ops.Parallel) -> tuple[int, ...]:
    """The axes from the outermost loop to the innermost: by decreasing stride of the stored
    tensor."""
    strides = _stored_strides(op)
    axes = range(len(op.indices))
    return tuple(sorted(axes, key=lambda axis: _size(strides.get(op.indices[axis])), reverse=True))


def _stored_strides(op: ops.Parallel) -> dict[ops.Value, Dim]:
    """The stride of each index in the tensor of the first store."""
    for inner in all_ops(op.body):
        if isinstance(inner, ops.Store):
            return dict(zip(inner.indices, inner.tensor.tensor.strides, strict=True))
    return {}


def _size(stride: Dim | None) -> tuple[int, int]:
    """An order of strides: a run-time size counts as larger than a number.

    More symbols count as larger: a stride of a compact tensor is a product of its sizes.
    """
    match stride:
        case None:
            return 1 << 31, 0
        case int():
            return 0, abs(stride)
        case _:
            return sum(1 for _ in symbols_of(stride)), 0
