"""What an access to an element needs: memory in reach, a dtype with values, a value that fits."""

from __future__ import annotations

import ast
from typing import Any

from ferrule.language.ir import ops
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.numbers import scalars
from ferrule.language.promotion import stores_implicitly
from ferrule.language.values import TensorView
from ferrule.specs import DType


def require_reachable(low: Lowering, tensor: TensorView, node: ast.AST) -> None:
    """Host code has no access to the memory of a GPU."""
    if low.kind == "host" and low.state.target != "cpu" and not tensor.type.is_own:
        low.fail(
            node,
            f"{tensor.name} is on a GPU: host code cannot read or write its elements",
            hint=f"do it in a kernel, or with whole tensors, {tensor.name}[:] = …",
        )


def require_element(low: Lowering, dtype: DType, node: ast.AST) -> None:
    """Some dtypes are storage: their elements have no values."""
    small_float = dtype.kind == "float" and dtype.bits < 16
    if dtype.kind == "complex" or dtype.bits < 8 or small_float:
        low.fail(
            node,
            f"elements of {dtype.name} cannot be read or written yet",
            expected="a bool, an integer of 8 to 64 bits, or a float of 16 to 64 bits",
        )


def stored(low: Lowering, dtype: DType, value: Any, name: str, node: ast.AST) -> ops.Value:
    """The value in the dtype of the tensor of this name."""
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
