"""Requirements of an access to an element: accessible memory, a dtype with values, a fitting
value."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any, Final

from ferrule.language.ir import ops
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.numbers import scalars
from ferrule.language.promotion import stores_implicitly
from ferrule.language.values import Number, SwizzledView, TensorView
from ferrule.specs import DType, Float4E2M1FN, Float32, Int4, Int8, Uint4, Uint8

PACKED: Final[dict[DType, DType]] = {Int4: Int8, Uint4: Uint8, Float4E2M1FN: Float32}
"""Elements of which two share a byte, and the dtype of one that is read: `packed` has the code."""


def load(low: Lowering, tensor: ops.Value, indices: Sequence[ops.Value]) -> Number:
    """An element of a tensor that can be read."""
    if tensor.tensor.dtype not in PACKED:
        return Number(low.builder.load(tensor, tuple(indices)))
    from ferrule.language.lowering.tensors import packed

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
            f"single elements of {dtype.name} have no bytes: two share one",
            expected="a bool, an integer or a float of 8 to 64 bits",
            hint=f"elements of a tensor are read as {PACKED[dtype].name}, and written in pairs",
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
    if dtype not in PACKED:
        require_element(low, dtype, node)


def stored(low: Lowering, dtype: DType, value: Any, name: str, node: ast.AST) -> ops.Value:
    """The value in the dtype of the tensor of this name."""
    if dtype in PACKED:
        low.fail(
            node,
            f"a single element of {name} cannot be written: two elements of {dtype.name} share a "
            "byte, and another thread may write the other",
            expected="pairs of elements, written together",
            hint="fe.zipped_divide(a, (2,))[None, i].store(v), with a vector v of two numbers",
        )
    require_element(low, dtype, node)
    number = scalars.as_number(low, value, node, dtype)
    if not stores_implicitly(number.dtype, dtype):
        low.fail(
            node,
            f"a {number.dtype.name} is stored to {name}, whose elements are {dtype.name}",
            expected=f"a value that becomes {dtype.name} without losing its kind",
            hint=f"convert it, fe.{dtype.__name__}(x)",
        )
    return scalars.convert(low, number, dtype).value
