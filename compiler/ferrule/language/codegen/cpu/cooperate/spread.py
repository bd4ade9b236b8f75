"""The memory layout of a thread's private tensors that outlive a phase.

With a layout thread by thread, a phase in which all threads read one element gathers it from many
places.  `found` are the tensors with a layout element by element (element 0 of all threads first):
those that the kernel accesses with compile-time indices.  A tensor that a thread indexes in a loop,
or passes on whole, remains contiguous.
"""

from __future__ import annotations

from ferrule.language.codegen.facts import lanes
from ferrule.language.ir import ops
from ferrule.language.ir.types import TensorType
from ferrule.specs import AddressSpace

_PADDING = 16
"""Elements between two rows, which would otherwise start in the same set of a cache."""


def found(kernel: ops.Function) -> frozenset[ops.Value]:
    """The tensors of a kernel for a layout element by element."""
    constants, own, others = set[ops.Value](), set[ops.Value](), set[ops.Value]()
    for op in kernel.facts.ops:
        match op:
            case ops.Constant(result):
                constants.add(result)
            case ops.Fragment(result):
                own.add(result)
            case ops.Load(_, _, indices) if constants.issuperset(indices):
                pass
            case ops.Store(_, indices, _) if constants.issuperset(indices):
                pass
            case _:
                others.update(op.operands)
    return frozenset() if lanes.has_wide_parts(kernel) else frozenset(own - others)


def pitch(threads: int) -> int:
    """The distance between two elements of one thread, for a block with this number of threads."""
    return -(-threads // _PADDING) * _PADDING + _PADDING


def spread(tensor: ops.Value, pitch: int) -> ops.Value:
    """The tensor with its elements at this distance, in memory."""
    type_ = tensor.tensor
    strides = tuple(stride * pitch for stride in type_.strides if isinstance(stride, int))
    size = type_.dtype.itemsize
    return ops.Value(
        TensorType(type_.dtype, type_.shape, strides, size, AddressSpace.gmem), tensor.hint
    )
