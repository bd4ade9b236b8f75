"""Properties of a tensor under the names of C++ kernel libraries: `dim`, `size`, `numel`,
`data_ptr`.

An axis is a compile-time value; negative ones count from the end.
"""

from __future__ import annotations

import ast
from typing import Any

from ferrule.language import layouts
from ferrule.language.ir import ops
from ferrule.language.layouts.dims import same
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.descriptions import describe
from ferrule.language.lowering.numbers import coercion, scalars
from ferrule.language.lowering.numbers.sizes import named, size_number, size_numbers
from ferrule.language.lowering.tensors import views
from ferrule.language.values import Number, PointerView, TensorView
from ferrule.specs import Dim, Int32, Int64, Numeric
from ferrule.specs.params import row_major_strides

_Args = list[Any]
_Kwargs = dict[str, Any]


def dim(low: Lowering, tensor: TensorView, args: _Args, kwargs: _Kwargs, node: ast.Call) -> int:
    """`a.dim()`: the number of sizes."""
    _nothing(low, "dim", args, kwargs, node)
    return len(tensor.layout)


def size(low: Lowering, tensor: TensorView, args: _Args, kwargs: _Kwargs, node: ast.Call) -> Any:
    """`a.size(i)`."""
    axis = _axis(low, "size", tensor, args, kwargs, node)
    return size_numbers(low, _modes(tensor.layout.shape)[axis])


def sizes(low: Lowering, tensor: TensorView, args: _Args, kwargs: _Kwargs, node: ast.Call) -> Any:
    """`a.sizes()`: all sizes."""
    _nothing(low, "sizes", args, kwargs, node)
    return size_numbers(low, tensor.layout.shape)


def leading_dim(tensor: TensorView) -> Any:
    """`a.leading_dim`: the mode with stride 1, or None."""
    from ferrule.language.faces import tuples

    return tuples.leading_dim(tensor.layout.shape, tensor.layout.stride)


def stride(low: Lowering, tensor: TensorView, args: _Args, kwargs: _Kwargs, node: ast.Call) -> Any:
    """`a.stride(i)`, in elements."""
    axis = _axis(low, "stride", tensor, args, kwargs, node)
    return size_numbers(low, _modes(tensor.layout.stride)[axis])


def strides(low: Lowering, tensor: TensorView, args: _Args, kwargs: _Kwargs, node: ast.Call) -> Any:
    """`a.strides()`: all strides."""
    _nothing(low, "strides", args, kwargs, node)
    return size_numbers(low, tensor.layout.stride)


def numel(low: Lowering, tensor: TensorView, args: _Args, kwargs: _Kwargs, node: ast.Call) -> Any:
    """`a.numel()`: the number of elements."""
    _nothing(low, "numel", args, kwargs, node)
    return size_number(low, layouts.size(named(low, tensor.layout)))


def data_ptr(
    low: Lowering, tensor: TensorView, args: _Args, kwargs: _Kwargs, node: ast.Call
) -> Number:
    """`a.data_ptr()`: the address of its first element, an Int64."""
    _nothing(low, "data_ptr", args, kwargs, node)
    if low.kind != "host" or low.elementwise or tensor.type.is_own:
        low.fail(node, "data_ptr is known in the host function alone", hint="a.iterator points")
    result = ops.Value(Int64, "data_ptr")
    low.builder.append(ops.Address(result, views.iterator(low, tensor).value))
    return Number(result)


def toint(
    low: Lowering, pointer: PointerView, args: _Args, kwargs: _Kwargs, node: ast.Call
) -> Number:
    """`p.toint()`: the address, an Int64; of shared memory of a GPU an Int32, as PTX has it."""
    _nothing(low, "toint", args, kwargs, node)
    if low.elementwise or pointer.type.is_own:
        low.fail(
            node,
            f"toint of {describe(pointer)}",
            expected="a pointer into global or shared memory",
        )
    result = ops.Value(Int64, "address")
    low.builder.append(ops.Address(result, pointer.value))
    if pointer.type.is_shared and low.state.target != "cpu":
        return Number(low.builder.cast(Int32, result))
    return Number(result)


def is_contiguous(
    low: Lowering, tensor: TensorView, args: _Args, kwargs: _Kwargs, node: ast.Call
) -> Any:
    """`a.is_contiguous()`: whether it is compact and row-major; strides of sizes of 1 are
    ignored."""
    _nothing(low, "is_contiguous", args, kwargs, node)
    shape, given = tensor.type.shape, tensor.type.strides
    wanted = row_major_strides(shape)
    result: Any = True
    for extent, is_, should in zip(shape, given, wanted, strict=True):
        if extent == 1 or same(is_, should):
            continue
        fits = _either(low, _equal(low, extent, 1), _equal(low, is_, should), node)
        result = fits if result is True else scalars.arithmetic(low, "and", result, fits, node)
    if result is True or 0 in shape:
        return True
    empty = _equal(low, layouts.product(shape), 0)
    return _either(low, result, empty, node)


def _modes(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def _equal(low: Lowering, left: Dim, right: Dim) -> Number:
    build = low.builder
    return Number(build.compare("eq", build.size(Int64, left), build.size(Int64, right)))


def _either(low: Lowering, left: Number, right: Number, node: ast.AST) -> Number:
    return scalars.arithmetic(low, "or", left, right, node)


def _nothing(low: Lowering, name: str, args: _Args, kwargs: _Kwargs, node: ast.Call) -> None:
    if args or kwargs:
        low.fail(node, f"{name} takes no arguments, but got {len(args) + len(kwargs)}")


def _axis(
    low: Lowering, name: str, tensor: TensorView, args: _Args, kwargs: _Kwargs, node: ast.Call
) -> int:
    if len(args) != 1 or kwargs:
        low.fail(node, f"{name} takes one axis", expected=f"{tensor.name}.{name}(0)")
    axis = args[0].value if isinstance(args[0], Numeric) else coercion.plain(args[0])
    rank = len(tensor.layout)
    if type(axis) is not int or not -rank <= axis < rank:
        low.fail(
            node,
            f"the axis of {name} is {describe(axis)}, but {tensor.name} has {rank} dims",
            expected=f"an integer in [{-rank}, {rank - 1}], known at compile time",
        )
    return axis % rank
