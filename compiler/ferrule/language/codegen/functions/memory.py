"""Elements of tensors: their addresses, loads and stores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from llvmlite import ir

from ferrule.compiler import halves
from ferrule.language.codegen.functions import hints
from ferrule.language.codegen.functions.lowering import FunctionLowering
from ferrule.language.codegen.values.scalars import memory_type
from ferrule.language.ir import ops
from ferrule.language.ir.types import TensorType
from ferrule.runtime.llvm.layouts import I1, I8, I32, I64
from ferrule.specs import Boolean, Dim, Int32, Sym, TFloat32
from ferrule.specs.expr import make
from ferrule.specs.intervals import interval, is_bounded

if TYPE_CHECKING:
    from ferrule.specs.implied import Product


def load(lowering: FunctionLowering, tensor: ops.Value, indices: Sequence[ops.Value]) -> ir.Value:
    """An element of a tensor."""
    place, align, kind = element(lowering, tensor, indices)
    loaded = lowering.b.load(place, name="load", align=align, typ=kind)
    _mark(lowering, loaded, tensor)
    if tensor in lowering.unwritten:
        loaded.set_metadata("invariant.load", lowering.emitter.module.add_metadata([]))
    if tensor.tensor.dtype is Boolean:
        return lowering.b.icmp_unsigned("!=", loaded, ir.Constant(I8, 0))
    if tensor.tensor.dtype is TFloat32:
        return halves.narrow(lowering.emitter, TFloat32, loaded)
    return loaded


def store(
    lowering: FunctionLowering, tensor: ops.Value, indices: Sequence[ops.Value], value: ops.Value
) -> None:
    """Writes an element of a tensor."""
    place, align, kind = element(lowering, tensor, indices)
    stored = lowering.values[value]
    if stored.type == I1:
        stored = lowering.b.zext(stored, kind)
    _mark(lowering, lowering.b.store(stored, place, align=align), tensor)


def _mark(lowering: FunctionLowering, access: ir.Instruction, tensor: ops.Value) -> None:
    """Marks a load or store as parallel, if it is.

    Threads that run one after the other have their private tensors at one address.
    """
    if lowering.group is not None and not tensor.tensor.is_own:
        hints.mark_access(access, lowering.group)


def element(
    lowering: FunctionLowering, tensor: ops.Value, indices: Sequence[ops.Value]
) -> tuple[ir.Value, int, ir.Type]:
    """The address of an element, its alignment, and its type in memory."""
    type_ = tensor.tensor
    kind = memory_type(type_.dtype)
    if lowering.narrow and fits_int32(type_, lowering.limits):
        offset = _narrow_offset(lowering, tensor, indices)
        place = lowering.b.gep(lowering.values[tensor], [offset], source_etype=kind)
    else:
        place = _address(lowering, tensor, indices, kind)
    return place, lowering.multiples.address(tensor, indices), kind


def start(lowering: FunctionLowering, tensor: ops.Value, indices: Sequence[ops.Value]) -> ir.Value:
    """The start address of a view; its elements may have any dtype."""
    if not indices:
        return lowering.values[tensor]
    return _address(lowering, tensor, indices, ir.ArrayType(I8, tensor.tensor.dtype.itemsize))


def _address(
    lowering: FunctionLowering, tensor: ops.Value, indices: Sequence[ops.Value], kind: ir.Type
) -> ir.Value:
    """The address of an element; `kind` has the size of one."""
    offset: ir.Value | None = None
    for index, stride in zip(indices, tensor.tensor.strides, strict=True):
        step = lowering.as_i64(index) if stride == 1 else _scaled(lowering, index, stride)
        offset = step if offset is None else lowering.b.add(offset, step)
    data = lowering.values[tensor]
    return data if offset is None else lowering.b.gep(data, [offset], source_etype=kind)


def fits_int32(type_: TensorType, limits: Sequence[Product] = ()) -> bool:
    """Whether bounds of sizes, and limits of their products, say that the offset of each element
    fits 32 bits."""
    dims = [each for each in zip(type_.shape, type_.strides, strict=True) if each[1] != 0]
    if not limits and not any(is_bounded(dim) for pair in dims for dim in pair):
        return False
    positive = {each for each in type_.shape if isinstance(each, Sym)}  # or it has no element
    return sum(_reach(*each, positive, limits) for each in dims) <= Int32.range[1]


def _reach(size: Dim, stride: Dim, positive: set[Sym], limits: Sequence[Product]) -> int:
    """How far the last element of a dim is from the first, at most."""
    low, high = interval(stride)
    reach = max(interval(size)[1] - 1, 0) * max(abs(low), abs(high))
    if not limits:
        return reach
    from ferrule.specs.implied import most

    product = most(make("mul", size, stride), positive, limits)
    return reach if product is None else min(reach, product)


def _narrow_offset(
    lowering: FunctionLowering, tensor: ops.Value, indices: Sequence[ops.Value]
) -> ir.Value:
    """The offset of an element from the first, computed in 32 bits: no element is further away."""
    b, offset = lowering.b, ir.Constant(I32, 0)
    for index, stride in zip(indices, tensor.tensor.strides, strict=True):
        step = b.trunc(lowering.as_i64(index), I32)
        if stride != 1:
            step = b.mul(step, b.trunc(lowering.dim(stride), I32), flags=("nsw",))
        offset = b.add(offset, step, flags=("nsw",))
    return b.sext(offset, I64)


def _scaled(lowering: FunctionLowering, index: ops.Value, stride: Dim) -> ir.Value:
    """An index times the stride of its dim."""
    return lowering.b.mul(lowering.as_i64(index), lowering.dim(stride))
