"""`fe.make_ptr` in a compiled function: a pointer of a run-time address."""

from __future__ import annotations

import ast
from typing import Any, Final

from ferrule.language.ir import ops
from ferrule.language.ir.types import TensorType
from ferrule.language.lowering.arguments import Intrinsic, bound
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.descriptions import describe
from ferrule.language.lowering.numbers import coercion
from ferrule.language.lowering.tensors import tensor_facts
from ferrule.language.values import PointerView
from ferrule.specs import AddressSpace, Int64, Uint64, as_dtype, pointers
from ferrule.specs.expr import INT64_MAX
from ferrule.specs.params import check_alignment

_SPACES: Final = (AddressSpace.generic, AddressSpace.gmem, AddressSpace.smem)


def _make(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> PointerView:
    """`fe.make_ptr(dtype, value, mem_space=generic, assumed_align=None)`."""
    words = "dtype value mem_space= assumed_align="
    given, value, space, align = bound(low, words, args, kwargs, node)
    dtype = coercion.at_compile_time(low, node, lambda: as_dtype(given))
    space = AddressSpace.generic if space is None else space
    if space not in _SPACES:
        low.fail(
            node,
            f"make_ptr into {describe(space)}",
            expected="AddressSpace.generic, gmem or smem, known at compile time",
        )
    if space is AddressSpace.smem and low.kind == "host":
        low.fail(node, "make_ptr into shared memory is known only in a kernel")
    bytes_ = coercion.at_compile_time(low, node, lambda: check_alignment(dtype, align))
    address = _address(low, value, node)
    type_ = TensorType(dtype, (INT64_MAX,), (1,), bytes_, space)
    result = ops.Value(type_, "pointer")
    low.builder.append(ops.Pointer(result, address))
    return PointerView(result, "make_ptr(...)")


def _address(low: Lowering, value: Any, node: ast.Call) -> ops.Value:
    if isinstance(value, PointerView):
        value = tensor_facts.toint(low, value, [], {}, node)
    number = coercion.as_number(low, value, node, Int64)
    if not number.dtype.is_integer or number.dtype.bits < 32:
        low.fail(
            node,
            f"the address of make_ptr is {describe(value)}",
            expected="an integer of 64 bits, or a pointer",
        )
    if number.dtype.bits == 32:  # of shared memory, never negative
        return low.builder.cast(Int64, low.builder.cast(Uint64, number.value))
    return coercion.convert(low, number, Int64).value


TABLE: Final[dict[Any, Intrinsic]] = {pointers.make_ptr: _make}
"""The emitter of this function."""
