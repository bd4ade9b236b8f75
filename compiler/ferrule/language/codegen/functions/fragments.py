"""Tensors of the running thread only: stack memory, which LLVM promotes to registers.

It does so unless an index is known only at run time.
"""

from __future__ import annotations

from llvmlite import ir

from ferrule.language.codegen.values.scalars import memory_type
from ferrule.language.ir import ops
from ferrule.runtime.llvm.emitter import Emitter
from ferrule.runtime.llvm.layouts import I1, I8, I64, PTR, VOID


def room(e: Emitter, tensor: ops.Value) -> ir.Value:
    """The address of a new tensor.

    It is filled with zeros, although the IR does not require it: LLVM could give uninitialised
    memory a different value at each read.
    """
    type_ = tensor.tensor
    count = 1
    for size, stride in zip(type_.shape, type_.strides, strict=True):
        assert isinstance(size, int) and isinstance(stride, int)
        count += (size - 1) * stride
    place = e.alloca(memory_type(type_.dtype), count, name=tensor.hint)
    place.align = type_.align
    size_in_bytes = ir.Constant(I64, count * type_.dtype.itemsize)
    fill = e.symbol("llvm.memset.p0.i64", ir.FunctionType(VOID, [PTR, I8, I64, I1]))
    e.call(fill, [place, ir.Constant(I8, 0), size_in_bytes, ir.Constant(I1, 0)])
    return place
