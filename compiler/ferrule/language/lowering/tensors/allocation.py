"""New tensors in host functions: `fe.empty`, `fe.zeros`, `fe.full` there, and `fe.shrink`.

The sizes of a tensor's type are expressions over symbols.  A size that the body computes becomes a
new symbol, which gets its value from the `Alloc`.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from ferrule.compiler.artefacts import Fault, literal
from ferrule.compiler.support.entries import ALIGNMENT
from ferrule.language.faces import tensors as faces
from ferrule.language.ir import ops
from ferrule.language.ir.types import TensorType
from ferrule.language.lowering import owners
from ferrule.language.lowering.arguments import bound
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.descriptions import describe
from ferrule.language.lowering.numbers import coercion
from ferrule.language.lowering.numbers.sizes import symbol_of
from ferrule.language.lowering.tensors import devices, elements
from ferrule.language.values import Number, TensorView
from ferrule.specs import Compound, Dim, DType, Int64, Numeric, Uint8
from ferrule.specs.dtypes import as_dtype
from ferrule.specs.expr import make
from ferrule.specs.params import row_major_strides

_Args = list[Any]
_Kwargs = dict[str, Any]


def empty(low: Lowering, args: _Args, kwargs: _Kwargs, node: ast.Call) -> TensorView:
    """`fe.empty(shape, dtype)`."""
    given = _bound(low, faces.empty, args, kwargs, node)
    return _made(low, given["shape"], given["dtype"], given["device"], node)


def zeros(low: Lowering, args: _Args, kwargs: _Kwargs, node: ast.Call) -> TensorView:
    """`fe.zeros(shape, dtype)`."""
    given = _bound(low, faces.zeros, args, kwargs, node)
    return _zeroed(low, _made(low, given["shape"], given["dtype"], given["device"], node), node)


def empty_like(low: Lowering, args: _Args, kwargs: _Kwargs, node: ast.Call) -> TensorView:
    """`fe.empty_like(a)` in a host function."""
    given = _bound(low, faces.empty_like, args, kwargs, node)
    tensor = given["a"]
    if not isinstance(tensor, TensorView):
        low.fail(node, f"expected a tensor, but got {describe(tensor)}")
    dtype = tensor.type.dtype if given["dtype"] is None else given["dtype"]
    dims = tensor.type.shape
    sizes = tuple(low.builder.size(Int64, dim) for dim in dims)
    return _allocated(low, dims, sizes, _dtype(low, dtype, node), node)


def filled(low: Lowering, shape: Any, number: Number, node: ast.Call) -> TensorView:
    """`fe.full(shape, value, dtype)` and the like, in a host function."""
    tensor = _made(low, shape, number.dtype, None, node)
    _fill(low, tensor, number, node)
    return replace(tensor, whole=True)


def shrink(low: Lowering, args: _Args, kwargs: _Kwargs, node: ast.Call) -> TensorView:
    """`fe.shrink(tensor, size)`: the first rows of a tensor, which are the same memory."""
    from ferrule.language.lowering import rows  # few programs need it

    tensor, size = bound(low, "tensor size", args, kwargs, node)
    require_host(low, "shrink", node)
    owned = _require_owned(low, tensor, node)
    dim, value = size_of(low, "the size of", size, node)
    most = owned.type.shape[0]
    _require_inside(low, owned, dim, value, node)
    if dim == most:
        return owned
    return rows.part(low, owned, dim, value, ast.unparse(node), node)


def require_object(low: Lowering, tensor: TensorView, user: str, hint: str, node: ast.AST) -> None:
    """Refuses a tensor without an object of its own, or with elements of less than a byte.

    `user` begins the message, such as "shrink got"; `hint` is for a tensor without an object.
    """
    if not owners.hold(low.state, tensor.value):
        low.fail(
            node,
            f"{user} {describe(tensor)}, which has no object of its own",
            expected="a tensor of fe.empty, fe.zeros or fe.full, or a whole parameter",
            hint=hint,
        )
    if tensor.type.dtype.bits < 8:
        low.fail(
            node,
            f"{user} {describe(tensor)}, whose elements have less than a byte",
            hint="take it as a tensor of uint8",
        )


def _require_owned(low: Lowering, tensor: Any, node: ast.Call) -> TensorView:
    """The tensor, which this function must own, and which must have rows."""
    if not isinstance(tensor, TensorView):
        low.fail(node, f"shrink got {describe(tensor)}", expected="a tensor")
    require_object(low, tensor, "shrink got", "copy its rows to a new tensor", node)
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


TABLE: Final[dict[Any, Callable[[Lowering, _Args, _Kwargs, ast.Call], Any]]] = {
    faces.empty: empty,
    faces.zeros: zeros,
    faces.shrink: shrink,
}


def require_host(low: Lowering, name: str, node: ast.Call) -> None:
    """Refuses a tensor that a kernel makes."""
    if low.kind != "host" or low.elementwise:
        low.fail(
            node,
            f"fe.{name} in a kernel: tensors are made in host functions",
            hint="make it in the @fe.jit function and pass it to the kernel",
        )


def _bound(
    low: Lowering, face: Callable[..., Any], args: _Args, kwargs: _Kwargs, node: ast.Call
) -> _Kwargs:
    """The arguments by name."""
    require_host(low, face.__name__, node)
    try:
        bound = inspect.signature(face).bind(*args, **kwargs)
    except TypeError as error:
        low.fail(node, f"fe.{face.__name__}(): {error}")
    bound.apply_defaults()
    return dict(bound.arguments)


def _made(low: Lowering, shape: Any, dtype: Any, device: Any, node: ast.Call) -> TensorView:
    """A tensor with a shape from the user's code."""
    devices.require_here(low, device, node)
    given = shape if isinstance(shape, (tuple, list)) else (shape,)
    sized = [_size(low, axis, size, node) for axis, size in enumerate(given)]
    dims, sizes = tuple(dim for dim, _ in sized), tuple(value for _, value in sized)
    return _allocated(low, dims, sizes, _dtype(low, dtype, node), node)


def _dtype(low: Lowering, dtype: Any, node: ast.Call) -> DType:
    found: DType = coercion.at_compile_time(low, node, lambda: as_dtype(dtype))
    if found.bits < 8:
        low.fail(node, f"a tensor of {found.name} cannot be made: its elements have no bytes")
    return found


def size_of(low: Lowering, what: str, size: Any, node: ast.Call) -> tuple[Dim, ops.Value]:
    """A size of a tensor as an expression, and its value; `what` it is, such as `shape[0] of`."""
    number = coercion.as_number(low, size, node, Int64)
    if not number.dtype.is_integer:
        low.fail(
            node,
            f"{what} the new tensor is {describe(size)}",
            expected="an integer",
            hint="divide with // instead of /",
        )
    if isinstance(number.dim, Compound):
        message = f"Invalid {what} a new tensor, it overflows 64 bits or divides by zero"
        fault = Fault("ValueError", message, low.location(node))
        number = Number(low.builder.size(Int64, number.dim, fault), number.dim)
    number = coercion.convert(low, number, Int64)
    if number.dim is not None:
        return number.dim, number.value
    of = size.value if isinstance(size, Number) else number.value
    return symbol_of(low, of), number.value


def _size(low: Lowering, axis: int, size: Any, node: ast.Call) -> tuple[Dim, ops.Value]:
    """One size as an expression, and its value, which is checked to be non-negative."""
    dim, value = size_of(low, f"shape[{axis}] of", size, node)
    if isinstance(dim, int) and dim >= 0:
        return dim, value
    message = f"Invalid shape[{axis}] of a new tensor, expected at least 0, but got {{}}"
    fault = Fault("ValueError", message, low.location(node))
    if isinstance(dim, int):
        low.fail(node, message.format(dim))
    at_least = low.builder.compare("ge", value, low.builder.constant(Int64, 0))
    low.builder.check(at_least, fault, value)
    return dim, value


def _allocated(
    low: Lowering, dims: tuple[Dim, ...], sizes: tuple[ops.Value, ...], dtype: DType, node: ast.Call
) -> TensorView:
    strides = row_major_strides(dims)
    result = ops.Value(TensorType(dtype, dims, strides, ALIGNMENT), _name(node))
    low.builder.append(ops.Alloc(result, sizes, low.location(node)))
    low.state.allocated.add(result)
    return TensorView(result, ast.unparse(node))


def _name(node: ast.Call) -> str:
    """The name of a tensor in the IR."""
    match node.func:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
    return "tensor"


def _zeroed(low: Lowering, tensor: TensorView, node: ast.Call) -> TensorView:
    """Zero-fills; dtypes without arithmetic are filled byte by byte."""
    if _has_values(tensor.type.dtype):
        _fill(low, tensor, tensor.type.dtype(0), node)
        return tensor
    total: Dim = tensor.type.dtype.itemsize
    for dim in tensor.type.shape:
        total = make("mul", total, dim)
    bytes_ = low.builder.view(tensor.value, TensorType(Uint8, (total,), (1,), ALIGNMENT))
    _fill(low, TensorView(bytes_, tensor.name), Uint8(0), node)
    return tensor


def _has_values(dtype: DType) -> bool:
    """Whether the IR has arithmetic for these elements."""
    return dtype.kind != "complex" and (dtype.kind != "float" or dtype.bits >= 16)


def _fill(low: Lowering, tensor: TensorView, value: Number | Numeric, node: ast.Call) -> None:
    elements.write(low, tensor, (slice(None),), value, node)
