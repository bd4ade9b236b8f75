"""`fe.arch.wgmma…`: products of matrices in shared memory by four warps."""

from __future__ import annotations

import ast
from typing import Any, Final

from ferrule.language import layouts
from ferrule.language.faces import tensor_cores as faces
from ferrule.language.faces.tensor_cores import SharedMatrix
from ferrule.language.ir import ops, tensor_cores
from ferrule.language.ir.tensor_cores import WarpgroupMma
from ferrule.language.ir.types import TensorType
from ferrule.language.lowering.arguments import Intrinsic, bound
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.descriptions import describe
from ferrule.language.lowering.device.asynchronous import controls, group_count
from ferrule.language.lowering.device.shared_memory import shared_pointer
from ferrule.language.lowering.device.tensor_cores import filled
from ferrule.language.lowering.device.threads import place, require_kernel
from ferrule.language.lowering.numbers import coercion
from ferrule.language.values import PointerView, TensorView, Vector
from ferrule.specs import AddressSpace, Boolean, DType

_ALIGN: Final = 16


def _wgmma(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> None:
    """`fe.arch.wgmma(acc, a, b, of_b, of_a=None, *, accumulate=True)`."""
    words = "acc a b of_b of_a= accumulate="
    acc, a, b, of_b, of_a, accumulate = bound(low, words, args, kwargs, node)
    require_kernel(low, "wgmma", node)
    right = _in_shared_memory(low, "b", b, of_b, node)
    if of_a is None:
        left = _in_registers(low, a, right.type.dtype, node)
    else:
        left = _in_shared_memory(low, "a", a, of_a, node).value
    d = _fragment(low, "the acc of wgmma", acc, node)
    _require_dtypes(low, left.tensor.dtype, right.type.dtype, d.tensor.dtype, node)
    adds = True if accumulate is None else accumulate
    number = coercion.as_number(low, adds, node, Boolean)
    condition = coercion.convert(low, number, Boolean).value
    op = WarpgroupMma(d, left, right.value, condition, of_a, of_b, place(low, node))
    if not tensor_cores.has_columns(op.columns, d.tensor.dtype):
        low.fail(
            node,
            f"the acc of wgmma has {op.columns // 2} elements of {d.tensor.dtype.name}",
            expected="half as many as B has columns: a multiple of 4 from 4 to 128, of Int32 from"
            " 16 on a multiple of 8",
        )
    low.state.writes += 1
    low.builder.append(op)


def _in_shared_memory(
    low: Lowering, name: str, pointer: Any, layout: Any, node: ast.Call
) -> PointerView:
    found = shared_pointer(low, f"the {name} of wgmma", pointer, node)
    dtype = found.type.dtype
    if not isinstance(layout, SharedMatrix):
        low.fail(
            node,
            f"the of_{name} of wgmma is {describe(layout)}",
            expected="how the matrix lies in shared memory",
            hint="arch.SharedMatrix(swizzle=128, stride=1024)",
        )
    fault = layout.fault(dtype)
    if fault is not None:
        low.fail(node, f"the of_{name} of wgmma has {fault}")
    return found


def _in_registers(low: Lowering, value: Any, dtype: DType, node: ast.Call) -> ops.Value:
    """A as a fragment, of so many elements as a thread has."""
    if isinstance(value, Vector):
        found = filled(low, value, "a")
    elif isinstance(value, TensorView) and value.type.is_own:
        found = _fragment(low, "the a of wgmma", value, node)
    else:
        low.fail(
            node,
            f"the a of wgmma is {describe(value)}",
            expected="a fragment or a vector, or, with of_a, a pointer into shared memory",
        )
    (count,), wanted = found.tensor.shape, tensor_cores.DEPTH_BYTES // dtype.itemsize // 2
    if count != wanted:
        low.fail(
            node,
            f"the a of wgmma has {count} elements",
            expected=f"{wanted} of {dtype.name}, the part of a thread",
        )
    return found


def _fragment(low: Lowering, what: str, value: Any, node: ast.Call) -> ops.Value:
    """The elements of a fragment, in the order of memory."""
    if not (isinstance(value, TensorView) and value.type.is_own):
        low.fail(
            node,
            f"{what} is {describe(value)}",
            expected="a fragment",
            hint="fe.make_fragment(64, fe.Float32)",
        )
    size, cosize = layouts.size(value.layout), layouts.cosize(value.layout)
    if size != cosize:
        low.fail(
            node,
            f"{what} has the layout {value.layout}",
            expected="a compact one: the elements of a thread are in neighbouring registers",
        )
    assert isinstance(size, int)
    type_ = TensorType(value.type.dtype, (size,), (1,), _ALIGN, AddressSpace.rmem)
    return low.builder.view(value.value, type_)


def _require_dtypes(low: Lowering, a: DType, b: DType, d: DType, node: ast.Call) -> None:
    known = tensor_cores.WGMMA_DTYPES
    for name, dtype in (("a", a), ("b", b)):
        if dtype not in known:
            low.fail(
                node,
                f"the {name} of wgmma has elements of {dtype.name}",
                expected=" or ".join(each.name for each in known),
            )
    if not tensor_cores.are_factors(a, b, tensor_cores.WGMMA_DTYPES):
        low.fail(node, f"wgmma of {a.name} and {b.name}", expected="a and b of one dtype")
    if d not in known[a]:
        low.fail(
            node,
            f"wgmma of {a.name} adds to {d.name}",
            expected="an acc of " + " or ".join(each.name for each in known[a]),
        )


def _wait_group(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> None:
    """`fe.arch.wgmma_wait_group(n)`."""
    (count,) = bound(low, "n", args, kwargs, node)
    require_kernel(low, "wgmma_wait_group", node)
    known = group_count(low, "wgmma_wait_group", count, node)
    low.state.writes += 1
    low.builder.control("wgmma_wait_group", known)


TABLE: Final[dict[Any, Intrinsic]] = {
    faces.wgmma: _wgmma,
    faces.wgmma_fence: controls("wgmma_fence"),
    faces.wgmma_commit_group: controls("wgmma_commit_group"),
    faces.wgmma_wait_group: _wait_group,
}
"""The emitters of these functions."""
