"""Reading and writing: names, tensor elements, whole tensors."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any

from ferrule.language.ir import ops
from ferrule.language.lowering import operators
from ferrule.language.lowering.context import Lowering
from ferrule.language.promotion import stores_implicitly
from ferrule.language.values import RUN_TIME, Number, TensorView, Whole, is_run_time
from ferrule.specs import DType, Int32, Int64, Numeric
from ferrule.specs.expr import is_dim

_ALL = slice(None)


def index(low: Lowering, node: ast.expr) -> tuple[Any, ...]:
    """The coordinates in a subscript: numbers, and `slice(None)` for `:`."""
    parts = node.elts if isinstance(node, ast.Tuple) else [node]
    result: list[Any] = []
    for part in parts:
        if isinstance(part, ast.Slice):
            if part.lower is not None or part.upper is not None or part.step is not None:
                low.fail(part, "slices with bounds are not supported", expected="a[:]")
            result.append(_ALL)
        else:
            value = low.evaluate(part)
            result += value if isinstance(value, tuple) else [value]
    return tuple(result)


def read(low: Lowering, tensor: TensorView, coordinates: tuple[Any, ...], node: ast.AST) -> Any:
    """`tensor[...]`: an element, or the whole tensor for `tensor[:]`."""
    if _is_whole(low, tensor, coordinates, node):
        return _whole(low, tensor, node)
    checked = _coordinates(low, tensor, coordinates, node)
    _require_element(low, tensor.type.dtype, node)
    return Number(low.builder.load(tensor.value, checked))


def _whole(low: Lowering, tensor: TensorView, node: ast.AST) -> Whole:
    """A tensor as a whole-tensor expression: it loads at a coordinate."""
    _require_element(low, tensor.type.dtype, node)

    def element(coordinates: tuple[ops.Value, ...]) -> Number:
        return Number(low.builder.load(tensor.value, coordinates))

    return Whole(tensor.type.shape, tensor.name, tensor.type.dtype, element)


def _is_whole(
    low: Lowering, tensor: TensorView, coordinates: tuple[Any, ...], node: ast.AST
) -> bool:
    slices = [c for c in coordinates if isinstance(c, slice)]
    if not slices:
        return False
    ndim = len(tensor.type.shape)
    if len(slices) != len(coordinates) or len(coordinates) not in (1, ndim):
        low.fail(node, "a part of a tensor cannot be taken", expected="all coordinates, or a[:]")
    if low.kind == "kernel":
        low.fail(
            node,
            f"{tensor.name}[:] in a kernel: whole tensors are for host functions",
            hint="in a kernel each thread reads and writes single elements",
        )
    return True


def _coordinates(
    low: Lowering, tensor: TensorView, coordinates: tuple[Any, ...], node: ast.AST
) -> tuple[ops.Value, ...]:
    shape = tensor.type.shape
    if len(coordinates) != len(shape):
        low.fail(
            node,
            f"{tensor.name} has {len(shape)} dims, but {len(coordinates)} coordinates are given",
            expected=f"{tensor.name}[{', '.join('ijklmnop'[: len(shape)]) or '()'}]",
        )
    values = []
    for axis, (coordinate, size) in enumerate(zip(coordinates, shape, strict=True)):
        known = coordinate.value if isinstance(coordinate, Numeric) else coordinate
        known = operators.plain(known)
        if isinstance(known, int) and not isinstance(known, bool):
            _check_known(low, tensor, axis, known, size, node)
        number = operators.as_number(low, coordinate, node, Int64 if _is_wide(known) else Int32)
        if not number.dtype.is_integer:
            low.fail(
                node,
                f"coordinate {axis} of {tensor.name} is {operators.describe(number)}",
                expected="an integer",
                hint="convert it, fe.Int32(x)",
            )
        values.append(number.value)
    return tuple(values)


def _is_wide(known: Any) -> bool:
    return is_dim(known) and isinstance(known, int) and known >= 1 << 31


def _check_known(
    low: Lowering, tensor: TensorView, axis: int, known: int, size: Any, node: ast.AST
) -> None:
    if known < 0:
        low.fail(
            node,
            f"coordinate {axis} of {tensor.name} is negative: {known}",
            hint=f"count from the end with {tensor.name}.shape[{axis}] - {-known}",
        )
    if isinstance(size, int) and known >= size:
        low.fail(
            node, f"coordinate {axis} of {tensor.name} is {known}, but the size there is {size}"
        )


def _require_element(low: Lowering, dtype: DType, node: ast.AST) -> None:
    small_float = dtype.kind == "float" and dtype.bits < 16
    if dtype.kind == "complex" or dtype.bits < 8 or small_float:
        low.fail(
            node,
            f"elements of {dtype.name} cannot be read or written yet",
            expected="a bool, an integer of 8 to 64 bits, or a float of 16 to 64 bits",
        )


def write(
    low: Lowering, tensor: TensorView, coordinates: tuple[Any, ...], value: Any, node: ast.AST
) -> None:
    """`tensor[...] = value`."""
    if _is_whole(low, tensor, coordinates, node):
        _write_whole(low, tensor, value, node)
        return
    checked = _coordinates(low, tensor, coordinates, node)
    low.builder.store(tensor.value, checked, _stored(low, tensor, value, node))
    low.state.writes += 1


def _stored(low: Lowering, tensor: TensorView, value: Any, node: ast.AST) -> ops.Value:
    """The value in the tensor's dtype."""
    dtype = tensor.type.dtype
    _require_element(low, dtype, node)
    number = operators.as_number(low, value, node, dtype)
    if not stores_implicitly(number.dtype, dtype):
        low.fail(
            node,
            f"a {number.dtype.name} is stored to {tensor.name}, whose elements are {dtype.name}",
            expected=f"a value that becomes {dtype.name} without losing its kind",
            hint=f"convert it, fe.{dtype.__name__}(x)",
        )
    return operators.convert(low, number, dtype).value


def _write_whole(low: Lowering, tensor: TensorView, value: Any, node: ast.AST) -> None:
    """`c[:] = expression`: one `Parallel` over all coordinates."""
    if isinstance(value, TensorView):
        low.fail(node, f"{value.name} is a tensor", hint=f"write the whole of it, {value.name}[:]")
    if isinstance(value, Whole):
        operators.check_current(low, value, node)
        operators.same_shape(low, tensor.type.shape, tensor.name, value.shape, value.name, node)
    extents = tuple(low.builder.size(Int64, dim) for dim in tensor.type.shape)
    indices = tuple(ops.Value(Int64, f"i{axis}") for axis in range(len(extents)))
    with low.builder.region() as region:
        element = value.element(indices) if isinstance(value, Whole) else value
        low.builder.store(tensor.value, indices, _stored(low, tensor, element, node))
    low.builder.append(ops.Parallel(indices, extents, region.freeze()))
    low.state.writes += 1


def bind(low: Lowering, target: ast.expr, value: Any) -> None:
    """Assigns to a target: a name, a tuple of targets, a tensor's elements, an item of a list."""
    match target:
        case ast.Name(id=name):
            low.names[name] = value
        case ast.Tuple(elts=elts) | ast.List(elts=elts):
            _unpack(low, target, elts, value)
        case ast.Subscript():
            place(low, target).write(value)
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
        if isinstance(self.base, TensorView):
            return read(self.low, self.base, self.key, self.node)
        return operators.at_compile_time(self.low, self.node, lambda: self.base[self.key])

    def write(self, value: Any) -> None:
        """Puts a value there."""
        if isinstance(self.base, TensorView):
            write(self.low, self.base, self.key, value, self.node)
        else:
            operators.at_compile_time(
                self.low, self.node, lambda: self.base.__setitem__(self.key, value)
            )


def place(low: Lowering, node: ast.Subscript) -> Place:
    """The place that a subscript names, for an assignment."""
    base = low.evaluate(node.value)
    if isinstance(base, TensorView):
        return Place(low, node, base, index(low, node.slice))
    if isinstance(base, RUN_TIME):
        low.fail(node, f"{operators.describe(base)} has no elements to assign to")
    if not hasattr(base, "__setitem__"):
        low.fail(
            node,
            f"{operators.describe(base)} has no elements to assign to",
            hint="assign to an element of a tensor or of a list",
        )
    if low.frame.regions:
        low.fail(
            node,
            f"a {type(base).__name__} cannot be changed inside a run-time branch or loop",
            hint="assign to a name, or to an element of a tensor",
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
