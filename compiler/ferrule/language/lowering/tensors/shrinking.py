"""`fe.shrink`: the first rows of a tensor that a host function owns, without a copy."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from ferrule.compiler.artefacts import Fault, literal
from ferrule.language.faces import tensors as faces
from ferrule.language.ir import ops
from ferrule.language.lowering.arguments import bound
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.descriptions import describe
from ferrule.language.lowering.tensors import allocation
from ferrule.language.values import TensorView
from ferrule.specs import Dim, Int64


def shrink(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> TensorView:
    """`fe.shrink(tensor, size)`."""
    tensor, size = bound(low, "tensor size", args, kwargs, node)
    allocation.require_host(low, "shrink", node)
    owned = _require_owned(low, tensor, node)
    dim, value = allocation.size_of(low, "the size of", size, node)
    most = owned.type.shape[0]
    _require_inside(low, owned, dim, value, node)
    if dim == most:
        return owned
    type_ = replace(owned.type, shape=(dim, *owned.type.shape[1:]))
    result = ops.Value(type_, owned.value.hint)
    low.builder.append(ops.Shrink(result, owned.value, value, low.location(node)))
    low.state.allocated.add(result)
    return TensorView(result, ast.unparse(node))


def _require_owned(low: Lowering, tensor: Any, node: ast.Call) -> TensorView:
    """The tensor, which this function must own, and which must have rows."""
    if not isinstance(tensor, TensorView):
        low.fail(node, f"shrink got {describe(tensor)}", expected="a tensor")
    if tensor.value not in low.state.allocated:
        low.fail(
            node,
            f"shrink got {describe(tensor)}, which this function has not made",
            expected="a whole tensor of fe.empty, fe.zeros or fe.full",
            hint="the caller has it already; copy its rows to a new tensor",
        )
    if not tensor.type.shape:
        low.fail(node, f"shrink got {describe(tensor)}", expected="a tensor with at least one dim")
    return tensor


def _require_inside(
    low: Lowering, tensor: TensorView, dim: Dim, value: ops.Value, node: ast.Call
) -> None:
    """Requires a size from 0 to the first size of the tensor."""
    most = tensor.type.shape[0]
    where = f"Invalid size in `{ast.unparse(node)}`, expected from 0 to"
    if isinstance(dim, int) and (dim < 0 or (isinstance(most, int) and dim > most)):
        top = most if isinstance(most, int) else "its first size"
        low.fail(node, f"{where} {top}, but got {dim}")
    if dim == most or (isinstance(dim, int) and isinstance(most, int)):
        return
    build, message = low.builder, f"{literal(where)} {{}}, but got {{}}"
    rows, zero = build.size(Int64, most), build.constant(Int64, 0)
    at_least, at_most = build.compare("ge", value, zero), build.compare("le", value, rows)
    inside = build.binary("and", at_least, at_most)
    build.check(inside, Fault("ValueError", message, low.location(node)), rows, value)


TABLE: Final[dict[Any, Callable[..., Any]]] = {faces.shrink: shrink}
