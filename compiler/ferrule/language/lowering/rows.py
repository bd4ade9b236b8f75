"""The first rows of tensors that a host function has made, which are tensors of their own."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import Any

from ferrule.language.ir import ops
from ferrule.language.lowering.context import Lowering
from ferrule.language.values import TensorView
from ferrule.specs import Dim, Int64, sym_int64


def symbol_of(low: Lowering, of: ops.Value, hint: str) -> Dim:
    """The symbol for a number; equal numbers share one symbol."""
    known = low.state.made
    if of not in known:
        taken = set(low.state.symbols.values())
        name, count = hint or "size", 0
        while name in taken:
            count += 1
            name = f"{hint or 'size'}_{count}"
        known[of] = sym_int64()
        low.state.symbols[known[of]] = name
    return known[of]


def whole_and_rows(low: Lowering, tensor: TensorView) -> tuple[TensorView, ops.Value]:
    """The tensor that was made, and how many of its rows this one is."""
    known = low.state.shrunk.get(tensor.value)
    return known or (tensor, low.builder.size(Int64, tensor.type.shape[0]))


def is_of_one(low: Lowering, left: Any, right: Any) -> bool:
    """Whether two values are rows of the same tensor that this function has made."""
    if not (isinstance(left, TensorView) and isinstance(right, TensorView)):
        return False
    wholes = [low.state.shrunk.get(each.value, (each, None))[0].value for each in (left, right)]
    return wholes[0] is wholes[1] and wholes[0] in low.state.allocated


def rows_of(low: Lowering, tensor: TensorView, rows: ops.Value, node: ast.AST) -> TensorView:
    """So many rows of the tensor of which this one is a part; there are as many."""
    whole, _ = whole_and_rows(low, tensor)
    dim = symbol_of(low, rows, "rows")
    return part(low, whole, dim, rows, node)


def part(low: Lowering, owned: TensorView, dim: Dim, rows: ops.Value, node: ast.AST) -> TensorView:
    """The first rows of a tensor that the function owns, as one that it owns, too."""
    type_ = replace(owned.type, shape=(dim, *owned.type.shape[1:]))
    result = ops.Value(type_, owned.value.hint)
    low.builder.append(ops.Shrink(result, owned.value, rows, low.location(node)))
    low.state.allocated.add(result)
    low.state.shrunk[result] = low.state.shrunk.get(owned.value, (owned, rows))[0], rows
    return TensorView(result, ast.unparse(node))
