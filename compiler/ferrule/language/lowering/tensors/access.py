"""Requirements of an access to an element: accessible memory, a dtype with values, a fitting
value."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

from ferrule.language.ir import ops
from ferrule.language.ir.types import TensorType
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.descriptions import describe
from ferrule.language.lowering.numbers import coercion, scalars
from ferrule.language.promotion import PACKED, in_groups, sharing, stores_implicitly
from ferrule.language.values import ComplexNumber, Number, SwizzledView, TensorView
from ferrule.specs import (
    DType,
    Int32,
)
from ferrule.specs.expr import INT64_MAX, make


def load(low: Lowering, tensor: ops.Value, indices: Sequence[ops.Value]) -> Any:
    """An element of a tensor that can be read: a number, or a complex number."""
    if tensor.tensor.dtype.kind == "complex":
        return _load_complex(low, tensor, indices)
    if tensor.tensor.dtype not in PACKED:
        return Number(low.builder.load(tensor, tuple(indices)))
    from ferrule.language.lowering.tensors import packed  # few programs need it

    return packed.load(low, tensor, indices)


def require_reachable(low: Lowering, tensor: TensorView | SwizzledView, node: ast.AST) -> None:
    """Refuses accesses of host code to GPU memory."""
    if low.kind == "host" and low.state.target != "cpu" and not tensor.type.is_own:
        low.fail(
            node,
            f"{tensor.name} is on a GPU: host code cannot read or write its elements",
            hint=f"do it in a kernel, or with whole tensors, {tensor.name}[:] = …",
        )


def require_element(low: Lowering, dtype: DType, node: ast.AST) -> None:
    """Refuses dtypes for storage only, whose elements have no values."""
    if dtype in PACKED:
        low.fail(
            node,
            f"single elements of {dtype.name} have no bytes: {sharing(dtype)}",
            expected="a bool, an integer or a float of 8 to 64 bits",
            hint=f"elements of a tensor are read as {PACKED[dtype].name}, and written in "
            f"{'pairs' if dtype.bits == 4 else 'fours'}",
        )
    if dtype.kind == "complex":
        low.fail(
            node,
            f"elements of {dtype.name} cannot be used here: each of them is two numbers",
            expected="a bool, an integer or a float of 8 to 64 bits",
            hint=f"their parts can: x.recast(fe.{dtype.part.__name__})",
        )
    if not dtype.has_values:
        low.fail(
            node,
            f"elements of {dtype.name} cannot be read or written yet",
            expected="a bool, an integer or a float of 8 to 64 bits",
            hint="its bytes can: x.recast(fe.Uint8)" if dtype.bits < 8 else None,
        )


def require_readable(low: Lowering, dtype: DType, node: ast.AST) -> None:
    """Refuses dtypes whose elements cannot be read."""
    if dtype not in PACKED and dtype.kind != "complex":
        require_element(low, dtype, node)


def require_kept(low: Lowering, dtype: DType, node: ast.AST) -> None:
    """Refuses dtypes for which a function cannot allocate memory."""
    if dtype.kind != "complex":
        require_element(low, dtype, node)


def made(low: Lowering, type_: TensorType, make: Callable[[TensorType], ops.Value]) -> ops.Value:
    """New memory of this type, made by a function that makes memory for numbers."""
    if type_.dtype.kind != "complex":
        return make(type_)
    floats = type_of_parts(type_)
    if type_.shape == (INT64_MAX,):
        floats = TensorType(type_.dtype.part, type_.shape, (1,), type_.align, type_.space)
    made = make(floats)
    return low.state.with_beginning(low.builder.view(made, type_), made)


def fitted(low: Lowering, dtype: DType, value: Any, name: str, node: ast.AST) -> Any:
    """The value as an element of the tensor of this name: an IR value, or a complex number."""
    if dtype.kind != "complex":
        return stored(low, dtype, value, name, node)
    known = coercion.plain(value)
    if not coercion.is_complex(known) and not isinstance(known, Number):
        if not coercion.is_python_number(known):
            low.fail(node, f"expected a number, but got {describe(value)}")
    return scalars.in_dtype(low, known, dtype, node)


def store(low: Lowering, tensor: ops.Value, indices: Sequence[ops.Value], value: Any) -> None:
    """Writes what `fitted` gave."""
    if not isinstance(value, ComplexNumber):
        low.builder.store(tensor, tuple(indices), value)
        return
    floats = _parts(low, tensor)
    for part, number in enumerate((value.real, value.imag)):
        at = (*indices, low.builder.constant(Int32, part))
        low.builder.store(floats, at, number.value)


# ---- complex elements: two floats next to each other, the real part first ----


def type_of_parts(type_: TensorType) -> TensorType:
    """The type of a complex tensor's floats: one more dim, of two."""
    strides = (*(make("mul", 2, stride) for stride in type_.strides), 1)
    return TensorType(type_.dtype.part, (*type_.shape, 2), strides, type_.align, type_.space)


def _parts(low: Lowering, tensor: ops.Value) -> ops.Value:
    view = low.builder.view(tensor, type_of_parts(tensor.tensor))
    return low.state.with_beginning(view, tensor)


def _load_complex(low: Lowering, tensor: ops.Value, indices: Sequence[ops.Value]) -> ComplexNumber:
    floats = _parts(low, tensor)
    at = ((*indices, low.builder.constant(Int32, part)) for part in (0, 1))
    real, imag = (Number(low.builder.load(floats, each)) for each in at)
    return ComplexNumber(real, imag)


def stored(low: Lowering, dtype: DType, value: Any, name: str, node: ast.AST) -> ops.Value:
    """The value in the dtype of the tensor of this name."""
    if dtype in PACKED:
        low.fail(
            node,
            f"a single element of {name} cannot be written: elements of {dtype.name} share bytes, "
            "and another thread may write the others",
            expected=f"{'pairs' if dtype.bits == 4 else 'fours'} of elements, written together",
            hint=in_groups(dtype),
        )
    require_element(low, dtype, node)
    if isinstance(value, ComplexNumber) or coercion.is_complex(value):
        low.fail(
            node,
            f"a complex number is stored to {name}, whose elements are {dtype.name}",
            expected="one number",
            hint="store a part of it, z.real or z.imag, or abs(z)",
        )
    number = coercion.as_number(low, value, node, dtype)
    if not stores_implicitly(number.dtype, dtype):
        low.fail(
            node,
            f"a {number.dtype.name} is stored to {name}, whose elements are {dtype.name}",
            expected=f"a value that becomes {dtype.name} without losing its kind",
            hint=f"convert it, fe.{dtype.__name__}(x)",
        )
    return coercion.convert(low, number, dtype).value
