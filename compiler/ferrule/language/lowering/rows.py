"""The first rows of tensors that a host function may return, which are tensors of their own.

It is known of which tensor they are the rows, and how many, so that branches join their numbers.
"""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import Any

from ferrule.language.ir import ops
from ferrule.language.lowering import owners
from ferrule.language.lowering.context import Lowering
from ferrule.language.values import TensorView
from ferrule.specs import Dim, Int64


def part(
    low: Lowering, tensor: TensorView, dim: Dim, rows: ops.Value, name: str, node: ast.AST
) -> TensorView:
    """The first rows of a tensor that has an object, as one that the function owns; there are as
    many.  `name` is its name in messages."""
    type_ = replace(tensor.type, shape=(dim, *tensor.type.shape[1:]))
    result = ops.Value(type_, tensor.value.hint)
    low.builder.append(ops.Shrink(result, tensor.value, rows, low.location(node)))
    low.state.allocated.add(result)
    low.state.shrunk[result] = _whole(low, tensor), rows
    return TensorView(result, name)


def are_of_one(low: Lowering, left: Any, right: Any) -> bool:
    """Whether two values are the first rows of one tensor, or one of them is that tensor."""
    if not (isinstance(left, TensorView) and isinstance(right, TensorView)):
        return False
    whole = _whole(low, left)
    # A part has no modes inside of modes, so a tensor that has them is of another kind.
    return (
        whole.value is _whole(low, right).value
        and left.nested is right.nested is None
        and owners.has_object(low.state, whole.value)
    )


def number(low: Lowering, tensor: TensorView) -> ops.Value:
    """How many rows it has."""
    known = low.state.shrunk.get(tensor.value)
    return low.builder.size(Int64, tensor.type.shape[0]) if known is None else known[1]


def so_many(
    low: Lowering, like: TensorView, dim: Dim, rows: ops.Value, name: str, node: ast.AST
) -> TensorView:
    """So many rows of the tensor of which another one is a part, or which it is."""
    return part(low, _whole(low, like), dim, rows, name, node)


def _whole(low: Lowering, tensor: TensorView) -> TensorView:
    known = low.state.shrunk.get(tensor.value)
    return tensor if known is None else known[0]
