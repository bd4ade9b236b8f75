"""Reading and writing: names, tensor elements, whole tensors."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any, Final

from ferrule.language.ir import ops
from ferrule.language.ir.builder import OpenRegion
from ferrule.language.layouts.coordinates import has_free
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.control import mutation
from ferrule.language.lowering.objects import reflection
from ferrule.language.lowering.python import operators
from ferrule.language.lowering.tensors import access, coordinates, reductions, vectors, views
from ferrule.language.values import (
    RUN_TIME,
    Handle,
    Number,
    PointerView,
    TensorView,
    Vector,
    Whole,
    is_record,
    is_run_time,
)
from ferrule.specs import Int64, params
from ferrule.specs.expr import INT64_MAX


def read(low: Lowering, base: TensorView | PointerView, at: tuple[Any, ...], node: ast.AST) -> Any:
    """`tensor[...]`: an element, a part of it, or the whole tensor for `tensor[:]`."""
    tensor = views.as_tensor(base) if isinstance(base, PointerView) else base
    if _is_whole(low, tensor, at, node):
        return whole(low, tensor, node)
    if has_free(at):
        name, written = ast.unparse(node), any(isinstance(part, slice) for part in at)
        return views.cut(low, tensor, at, node, name=name, whole=written)
    access.require_reachable(low, tensor, node)
    access.require_element(low, tensor.type.dtype, node)
    return Number(low.builder.load(tensor.value, _indices(low, tensor, at, node)))


def _indices(
    low: Lowering, tensor: TensorView, at: tuple[Any, ...], node: ast.AST
) -> tuple[ops.Value, ...]:
    return coordinates.values(low, coordinates.indices(low, tensor, at, node), node)


def whole(low: Lowering, tensor: TensorView, node: ast.AST) -> Whole:
    """A tensor as a whole-tensor expression: it loads at a coordinate."""
    _require_shared(low, tensor, node)
    access.require_element(low, tensor.type.dtype, node)

    def element(coordinates: tuple[ops.Value, ...]) -> Number:
        return Number(low.builder.load(tensor.value, coordinates))

    return Whole(tensor.type.shape, tensor.name, tensor.type.dtype, element)


def _require_shared(low: Lowering, tensor: TensorView, node: ast.AST) -> None:
    """A whole-tensor expression may run on a GPU, or in many threads."""
    if tensor.type.is_own:
        low.fail(
            node,
            f"{tensor.name} is in registers: it is no part of whole-tensor expressions",
            hint=f"{tensor.name}.fill(x), {tensor.name}.load(), {tensor.name}.store(v), or "
            f"single elements",
        )


def _is_whole(low: Lowering, tensor: TensorView, at: tuple[Any, ...], node: ast.AST) -> bool:
    """Whether a coordinate is `:` alone, or `:` for every mode."""
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


def write(
    low: Lowering,
    base: TensorView | PointerView,
    at: tuple[Any, ...],
    value: Any,
    node: ast.AST,
) -> None:
    """`tensor[...] = value`."""
    tensor = views.as_tensor(base) if isinstance(base, PointerView) else base
    if isinstance(value, Vector):
        part = views.cut(low, tensor, at, node, name=ast.unparse(node))
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
        reductions.write_single(low, tensor, _indices(low, tensor, at, node), value, node)
    else:
        access.require_reachable(low, tensor, node)
        found = _indices(low, tensor, at, node)
        stored = access.stored(low, tensor.type.dtype, value, tensor.name, node)
        low.builder.store(tensor.value, found, stored)
        low.state.writes += 1


def _write_whole(low: Lowering, tensor: TensorView, value: Any, node: ast.AST) -> None:
    """`c[:] = expression`: one `Parallel` over all coordinates."""
    _require_shared(low, tensor, node)
    if isinstance(value, TensorView):
        if not value.whole:
            hint = f"write the whole of it, {value.name}[:]"
            low.fail(node, f"{value.name} is a tensor", hint=hint)
        value = whole(low, value, node)
    if isinstance(value, Whole):
        operators.check_current(low, value, node)
        operators.same_shape(low, tensor.type.shape, tensor.name, value.shape, value.name, node)
    extents = tuple(low.builder.size(Int64, dim) for dim in tensor.type.shape)
    indices = tuple(ops.Value(Int64, f"i{axis}") for axis in range(len(extents)))
    with low.builder.region() as region:
        element = value.element(indices) if isinstance(value, Whole) else value
        stored = access.stored(low, tensor.type.dtype, element, tensor.name, node)
        low.builder.store(tensor.value, indices, stored)
    _require_one_order(low, tensor, region, node)
    reductions.require_others(low, tensor, region, node)
    parallel = ops.Parallel(indices, extents, region.freeze(), low.location(node))
    low.builder.append(parallel)
    low.state.writes += 1


def _require_one_order(
    low: Lowering, tensor: TensorView, region: OpenRegion, node: ast.AST
) -> None:
    """Refuses `a[:] = a.transpose()[:]`: elements are written before others read them."""
    roots, here = low.state.roots, tensor.value
    for op in region.ops:
        if isinstance(op, ops.Load) and op.tensor is not here:
            one = roots.get(op.tensor, op.tensor) is roots.get(here, here)
            if one and op.tensor.tensor.strides != here.tensor.strides:
                low.fail(
                    node,
                    f"{tensor.name} is written while the same memory is read in another layout",
                    hint="write to another tensor",
                )


def bind(low: Lowering, target: ast.expr, value: Any) -> None:
    """Assigns to a target: a name, a tuple of targets, a tensor's elements, an item of a list."""
    match target:
        case ast.Name(id=name):
            low.names[name] = value
        case ast.Tuple(elts=elts) | ast.List(elts=elts):
            _unpack(low, target, elts, value)
        case ast.Subscript():
            place(low, target).write(value)
        case ast.Attribute(value=inner) if reflection.is_object(owner := low.evaluate(inner)):
            reflection.assign(low, target, owner, value)
        case ast.Attribute(value=ast.Name(id=name), attr=attr) if is_record(low.peek(name)):
            low.fail(
                target,
                "attributes cannot be assigned to in a compiled function",
                hint=f"make a new object: {name} = dataclasses.replace({name}, {attr}=...)",
            )
        case _:
            low.fail(
                target,
                "attributes cannot be assigned to in a compiled function",
                hint="assign to a name, or to an element of a tensor",
            )


def _unpack(low: Lowering, target: ast.expr, elts: list[ast.expr], value: Any) -> None:
    if isinstance(value, RUN_TIME):
        low.fail(
            target,
            f"{operators.describe(value)} cannot be unpacked",
            hint=operators.usage_hint(value),
        )
    items = operators.at_compile_time(low, target, lambda: list(value))
    starred = [at for at, inner in enumerate(elts) if isinstance(inner, ast.Starred)]
    if starred and len(items) >= len(elts) - 1:
        first, last = starred[0], len(items) - (len(elts) - 1 - starred[0])
        items[first:last] = [items[first:last]]
    if len(items) != len(elts):
        low.fail(target, f"{len(items)} values are assigned to {len(elts)} names")
    for inner, item in zip(elts, items, strict=True):
        bind(low, inner.value if isinstance(inner, ast.Starred) else inner, item)


@dataclass(frozen=True, slots=True)
class Place:
    """What `base[index]` means on the left of an assignment, base and index evaluated."""

    low: Lowering
    node: ast.Subscript
    base: Any
    key: Any

    def read(self) -> Any:
        """The element that is there."""
        if isinstance(self.base, (TensorView, PointerView)):
            return read(self.low, self.base, self.key, self.node)
        if isinstance(self.base, Handle):
            from ferrule.language.lowering.objects import containers

            return containers.item(self.low, self.base, self.key, self.node)
        return operators.at_compile_time(self.low, self.node, lambda: self.base[self.key])

    def write(self, value: Any) -> None:
        """Puts a value there."""
        if isinstance(self.base, (TensorView, PointerView)):
            write(self.low, self.base, self.key, value, self.node)
        elif isinstance(self.base, Handle):
            from ferrule.language.lowering.objects import container_writes

            container_writes.write(self.low, self.base, self.key, value, self.node)
        else:
            if is_run_time(value):
                mutation.require_inside(self.low, self.base, self.node)
            operators.at_compile_time(
                self.low, self.node, lambda: self.base.__setitem__(self.key, value)
            )


def place(low: Lowering, node: ast.Subscript) -> Place:
    """The place that a subscript names, for an assignment."""
    base = low.evaluate(node.value)
    if isinstance(base, (TensorView, PointerView)):
        return Place(low, node, base, coordinates.subscript(low, node.slice))
    if isinstance(base, Handle) and isinstance(base.param, (params.Elements, params.Pairs)):
        return Place(low, node, base, low.evaluate(node.slice))
    if isinstance(base, RUN_TIME):
        hint = "a vector never changes: make a fragment, frag.store(v), and assign to that"
        low.fail(
            node,
            f"{operators.describe(base)} has no elements to assign to",
            hint=hint if isinstance(base, Vector) else None,
        )
    if not hasattr(base, "__setitem__"):
        low.fail(
            node,
            f"{operators.describe(base)} has no elements to assign to",
            hint="assign to an element of a tensor or of a list",
        )
    key = operators.plain(low.evaluate(node.slice))
    if is_run_time(key):
        low.fail(
            node.slice,
            f"{type(base).__name__}s are indexed while compiling, "
            f"but this index is {operators.describe(key)}",
            hint="loop over it with range_constexpr, or keep the values in a tensor",
        )
    return Place(low, node, base, key)
