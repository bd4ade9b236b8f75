"""The algebra of layouts in compiled functions: one table from the function to its emitter.

Layouts are compile-time values: their sizes are ints and expressions over symbols.  The functions
of `ferrule.language.layouts` run unchanged; sizes are converted from and to the language's numbers.
A tensor is passed as its layout, and if the result is a layout of its elements, it is returned as a
view.  Coordinates may be run-time values.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import partial
from typing import Any, Final, Literal

from ferrule.language import layouts
from ferrule.language.faces import tensors as faces
from ferrule.language.faces import tuples
from ferrule.language.layouts import ComposedLayout, Layout, Swizzle
from ferrule.language.layouts.composed import moved
from ferrule.language.layouts.coordinates import coordinate_of_index
from ferrule.language.layouts.tiling import partition_at, tile_at
from ferrule.language.lowering.arguments import Intrinsic, bound
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.descriptions import describe
from ferrule.language.lowering.numbers import coercion, scalars, typed_constants
from ferrule.language.lowering.numbers.sizes import as_dims, is_number_layout, named, size_numbers
from ferrule.language.lowering.tensors import arranged, tensor_methods, views
from ferrule.language.lowering.tensors.arranged import ARRANGED
from ferrule.language.lowering.tensors.coordinates import Emitted, refusals
from ferrule.language.values import Begin, Number, PointerView, SwizzledPointer, is_run_time
from ferrule.specs import Numeric
from ferrule.specs import ceil_div as ceil_div_of_sizes


def _argument(low: Lowering, value: Any, node: ast.AST) -> Any:
    """An argument for the algebra: a tensor as its layout, numbers as sizes."""
    if isinstance(value, ARRANGED):
        return named(low, value.layout)
    return as_dims(low, value, node)


def known_function(function: Callable[..., Any]) -> Intrinsic:
    """A function of layouts and sizes only; its result is a compile-time value."""

    def emit(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> Any:
        if low.kind == "kernel" and function in _OF_NUMBERS and _computed([args, kwargs]):
            return _of_numbers(low, function, args, kwargs, node)
        given = [_argument(low, value, node) for value in args]
        named_ones = {name: _argument(low, value, node) for name, value in kwargs.items()}

        def compute() -> Any:
            with refusals(low, node):
                return function(*given, **named_ones)

        return size_numbers(low, coercion.at_compile_time(low, node, compute))

    return emit


def _computed(value: Any) -> bool:
    """Whether it has an integer that a kernel computes, which no size is."""
    match value:
        case tuple() | list():
            return any(map(_computed, value))
        case dict():
            return _computed(list(value.values()))
        case Number():
            return value.dtype.is_integer and value.dim is None
    return is_number_layout(value)


def _of_numbers(
    low: Lowering,
    function: Callable[..., Any],
    args: list[Any],
    kwargs: dict[str, Any],
    node: ast.Call,
) -> Any:
    """A function of layouts, of integers that a kernel computes, in the kernel language."""
    if function is layouts.make_layout:
        (shape,), stride = bound(low, "shape", args, {}, node), kwargs.get("stride")
        if _kinds(shape) != _kinds(shape if stride is None else stride):
            low.fail(
                node,
                f"a layout of the shape {describe(shape)} and the stride {describe(stride)}",
                expected="integers, nested alike in both",
            )
    from ferrule.language.faces import number_layouts

    return low.call(getattr(number_layouts, _OF_NUMBERS[function]), args, kwargs, node)


def _kinds(value: Any) -> Any:
    """The nesting of integers, which anything else makes unequal to itself."""
    if isinstance(value, tuple):
        return tuple(map(_kinds, value))
    known = coercion.plain(value)
    typed = isinstance(known, (Number, Numeric))
    whole = known.dtype.is_integer if typed else type(known) is int
    return "integer" if whole else object()


def _viewing(function: Callable[..., Any]) -> Intrinsic:
    """A function that rearranges the elements of its first argument."""
    known = known_function(function)

    def emit(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> Any:
        result = known(low, args, kwargs, node)
        if args and isinstance(args[0], ARRANGED) and isinstance(result, Layout):
            if function in _NO_OTHERS:
                return arranged.relaid(low, args[0], result, has_no_others=True)
            arrange = partial(again, low, args, kwargs, node)
            return arranged.relaid(low, args[0], result, arrange)
        return result

    def again(
        low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call, layout: Layout
    ) -> Any:
        rest = [_argument(low, value, node) for value in args[1:]]
        named_ones = {name: _argument(low, value, node) for name, value in kwargs.items()}
        return function(layout, *rest, **named_ones)

    return emit


_NO_OTHERS: Final = (layouts.coalesce, layouts.filter, layouts.filter_zeros)
"""Functions whose result has no elements but those of the argument, and dims of its own."""


def apply(
    low: Lowering,
    layout: Layout | ComposedLayout,
    args: list[Any],
    kwargs: dict[str, Any],
    node: ast.Call,
) -> Any:
    """`layout(coordinate)`: an index, or the layout of the modes that a None keeps."""
    if kwargs:
        low.fail(node, "a layout takes a coordinate", expected="layout(i, j)")
    coordinate = args[0] if len(args) == 1 else tuple(args)
    return (
        _slice(low, layout, coordinate, node)
        if _keeps(coordinate)
        else _index(low, coordinate, layout, node)
    )


def _keeps(coordinate: Any) -> bool:
    if isinstance(coordinate, tuple):
        return any(map(_keeps, coordinate))
    return coordinate is None


def _index(low: Lowering, coordinate: Any, layout: Any, node: ast.Call) -> Any:
    if isinstance(layout, ComposedLayout):
        return _swizzled_index(low, coordinate, layout, node)
    with refusals(low, node):
        index = layouts.crd2idx(coordinate, named(low, layout), arithmetic=Emitted(low, node))
    return size_numbers(low, index)


def _swizzled_index(low: Lowering, coordinate: Any, layout: ComposedLayout, node: ast.Call) -> Any:
    """The index that a composed layout gives, also at coordinates known only at the call."""
    if layout.has_function:
        found = _index(low, coordinate, layout.outer, node)
        place = moved(found, layout.offset, lambda a, b: scalars.arithmetic(low, "add", a, b, node))
        return low.call(layout.inner, [place], {}, node)
    if not is_run_time(coordinate):
        with refusals(low, node):
            return size_numbers(low, layouts.crd2idx(coordinate, named(low, layout)))
    found = _index(low, coordinate, layout.outer, node)
    if layout.offset != 0:
        found = scalars.arithmetic(low, "add", found, layout.offset, node)
    if not isinstance(layout.inner, Swizzle):
        return _index(low, found, layout.inner, node)
    return swizzle(low, layout.inner, found, node)


def swizzle(low: Lowering, by: Swizzle, index: Any, node: ast.AST) -> Any:
    """`swizzle(index)`: a number, known or not."""
    known = coercion.plain(index)
    if not is_run_time(known):
        with refusals(low, node):
            return by(known)
    number = coercion.as_number(low, index, node)
    if not number.dtype.is_integer:
        low.fail(node, f"{by} of {describe(index)}", expected="an integer")
    taken = scalars.arithmetic(low, "and", number, by.source, node)
    way: Literal["shr", "shl"] = "shr" if by.num_shift >= 0 else "shl"
    changed = scalars.arithmetic(low, way, taken, abs(by.num_shift), node)
    return scalars.arithmetic(low, "xor", number, changed, node)


def _slice(low: Lowering, layout: Any, coordinate: Any, node: ast.AST) -> Any:
    with refusals(low, node):
        return layouts.slice_(layout, coordinate)


def _crd2idx(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> Any:
    coordinate, layout = bound(low, "coord layout", args, kwargs, node)
    if _computed(layout) and low.kind == "kernel":
        return _of_numbers(low, layouts.crd2idx, args, kwargs, node)
    return _index(low, coordinate, _layout(low, layout, node), node)


def _idx2crd(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> Any:
    index, shape = bound(low, "idx shape", args, kwargs, node)
    with refusals(low, node):
        sizes = _argument(low, shape, node)
        found = layouts.idx2crd(index, sizes, arithmetic=Emitted(low, node))
    return size_numbers(low, found)


def coordinate_of(
    low: Lowering,
    layout: Layout,
    name: str,
    args: list[Any],
    kwargs: dict[str, Any],
    node: ast.Call,
) -> Any:
    """`layout.get_flat_coord(idx)`, and `get_hier_coord`, of which the modes nest."""
    (index,) = bound(low, "idx", args, kwargs, node)
    known = named(low, layout)
    flat = name == "get_flat_coord"
    with refusals(low, node):
        found = coordinate_of_index(index, known, flat=flat, arithmetic=Emitted(low, node))
    return size_numbers(low, found)


def _layout(low: Lowering, value: Any, node: ast.AST) -> Any:
    found = _argument(low, value, node)
    if isinstance(found, (Layout, ComposedLayout)):
        return found
    low.fail(node, f"expected a layout, but got {describe(value)}")


def _slice_(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> Any:
    value, coordinate = bound(low, "src coord", args, kwargs, node)
    if isinstance(value, tuple):
        with refusals(low, node):
            return layouts.slice_(value, coordinate)
    if not isinstance(value, ARRANGED):
        return _slice(low, _layout(low, value, node), coordinate, node)
    at = coordinate if isinstance(coordinate, tuple) else (coordinate,)
    return arranged.cut(low, value, at, node, name=ast.unparse(node))


def _slice_and_offset(
    low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call
) -> tuple[Any, Any]:
    """`slice_and_offset(coord, layout)`; a part of a composed layout has its offset in itself."""
    coordinate, source = bound(low, "coord src", args, kwargs, node)
    layout = _layout(low, source, node)
    if isinstance(layout, ComposedLayout):
        return _slice(low, layout, coordinate, node), 0
    return _slice(low, layout, coordinate, node), _index(low, coordinate, layout, node)


def _domain_offset(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> Any:
    coordinate, tensor = bound(low, "coord tensor", args, kwargs, node)
    if not isinstance(tensor, ARRANGED):
        low.fail(node, f"domain_offset takes a tensor, but got {describe(tensor)}")
    at = coordinate if isinstance(coordinate, tuple) else (coordinate,)
    return arranged.offset(low, tensor, at, node)


def _tile(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> Any:
    target, tiler, coordinate, projection = bound(
        low, "input tiler coord proj=", args, kwargs, node
    )
    layout = _outer(_layout(low, target, node))

    def tile_of(whole: Layout) -> tuple[Layout, Any]:
        return tile_at(whole, _argument(low, tiler, node), coordinate, projection)

    with refusals(low, node):
        tiled, at = tile_of(layout)
    return _part(low, target, tiled, at, node, lambda whole: tile_of(whole)[0])


def _partition(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> Any:
    target, tiler, index, projection = bound(low, "target tiler index proj=", args, kwargs, node)
    layout = _outer(_layout(low, target, node))
    threads = _argument(low, tiler, node)

    def partition_of(whole: Layout) -> tuple[Layout, Any]:
        return partition_at(whole, threads, index, projection, arithmetic=Emitted(low, node))

    with refusals(low, node):
        tiled, at = partition_of(layout)
    return _part(low, target, tiled, at, node, lambda whole: partition_of(whole)[0])


def _outer(layout: Any) -> Any:
    return layout.outer if isinstance(layout, ComposedLayout) else layout


def _part(
    low: Lowering,
    target: Any,
    tiled: Layout,
    at: Any,
    node: ast.Call,
    tile: Callable[[Layout], Layout],
) -> Any:
    """A part of a tensor; for a layout, the layout of the part and the index of its beginning."""
    if isinstance(target, ARRANGED):
        name = ast.unparse(node)
        return arranged.cut(low, arranged.relaid(low, target, tiled, tile), at, node, name=name)
    if isinstance(target, ComposedLayout):
        low.fail(node, f"a part of {target}", hint="make a tensor of it, and take a part of that")
    return _slice(low, tiled, at, node), _index(low, at, tiled, node)


def _ceil_div(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> Any:
    """`a / b` rounded up, also for run-time integers that are not sizes."""
    lhs, rhs = bound(low, "input tiler", args, kwargs, node)
    if scalars.are_typed_numbers(lhs, rhs):
        return typed_constants.folded(low, lambda: _rounded_up(low, lhs, rhs, node))
    unknown = [v for v in (lhs, rhs) if isinstance(v, Number) and v.dim is None]
    if not unknown or isinstance(lhs, (tuple, list)) or isinstance(rhs, (tuple, list)):
        return known_function(layouts.ceil_div)(low, [lhs, rhs], {}, node)
    return _rounded_up(low, lhs, rhs, node)


def _rounded_up(low: Lowering, lhs: Any, rhs: Any, node: ast.Call) -> Number:
    """The quotient, plus 1 if there is a remainder: negating an operand could wrap."""
    quotient = scalars.arithmetic(low, "floordiv", lhs, rhs, node)
    rest = scalars.arithmetic(low, "mod", lhs, rhs, node)
    return scalars.arithmetic(low, "add", quotient, scalars.truth(low, rest, node), node)


def _elem_less(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> Any:
    """Whether each leaf of a coordinate is less than its size."""
    lhs, rhs = bound(low, "lhs rhs", args, kwargs, node)
    left, right = _flat(lhs), _flat(rhs)
    if not layouts.is_congruent(lhs, rhs):
        low.fail(node, "elem_less takes two tuples of one profile")
    result: Any = True
    for a, b in zip(left, right, strict=True):
        part = low.compare(ast.Lt(), a, b, node)
        if not is_run_time(part) and not is_run_time(result):
            result = result and part
        else:
            result = low.binary(ast.BitAnd(), result, part, node)
    return result


def _flat(value: Any) -> tuple[Any, ...]:
    flat = layouts.flatten(value)
    return flat if isinstance(flat, tuple) else (flat,)


def _recast_tensor(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> Any:
    source, dtype = bound(low, "src dtype", args, kwargs, node)
    return tensor_methods.recast_tensor(low, source, [dtype], {}, node)


def _recast_ptr(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> Any:
    pointer, by, dtype = bound(low, "ptr swizzle_= dtype=", args, kwargs, node)
    if dtype is not None or by is None:
        pointer = tensor_methods.recast_pointer(low, pointer, [dtype], {}, node)
    if by is None:
        return pointer
    if isinstance(pointer, SwizzledPointer) and pointer.begin == Begin():
        # The memory itself, for another use with another swizzle.
        root = pointer.root
        pointer = views.pointer_to(low, root, root.tensor.dtype, root.tensor.align, pointer.name)
    if not isinstance(by, Swizzle) or not isinstance(pointer, PointerView):
        low.fail(
            node,
            f"recast_ptr of {describe(pointer)} with the swizzle {describe(by)}",
            expected="a pointer without one, and fe.make_swizzle(b, m, s)",
        )
    from ferrule.language.lowering.tensors import swizzled

    return swizzled.pointer(low, pointer, by, node)


def _repeat_like(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> Any:
    """`repeat_like(x, target)`: only the tuples of the target count."""
    value, target = bound(low, "value target", args, kwargs, node)
    return layouts.repeat_like(value, target)


def _identity(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> Any:
    from ferrule.language.lowering.tensors import coordinate_views

    return coordinate_views.identity(low, args, kwargs, node)


_OF_NUMBERS: Final[dict[Any, str]] = {
    layouts.crd2idx: "index_of_numbers",
    layouts.make_layout: "of_numbers",
    layouts.size: "size_of_numbers",
}
"""Functions of `faces.number_layouts`, which is imported where a kernel needs it."""
_KNOWN: Final = (
    layouts.blocked_product,
    layouts.complement,
    layouts.cosize,
    layouts.depth,
    layouts.dice,
    layouts.flat_product,
    layouts.is_congruent,
    layouts.is_static,
    layouts.is_weakly_congruent,
    layouts.left_inverse,
    layouts.logical_product,
    layouts.make_composed_layout,
    layouts.make_identity_layout,
    layouts.make_layout,
    layouts.make_layout_like,
    layouts.make_layout_tv,
    layouts.make_ordered_layout,
    layouts.make_swizzle,
    layouts.max_common_layout,
    layouts.max_common_vector,
    layouts.nullspace,
    layouts.product,
    layouts.product_each,
    layouts.raked_product,
    layouts.rank,
    layouts.recast_layout,
    layouts.right_inverse,
    layouts.shape,
    layouts.shape_div,
    layouts.size,
    layouts.tile_to_shape,
    layouts.tiled_product,
    layouts.tuple_cat,
    layouts.zipped_product,
)
_VIEWING: Final = (
    layouts.append,
    layouts.coalesce,
    layouts.composition,
    layouts.filter,
    layouts.filter_zeros,
    layouts.flat_divide,
    layouts.flatten,
    layouts.get,
    layouts.group_modes,
    layouts.logical_divide,
    layouts.prepend,
    layouts.select,
    layouts.tiled_divide,
    layouts.unflatten,
    layouts.zipped_divide,
)
TABLE: Final[dict[Any, Intrinsic]] = {
    **{function: known_function(function) for function in _KNOWN},
    **{function: _viewing(function) for function in _VIEWING},
    ceil_div_of_sizes: _ceil_div,
    layouts.ceil_div: _ceil_div,
    layouts.crd2idx: _crd2idx,
    layouts.idx2crd: _idx2crd,
    layouts.local_partition: _partition,
    layouts.local_tile: _tile,
    layouts.repeat_like: _repeat_like,
    layouts.slice_: _slice_,
    tuples.slice_and_offset: _slice_and_offset,
    faces.domain_offset: _domain_offset,
    faces.elem_less: _elem_less,
    faces.make_identity_tensor: _identity,
    faces.make_tensor: tensor_methods.make_tensor,
    faces.recast_ptr: _recast_ptr,
    faces.recast_tensor: _recast_tensor,
}
