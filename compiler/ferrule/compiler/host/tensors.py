"""Tensors in host code: DLTensors on the stack, new tensors, and the addresses of their
elements."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from llvmlite import ir

from ferrule.compiler.support.entries import ALIGNED, ALIGNMENT, ALLOCATE, SHRINK, VIEW
from ferrule.runtime.abi import DeviceType
from ferrule.runtime.llvm.emitter import Emitter
from ferrule.runtime.llvm.layouts import DLTENSOR, I8, I32, I64, PTR, TENSOR_OBJECT
from ferrule.specs import DType
from ferrule.specs.deferred import dataclass

_ALLOCATE: Final = ir.FunctionType(I32, [PTR, PTR, PTR])
_SHRINK: Final = ir.FunctionType(I32, [PTR, PTR])
_ALLOCATE_ALIGNED: Final = ir.FunctionType(I32, [PTR, PTR, PTR, I64])


@dataclass(frozen=True, slots=True)
class DLTensor:
    """The fields of a DLTensor; `shape` and `strides` are addresses of int64, strides may be
    null."""

    data: ir.Value
    device: DeviceType
    index: ir.Value
    dtype: DType
    rank: int
    shape: ir.Value
    strides: ir.Value

    def store(self, e: Emitter, name: str = "prototype") -> ir.Value:
        """Store it on the stack; returns its address."""
        place = e.alloca(DLTENSOR, name=name)
        for field, value in (
            ("data", self.data),
            ("device_type", e.const_i32(self.device)),
            ("device_id", self.index),
            ("ndim", e.const_i32(self.rank)),
            ("dtype", e.const_i32(self.dtype.dlpack)),
            ("shape", self.shape),
            ("strides", self.strides),
            ("byte_offset", e.const_i64(0)),
        ):
            e.store_field(place, DLTENSOR, field, value)
        return place


def dims(e: Emitter, count: int, values: Iterable[ir.Value], name: str) -> ir.Value:
    """The address of this number of int64 on the stack, with space for at least one.

    Each value is stored as soon as the iterator yields it, so the iterator may emit its code.
    """
    array = e.alloca(I64, max(1, count), name=name)
    for axis, value in enumerate(values):
        e.store(value, e.index(array, I64, axis))
    return array


def allocate(
    e: Emitter, prototype: ir.Value, place: ir.Value, values: ir.Value, align: int = ALIGNMENT
) -> ir.Value:
    """Allocate a tensor like a DLTensor, and store its handle at a place; returns the status.

    For an alignment beyond `ALIGNMENT`, which allocators guarantee, the strides of the DLTensor
    must point to space for as many as it has dims; else they are null.  A failure stores the values
    of its message at `values`; `support.allocation.failures` has the meanings of the statuses.
    """
    given = [prototype, place, values]
    if align <= ALIGNMENT:
        return e.call(e.symbol(ALLOCATE, _ALLOCATE), given, "status")
    given.append(e.const_i64(align))
    return e.call(e.symbol(ALIGNED, _ALLOCATE_ALIGNED), given, "status")


def shrink(e: Emitter, prototype: ir.Value, place: ir.Value) -> ir.Value:
    """Replace the tensor whose handle is at a place by its part that a DLTensor describes, with
    strides; returns the status, 1 for the fault `support.allocation.NO_VIEWS`."""
    return e.call(e.symbol(SHRINK, _SHRINK), [prototype, place], "status")


def view(e: Emitter, prototype: ir.Value, place: ir.Value) -> ir.Value:
    """Replace the tensor whose handle is at a place by a view of it that a DLTensor describes, with
    strides; returns the status, as of `shrink`."""
    return e.call(e.symbol(VIEW, _SHRINK), [prototype, place], "status")


def elements(e: Emitter, handle: ir.Value) -> ir.Value:
    """The address of the first element of a tensor object."""
    data = e.load_field(handle, TENSOR_OBJECT, "dl.data")
    return e.index(data, I8, e.load_field(handle, TENSOR_OBJECT, "dl.byte_offset"))
