"""Reads and writes elements of tensors: one, a part, or all of them."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any, Final

from ferrule.language import layouts
from ferrule.language.ir import ops
from ferrule.language.ir.builder import OpenRegion
from ferrule.language.ir.facts import all_ops
from ferrule.language.ir.types import TensorType
from ferrule.language.layouts.coordinates import has_free
from ferrule.language.lowering.arguments import bound
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.tensors import (
    access,
    coordinates,
    views,
    whole_tensors,
)
from ferrule.language.promotion import PACKED
from ferrule.language.values import Number, PointerView, TensorView, Vector, Whole
from ferrule.specs import Int64
from ferrule.specs.expr import INT64_MAX


def read(low: Lowering, base: TensorView | PointerView, at: tuple[Any, ...], node: ast.AST) -> Any:
    """`tensor[...]`: an element, a part of it, or the whole tensor for `tensor[:]`."""
    tensor = views.as_tensor(base) if isinstance(base, PointerView) else base
    at = coordinates.whole_as_all(tensor, at) if at == (None,) else at
    if _is_whole(low, tensor, at, node):
        return whole_tensors.whole(low, tensor, node)
    if has_free(at):
        name, written = ast.unparse(node), any(isinstance(part, slice) for part in at)
        return views.cut(low, tensor, at, node, name=name, whole=written)
    access.require_reachable(low, tensor, node)
    access.require_readable(low, tensor.type.dtype, node)
    return access.load(low, tensor.value, _indices(low, tensor, at, node))


def _indices(
    low: Lowering, tensor: TensorView, at: tuple[Any, ...], node: ast.AST
) -> tuple[ops.Value, ...]:
    return coordinates.values(low, coordinates.indices(low, tensor, at, node), node)


def _is_whole(low: Lowering, tensor: TensorView, at: tuple[Any, ...], node: ast.AST) -> bool:
    """Whether a coordinate is a single `:`, or `:` for every mode."""
    if not at or not all(isinstance(part, slice) for part in at):
        return False
    rank = len(tensor.layout)
    if len(at) not in (1, rank):
        low.fail(node, f"{tensor.name} has {rank} dims", expected=f"{tensor.name}[:]")
    if tensor.type.shape == (INT64_MAX,):
        low.fail(node, f"it is not known where the memory of {tensor.name} ends", hint=_MAKE)
    if low.kind == "kernel":
        low.fail(
            node,
            f"{tensor.name}[:] in a kernel: whole tensors are for host functions",
            hint="in a kernel each thread reads and writes elements, or vectors: a part's .load()",
        )
    return True


_MAKE: Final = "make a tensor of it, fe.make_tensor(p, shape)"


def load_first(
    pointer: PointerView, low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call
) -> Any:
    """`p.load()`: the element that a pointer points to."""
    bound(low, "", args, kwargs, node)
    return read(low, pointer, (0,), node)


def store_first(
    pointer: PointerView, low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call
) -> None:
    """`p.store(value)`: stores the element that a pointer points to."""
    (value,) = bound(low, "value", args, kwargs, node)
    write(low, pointer, (0,), value, node)


def write(
    low: Lowering,
    base: TensorView | PointerView,
    at: tuple[Any, ...],
    value: Any,
    node: ast.AST,
) -> None:
    """`tensor[...] = value`."""
    tensor = views.as_tensor(base) if isinstance(base, PointerView) else base
    at = coordinates.whole_as_all(tensor, at) if at == (None,) else at
    if isinstance(value, Vector):
        part = views.cut(low, tensor, at, node, name=ast.unparse(node))
        from ferrule.language.lowering.tensors import vectors

        vectors.store(low, part, value, node)
    elif _is_whole(low, tensor, at, node):
        _write_whole(low, tensor, value, node)
    elif has_free(at):
        if low.kind == "kernel":
            low.fail(
                node,
                f"a part of {tensor.name} is assigned to in a kernel",
                expected="a vector, such as b.load(), or single elements",
                hint="to set all of it to one number, .fill(x)",
            )
        part = views.cut(low, tensor, at, node, name=ast.unparse(node))
        _write_whole(low, part, value, node)
    elif isinstance(value, Whole) and not value.shape:
        element = coordinates.indices(low, tensor, at, node)
        _require_element(low, tensor, element, node)
        _write_single(low, tensor, coordinates.values(low, element, node), value, node)
    else:
        access.require_reachable(low, tensor, node)
        found = _indices(low, tensor, at, node)
        stored = access.fitted(low, tensor.type.dtype, value, tensor.name, node)
        access.store(low, tensor.value, found, stored)
        low.state.writes += 1


def fill(
    low: Lowering, tensor: TensorView, args: list[Any], kwargs: dict[str, Any], node: ast.Call
) -> None:
    """`a.fill(x)`: writes one number to every element."""
    if not _fills_whole(low, tensor):
        from ferrule.language.lowering.tensors import vectors

        vectors.fill(low, tensor, args, kwargs, node)
        return
    (number,) = bound(low, "value", args, kwargs, node)
    write(low, tensor, (slice(None),), number, node)


def _fills_whole(low: Lowering, tensor: TensorView) -> bool:
    """Whether host code fills this tensor by a loop or a kernel, as `a[:] = x` does: it is on a
    GPU, or its elements are too many, or known only at the call."""
    if low.kind != "host" or tensor.type.is_own or not tensor.type.shape:
        return False
    if low.state.target != "cpu":
        return True
    from ferrule.language.lowering.tensors import vectors

    count = layouts.size(tensor.layout.shape)
    return not isinstance(count, int) or not 1 <= count <= vectors.MAX_ELEMENTS


def _write_whole(low: Lowering, tensor: TensorView, value: Any, node: ast.AST) -> None:
    """`c[:] = expression`: one `Parallel` over all coordinates."""
    whole_tensors.require_shared(low, tensor, node)
    if isinstance(value, TensorView):
        if not value.whole:
            hint = f"write the whole of it, {value.name}[:]"
            low.fail(node, f"{value.name} is a tensor", hint=hint)
        value = whole_tensors.whole(low, value, node)
    if isinstance(value, Whole):
        whole_tensors.check_current(low, value, node)
        value = whole_tensors.fitted(low, tensor, value, node)
    indices, extents, region = _elements(low, tensor, value, node)
    _require_one_order(low, tensor, region, node)
    _require_others(low, tensor, region, node)
    parallel = ops.Parallel(indices, extents, region.freeze(), low.location(node))
    low.builder.append(parallel)
    low.state.writes += 1


def _elements(
    low: Lowering, tensor: TensorView, value: Any, node: ast.AST
) -> tuple[tuple[ops.Value, ...], tuple[ops.Value, ...], OpenRegion]:
    """Indices, extents and body of the loop that writes all elements."""
    if tensor.type.dtype in PACKED:
        from ferrule.language.lowering.tensors import packed  # few programs need it

        return packed.whole_tensor(low, tensor, value, node)
    extents = tuple(low.builder.size(Int64, dim) for dim in tensor.type.shape)
    indices = tuple(ops.Value(Int64, f"i{axis}") for axis in range(len(extents)))
    with low.builder.region() as region:
        element = value.element(indices) if isinstance(value, Whole) else value
        stored = access.fitted(low, tensor.type.dtype, element, tensor.name, node)
        access.store(low, tensor.value, indices, stored)
    return indices, extents, region


def _require_one_order(
    low: Lowering, tensor: TensorView, region: OpenRegion, node: ast.AST
) -> None:
    """Refuses `a[:] = a.transpose()[:]`: elements would be written before they are read."""
    roots, bases, here = low.state.roots, low.state.bases, tensor.value
    for op in region.ops:
        if isinstance(op, ops.Load) and op.tensor is not here:
            one = roots.get(op.tensor, op.tensor) is roots.get(here, here)
            same = bases.get(op.tensor, op.tensor) is bases.get(here, here)
            read, written = op.tensor.tensor, _accessed(here.tensor)
            spread = whole_tensors.is_spread(read.shape, written.shape)
            moved = read.strides != written.strides or read.dtype.bits != written.dtype.bits
            if (one and moved) or (same and spread):
                low.fail(
                    node,
                    f"{tensor.name} is written while the same memory is read in another layout",
                    hint="write to another tensor",
                )


def _accessed(type_: TensorType) -> TensorType:
    """The type with which a tensor's elements are loaded and stored."""
    return access.type_of_parts(type_) if type_.dtype.kind == "complex" else type_


def _write_single(
    low: Lowering, tensor: TensorView, at: Sequence[ops.Value], value: Whole, node: ast.AST
) -> None:
    """`b[i] = fe.sum(a[:])`: an expression without dims, computed on the tensor's device."""
    whole_tensors.check_current(low, value, node)
    if tensor.type.is_own:
        low.fail(
            node,
            f"a whole-tensor expression is stored to {tensor.name}, which is in registers",
            hint="store it to a tensor",
        )
    with low.builder.region() as region:
        element = value.element(())
        stored = access.fitted(low, tensor.type.dtype, element, tensor.name, node)
        access.store(low, tensor.value, tuple(at), stored)
    _require_others(low, tensor, region, node)
    low.builder.append(ops.Parallel((), (), region.freeze(), low.location(node)))
    low.state.writes += 1


def _require_element(
    low: Lowering, tensor: TensorView, at: tuple[Number | int, ...], node: ast.AST
) -> None:
    known = tensor.value not in low.state.parts and all(isinstance(each, int) for each in at)
    if low.kind == "host" and not (known and layouts.is_static(tensor.layout.shape)):
        from ferrule.language.lowering.tensors import bounds

        bounds.require_element(low, tensor, at, node)


def _require_others(low: Lowering, tensor: TensorView, region: OpenRegion, node: ast.AST) -> None:
    """Refuses to write to a tensor that a reduction reads: it would read written elements."""
    bases, here = low.state.bases, tensor.value
    base = bases.get(here, here)
    for loop in region.ops:
        for op in all_ops(loop.body) if isinstance(loop, ops.For) else ():
            if isinstance(op, ops.Load) and bases.get(op.tensor, op.tensor) is base:
                low.fail(
                    node,
                    f"{tensor.name} is written while the same memory is reduced",
                    hint="write to another tensor",
                )
